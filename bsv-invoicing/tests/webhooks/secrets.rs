//! The secrets that sign events.

use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bsv_invoicing::Error;
use bsv_invoicing::ledger::Refusal;
use bsv_invoicing::webhooks::WebhookClock;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::endpoints::{Received, Reply};
use crate::site::{Site, URL, draft};

/// What a receiver with this secret verifies: whether one of the signatures is made with it.
fn is_signed_with(received: &Received, secret: &str) -> bool {
    let key = BASE64_STANDARD.decode(secret.strip_prefix("whsec_").unwrap()).unwrap();
    assert_eq!(key.len(), 32);
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).unwrap();
    let request = &received.request;
    mac.update(format!("{}.{}.", request.id, request.timestamp).as_bytes());
    mac.update(&request.body);
    let expected = format!("v1,{}", BASE64_STANDARD.encode(mac.finalize().into_bytes()));
    request.signature.split(' ').any(|signature| signature == expected)
}

#[tokio::test]
async fn both_secrets_sign_during_a_rotation() {
    let mut site = Site::new().await;
    let (id, _, first) = site.wallet().create_webhook(draft(URL, "*")).await.unwrap();
    let first = first.text();
    site.endpoints.reply(URL, Reply::Hang);
    site.users(8).await;
    site.endpoints.until_count(URL, 8).await;
    // Attempts that are under way are signed with the first secret, which the receiver still knows.
    let hour = Duration::from_secs(3600);
    let second = site.wallet().rotate_webhook_secret(id, hour).await.unwrap().text();
    assert_ne!(second, first);
    let third = site.wallet().rotate_webhook_secret(id, hour).await;
    assert!(matches!(third, Err(Error::Refused(Refusal::TwoSecrets(_)))));
    site.endpoints.reply(URL, Reply::Status(200));
    site.until(id, |webhook| webhook.cursor == 8).await;
    site.users(4).await;
    site.until(id, |webhook| webhook.cursor == 12).await;
    site.kill().await;
    site.start().await;
    site.users(4).await;
    site.until(id, |webhook| webhook.cursor == 16).await;
    site.clock.advance(2 * hour);
    site.users(4).await;
    site.until(id, |webhook| webhook.cursor == 20).await;
    for received in site.endpoints.received(URL) {
        let signed_with = [&first, &second].map(|secret| is_signed_with(&received, secret));
        let expected = match received.number {
            ..=8 => [true, false],
            9..=16 => [true, true],
            _ => [false, true],
        };
        assert_eq!(signed_with, expected, "{}", received.number);
    }
    assert!(site.clock.now() > site.wallet().now());
}

#[tokio::test]
async fn a_leaked_secret_can_be_replaced_at_once() {
    let site = Site::new().await;
    let (id, _, first) = site.wallet().create_webhook(draft(URL, "*")).await.unwrap();
    let second = site.wallet().rotate_webhook_secret(id, Duration::ZERO).await.unwrap();
    let third = site.wallet().rotate_webhook_secret(id, Duration::ZERO).await.unwrap();
    site.users(1).await;
    site.endpoints.until_count(URL, 1).await;
    let received = &site.endpoints.received(URL)[0];
    let signed_with = [first, second, third].map(|it| is_signed_with(received, &it.text()));
    assert_eq!(signed_with, [false, false, true]);
}
