use crate::requests::Service;

const HASH: &str = "70f5701644897c92b60e98dbbfe72e1cfd7a2728c6fa3a29c4b4f6e986b0ccaa";
const NO_HASH: &str = "Hash must be 64 characters (32 byte hex string)";
const NO_HEIGHT: &str = "Must enter a valid height";

#[test]
fn a_height_in_a_path_is_digits_of_a_block_height() {
    let service = Service::start();
    for no_digits in
        ["x", "-1", "+1", "1.5", "1e3", "0x10", "1x", "%201", "%D9%A1", "1%00", "NaN", "1,000"]
    {
        service.check_get(&format!("/opreturn/first/{no_digits}"), 404, "Not Found");
    }
    for beyond in [
        "0",
        "00",
        "2147483648",
        "4294967296",
        "4294967297",
        "18446744073709551617",
        &"9".repeat(30),
        &"0".repeat(30),
        &"1".repeat(8000),
    ] {
        service.check_get(&format!("/opreturn/first/{beyond}"), 422, NO_HEIGHT);
    }
    let script = service.server.text("/opreturn/first/1000");
    for same in ["01000", &format!("{}1000", "0".repeat(30)), "%31000", "1000/", "1000?"] {
        assert_eq!(service.server.text(&format!("/opreturn/first/{same}")), script, "{same}");
    }
    let unknown = "the query parameter \"x\" is not known here";
    service.check_get("/opreturn/first/1000?x=1", 400, unknown);
    service.server.text("/opreturn/first/2147483647");
    service.check_alive();
}

#[test]
fn the_words_of_a_path_are_the_same_in_any_letter_case() {
    let service = Service::start();
    let script = service.server.text("/opreturn/first/1000");
    for same in ["/OPRETURN/first/1000", "/OpReturn/first/1000/"] {
        assert_eq!(service.server.text(same), script, "{same}");
    }
    let key = service.key_of("first");
    assert_eq!(service.server.text("/MinerId/first"), key);
    assert_eq!(service.server.text("/opreturn/first/IsValid"), "true");
    let signed = service.server.text(&format!("/minerid/first/sign/{HASH}"));
    assert_eq!(service.server.text(&format!("/minerid/first/Sign/{HASH}")), signed);
    let body = crate::requests::service::body_with(&[]);
    let reply = service.server.post("/Coinbase2", body);
    assert_eq!(reply.status, 200, "{}", reply.body);
    service.check_get("/minerid/First", 422, "Alias \"First\" doesn't exist");
    assert_eq!(service.server.text("/OPRETURN/first/Rotate"), "OK");
    assert_ne!(service.key_of("first"), key);
}

#[test]
fn whatever_is_no_alias_of_ours_is_an_unknown_alias() {
    let service = Service::start();
    let long = "a".repeat(10_000);
    for (sent, alias) in [
        ("unknown", "unknown"),
        ("FIRST", "FIRST"),
        ("first%20", "first "),
        ("first_1", "first_1"),
        ("..", ".."),
        (".", "."),
        ("%2e%2e", ".."),
        ("..%2ffirst", "../first"),
        ("..%2F..%2f..%2fetc%2fpasswd", "../../../etc/passwd"),
        ("%2Fetc%2Fpasswd", "/etc/passwd"),
        ("..%5cfirst", "..\\first"),
        ("%252e%252e", "%2e%2e"),
        ("first%00", "first\0"),
        ("%00", "\0"),
        ("%F0%9F%98%80", "😀"),
        ("%EF%BB%BFfirst", "\u{feff}first"),
        ("%22%0a%0d%0aX-Evil:%201", "\"\n\r\nX-Evil: 1"),
        ("%3Cscript%3E", "<script>"),
        ("%zz", "%zz"),
        ("%", "%"),
        ("%f", "%f"),
        ("{alias}", "{alias}"),
        (":alias", ":alias"),
        ("*", "*"),
        (&long, &long),
    ] {
        let refusal = format!("Alias \"{alias}\" doesn't exist");
        for path in [
            format!("/minerid/{sent}"),
            format!("/opreturn/{sent}/1"),
            format!("/opreturn/{sent}/isvalid"),
            format!("/opreturn/{sent}/rotate"),
            format!("/minerid/{sent}/sign/{HASH}"),
            format!("/minerid/{sent}/pksign/{HASH}"),
        ] {
            service.check_get(&path, 422, &refusal);
        }
    }
    for not_utf_8 in ["%ff", "first%C3", "%ED%A0%80"] {
        service.check_get(&format!("/minerid/{not_utf_8}"), 400, "The path is not UTF-8");
        service.check_get(&format!("/opreturn/{not_utf_8}/rotate"), 400, "The path is not UTF-8");
    }
    assert_eq!(service.key_of("fi%72st"), service.key_of("first"));
    service.check_alive();
}

#[test]
fn the_first_mistake_of_a_path_is_the_one_that_is_told() {
    let service = Service::start();
    for (path, status, text) in [
        ("/opreturn/unknown/x", 404, "Not Found"),
        ("/opreturn/unknown/0", 422, NO_HEIGHT),
        ("/opreturn/unknown/2147483648", 422, NO_HEIGHT),
        ("/opreturn/unknown/1", 422, "Alias \"unknown\" doesn't exist"),
        ("/minerid/unknown/sign/x", 422, "Alias \"unknown\" doesn't exist"),
        ("/minerid/unknown/pksign/x", 422, "Alias \"unknown\" doesn't exist"),
    ] {
        service.check_get(path, status, text);
    }
    service.check_alive();
}

#[test]
fn a_hash_is_32_bytes_of_hex_in_either_case() {
    let service = Service::start();
    for bad in [
        "0",
        &HASH[..62],
        &HASH[..63],
        &format!("{HASH}0"),
        &format!("{HASH}00"),
        &"g".repeat(64),
        &format!("0x{}", &HASH[2..]),
        &format!("%20{}", &HASH[1..]),
        &format!("%00{}", &HASH[1..]),
        &format!("{}é", &HASH[2..]).replace('é', "%C3%A9"),
        &"a".repeat(10_000),
    ] {
        service.check_get(&format!("/minerid/first/sign/{bad}"), 422, NO_HASH);
        service.check_get(&format!("/minerid/first/pksign/{bad}"), 422, NO_HASH);
    }
    for signing in ["sign", "pksign"] {
        let signed = service.server.text(&format!("/minerid/first/{signing}/{HASH}"));
        let upper = HASH.to_uppercase();
        assert_eq!(service.server.text(&format!("/minerid/first/{signing}/{upper}")), signed);
        assert_eq!(service.server.text(&format!("/minerid/first/{signing}/{HASH}/")), signed);
        assert_eq!(signed, signed.replace(&upper, HASH));
    }
    service.check_alive();
}

#[test]
fn there_is_nothing_at_other_paths() {
    let service = Service::start();
    for path in [
        "/",
        "//",
        "/x",
        "/minerid",
        "/minerid/",
        "/minerid//sign/x",
        "/minerid/first/sign",
        "/minerid/first/sign/",
        "/minerid/first/other/x",
        "/minerid/first//",
        "//minerid/first",
        "/minerid/../minerid/first",
        "/opreturn",
        "/opreturn/first",
        "/opreturn/first/",
        "/opreturn//1",
        "/opreturn/first/rotate/x",
        "/coinbase2/x",
        "/favicon.ico",
        "/%00",
        "/control",
        "/control/minerids",
        "/control/minerids/first",
        "/%63ontrol/minerids",
    ] {
        service.check_get(path, 404, "Not Found");
    }
    service.check_alive();
}

#[test]
fn the_control_routes_are_not_on_the_listener() {
    let service = Service::start();
    let before = service.site.cli_json(&["miner", "list"]);
    for (path, body) in [
        ("/control/minerids", r#"{"alias":"new"}"#),
        ("/control/minerids/first/rotate", "{}"),
        ("/control/minerids/first/vctx", "{}"),
        ("/control/minerids/first/contact", r#"{"a":"b"}"#),
        ("/control/import", r#"{"from":"/"}"#),
    ] {
        let reply = service.server.post(path, body);
        assert_eq!((reply.status, reply.body.as_str()), (404, "Not Found"), "{path}");
    }
    assert_eq!(service.site.cli_json(&["miner", "list"]), before);
    service.check_alive();
}
