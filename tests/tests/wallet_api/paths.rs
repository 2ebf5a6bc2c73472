//! Paths and methods that do not exist, and callers that are refused.

use bsv_tests::Reply;

use crate::wallet_api::times::{HOUR, now, text};
use crate::wallet_api::{INVOICES, Owner, USERS, check_problem};

const BALANCE: &str = "/api/v1/balance";
const METHODS: [&str; 10] =
    ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "BREW", "get"];

#[test]
fn an_id_that_was_not_given_out_is_unknown() {
    let owner = Owner::start();
    let [first, second] = [1, 2].map(|n| owner.create_invoice(format!("{{\"satoshis\":{n}}}")));
    let of_another_wallet = Owner::start().create_invoice(r#"{"satoshis":1}"#);
    let swapped = |id: &str| -> String {
        id.chars().map(|c| if c.is_lowercase() { c.to_ascii_uppercase() } else { c }).collect()
    };
    let last = if first.ends_with('a') { "b" } else { "a" };
    for id in [
        format!("{}{}", &first[..6], &second[6..]),
        format!("{}{}", &second[..6], &first[6..]),
        format!("{}000000", &first[..6]),
        format!("000000{}", &first[6..]),
        format!("{}{last}", &first[..11]),
        of_another_wallet,
        format!("{}_", swapped(&first)),
        "1".to_owned(),
        "0".to_owned(),
        "000000000000".to_owned(),
        "zzzzzzzzzzzz".to_owned(),
        first[..11].to_owned(),
        format!("{first}0"),
        format!("{first}{second}"),
        "a".repeat(8000),
        format!("{first}%00"),
        format!("{first}%20"),
        format!("%20{first}"),
        format!("{}%2f{}", &first[..6], &first[6..]),
        format!("{}%C3%A9", &first[..10]),
        "%".to_owned(),
        "%zz".to_owned(),
        "%ff%fe".to_owned(),
        "..%2f..%2f..%2fetc%2fpasswd".to_owned(),
        "%2e%2e".to_owned(),
        "{id}".to_owned(),
        "*".to_owned(),
        "null".to_owned(),
        "undefined".to_owned(),
    ] {
        for (method, path) in [
            ("GET", format!("{INVOICES}/{id}")),
            ("DELETE", format!("{INVOICES}/{id}")),
            ("GET", format!("{INVOICES}/{id}/payments")),
        ] {
            let reply = owner.client().request(method, &path, b"");
            check_problem(&reply, 404, "unknown-invoice", &path);
        }
    }
    assert_eq!(owner.ids(INVOICES), [first, second]);
}

#[test]
fn a_user_id_is_a_number_as_it_was_given_out() {
    let owner = Owner::start();
    let user = owner.create(USERS, r#"{"name":"me"}"#);
    for id in [
        "0",
        "2",
        "01",
        "+1",
        "-1",
        "1.0",
        "1e0",
        "abc",
        "1x",
        "%201",
        "1%20",
        "%D9%A1",
        "4294967297",
        "9223372036854775808",
        "18446744073709551615",
        "18446744073709551616",
        "18446744073709551617",
        &"9".repeat(1000),
    ] {
        let path = format!("{USERS}/{id}");
        check_problem(&owner.get(&path), 404, "unknown-user", &path);
    }
    assert_eq!(owner.text(&format!("{USERS}/1")), user);
}

#[test]
fn other_paths_are_unknown() {
    let owner = Owner::start();
    let id = owner.create_invoice(r#"{"satoshis":1}"#);
    for path in [
        "/",
        "//",
        "/x",
        "/api",
        "/api/v1",
        "/api/v1/",
        "/api/v2/invoices",
        "/invoices",
        "/balance",
        "/API/v1/balance",
        "//api/v1/balance",
        "/api/v1//balance",
        "/api/v1/Balance",
        "/api/v1/balance/x",
        "/api/v1/balances",
        "/api/v1/invoices/",
        "/api/v1/invoices//payments",
        &format!("/api/v1/invoices/{id}/"),
        &format!("/api/v1/invoices/{id}/payment"),
        &format!("/api/v1/invoices/{id}/payments/1"),
        &format!("/api/v1/invoices/{}/{}", &id[..6], &id[6..]),
        "/api/v1/invoices/../balance",
        "/api/v1/users/",
        "/api/v1/users/1/x",
        "/favicon.ico",
        "/%00",
        "/dpp/api/v1/payment/x",
        "/minerid/x",
        "/opreturn/x/1",
        "/coinbase2",
        "/control",
        "/control/minerids",
        "/control/wallet/backup-words",
        "/api/v1/control/wallet/backup-words",
        "/%63ontrol/wallet/backup-words",
    ] {
        for method in ["GET", "HEAD", "POST", "DELETE"] {
            let reply = owner.client().request(method, path, b"{}");
            if method == "HEAD" {
                assert_eq!((reply.status, reply.body.as_str()), (404, ""), "{path}");
            } else {
                check_problem(&reply, 404, "not-found", path);
            }
        }
    }
    owner.check_alive(1);
}

#[test]
fn no_listener_has_the_routes_of_another_one() {
    let owner = Owner::start();
    let words = owner.site.cli_ok(&["wallet", "words", "--yes"]);
    let id = owner.create_invoice(r#"{"satoshis":1}"#);
    for method in ["GET", "POST", "DELETE"] {
        for path in [INVOICES, BALANCE, USERS, &format!("{INVOICES}/{id}")] {
            let reply = owner.server.request(method, path, br#"{"satoshis":1,"name":"x"}"#);
            assert_eq!((reply.status, reply.body.as_str()), (404, "Not Found"), "{method} {path}");
        }
        let path = "/control/wallet/backup-words";
        let on_minerid = owner.server.request(method, path, b"{}");
        let on_wallet = owner.client().request(method, path, b"{}");
        for reply in [on_minerid, on_wallet] {
            assert_eq!(reply.status, 404, "{method} {path}");
            let word = words.split(' ').next().unwrap();
            assert!(!reply.body.contains(&format!("\"{word} ")), "{}", reply.body);
        }
    }
    owner.site.cli_ok(&["generateminerid", "--name", "pool"]);
    assert_eq!(owner.server.get("/minerid/pool").status, 200);
    check_problem(&owner.get("/minerid/pool"), 404, "not-found", "/minerid/pool");
    owner.check_alive(1);
}

#[test]
fn a_method_that_a_path_does_not_have_is_refused_with_those_it_has() {
    let owner = Owner::start();
    let id = owner.create_invoice(r#"{"satoshis":1}"#);
    for (path, allowed) in [
        (INVOICES, "GET, HEAD, POST, OPTIONS"),
        (&format!("{INVOICES}?limit=x"), "GET, HEAD, POST, OPTIONS"),
        (&format!("{INVOICES}/{id}"), "GET, HEAD, DELETE, OPTIONS"),
        (&format!("{INVOICES}/unknown"), "GET, HEAD, DELETE, OPTIONS"),
        (&format!("{INVOICES}/{id}/payments"), "GET, HEAD, OPTIONS"),
        (&format!("{INVOICES}/unknown/payments"), "GET, HEAD, OPTIONS"),
        (USERS, "POST, OPTIONS"),
        (&format!("{USERS}/1"), "GET, HEAD, OPTIONS"),
        (BALANCE, "GET, HEAD, OPTIONS"),
    ] {
        for method in METHODS {
            if allowed.split(", ").any(|allowed| allowed == method) {
                continue;
            }
            let what = format!("{method} {path}");
            let reply = owner.client().request(method, path, br#"{"satoshis":1,"name":"x"}"#);
            assert_eq!(reply.header("allow"), Some(allowed), "{what}");
            if method == "HEAD" {
                assert_eq!((reply.status, reply.body.as_str()), (405, ""), "{what}");
            } else {
                check_problem(&reply, 405, "method-not-allowed", &what);
            }
        }
    }
    owner.check_alive(1);
    assert_eq!(owner.get(&format!("{USERS}/1")).status, 404);
}

/// The headers, without the date.
fn headers(reply: &Reply) -> Vec<(String, String)> {
    reply.headers.iter().filter(|(name, _)| name != "date").cloned().collect()
}

#[test]
fn head_answers_what_get_does_without_the_body() {
    let owner = Owner::start();
    let id = owner.create_invoice(r#"{"satoshis":1}"#);
    owner.create_invoice(r#"{"satoshis":2}"#);
    owner.create(USERS, r#"{"name":"me"}"#);
    for path in [
        &format!("{INVOICES}/{id}"),
        &format!("{INVOICES}/{id}/payments"),
        &format!("{USERS}/1"),
        BALANCE,
        &format!("{INVOICES}/unknown"),
        &format!("{USERS}/2"),
        &format!("{INVOICES}?limit=0&after=x"),
        "/nowhere",
    ] {
        let head = owner.client().request("HEAD", path, b"");
        let get = owner.get(path);
        assert_eq!((head.status, head.body.as_str()), (get.status, ""), "{path}");
        assert_eq!(headers(&head), headers(&get), "{path}");
        assert_ne!(get.body, "", "{path}");
    }
    owner.check_alive(2);
}

#[test]
fn head_of_the_list_has_the_headers_of_get() {
    let owner = Owner::start();
    for _ in 0..2 {
        owner.create_invoice(r#"{"satoshis":1}"#);
    }
    for query in ["", "?limit=1", "?limit=2", "?state=paid"] {
        let path = format!("{INVOICES}{query}");
        let head = owner.client().request("HEAD", &path, b"");
        let get = owner.get(&path);
        assert_eq!((head.status, head.body.as_str()), (200, ""), "{path}");
        for name in ["content-type", "cache-control", "link"] {
            assert_eq!(head.header(name), get.header(name), "{name} of {path}");
        }
        // A HEAD may omit the length (RFC 9110, section 9.3.2), but not give another one.
        if let Some(len) = head.header("content-length") {
            assert_eq!(len, get.body.len().to_string(), "{path}");
        }
    }
}

#[test]
fn what_a_foreign_web_page_can_send_changes_nothing() {
    let owner = Owner::start();
    let id = owner.create_invoice(r#"{"satoshis":1}"#);
    let far = text(now() + HOUR);
    let body = format!(r#"{{"satoshis":1,"expiresAt":"{far}","name":"x"}}"#);
    for lines in [
        "Host: evil.example\r\n",
        "Host: evil.example:8443\r\n",
        "Host: 127.0.0.1.evil.example\r\n",
        "Host: localhost.evil.example:8443\r\n",
        "Host: \r\n",
        "Host: 127.0.0.1\r\nOrigin: http://evil.example\r\n",
        "Host: 127.0.0.1\r\nOrigin: null\r\n",
        "Host: 127.0.0.1\r\nOrigin: http://127.0.0.1:1\r\n",
        "Host: 127.0.0.1\r\nSec-Fetch-Site: cross-site\r\n",
        "Host: 127.0.0.1\r\nSec-Fetch-Site: same-site\r\n",
    ] {
        for (method, path) in [
            ("POST", INVOICES),
            ("POST", USERS),
            ("GET", INVOICES),
            ("GET", BALANCE),
            ("GET", "/nowhere"),
            ("DELETE", &format!("{INVOICES}/{id}")),
            ("OPTIONS", INVOICES),
        ] {
            let request = format!(
                "{method} {path} HTTP/1.1\r\n{lines}Content-Type: application/json\r\n\
                 Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
                body.len()
            );
            let address = owner.client().address();
            let reply = bsv_tests::http::exchange(address, request.as_bytes(), method).unwrap();
            check_problem(&reply, 403, "forbidden", &format!("{method} {path} {lines}"));
            assert_eq!(reply.header("access-control-allow-origin"), None);
        }
    }
    assert_eq!(owner.ids(INVOICES), [id]);
    assert_eq!(owner.get(&format!("{USERS}/1")).status, 404);
}
