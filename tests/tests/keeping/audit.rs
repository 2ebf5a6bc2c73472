use std::fs;

use bsv_tests::Site;
use bsv_tests::clock::{Clock, DAY};
use redb::{Database, ReadableTable, TableDefinition};
use serde_json::{Value, json};

use crate::keeping::scene::{begun_site, sealed_site};

const AUDIT: TableDefinition<'_, u64, (u64, &str, &str, [u8; 32])> = TableDefinition::new("audit");

/// The event and the subject of each entry of a log.
fn told(log: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let entries = log.as_array().unwrap().iter();
    entries.map(|entry| (text(&entry["event"]), text(&entry["subject"]))).collect()
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(event, subject)| (event.to_string(), subject.to_string())).collect()
}

#[test]
fn every_change_of_keys_is_logged_in_order() {
    let mut site = sealed_site(None);
    site.cli_ok(&["generateminerid", "--name", "pool"]);
    let server = site.server();
    site.cli_ok(&["rotateminerid", "--name", "pool"]);
    site.cli_ok(&["wallet", "words", "--yes"]);
    site.set_env("BSV_NEW_KEYSTORE_PASSPHRASE", "new");
    site.cli_ok(&["keystore", "passphrase"]);
    site.set_env("BSV_BACKUP_PASSPHRASE", "of the backup");
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("backup");
    site.cli_ok(&["backup", file.to_str().unwrap()]);
    assert_eq!(server.get("/opreturn/pool/rotate").status, 200);
    for switch in ["off", "off", "on"] {
        site.cli_ok(&["miner", "blind-signing", "--name", "pool", switch]);
    }
    let scopes = ["--scope", "wallet:pay", "--scope", "minerid:read:pool"];
    let token = site.cli_json(&[&["token", "create", "--label", "x"], &scopes[..]].concat());
    let [id, text] = ["id", "token"].map(|name| token[name].as_str().unwrap());
    site.cli_ok(&["token", "revoke", "--yes", id]);
    // A refused command leaves no entry.
    assert_eq!(site.cli(&["token", "revoke", "--yes", id]).code, 1);
    assert_eq!(site.cli(&["token", "create", "--scope", "wallet:sing"]).code, 2);
    let logs = site.cli_json(&["audit", "list"]);
    assert!(!logs.to_string().contains(&text[13..]), "the token itself is told: {logs}");
    let common = [("passphrase-changed", "keystore"), ("backed-up", "keystore")];
    let made = format!("{id} with wallet:pay, minerid:read:pool");
    let tokens = [("token-made", made.as_str()), ("token-revoked", id)];
    let wallet =
        [&[("made", "wallet.seed"), ("exported", "wallet.seed")], &common[..], &tokens].concat();
    assert_eq!(told(&logs["wallet"]), pairs(&wallet));
    let minerid = [
        &[("made", "pool_1"), ("made", "pool_2"), ("rotated", "pool_1")],
        &common[..],
        &[("made", "pool_3"), ("rotated", "pool_2")],
        &[("blind-signing-off", "pool"), ("blind-signing-on", "pool")],
        &tokens,
    ];
    assert_eq!(told(&logs["minerid"]), pairs(&minerid.concat()));
    let check = site.cli_json(&["audit", "verify"]);
    assert_eq!(
        (&check["wallet"]["entries"], &check["minerid"]["entries"]),
        (&json!(6), &json!(11))
    );
}

#[test]
fn an_entry_that_was_changed_is_named() {
    let site = begun_site();
    (0..3).for_each(|_| drop(site.cli_ok(&["wallet", "words", "--yes"])));
    let path = site.network_dir().join("wallet.redb");
    let right = fs::read(&path).unwrap();
    change(&site, |table| {
        let row = table.get(2).unwrap().unwrap();
        let (at, _, subject, previous) = row.value();
        let subject = subject.to_owned();
        drop(row);
        table.insert(2, (at, "made", subject.as_str(), previous)).unwrap();
    });
    let done = site.cli(&["audit", "verify"]);
    assert_eq!(done.code, 1);
    let expected = "entry 3 does not carry the hash of the one before it";
    assert!(done.stderr.contains(expected), "{}", done.stderr);
    fs::write(&path, right).unwrap();
    change(&site, |table| drop(table.remove(1).unwrap()));
    let done = site.cli(&["audit", "verify"]);
    assert_eq!(done.code, 1);
    assert!(done.stderr.contains("entry 1 is missing"), "{}", done.stderr);
}

type AuditTable<'t> = redb::Table<'t, u64, (u64, &'static str, &'static str, [u8; 32])>;

fn change(site: &Site, change: impl FnOnce(&mut AuditTable<'_>)) {
    let database = Database::open(site.network_dir().join("wallet.redb")).unwrap();
    let transaction = database.begin_write().unwrap();
    change(&mut transaction.open_table(AUDIT).unwrap());
    transaction.commit().unwrap();
}

#[test]
fn a_clock_that_is_set_back_and_forth_leaves_the_log_in_order() {
    let mut site = begun_site();
    let clock = Clock::install(&mut site);
    for shift in [0, -DAY, 3 * DAY, -30 * DAY, 0] {
        clock.shift(shift);
        site.cli_ok(&["wallet", "words", "--yes"]);
    }
    assert_eq!(site.cli_json(&["audit", "verify"])["wallet"]["entries"], 6);
    let logs = site.cli_json(&["audit", "list"]);
    let times: Vec<_> = logs["wallet"].as_array().unwrap().iter().map(|it| &it["at"]).collect();
    assert!(times.is_sorted_by_key(|at| at.as_str()), "{times:?}");
}
