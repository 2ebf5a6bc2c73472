//! The identity store in a redb file.

#![allow(clippy::unwrap_used, reason = "helpers of tests may panic as tests do")]

mod store_conformance;

use bsv_minerid::formats::OperatorMembers;
use bsv_minerid::store::{
    Change, Deed, IdentityRecord, IdentityStore, IdentityStoreError, KeyRecord, Protocol,
    RedbIdentityStore, Seen, Step, Vctx, VctxView,
};
use bsv_store::StoreError;
use bsv_tx::Transaction;
use redb::{Database, TableDefinition};
use store_conformance::Place;
use tempfile::TempDir;

struct RedbPlace(TempDir);

impl Place for RedbPlace {
    type Store = RedbIdentityStore;

    fn fresh() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn open(&self) -> Self::Store {
        RedbIdentityStore::open(self.0.path(), "test").unwrap()
    }
}

#[test]
fn redb_does_what_every_back_end_must() {
    store_conformance::run::<RedbPlace>();
}

const IDENTITIES: TableDefinition<'_, &str, &str> = TableDefinition::new("identities");
const KEY: &str = "025e343d44313813efa8e94b2c28c0b9b992cbcbed0fad36600a858fcd31da5890";
const OUTPOINT: &str = "6839008199026098cc78bf5f34c9a6bdf7a8009c9f019f8399c7ca1945b4a4ff:3";
const TRANSACTION: &str = "01000000010000000000000000000000000000000000000000000000000000000000000000ffffffff0151ffffffff01e803000000000000015100000000";

/// A store whose file holds these records.
fn store_of(records: &[(&str, &str)]) -> (RedbPlace, RedbIdentityStore) {
    let place = RedbPlace::fresh();
    drop(place.open());
    let database = Database::open(place.0.path().join("minerid.redb")).unwrap();
    let transaction = database.begin_write().unwrap();
    {
        let mut table = transaction.open_table(IDENTITIES).unwrap();
        for (alias, record) in records {
            table.insert(alias, record).unwrap();
        }
    }
    transaction.commit().unwrap();
    drop(database);
    let store = place.open();
    (place, store)
}

fn record_text(vctx: &str) -> String {
    let key = format!(r#"{{"number":1,"publicKey":"{KEY}"}}"#);
    let operator = r#"{\"minerContact\":{\"name\":\"pool\"}}"#;
    let protocol = format!(r#"{{"vctx":{vctx}}}"#);
    let step = format!(
        r#"{{"deed":{{"key":{{"after":1}}}},"key":{key},"seen":"final","isHandedOut":false}}"#
    );
    format!(r#"{{"steps":[{step}],"beginsWith":1,"operator":"{operator}","protocol":{protocol}}}"#)
}

/// The format of schema version 8. A change of it needs a migration.
#[test]
fn records_are_read_as_earlier_versions_wrote_them() {
    let outpoint = OUTPOINT.parse().unwrap();
    let view = VctxView { last_seen: Some(100), gone_since: Some(101), is_spent: true };
    let broadcasting = format!(r#"{{"state":"broadcasting","transaction":"{TRANSACTION}"}}"#);
    let new = format!(
        r#"{{"state":"recorded","outpoint":"{OUTPOINT}","lastSeen":null,"goneSince":null,"isSpent":false}}"#
    );
    let spent = format!(
        r#"{{"state":"recorded","outpoint":"{OUTPOINT}","lastSeen":100,"goneSince":101,"isSpent":true}}"#
    );
    for (text, vctx) in [
        (r#"{"state":"none"}"#, Vctx::None),
        (r#"{"state":"awaitingFunds"}"#, Vctx::AwaitingFunds),
        (&broadcasting, Vctx::Broadcasting(Transaction::from_hex(TRANSACTION).unwrap())),
        (&new, Vctx::Recorded(outpoint, VctxView::default())),
        (&spent, Vctx::Recorded(outpoint, view)),
    ] {
        let text = record_text(text);
        let (place, store) = store_of(&[("pool", &text)]);
        let key = KeyRecord { number: 1, public_key: KEY.parse().unwrap() };
        let deed = Deed::Key { after: 1 };
        let step = Step { deed, key, seen: Seen::Final, is_handed_out: false };
        let record = IdentityRecord {
            operator: OperatorMembers::from_json(r#"{"minerContact":{"name":"pool"}}"#).unwrap(),
            ..IdentityRecord::of_steps(vec![step], 1, Protocol::Vctx(vctx))
        };
        let pool = "pool".parse().unwrap();
        assert_eq!(store.identity(&pool).unwrap(), record);
        store.change(&pool, &Change::SetOperator(record.operator.clone())).unwrap();
        drop(store);
        let database = Database::open(place.0.path().join("minerid.redb")).unwrap();
        let table = redb::ReadableDatabase::begin_read(&database).unwrap();
        let table = table.open_table(IDENTITIES).unwrap();
        assert_eq!(table.get("pool").unwrap().unwrap().value(), text);
    }
}

#[test]
fn a_damaged_record_is_an_error_and_never_another_identity() {
    let right = record_text(r#"{"state":"none"}"#);
    for damaged in [
        String::new(),
        "{}".to_owned(),
        right.replace(KEY, &KEY[2..]),
        right.replace(&right[right.find("[{").unwrap() + 1..right.find("],").unwrap()], ""),
        right.replace(r#""number":1"#, r#""number":-1"#),
        right.replace("none", "other"),
        right.replace("none", "recorded"),
        right.replace("isHandedOut", "is_handed_out"),
        right.replace(r#""steps""#, r#""more":1,"steps""#),
        right.replace(r#"pool\"}"#, r#"pool\""#),
        right.replace(r#"\"minerContact\""#, r#"\"version\""#),
        record_text(r#"{"state":"broadcasting","transaction":"00"}"#),
    ] {
        let (_place, store) = store_of(&[("other", &right), ("pool", &damaged)]);
        let pool = "pool".parse().unwrap();
        let mut identities = store.identities().unwrap().into_iter();
        let (_, other) = identities.next().unwrap();
        assert_eq!(other.unwrap(), store.identity(&"other".parse().unwrap()).unwrap());
        let (alias, damage) = identities.next().unwrap();
        assert_eq!(alias, pool);
        for error in [
            damage.unwrap_err().into(),
            store.identity(&pool).unwrap_err(),
            store.change(&pool, &Change::AwaitVctxFunding).unwrap_err(),
        ] {
            let is_damage = matches!(error, IdentityStoreError::Store(StoreError::Damaged(_)));
            assert!(is_damage, "{damaged}: {error}");
        }
    }
    let (_place, store) = store_of(&[("../pool", &right)]);
    assert!(store.identities().is_err());
}
