use crate::requests::service::{MALFORMED, ONE_OUTPUT, body_with};
use crate::requests::{Service, coinbase2};

const NO_WHOLE_NUMBER: &str = "Block height must be a whole number from 1 to 2147483647";
const NOT_POSITIVE: &str = "Block height must be positive";
const NO_OBJECT: &str = "The request body must be a JSON object";

#[test]
fn a_block_height_is_a_positive_whole_number() {
    let service = Service::start();
    let height = |text: &str| body_with(&[("blockHeight", text)]);
    for missing in ["", "null", "\"\""] {
        service.check_post(height(missing), 400, "Block height must be supplied");
    }
    for not_positive in [
        "0",
        "-0",
        "-1",
        "\"0\"",
        "\"-1\"",
        "-1.5",
        "-1e400",
        "-2147483648",
        "-1180591620717411303424",
    ] {
        service.check_post(height(not_positive), 422, NOT_POSITIVE);
    }
    for other in [
        "\"1000 \"",
        "\"+1000\"",
        "\"x\"",
        "true",
        "false",
        "[]",
        "[1000]",
        "{}",
        "1.5",
        "1000.0",
        "0.5",
        "1e3",
        "1E400",
        "2147483648",
        "4294967297",
        "18446744073709551616",
        &"9".repeat(1000),
    ] {
        service.check_post(height(other), 422, NO_WHOLE_NUMBER);
    }
    for malformed in ["01000", "+1", ".5", "1.", "0x10", "NaN", "Infinity", "'1'"] {
        service.check_post(height(malformed), 400, "The request body is not JSON: …");
    }
    for right in ["1", "2147483647"] {
        service.post_ok(height(right));
    }
    assert_eq!(service.post_ok(height("\"1000\"")), service.post_ok(height("1000")));
    service.check_alive();
}

#[test]
fn an_alias_is_a_string_that_selects_an_identity() {
    let service = Service::start();
    let alias = |text: &str| body_with(&[("alias", text)]);
    for missing in ["", "null", "\"\""] {
        service.check_post(alias(missing), 400, "Alias must be supplied");
    }
    let lone_surrogate = r#""first\ud83d""#;
    for other in ["1", "0", "true", "false", "[]", "[\"first\"]", "{}", lone_surrogate] {
        service.check_post(alias(other), 422, "Alias must be a string");
    }
    let long = "a".repeat(10_000);
    for unknown in [
        "unknown",
        "FIRST",
        " first",
        "first/",
        "../first",
        "..",
        "/etc/passwd",
        "😀",
        "%66irst",
        &long,
    ] {
        let refusal = format!("Alias \"{unknown}\" doesn't exist");
        service.check_post(alias(&format!("\"{unknown}\"")), 422, &refusal);
    }
    for (escaped, unknown) in
        [(r#""first\u0000""#, "first\0"), (r#""a\"b\n""#, "a\"b\n"), (r#""\ud83d\ude00""#, "😀")]
    {
        let refusal = format!("Alias \"{unknown}\" doesn't exist");
        service.check_post(alias(escaped), 422, &refusal);
    }
    assert_eq!(service.post_ok(alias(r#""f\u0069rst""#)), service.post_ok(body_with(&[])));
    service.check_alive();
}

#[test]
fn a_coinbase2_is_hex_in_either_case() {
    let service = Service::start();
    let right = coinbase2("01", ONE_OUTPUT);
    let with = |text: &str| body_with(&[("coinbase2", text)]);
    for missing in ["", "null", "\"\""] {
        service.check_post(with(missing), 400, "Coinbase 2 must be supplied");
    }
    let quoted = |text: &str| format!("\"{text}\"");
    for other in [
        "1",
        "true",
        "[]",
        "{}",
        &format!("[{}]", quoted(&right)),
        &quoted(&right[1..]),
        &quoted(&format!("{right}0")),
        &quoted(&format!("0x{right}")),
        &quoted(&format!(" {right}")),
        &quoted(&format!("{right}\\n")),
        &quoted(&right.replace('a', "g")),
        &quoted(&right.replace("ffff", "ｆｆｆｆ")),
        &quoted(&format!("{right}\\ud83d")),
        &quoted("zz"),
    ] {
        service.check_post(with(other), 422, "Invalid Coinbase 2");
    }
    let answer = service.post_ok(body_with(&[]));
    assert_eq!(service.post_ok(with(&quoted(&right.to_uppercase()))), answer);
    assert_eq!(answer, answer.to_lowercase());
    service.check_alive();
}

#[test]
fn the_first_mistake_of_a_body_is_the_one_that_is_told() {
    let service = Service::start();
    let mut members =
        vec![("blockHeight", ""), ("alias", ""), ("coinbase2", "\"zz\""), ("jobData", "1")];
    let mut check = |change: Option<(&'static str, &'static str)>, status, text| {
        if let Some((name, value)) = change {
            let member = members.iter_mut().find(|(present, _)| *present == name).unwrap();
            member.1 = value;
        }
        service.check_post(body_with(&members), status, text);
    };
    check(None, 400, "Block height must be supplied");
    check(Some(("blockHeight", "-1")), 422, NOT_POSITIVE);
    check(Some(("blockHeight", "1.5")), 422, NO_WHOLE_NUMBER);
    check(Some(("blockHeight", "1")), 400, "Alias must be supplied");
    check(Some(("alias", "1")), 422, "Alias must be a string");
    check(Some(("alias", "\"unknown\"")), 422, "Alias \"unknown\" doesn't exist");
    check(Some(("alias", "\"first\"")), 422, "Invalid Coinbase 2");
    check(Some(("coinbase2", "")), 400, "Coinbase 2 must be supplied");
    check(Some(("coinbase2", "\"00\"")), 422, "Invalid jobData: must be an object");
    check(Some(("jobData", "{}")), 422, MALFORMED);
    service.check_alive();
}

#[test]
fn a_body_is_one_json_object() {
    let service = Service::start();
    let right = body_with(&[]);
    for empty in ["", " ", "\r\n\t ", "{}", " { } "] {
        service.check_post(empty, 400, "Block height must be supplied");
    }
    let in_array = format!("[{right}]");
    let array_of_members = "[1000, \"first\", \"00\", {}]";
    let with_bom = format!("\u{feff}{right}");
    for other in [
        "null",
        "true",
        "1",
        "\"x\"",
        "[]",
        &in_array,
        array_of_members,
        "x",
        "<xml/>",
        "\0",
        &with_bom,
    ] {
        service.check_post(other, 400, NO_OBJECT);
    }
    for malformed in [
        "{",
        "{\"",
        "{\"blockHeight\"",
        "{\"blockHeight\":",
        "{blockHeight:1}",
        "{'blockHeight':1}",
        "{} {}",
        "{}x",
        &right[..right.len() - 1],
        &format!("{right}}}"),
        &format!("{right}\0"),
        &right.replace(',', ",,"),
        &right.replace("first", "fi\nrst"),
        &right.replace("first", "\\x"),
        &right.replace("first", "\\ud83"),
        &body_with(&[("blockHeight", "1,\"blockHeight\":1")]),
        &body_with(&[("alias", "\"first\",\"alias\":\"rot\"")]),
        &body_with(&[("jobData", "{},\"jobData\":null")]),
        &body_with(&[("\\ud83d", "1")]),
    ] {
        service.check_post(malformed, 400, "The request body is not JSON: …");
    }
    for not_utf_8 in
        [&b"\xff\xfe{\0}\0"[..], b"{\"alias\":\"\xff\"}", b"{\"alias\":\"\xed\xa0\x80\"}"]
    {
        service.check_post(not_utf_8, 400, "The request body is not UTF-8");
    }
    for also_right in [
        format!("\r\n {right}\t\n"),
        body_with(&[("other", "1,\"other\":2"), ("blockheight", "\"x\""), ("", "[]")]),
        right.replace("alias", "\\u0061lias"),
    ] {
        assert_eq!(service.post_ok(also_right), service.post_ok(&right));
    }
    service.check_alive();
}

#[test]
fn deep_nesting_does_no_harm_anywhere() {
    const LEVELS: usize = 100_000;
    let service = Service::start();
    let closed = |open: &str, inner: &str, close: &str| {
        format!("{}{inner}{}", open.repeat(LEVELS), close.repeat(LEVELS))
    };
    let arrays = closed("[", "", "]");
    let objects = closed("{\"a\":", "1", "}");
    for nested in [&arrays, &objects] {
        service.check_post(body_with(&[("blockHeight", nested)]), 422, NO_WHOLE_NUMBER);
        service.check_post(body_with(&[("alias", nested)]), 422, "Alias must be a string");
        service.check_post(body_with(&[("coinbase2", nested)]), 422, "Invalid Coinbase 2");
        for member in ["miningCandidate", "getInfo", "feeSpec"] {
            for value in [nested.clone(), format!("{{\"fees\":{nested}}}")] {
                let job = format!("{{\"{member}\":{value}}}");
                let reply = service.server.post("/coinbase2", body_with(&[("jobData", &job)]));
                assert!([200, 422].contains(&reply.status), "{member}: {}", reply.body);
            }
        }
        service.post_ok(body_with(&[("other", nested)]));
    }
    service.check_post(&arrays, 400, NO_OBJECT);
    service.check_post(&arrays[..LEVELS], 400, NO_OBJECT);
    service.check_post(&objects, 400, "Block height must be supplied");
    for open in ["[", "{\"a\":"] {
        let body = format!("{{\"a\":{}", open.repeat(LEVELS));
        service.check_post(body, 400, "The request body is not JSON: …");
    }
    service.check_alive();
}

#[test]
fn the_content_type_does_not_matter() {
    let service = Service::start();
    let body = body_with(&[]);
    let answer = service.post_ok(&body);
    for content_type in [
        "",
        "Content-Type: application/json; charset=utf-8\r\n",
        "Content-Type: text/plain\r\n",
        "Content-Type: application/x-www-form-urlencoded\r\n",
        "Content-Type: multipart/form-data\r\n",
        "Content-Type: \r\n",
        "Content-Type: \u{e9};;\r\n",
    ] {
        let request = format!(
            "POST /coinbase2 HTTP/1.1\r\nHost: localhost\r\n{content_type}Content-Length: {}\r\n\
             Connection: close\r\n\r\n{body}",
            body.len()
        );
        let reply = service.raw(request).unwrap();
        assert_eq!((reply.status, &reply.body), (200, &answer), "{content_type}");
    }
}
