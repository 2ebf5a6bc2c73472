use bsv_tests::Reply;

use crate::Service;

const HASH: &str = "70f5701644897c92b60e98dbbfe72e1cfd7a2728c6fa3a29c4b4f6e986b0ccaa";

/// The headers that do not tell the time.
fn headers(reply: &Reply) -> Vec<(String, String)> {
    reply.headers.iter().filter(|(name, _)| name != "date").cloned().collect()
}

#[test]
fn head_answers_what_get_does_without_the_body() {
    let service = Service::start();
    for path in [
        "/opreturn/first/1000",
        "/opreturn/first/isvalid",
        "/minerid/first",
        &format!("/minerid/first/sign/{HASH}"),
        &format!("/minerid/first/pksign/{HASH}"),
        "/opreturn/first/0",
        "/opreturn/first/x",
        "/opreturn/unknown/1000",
        "/minerid/unknown",
        "/minerid/first/sign/x",
        "/nowhere",
    ] {
        let head = service.server.request("HEAD", path, b"");
        let get = service.server.get(path);
        assert_eq!(head.status, get.status, "{path}");
        assert_eq!(headers(&head), headers(&get), "{path}");
        assert_eq!(head.body, "", "{path}");
        assert_ne!(get.body, "", "{path}");
    }
    service.check_alive();
}

#[test]
fn head_never_rotates_and_hands_nothing_out() {
    let service = Service::start();
    let key = service.key_of("first");
    let reply = service.server.request("HEAD", "/opreturn/first/rotate", b"");
    assert_eq!((reply.status, reply.header("allow")), (405, Some("GET, POST, OPTIONS")));
    assert_eq!(service.key_of("first"), key);

    assert_eq!(service.server.text("/opreturn/first/rotate"), "OK");
    assert_eq!(service.server.request("HEAD", "/opreturn/first/1000", b"").status, 200);
    assert!(!service.is_valid("first"));
}

#[test]
fn a_method_that_a_path_does_not_have_is_refused_with_those_it_has() {
    let service = Service::start();
    let key = service.key_of("first");
    let sign = format!("/minerid/first/sign/{HASH}");
    let pksign = format!("/minerid/first/pksign/{HASH}");
    for (path, allowed) in [
        ("/opreturn/first/1000", "GET, HEAD, OPTIONS"),
        ("/opreturn/first/isvalid", "GET, HEAD, OPTIONS"),
        ("/minerid/first", "GET, HEAD, OPTIONS"),
        ("/minerid/unknown", "GET, HEAD, OPTIONS"),
        (&sign, "GET, HEAD, OPTIONS"),
        (&pksign, "GET, HEAD, OPTIONS"),
        ("/opreturn/first/rotate", "GET, POST, OPTIONS"),
        ("/opreturn/first/rotate/", "GET, POST, OPTIONS"),
        ("/coinbase2", "POST, OPTIONS"),
    ] {
        for method in
            ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "BREW", "get"]
        {
            if allowed.split(", ").any(|allowed| allowed == method) {
                continue;
            }
            let reply = service.server.request(method, path, b"");
            assert_eq!(reply.status, 405, "{method} {path}");
            assert_eq!(reply.header("allow"), Some(allowed), "{method} {path}");
            let body = if method == "HEAD" { "" } else { "Method Not Allowed" };
            assert_eq!(reply.body, body, "{method} {path}");
        }
    }
    assert_eq!(service.key_of("first"), key);
    service.check_alive();
}

#[test]
fn a_key_is_rotated_by_get_and_by_post() {
    let service = Service::start();
    let mut keys = vec![service.key_of("first")];
    for method in ["GET", "POST"] {
        for path in ["/opreturn/first/rotate", "/opreturn/first/rotate/"] {
            let reply = service.server.request(method, path, b"");
            assert_eq!((reply.status, reply.body.as_str()), (200, "OK"));
            assert_eq!(reply.header("content-type"), Some("text/plain; charset=utf-8"));
            let key = service.key_of("first");
            assert!(!keys.contains(&key));
            keys.push(key);
        }
    }
    let listed = service.site.cli_json(&["listminerids"]);
    let first = listed.as_array().unwrap().iter().find(|id| id["alias"] == "first").unwrap();
    assert_eq!(first["minerIds"], serde_json::json!(keys));
}
