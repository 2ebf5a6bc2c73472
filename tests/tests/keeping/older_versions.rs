//! Directories that earlier versions of the server wrote. `bsv-invoicing/tests/fixtures/README.md`
//! describes them.

use std::fs;
use std::path::PathBuf;

use bsv_tests::build::workspace;
use bsv_tests::site::copy_dir;
use bsv_tests::till::wait_until;
use bsv_tests::{Client, Site};
use serde_json::{Value, json};

fn fixture(version: u32) -> PathBuf {
    workspace().join(format!("bsv-invoicing/tests/fixtures/version-{version}"))
}

/// Makes an answer the same before and after its invoices expire. In the directory of version 8, an
/// invoice expires one day after the directory was made.
fn at_any_time(mut answer: Value) -> Value {
    let invoices = match &mut answer {
        Value::Array(invoices) => &mut invoices[..],
        invoice => std::slice::from_mut(invoice),
    };
    for invoice in invoices.iter_mut().filter(|invoice| invoice["state"] == "pending") {
        invoice["state"] = json!("expired");
        if let Some(expires_at) = invoice["expiresAt"].as_str() {
            // The time of expiry, without the fraction of the second.
            invoice["updatedAt"] = json!(format!("{}Z", &expires_at[..19]));
        }
    }
    answer
}

fn pending_invoices(invoices: &Value) -> usize {
    invoices.as_array().unwrap().iter().filter(|invoice| invoice["state"] == "pending").count()
}

/// Checks that the server still gives all answers that were recorded then.
fn assert_as_written(site: &Site, written: &Value) {
    let server = site.server();
    let get =
        |path: &str| -> Value { serde_json::from_str(&server.wallet().get(path).body).unwrap() };
    let invoices = "/api/v1/invoices";
    let expired_since =
        pending_invoices(&written["wallet"][invoices]) - pending_invoices(&get(invoices));
    for (path, body) in written["wallet"].as_object().unwrap() {
        let mut body = body.clone();
        if path.starts_with("/api/v1/webhooks/") {
            // Each invoice that has expired since then has added an event.
            body["behind"] = json!(body["behind"].as_u64().unwrap() + expired_since as u64);
            wait_until("the events of expired invoices", || get(path)["behind"] == body["behind"]);
        }
        let mut found = get(path);
        if path.ends_with("/payments") {
            // Older versions did not name the output.
            for (payment, written) in
                found.as_array_mut().unwrap().iter_mut().zip(body.as_array().unwrap())
            {
                let is_told = |name: &str| written.get(name).is_some();
                payment.as_object_mut().unwrap().retain(|name, _| is_told(name));
            }
        }
        assert_eq!(at_any_time(found), at_any_time(body), "{path}");
    }
    let minerid = Client::new(server.address());
    for (path, body) in written["minerid"].as_object().into_iter().flatten() {
        assert_eq!(minerid.get(path).body, body.as_str().unwrap(), "{path}");
    }
    if let Some(payments) = written.get("payments") {
        let mut listed = site.cli_json(&["outgoing", "list"]);
        for payment in listed.as_array_mut().unwrap() {
            assert_eq!(payment["purpose"], "payment");
            // Older versions did not have these members.
            let newer = ["purpose", "withdrawal", "invoice", "to"];
            payment.as_object_mut().unwrap().retain(|name, _| !newer.contains(&name.as_str()));
        }
        assert_eq!(listed, *payments);
    }
    let books = site.cli_json(&["books", "verify"]);
    assert_eq!(books["differences"], json!([]));
    assert_eq!(books["balance"], written["wallet"]["/api/v1/balance"]["satoshis"]);
    assert_eq!(site.cli_json(&["keystore", "verify"])["faults"], json!([]));
    assert_eq!(server.stop(), 0);
}

/// The keys in the audit log of a service, each of which must have an entry of this event.
fn logged_keys(site: &Site, log: &str, event: &str) -> Vec<String> {
    let logs = site.cli_json(&["audit", "list"]);
    let entries = logs[log].as_array().unwrap();
    assert!(entries.iter().all(|entry| entry["event"] == event), "{logs}");
    entries.iter().map(|entry| entry["subject"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn older_directories_say_the_same_as_ever() {
    let of_identities =
        ["modern_1", "revocation modern_2", "pool_1", "pool_2", "pool_vctx"].map(str::to_owned);
    // For keys that are older than the log, the log has an entry that says they were found.
    for (version, event, identities) in [
        (2, "found", &[][..]),
        (3, "found", &of_identities),
        (4, "found", &of_identities),
        (5, "made", &[]),
        (6, "made", &[]),
        (7, "made", &[]),
        (8, "made", &[]),
        (9, "made", &[]),
        (10, "made", &[]),
        (11, "made", &[]),
        (12, "made", &[]),
    ] {
        let mut site = Site::new();
        site.set_env("BSV_LOG", "error");
        copy_dir(&fixture(version), &site.network_dir());
        let written = fs::read(site.network_dir().join("expected.json")).unwrap();
        let written: Value = serde_json::from_slice(&written).unwrap();
        // The first start migrates, and the second finds nothing to migrate.
        for _ in 0..2 {
            assert_as_written(&site, &written);
            assert_eq!(logged_keys(&site, "wallet", event), ["wallet.seed"]);
            assert_eq!(logged_keys(&site, "minerid", event), identities);
        }
        site.cli_ok(&["audit", "verify"]);
        // New invoices and users continue the old numbers.
        site.cli_ok(&["invoice", "create", "--satoshis", "4"]);
        let user = site.cli_json(&["user", "create", "--name", "Grace"]);
        let users = written["wallet"].as_object().unwrap().keys();
        let users = users.filter(|path| path.starts_with("/api/v1/users/")).count();
        assert_eq!(user["id"], users + 1);
    }
}
