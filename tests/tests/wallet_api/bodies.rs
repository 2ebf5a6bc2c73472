//! The bodies and headers of requests.

use bsv_tests::{Reply, http};

use crate::wallet_api::owner::check_errors;
use crate::wallet_api::{INVOICES, Owner, USERS, check_problem};

const RIGHT: &str = r#"{"satoshis":1}"#;
const MIB: usize = 1 << 20;

/// A valid body for a path.
fn right(path: &str) -> &'static str {
    if path == USERS { r#"{"name":"me"}"# } else { RIGHT }
}

fn start(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[..bytes.len().min(100)]).into_owned()
}

#[test]
fn a_body_is_one_json_object() {
    let owner = Owner::start();
    let with_bom = format!("\u{feff}{RIGHT}");
    for body in [
        "",
        " ",
        "\r\n\t ",
        "null",
        "true",
        "1",
        "\"x\"",
        "[]",
        &format!("[{RIGHT}]"),
        "[1,null,null,null]",
        "x",
        "<xml/>",
        "\0",
        "satoshis=1&name=me",
        &with_bom,
        "{",
        "{\"",
        "{\"satoshis\"",
        "{\"satoshis\":",
        "{satoshis:1}",
        "{'satoshis':1}",
        "{\"satoshis\":01}",
        "{\"satoshis\":+1}",
        "{\"satoshis\":.5}",
        "{\"satoshis\":1.}",
        "{\"satoshis\":0x10}",
        "{\"satoshis\":NaN}",
        "{\"satoshis\":1,}",
        "{\"satoshis\":1,,\"name\":\"me\"}",
        "{\"satoshis\":1 \"name\":\"me\"}",
        "{\"name\":\"a\nb\",\"satoshis\":1}",
        "{\"name\":\"\\x\",\"satoshis\":1}",
        "{\"name\":\"\\ud8\",\"satoshis\":1}",
        "{\"\\ud800\":\"me\",\"satoshis\":1}",
        &RIGHT[..RIGHT.len() - 1],
        &format!("{RIGHT}}}"),
        &format!("{RIGHT}x"),
        &format!("{RIGHT}\0"),
        &format!("{RIGHT} {RIGHT}"),
        &format!("{RIGHT},"),
        &format!("// comment\n{RIGHT}"),
    ] {
        for path in [INVOICES, USERS] {
            check_problem(&owner.post(path, body), 400, "malformed-body", body);
        }
    }
    for not_utf_8 in [
        &b"\xff\xfe{\0}\0"[..],
        b"{\"name\":\"\xff\",\"satoshis\":1}",
        b"{\"name\":\"\xed\xa0\x80\",\"satoshis\":1}",
        b"{\"name\":\"\xc0\xaf\",\"satoshis\":1}",
        b"{\"satoshis\":1,\"name\":\"me\"}\xc3",
    ] {
        for path in [INVOICES, USERS] {
            check_problem(&owner.post(path, not_utf_8), 400, "malformed-body", &start(not_utf_8));
        }
    }
    for also_right in [format!("\r\n {RIGHT}\t\n"), RIGHT.replace("satoshis", "\\u0073atoshis")] {
        owner.create(INVOICES, also_right);
    }
    owner.check_alive(2);
    assert_eq!(owner.get(&format!("{USERS}/1")).status, 404);
}

#[test]
fn deep_nesting_does_no_harm_anywhere() {
    const LEVELS: usize = 100_000;
    let owner = Owner::start();
    let mut created = 0;
    for (open, inner, close) in [("[", "", "]"), ("{\"a\":", "1", "}")] {
        let open = open.repeat(LEVELS);
        let closed = format!("{open}{inner}{}", close.repeat(LEVELS));
        check_problem(&owner.post(INVOICES, &open), 400, "malformed-body", "open");
        let unclosed = format!("{{\"satoshis\":1,\"x\":{open}");
        check_problem(&owner.post(INVOICES, unclosed), 400, "malformed-body", "unclosed");
        let body = format!("{{\"satoshis\":{closed}}}");
        let errors = [("satoshis", "must be an integer")];
        check_errors(&owner.post(INVOICES, body), "invalid-fields", &errors, "satoshis");
        let body = format!("{{\"satoshis\":1,\"reference\":{closed}}}");
        let errors = [("reference", "must be a string")];
        check_errors(&owner.post(INVOICES, body), "invalid-fields", &errors, "reference");
        owner.create(INVOICES, format!("{{\"satoshis\":1,\"spvRequired\":{closed}}}"));
        created += 1;
    }
    let arrays = format!("{}{}", "[".repeat(LEVELS), "]".repeat(LEVELS));
    check_problem(&owner.post(INVOICES, arrays), 400, "malformed-body", "arrays");
    owner.check_alive(created);
}

/// Sends `POST path` with these header lines and a valid body.
fn post_with(owner: &Owner, path: &str, headers: &[(&str, &str)]) -> Reply {
    owner.client().send("POST", path, headers, right(path).as_bytes())
}

#[test]
fn a_body_must_have_the_content_type_json() {
    let owner = Owner::start();
    for path in [INVOICES, USERS] {
        check_problem(&post_with(&owner, path, &[]), 415, "not-json", "no header");
        for other in [
            "",
            ";",
            "text/plain",
            "text/json",
            "application/x-www-form-urlencoded",
            "multipart/form-data",
            "application/jsonp",
            "application/json5",
            "application/problem+json",
            "application/json, text/plain",
            "json",
            "*/*",
            "\u{e9};;",
        ] {
            let reply = post_with(&owner, path, &[("Content-Type", other)]);
            check_problem(&reply, 415, "not-json", other);
        }
    }
    owner.check_alive(0);
    for right in [
        "application/json",
        "Application/JSON",
        "application/json; charset=utf-8",
        "application/json;charset=UTF-8",
        "application/json ; version=1",
    ] {
        for path in [INVOICES, USERS] {
            let reply = post_with(&owner, path, &[("Content-Type", right)]);
            assert_eq!(reply.status, 201, "{right}: {}", reply.body);
        }
    }
    owner.check_alive(5);
}

#[test]
fn a_body_has_one_mebibyte_at_most() {
    let owner = Owner::start();
    for path in [INVOICES, USERS] {
        let right = right(path);
        let of_len = |len: usize| format!("{right}{}", " ".repeat(len - right.len()));
        owner.create(path, of_len(MIB));
        for len in [MIB + 1, 8 * MIB] {
            let reply = owner.post(path, of_len(len));
            let problem = check_problem(&reply, 413, "too-large", path);
            let detail = "the request body is larger than 1048576 bytes";
            assert_eq!(problem["detail"], detail);
        }
    }
    let chunk = format!("{:x}\r\n{}\r\n", 1 << 16, " ".repeat(1 << 16));
    let request = format!(
        "POST {INVOICES} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n{}0\r\n\r\n",
        chunk.repeat(17)
    );
    let reply = http::exchange(owner.client().address(), request.as_bytes(), "POST").unwrap();
    check_problem(&reply, 413, "too-large", "chunked");
    owner.check_alive(1);
}

#[test]
fn a_body_that_comes_in_chunks_is_joined() {
    let owner = Owner::start();
    let mut chunks = String::new();
    for c in RIGHT.chars() {
        chunks.push_str(&format!("1\r\n{c}\r\n"));
    }
    let request = format!(
        "POST {INVOICES} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n{chunks}0\r\n\r\n"
    );
    let reply = http::exchange(owner.client().address(), request.as_bytes(), "POST").unwrap();
    assert_eq!(reply.status, 201, "{}", reply.body);
    owner.check_alive(1);
}

#[test]
fn a_request_has_one_idempotency_key_of_printable_text() {
    let owner = Owner::start();
    let json = ("Content-Type", "application/json");
    let longest = "k".repeat(255);
    let too_long = "k".repeat(256);
    for path in [INVOICES, USERS] {
        for bad in ["", &too_long, "\u{e9}", "a\tb"] {
            let reply = post_with(&owner, path, &[json, ("Idempotency-Key", bad)]);
            check_problem(&reply, 400, "bad-idempotency-key", bad);
        }
        for second in ["a", "b", ""] {
            let keys = [json, ("Idempotency-Key", "a"), ("idempotency-key", second)];
            let reply = post_with(&owner, path, &keys);
            check_problem(&reply, 400, "bad-idempotency-key", second);
        }
    }
    owner.check_alive(0);
    for right in [&longest, "a", "a b", "\"quoted\"", "!~ ,;=@/\\"] {
        for path in [INVOICES, USERS] {
            let reply = post_with(&owner, path, &[json, ("Idempotency-Key", right)]);
            assert_eq!(reply.status, 201, "{right}: {}", reply.body);
            let again = post_with(&owner, path, &[json, ("Idempotency-Key", right)]);
            assert_eq!((again.status, again.body), (201, reply.body), "{right}");
        }
    }
    owner.check_alive(5);
}
