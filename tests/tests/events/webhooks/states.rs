//! Disabled webhooks, and metrics of webhooks.

use std::time::Duration;

use bsv_tests::{Metrics, Receiver};
use serde_json::json;

use super::{Shop, log, patch, path, shop, shown, until, webhook};

#[test]
fn an_endpoint_that_answers_410_gets_nothing_until_it_is_enabled_again() {
    let shop = shop();
    let client = shop.client();
    let receiver = Receiver::start();
    let (id, _) = webhook(client, &receiver, json!({}));
    receiver.reply(410);
    shop.create_user();
    let gone = until(client, &path(&id), |webhook| webhook["state"] == "gone");
    assert_eq!(gone["nextAttemptAt"], json!(null));
    let told = until(client, "/api/v1/events?types=webhook.*", |page| page["next"] == 2);
    let data = &told["events"][0]["data"];
    assert_eq!((&data["webhookId"], &data["state"]), (&json!(id), &json!("gone")));
    let attention = shop.site.cli(&["status"]);
    assert_eq!(attention.code, 1);
    assert!(attention.stdout.contains(&format!("webhook {id} has answered 410")), "{attention:?}");

    shop.create_user();
    receiver.reply(200);
    assert_eq!(patch(client, &id, &json!({ "state": "enabled" }))["state"], "enabled");
    receiver.until(|receiver| receiver.counts().len() == 3);
    // The event that it answered with 410 is sent again on schedule.
    assert_eq!(receiver.counts().into_keys().collect::<Vec<_>>(), [1, 2, 3]);
    let delivered = format!("{}/deliveries?state=delivered", path(&id));
    until(client, &delivered, |deliveries| deliveries.as_array().unwrap().len() == 3);
    assert!(shop.site.cli_ok(&["status"]).contains("webhooks     1 enabled"));
}

#[test]
fn a_disabled_webhook_gets_nothing_and_loses_nothing() {
    let shop = shop();
    let client = shop.client();
    let receiver = Receiver::start();
    let (id, _) = webhook(client, &receiver, json!({}));
    let other = Receiver::start();
    webhook(client, &other, json!({}));
    assert_eq!(patch(client, &id, &json!({ "state": "disabled" }))["state"], "disabled");
    for _ in 0..3 {
        shop.create_user();
    }
    other.until_count(3);
    assert_eq!(receiver.numbers(), [] as [u64; 0]);
    assert_eq!(shown(client, &path(&id))["behind"], 3);
    let said = shop.site.cli_ok(&["status"]);
    assert!(said.contains("webhooks     1 enabled, 1 disabled"), "{said}");
    let Shop { site, server } = shop;
    assert_eq!(server.stop(), 0);
    let shop = Shop::start_on(site);
    shop.create_user();
    other.until_count(4);
    assert_eq!(receiver.numbers(), [] as [u64; 0]);
    patch(shop.client(), &id, &json!({ "state": "enabled" }));
    receiver.until_count(4);
    let mut numbers = receiver.numbers();
    numbers.sort_unstable();
    assert_eq!(numbers, [1, 2, 3, 4]);
}

#[test]
fn a_restored_backup_sends_nothing_until_its_owner_enables_it() {
    let mut site = super::site();
    site.set_env("BSV_BACKUP_PASSPHRASE", "of the backup");
    let shop = Shop::start_on(site);
    let receiver = Receiver::start();
    let (id, secret) = webhook(shop.client(), &receiver, json!({}));
    shop.create_user();
    receiver.until_count(1);
    until(shop.client(), &path(&id), |webhook| webhook["cursor"] == 1);
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("backup");
    shop.site.cli_ok(&["backup", file.to_str().unwrap()]);
    shop.server.kill();

    let mut site = super::site();
    site.set_env("BSV_BACKUP_PASSPHRASE", "of the backup");
    site.cli_ok(&["restore", "--yes", file.to_str().unwrap()]);
    assert_eq!(site.cli_json(&["webhook", "show", &id])["state"], "disabled");
    let restored = Shop::start_on(site);
    let client = restored.client();
    restored.create_user();
    assert_eq!(shown(client, &path(&id))["behind"], log(client).len() as u64 - 1);
    assert_eq!(receiver.numbers(), [1]);
    restored.site.cli_ok(&["webhook", "enable", &id]);
    let received = receiver.until_count(2);
    assert!(super::is_signed_with(&received[1], &[&secret]));
    assert_eq!(received[1].header("webhook-id"), log(client)[1]["id"].as_str());
}

fn of_webhook(metric: &str, id: &str) -> String {
    format!("{metric}{{webhook=\"{id}\"}}")
}

#[test]
fn metrics_show_attempts_and_lags() {
    let shop = shop();
    let client = shop.client();
    let receiver = Receiver::start();
    let (id, _) = webhook(client, &receiver, json!({}));
    let behind = of_webhook("bsv_webhook_behind_events", &id);
    let oldest = of_webhook("bsv_webhook_oldest_pending_seconds", &id);
    let before = Metrics::of(client);
    assert_eq!((before.value(&behind), before.value(&oldest)), (0.0, 0.0));
    let attempts = |outcome: &str| format!("bsv_webhook_attempts_total{{outcome=\"{outcome}\"}}");
    let outcomes =
        ["success", "status", "blocked-address", "dns", "connect", "tls", "timeout", "answer"];
    for outcome in outcomes {
        assert_eq!(before.value(&attempts(outcome)), 0.0, "{outcome}");
    }
    shop.create_user();
    receiver.until_count(1);
    receiver.reply(500);
    shop.create_user();
    until(client, &format!("{}/deliveries?state=pending", path(&id)), |it| it[0]["number"] == 2);
    let deadline = std::time::Instant::now() + Duration::from_secs(60);
    while Metrics::of(client).value(&oldest) == 0.0 {
        assert!(
            std::time::Instant::now() < deadline,
            "the age of the oldest pending event stays 0"
        );
        std::thread::sleep(Duration::from_millis(50));
    }
    let metrics = Metrics::of(client);
    assert_eq!((metrics.value(&attempts("success")), metrics.value(&behind)), (1.0, 0.0));
    assert!(metrics.value(&attempts("status")) >= 1.0);
    patch(client, &id, &json!({ "state": "disabled" }));
    shop.create_user();
    assert_eq!(Metrics::of(client).value(&behind), 1.0);
    assert_eq!(client.request("DELETE", &path(&id), b"").status, 204);
    assert_eq!(Metrics::of(client).get(&behind), None);
}
