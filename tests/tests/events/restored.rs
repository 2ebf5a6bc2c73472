//! The log of events after a backup was restored.

use bsv_tests::Site;
use serde_json::json;

use crate::events::{EVENTS, Shop, check_problem, log, page};

#[test]
fn clients_learn_that_a_backup_was_restored() {
    let mut site = Site::new();
    site.set_env("BSV_BACKUP_PASSPHRASE", "of the backup");
    let shop = Shop::start_on(site);
    let kept = shop.fill(5);
    let old = page(shop.client(), EVENTS)["log"].as_str().unwrap().to_owned();
    let before = log(shop.client());
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("backup");
    shop.site.cli_ok(&["backup", file.to_str().unwrap()]);
    // Later events are not in the backup, but clients have read them.
    let read_to = kept + shop.fill(2);
    shop.server.kill();

    let mut site = Site::new();
    site.set_env("BSV_BACKUP_PASSPHRASE", "of the backup");
    site.cli_ok(&["restore", "--yes", file.to_str().unwrap()]);
    let restored = Shop::start_on(site);
    let client = restored.client();
    let new = page(client, EVENTS)["log"].as_str().unwrap().to_owned();
    assert_ne!(new, old);
    let ahead = client.get(&format!("{EVENTS}?after={read_to}"));
    check_problem(&ahead, 409, "cursor-ahead");
    let other = client.get(&format!("{EVENTS}?after={kept}&log={old}"));
    check_problem(&other, 409, "other-log");
    // Earlier events are the same, with the log's new name.
    let mut after = log(client);
    for event in &mut after {
        event["id"] = json!(event["id"].as_str().unwrap().replace(&new, &old));
    }
    assert_eq!(after[..kept], before);
}
