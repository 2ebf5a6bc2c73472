//! Every answer of the specification, checked as text.

use bsv_tests::{Reply, Site};
use bsv_tx::PublicKey;
use serde_json::{Value, json};

use crate::wallet_api::owner::{JSON, PUBLIC_URL};
use crate::wallet_api::times::{HOUR, SECOND, micros, now, without_fraction};
use crate::wallet_api::{INVOICES, Owner, USERS, json};

/// Checks an invoice that was created just now, and gives its id.
fn check_new_invoice(
    text: &str,
    [reference, description, satoshis]: [&str; 3],
    expiry: i64,
) -> String {
    let invoice: Value = serde_json::from_str(text).unwrap();
    let member = |name: &str| invoice[name].as_str().unwrap();
    let (id, created_at, expires_at) = (member("id"), member("createdAt"), member("expiresAt"));
    let updated_at = without_fraction(created_at);
    let expected = format!(
        "{{\"id\":\"{id}\",\"reference\":{reference},\"description\":{description},\
         \"satoshis\":{satoshis},\"expiresAt\":\"{expires_at}\",\"paymentReceivedAt\":null,\
         \"refundTo\":null,\"refundedAt\":null,\"state\":\"pending\",\
         \"createdAt\":\"{created_at}\",\"updatedAt\":\"{updated_at}\",\"deletedAt\":null}}"
    );
    assert_eq!(text, expected);
    assert!(id.len() == 12 && id.bytes().all(|c| c.is_ascii_alphanumeric()), "{id}");
    assert_eq!(micros(expires_at) - micros(created_at), expiry, "{text}");
    let age = now() - micros(created_at);
    assert!((0..10 * SECOND).contains(&age), "{age}");
    id.to_owned()
}

fn headers<'a>(reply: &'a Reply, names: &[&str]) -> Vec<Option<&'a str>> {
    names.iter().map(|name| reply.header(name)).collect()
}

#[test]
fn an_invoice_has_twelve_members_in_the_order_of_the_specification() {
    let owner = Owner::start();
    let mut texts = Vec::new();
    for (body, members) in [
        (r#"{"satoshis":1}"#, ["null", "null", "1"]),
        (
            r#"{"satoshis":1000,"description":"a description","reference":"a reference"}"#,
            [r#""a reference""#, r#""a description""#, "1000"],
        ),
        (
            r#"{"reference":null,"description":"","satoshis":2100000000000000,"expiresAt":null}"#,
            ["null", r#""""#, "2100000000000000"],
        ),
    ] {
        let created = owner.post(INVOICES, body);
        let id = check_new_invoice(&created.body, members, 24 * HOUR);
        let path = format!("{INVOICES}/{id}");
        let link = format!("<{PUBLIC_URL}/dpp/api/v1/payment/{id}>; rel=\"payment\"");
        assert_eq!(created.status, 201);
        assert_eq!(
            headers(&created, &["content-type", "location", "link"]),
            [Some(JSON), Some(&path), Some(&link)]
        );
        let read = owner.get(&path);
        assert_eq!((read.status, &read.body), (200, &created.body));
        assert_eq!(
            headers(&read, &["content-type", "location", "link"]),
            [Some(JSON), None, Some(&link)]
        );
        texts.push(created.body);
        assert_eq!(owner.text(INVOICES), format!("[{}]", texts.join(",")));
    }
    let owner = owner.restart();
    assert_eq!(owner.text(INVOICES), format!("[{}]", texts.join(",")));
}

#[test]
fn an_invoice_expires_after_the_hours_of_the_settings() {
    for hours in [1, 25, 87_600] {
        let site = Site::with(json!({"wallet": {"paymentExpiryHours": hours}}));
        let text = Owner::start_on(site).create(INVOICES, r#"{"satoshis":7}"#);
        check_new_invoice(&text, ["null", "null", "7"], hours * HOUR);
    }
}

#[test]
fn payment_urls_begin_with_the_public_url_of_the_settings() {
    for (public_url, start) in [
        ("https://pay.example.com", "https://pay.example.com"),
        ("https://pay.example.com/", "https://pay.example.com"),
        ("https://pay.example.com:8445/shop/1", "https://pay.example.com:8445/shop/1"),
        ("http://[::1]:8445/shop/", "http://[::1]:8445/shop"),
        ("http://pay/a%20b", "http://pay/a%20b"),
    ] {
        let owner = Owner::start_on(Site::with(json!({"payments": {"publicUrl": public_url}})));
        let created = owner.post(INVOICES, r#"{"satoshis":1}"#);
        let id = json(&created)["id"].as_str().unwrap().to_owned();
        let link = format!("<{start}/dpp/api/v1/payment/{id}>; rel=\"payment\"");
        assert_eq!(created.header("link"), Some(link.as_str()));
        let read = owner.get(&format!("{INVOICES}/{id}"));
        assert_eq!(read.header("link"), Some(link.as_str()));
    }
}

#[test]
fn a_user_has_the_members_of_the_specification_in_its_order() {
    let owner = Owner::start();
    let mut users: Vec<(String, String)> = Vec::new();
    let full = r#"{"phoneNumber":"+1 555","address":"1 Main St\nTown","name":"Épicène 😀",
                   "avatar":"https://example.com/a.png","email":"me@example.com"}"#;
    let full_members = r#""name":"Épicène 😀","email":"me@example.com","avatar":"https://example.com/a.png","address":"1 Main St\nTown","phoneNumber":"+1 555""#;
    let least_members = r#""name":"me","email":"","avatar":"","address":"","phoneNumber":"""#;
    let with_nulls =
        r#"{"name":"me","email":null,"avatar":null,"address":null,"phoneNumber":null}"#;
    for (body, members) in
        [(full, full_members), (r#"{"name":"me"}"#, least_members), (with_nulls, least_members)]
    {
        let id = users.len() + 1;
        let created = owner.post(USERS, body);
        let pki = json(&created)["extendedData"]["pki"].as_str().unwrap().to_owned();
        let expected = format!(r#"{{"id":{id},{members},"extendedData":{{"pki":"{pki}"}}}}"#);
        assert_eq!((created.status, created.body.as_str()), (201, expected.as_str()));
        let path = format!("{USERS}/{id}");
        assert_eq!(headers(&created, &["location", "link"]), [Some(path.as_str()), None]);
        assert!(pki.len() == 66 && (pki.starts_with("02") || pki.starts_with("03")), "{pki}");
        assert_eq!(pki.parse::<PublicKey>().unwrap().to_string(), pki);
        assert!(users.iter().all(|(_, text)| !text.contains(&pki)), "{pki} of two users");
        assert_eq!(owner.text(&path), expected);
        users.push((path, expected));
    }
    for owner in [owner.restart()] {
        for (path, text) in &users {
            assert_eq!(&owner.text(path), text);
        }
    }
}

#[test]
fn a_new_wallet_is_empty() {
    let owner = Owner::start();
    for (path, text) in [(INVOICES, "[]"), ("/api/v1/balance", r#"{"satoshis":0}"#)] {
        let reply = owner.get(path);
        assert_eq!((reply.status, reply.body.as_str()), (200, text));
        assert_eq!(reply.header("content-type"), Some(JSON), "{path}");
    }
    let id = owner.create_invoice(r#"{"satoshis":1}"#);
    assert_eq!(owner.text(&format!("{INVOICES}/{id}/payments")), "[]");
    assert_eq!(owner.text("/api/v1/balance"), r#"{"satoshis":0}"#);
}

#[test]
fn a_deleted_invoice_is_gone() {
    let owner = Owner::start();
    let ids: Vec<_> = (0..3).map(|_| owner.create_invoice(r#"{"satoshis":1}"#)).collect();
    let reply = owner.delete(&ids[1]);
    assert_eq!((reply.status, reply.body.as_str()), (204, ""));
    assert_eq!(
        headers(&reply, &["content-type", "content-length", "transfer-encoding"]),
        [None; 3]
    );
    let check_gone = |owner: &Owner| {
        let path = format!("{INVOICES}/{}", ids[1]);
        for (method, path) in
            [("GET", path.clone()), ("DELETE", path.clone()), ("GET", format!("{path}/payments"))]
        {
            let reply = owner.client().request(method, &path, b"");
            let problem = crate::wallet_api::check_problem(&reply, 404, "unknown-invoice", method);
            assert_eq!(problem["detail"], format!("there is no invoice {}", ids[1]));
        }
        assert_eq!(owner.ids(INVOICES), [&*ids[0], &*ids[2]]);
    };
    check_gone(&owner);
    check_gone(&owner.restart());
}
