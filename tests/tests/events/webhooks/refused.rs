//! Refused requests about webhooks.

use bsv_tests::Receiver;
use serde_json::{Value, json};

use super::{WEBHOOKS, answered, path, post, shop, shown, webhook};
use crate::events::check_problem;

/// The fields that a problem names.
fn fields(problem: &Value) -> Vec<&str> {
    problem["errors"].as_object().unwrap().keys().map(String::as_str).collect()
}

#[test]
fn mistakes_in_a_webhook_are_reported_field_by_field() {
    let shop = shop();
    let client = shop.client();
    let (id, _) = webhook(client, &Receiver::start(), json!({}));
    let before = shown(client, &path(&id));
    let long = format!("https://shop.example/{}", "a".repeat(2048));
    let wordy = "x".repeat(1025);
    for (body, expected) in [
        (json!({}), vec!["url"]),
        (json!({ "url": 5, "after": -1, "state": "enabled" }), vec!["after", "state", "url"]),
        (json!({ "url": "https://a.example", "secret": "whsec_" }), vec!["secret"]),
        (json!({ "url": "ftp://a.example" }), vec!["url"]),
        (json!({ "url": "https://me:you@a.example/" }), vec!["url"]),
        (json!({ "url": long }), vec!["url"]),
        (
            json!({ "url": "", "types": "invoice.lost", "description": wordy }),
            vec!["description", "types", "url"],
        ),
        (json!({ "url": "https://a.example", "types": "" }), vec!["types"]),
        (json!({ "url": "https://a.example", "types": ["*"] }), vec!["types"]),
        (json!({ "url": "https://a.example", "after": "first" }), vec!["after"]),
        (json!({ "url": "https://a.example", "inOrder": "yes" }), vec!["inOrder"]),
    ] {
        let problem = check_problem(&post(client, WEBHOOKS, &body), 400, "invalid-fields");
        assert_eq!(fields(&problem), expected, "{body}");
        let mut change = body;
        if change["url"].is_null() {
            continue;
        }
        change.as_object_mut().unwrap().remove("after");
        if change["url"] == "https://a.example" && change.as_object().unwrap().len() == 1 {
            continue;
        }
        let reply = client.request("PATCH", &path(&id), change.to_string().as_bytes());
        check_problem(&reply, 400, "invalid-fields");
    }
    for body in ["", "[]", "{", "null"] {
        check_problem(&client.post(WEBHOOKS, body), 400, "malformed-body");
    }
    let reply = client.send("POST", WEBHOOKS, &[("Content-Type", "text/plain")], b"{}");
    check_problem(&reply, 415, "not-json");
    assert_eq!(shown(client, WEBHOOKS), json!([before]));
}

#[test]
fn unknown_webhooks_are_not_found_and_too_many_are_refused() {
    let shop = shop();
    let client = shop.client();
    let receiver = Receiver::start();
    let (first, _) = webhook(client, &receiver, json!({}));
    for _ in 1..16 {
        webhook(client, &receiver, json!({}));
    }
    let one_more = json!({ "url": receiver.url() });
    check_problem(&post(client, WEBHOOKS, &one_more), 409, "too-many-webhooks");
    let deleted = client.request("DELETE", &path(&first), b"");
    assert_eq!((deleted.status, deleted.body.as_str()), (204, ""));
    let made = post(client, WEBHOOKS, &one_more);
    let location = made.header("location").unwrap().to_owned();
    let made = answered(&made, 201);
    assert_eq!(location, path(made["id"].as_str().unwrap()));
    for id in [first.as_str(), "0", "x", "%00", "0000000000000000", &first.to_uppercase()] {
        for (method, below, body) in [
            ("GET", "", ""),
            ("PATCH", "", "{}"),
            ("DELETE", "", ""),
            ("POST", "/secret", "{}"),
            ("POST", "/test", "{}"),
            ("GET", "/deliveries", ""),
            ("GET", "/deliveries/1", ""),
            ("POST", "/deliveries/1/redeliver", "{}"),
            ("POST", "/replay", r#"{"after":0}"#),
        ] {
            let asked = format!("{}{below}", path(id));
            check_problem(&client.request(method, &asked, body.as_bytes()), 404, "unknown-webhook");
        }
    }
    let query = client.get(&format!("{}?secret=1", path(made["id"].as_str().unwrap())));
    check_problem(&query, 400, "invalid-query");
}
