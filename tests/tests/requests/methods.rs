use bsv_tests::Reply;
use bsv_tests::identities::histories;

use crate::requests::Service;

const HASH: &str = "70f5701644897c92b60e98dbbfe72e1cfd7a2728c6fa3a29c4b4f6e986b0ccaa";

/// The headers, without the date.
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
fn a_get_that_a_proxy_repeats_rotates_once() {
    let service = Service::start();
    let rotate = |method: &str, alias: &str| {
        let reply = service.server.request(method, &format!("/opreturn/{alias}/rotate"), b"");
        assert_eq!((reply.status, reply.body.as_str()), (200, "OK"));
        service.key_of(alias)
    };
    let before = service.key_of("first");
    let rotated = rotate("GET", "first");
    assert_ne!(rotated, before);
    assert_eq!(rotate("GET", "first"), rotated);
    std::thread::scope(|scope| {
        let repeated = [(); 8].map(|()| scope.spawn(|| rotate("GET", "rot")));
        let repeated = repeated.map(|thread| thread.join().unwrap());
        assert!(repeated.iter().all(|key| *key == service.key_of("rot")), "{repeated:?}");
    });
    // Each POST, and each command, rotates again.
    let posted = rotate("POST", "first");
    assert_ne!(posted, rotated);
    assert_ne!(rotate("POST", "first"), posted);
    let posted = service.key_of("first");
    service.site.cli_ok(&["rotateminerid", "--name", "first"]);
    let by_command = service.key_of("first");
    assert_ne!(by_command, posted);
    assert_eq!(histories(&service.site)["rot"].len(), 3);
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
    let key_of = |alias: &str| service.key_of(alias);
    let mut keys = ["first", "rot"].map(|alias| vec![key_of(alias)]);
    for method in ["GET", "POST"] {
        let paths = ["/opreturn/first/rotate", "/opreturn/rot/rotate/"];
        for ((alias, path), keys) in ["first", "rot"].into_iter().zip(paths).zip(&mut keys) {
            let reply = service.server.request(method, path, b"");
            assert_eq!((reply.status, reply.body.as_str()), (200, "OK"));
            assert_eq!(reply.header("content-type"), Some("text/plain; charset=utf-8"));
            let key = key_of(alias);
            assert!(!keys.contains(&key));
            keys.push(key);
        }
    }
    assert_eq!(histories(&service.site)["first"], keys[0]);
}
