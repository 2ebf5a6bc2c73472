//! Files of earlier versions, described in `fixtures/README.md`.

#![allow(clippy::unwrap_used, reason = "helpers of tests may panic as tests do")]

use std::fs;
use std::path::Path;

use bsv_minerid::bsv_store::AuditPage;
use bsv_minerid::store::{Announcement, Exposure, LeftVctx, RedbIdentityStore, Sighted};
use bsv_minerid::{Error, Keystore, MinerContact, MinerIds, Network, PlainKeys};
use redb::{ReadableDatabase, TableDefinition};
use serde_json::{Value, json};
use tempfile::TempDir;

fn copy_of(fixture: &str) -> TempDir {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(fixture);
    let copy = tempfile::tempdir().unwrap();
    fs::create_dir(copy.path().join("keystore")).unwrap();
    for dir in ["", "keystore"] {
        for entry in fs::read_dir(from.join(dir)).unwrap().map(Result::unwrap) {
            if entry.file_type().unwrap().is_file() {
                fs::copy(entry.path(), copy.path().join(dir).join(entry.file_name())).unwrap();
            }
        }
    }
    copy
}

fn open(dir: &Path) -> MinerIds<RedbIdentityStore> {
    let keystore = Keystore::open(&dir.join("keystore"), None, PlainKeys::Allowed, "test").unwrap();
    MinerIds::open(RedbIdentityStore::open(dir, "test").unwrap(), keystore, Network::Regtest)
        .unwrap()
}

fn version(dir: &Path) -> u64 {
    const SCHEMA_VERSIONS: TableDefinition<'_, &str, u64> = TableDefinition::new("schema_version");
    let database = redb::Database::open(dir.join("minerid.redb")).unwrap();
    let table = database.begin_read().unwrap().open_table(SCHEMA_VERSIONS).unwrap();
    table.get("minerid").unwrap().unwrap().value()
}

/// The subjects of the audit log, which begins with the keys that existed before it.
fn found_keys(ids: &MinerIds<RedbIdentityStore>) -> Vec<String> {
    let entries = ids.audit_log(AuditPage::After(0), 99).unwrap();
    assert!(entries.iter().all(|entry| entry.event == "found"), "{entries:?}");
    entries.into_iter().map(|entry| entry.subject).collect()
}

/// Everything about the identities, in the format of `expected.json`.
fn known(ids: &MinerIds<RedbIdentityStore>) -> Value {
    let known = |identity: std::sync::Arc<bsv_minerid::Identity>| {
        let record = identity.record();
        let keys: Vec<_> =
            record.keys.iter().map(|key| json!([key.number, key.public_key.to_string()])).collect();
        let script = match identity.preview_output_script(7) {
            Ok(script) => hex::encode(&*script),
            // The error text of that version.
            Err(error @ Error::NoVctx(_)) => format!("{error}, run generatevctx"),
            Err(error) => error.to_string(),
        };
        json!({
            "alias": identity.alias().as_str(),
            "keys": keys,
            "handedOut": record.handed_out,
            "minerContact": record.contact().to_json(),
            "vctx": format!("{:?}", record.vctx().unwrap()),
            "outputScript": script,
        })
    };
    ids.all().into_iter().map(known).collect()
}

#[test]
fn all_that_version_1_wrote_is_found() {
    let copy = copy_of("version-1");
    let dir = copy.path();
    let written = fs::read(dir.join("expected.json")).unwrap();
    let written: Value = serde_json::from_slice(&written).unwrap();
    assert_eq!(version(dir), 1);
    assert_eq!(known(&open(dir)), written);
    assert_eq!(version(dir), 9);
    let ids = open(dir);
    assert_eq!(known(&ids), written);
    assert_eq!(found_keys(&ids), ids.key_names());
    let pool = "pool".parse().unwrap();
    let more = MinerContact::from_json(r#"{"more":1}"#).unwrap();
    let contact = ids.set_contact(&pool, &more).unwrap();
    assert!(contact.to_json().ends_with(r#","none":{},"more":1}"#), "{}", contact.to_json());
}

#[test]
fn what_blocks_have_shown_is_found_where_version_6_wrote_it() {
    let copy = copy_of("version-6");
    assert_eq!(version(copy.path()), 6);
    drop(open(copy.path()));
    assert_eq!(version(copy.path()), 9);
    let ids = open(copy.path());
    let record = |alias: &str| ids.get(alias).unwrap().record();
    let pool = record("pool");
    assert_eq!((pool.announcements(), pool.sightings.acknowledged), (vec![], 2));
    let [sighting] = &pool.sightings.recent[..] else { panic!("{:?}", pool.sightings) };
    assert_eq!((sighting.block.height, sighting.sighted), (104, Sighted::Key { before: 1 }));
    let announcing = record("announcing");
    assert_eq!(announcing.announcements(), [Announcement::Rotation]);
    assert_eq!((announcing.previous_key().number, announcing.current_key().number), (1, 2));
    let older = record("older");
    assert_eq!((older.announcements(), older.sightings.acknowledged), (vec![], 2));
}

#[test]
fn of_what_is_left_of_a_vctx_version_7_knows_nothing() {
    let copy = copy_of("version-7");
    assert_eq!(version(copy.path()), 7);
    drop(open(copy.path()));
    assert_eq!(version(copy.path()), 9);
    let ids = open(copy.path());
    for alias in ["upgraded", "pool"] {
        let record = ids.get(alias).unwrap().record();
        assert_eq!(record.miner_info().unwrap().left_vctx, LeftVctx::default(), "{alias}");
    }
}

#[test]
fn in_which_block_an_identity_was_seen_at_first_version_8_does_not_know() {
    let copy = copy_of("version-8");
    assert_eq!(version(copy.path()), 8);
    drop(open(copy.path()));
    assert_eq!(version(copy.path()), 9);
    let ids = open(copy.path());
    for (alias, exposure) in [("pool", Exposure::HandedOut), ("kept", Exposure::Kept)] {
        let record = ids.get(alias).unwrap().record();
        assert_eq!((record.exposure, record.sightings.recent), (exposure, vec![]), "{alias}");
    }
}
