//! Secrets of webhooks.

use std::fs;

use bsv_tests::{Receiver, Site};
use serde_json::json;

use super::{WEBHOOKS, answered, is_signed_with, path, post, shop, shown, text, until, webhook};
use crate::events::check_problem;

#[test]
fn two_secrets_sign_during_a_rotation() {
    let shop = shop();
    let client = shop.client();
    let receiver = Receiver::start();
    let (id, first) = webhook(client, &receiver, json!({}));
    let rotate = |body: serde_json::Value| post(client, &format!("{}/secret", path(&id)), &body);
    let sent_next = || {
        let count = receiver.received().len();
        shop.create_user();
        receiver.until_count(count + 1).remove(count)
    };
    assert!(is_signed_with(&sent_next(), &[&first]));
    let second = text(&answered(&rotate(json!({})), 201), "secret");
    assert_ne!(second, first);
    assert!(is_signed_with(&sent_next(), &[&first, &second]));
    check_problem(&rotate(json!({})), 409, "two-secrets");
    check_problem(&rotate(json!({ "graceSeconds": 604_801 })), 400, "invalid-fields");
    assert!(is_signed_with(&sent_next(), &[&first, &second]));

    // Without grace the former secret no longer signs.
    let (other, first) = webhook(client, &Receiver::start(), json!({}));
    let now = post(client, &format!("{}/secret", path(&other)), &json!({ "graceSeconds": 0 }));
    let second = text(&answered(&now, 201), "secret");
    let again = post(client, &format!("{}/secret", path(&other)), &json!({ "graceSeconds": 0 }));
    assert_ne!(text(&answered(&again, 201), "secret"), second);
    assert_ne!(second, first);
}

/// All files below a directory.
fn contents(site: &Site) -> Vec<(String, Vec<u8>)> {
    let mut dirs = vec![site.data_dir().to_owned()];
    let mut files = Vec::new();
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                dirs.push(path);
            } else if path.is_file() {
                files.push((path.display().to_string(), fs::read(&path).unwrap()));
            }
        }
    }
    files
}

#[test]
fn a_secret_is_shown_once_and_is_stored_nowhere_in_clear() {
    let mut site = super::site();
    site.set("log", json!({ "requests": true }));
    site.set_env("BSV_LOG", "trace,rustls=trace");
    let logs = tempfile::tempdir().unwrap();
    let log = logs.path().join("log");
    let server = site.server_logging_to(&log);
    let client = server.wallet();
    let receiver = Receiver::start();
    let (id, first) = webhook(client, &receiver, json!({}));
    let secret = post(client, &format!("{}/secret", path(&id)), &json!({}));
    let second = text(&answered(&secret, 201), "secret");
    crate::events::create_invoice(client, "tea");
    receiver.until_count(1);
    until(client, &path(&id), |webhook| webhook["cursor"] == 1);
    let test = answered(&post(client, &format!("{}/test", path(&id)), &json!({})), 200);
    let seen = [
        shown(client, WEBHOOKS),
        shown(client, &path(&id)),
        shown(client, &format!("{}/deliveries", path(&id))),
        shown(client, &format!("{}/deliveries/1", path(&id))),
        super::patch(client, &id, &json!({ "description": "x" })),
        test,
        site.cli_json(&["webhook", "show", &id]),
        site.cli_json(&["status"]),
    ];
    assert_eq!(server.stop(), 0);
    let told = fs::read_to_string(&log).unwrap();
    assert!(told.contains("TRACE") && told.contains("/api/v1/webhooks/{id}/secret"), "{told}");
    let mut seen: Vec<_> =
        seen.iter().map(|shown| ("an answer".to_owned(), shown.to_string().into_bytes())).collect();
    seen.push(("the log".to_owned(), told.into_bytes()));
    seen.extend(contents(&site));
    assert!(seen.len() > 10, "the data directory has files");
    for secret in [&first, &second] {
        let base64 = secret.strip_prefix("whsec_").unwrap();
        let raw = base64::Engine::decode(&base64::prelude::BASE64_STANDARD, base64).unwrap();
        for (what, bytes) in &seen {
            for secret in [base64.as_bytes(), &raw] {
                let is_in = bytes.windows(secret.len()).any(|window| window == secret);
                assert!(!is_in, "{what} shows a secret");
            }
        }
    }
}
