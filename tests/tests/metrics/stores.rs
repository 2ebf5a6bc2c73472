use std::fs;
use std::thread;

use bsv_tests::{Metrics, Site};
use serde_json::json;

#[test]
fn commands_and_commits_of_the_store_are_counted() {
    let site = Site::new();
    let server = site.server();
    let wallet = server.wallet();
    let before = Metrics::of(wallet);
    thread::scope(|scope| {
        for _ in 0..20 {
            scope.spawn(|| wallet.post("/api/v1/invoices", r#"{"satoshis":5}"#));
        }
    });
    let after = Metrics::of(wallet);
    let commits = after.since(&before, "bsv_store_commit_duration_seconds_count");
    assert!((1.0..=20.0).contains(&commits), "{commits}");
    assert!(after.since(&before, "bsv_store_commit_duration_seconds_sum") > 0.0);
    // The search for expired invoices is a command too.
    assert!(after.since(&before, "bsv_store_commands_total") >= 20.0);
    let len = fs::metadata(site.network_dir().join("wallet.redb")).unwrap().len();
    assert_eq!(after.value(r#"bsv_store_file_bytes{store="wallet"}"#), len as f64);
    assert_eq!(after.value(r#"bsv_store_damaged{store="wallet"}"#), 0.0);

    let minerid = server.minerid();
    let before = Metrics::of(minerid);
    site.cli_ok(&["generateminerid", "--name", "pool", "--protocol", "1.0"]);
    let after = Metrics::of(minerid);
    assert!(after.since(&before, "bsv_store_commands_total") >= 1.0);
    assert!(after.since(&before, "bsv_store_commit_duration_seconds_count") >= 1.0);
    assert_eq!(after.value(r#"bsv_store_damaged{store="minerid"}"#), 0.0);
}

#[test]
fn the_metrics_of_a_service_report_that_its_store_cannot_be_opened() {
    let mut site = Site::with(json!({}));
    site.set_env("BSV_LOG", "off");
    drop(site.server());
    let path = site.network_dir().join("wallet.redb");
    let mut bytes = fs::read(&path).unwrap();
    bytes.truncate(5000);
    fs::write(&path, bytes).unwrap();
    let server = site.server();
    assert_eq!(server.wallet().get("/api/v1/balance").status, 503);
    let metrics = Metrics::of(server.wallet());
    assert_eq!(metrics.value(r#"bsv_store_damaged{store="wallet"}"#), 1.0);
    assert_eq!(metrics.get(r#"bsv_invoices_total{event="created"}"#), None);
    let metrics = Metrics::of(server.minerid());
    assert_eq!(metrics.value(r#"bsv_store_damaged{store="minerid"}"#), 0.0);
}
