//! A wallet goes from a file to a database, and back.

use bsv_invoicing::coins::{Chain, KeyPath};
use bsv_invoicing::invoices::IdempotencyKey;
use bsv_invoicing::ledger::queries::{GetRecord, GetTransaction};
use bsv_invoicing::ledger::{
    Adopt, CreateInvoice, CreateUser, DeleteInvoice, Displace, NoteKeyEvent, Notice, Noticed,
    ShownPlace, Sighting, Unfollow, Watch,
};
use bsv_invoicing::store::{CopyError, Store, WalletStore, copy_wallet};
use bsv_invoicing::transactions::RawBytes;
use bsv_invoicing::{InvoiceDraft, RedbWalletStore, Timestamp, UserDraft};
use bsv_store::{DatabaseOptions, DirLock, KeyEvent};
use bsv_tx::{Script, Transaction, TxOut};
use tempfile::TempDir;

use crate::postgres::dump::{Dump, DumpFigures};
use crate::postgres::store_conformance::new_id;
use crate::postgres::{SERVER, open};

fn file(dir: &TempDir) -> RedbWalletStore {
    let lock = DirLock::acquire(dir.path(), "test").unwrap();
    RedbWalletStore::open(lock, DatabaseOptions::default()).unwrap()
}

/// The hash of a key of the wallet.
const HASH: [u8; 20] = [9; 20];

/// A transaction to the wallet, of which two are more than is copied at once.
fn long(version: i32, came_at: Timestamp) -> Noticed {
    let scripts = [Script::p2pkh(&HASH), Script::from_bytes(vec![7; 600_000])];
    let outputs = scripts.map(|locking_script| TxOut { satoshis: 1, locking_script });
    let transaction =
        Transaction { version, inputs: Vec::new(), outputs: outputs.to_vec(), lock_time: 0 };
    let place = ShownPlace::Mempool(Sighting::judged(true));
    Noticed { transaction: (&transaction).into(), place, came_at, ancestry: Vec::new() }
}

/// More rows than are copied at once, some of them with every column.
async fn fill(store: &impl WalletStore) {
    let now = Timestamp::from_micros(1_800_000_000_000_000);
    store.execute(Adopt { fingerprint: [7; 20], origin: KeyEvent::Made }).await.unwrap();
    for number in 0..1_100_u64 {
        let draft = InvoiceDraft {
            satoshis: number + 1,
            reference: Some(format!("order \0 {number}")),
            ..InvoiceDraft::default()
        };
        let expiry = std::time::Duration::from_secs(3600);
        let idempotency = IdempotencyKey::new(&format!("key {number}"), b"{}").ok();
        store
            .execute(CreateInvoice { draft, expiry, id: new_id(), now, idempotency })
            .await
            .unwrap();
    }
    let details = UserDraft { name: "Ada".to_owned(), ..UserDraft::default() };
    store.execute(CreateUser { details, idempotency: None, now }).await.unwrap();
    store.execute(DeleteInvoice { number: 3, now }).await.unwrap();
    let key = KeyPath { account: 0, chain: Chain::Change, index: 0 };
    store.execute(Watch { keys: vec![(HASH, key)] }).await.unwrap();
    let shown = (1..=4).map(|version| long(version, now)).collect();
    store.execute(Notice { shown, now }).await.unwrap();
    // The last one is kept without its bytes.
    store.execute(Displace { transaction: 4, now }).await.unwrap();
    store.execute(Unfollow { transaction: 4 }).await.unwrap();
    let event = KeyEvent::Exported;
    store.execute(NoteKeyEvent { event, subject: "words".to_owned() }).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wallet_is_the_same_in_a_database_and_in_a_file_again() {
    let (dir, other) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let (source, database, target) = (file(&dir), open(&SERVER.fresh_url()), file(&other));
    fill(&source).await;
    let count = copy_wallet(&source, &database).await.unwrap();
    let rows = source.list(Dump).await.unwrap();
    let dropped = source.get(GetRecord(4)).await.unwrap().unwrap();
    assert!(dropped.raw == RawBytes::Dropped && source.get(GetTransaction(4)).await.is_err());
    assert_eq!(count, rows.len() as u64 + 1, "the figures are a row too");
    assert_eq!(database.list(Dump).await.unwrap(), rows);
    copy_wallet(&database, &target).await.unwrap();
    assert_eq!(target.list(Dump).await.unwrap(), rows);
    let figures = source.verify(DumpFigures).await.unwrap();
    let log = source.verify_audit_log().await.unwrap();
    assert_eq!(log.entries, 2);
    assert_eq!(database.verify(DumpFigures).await.unwrap(), figures);
    assert_eq!(database.verify_audit_log().await.unwrap(), log);
    assert_eq!(target.verify(DumpFigures).await.unwrap(), figures);
    assert_eq!(target.verify_audit_log().await.unwrap(), log);
    // It goes on where it was.
    let again = copy_wallet(&source, &database).await;
    assert!(matches!(again, Err(CopyError::NotEmpty)), "{again:?}");
    let details = UserDraft::default();
    let now = Timestamp::from_micros(1);
    let user = database.execute(CreateUser { details, idempotency: None, now }).await.unwrap();
    assert_eq!(user.0, 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_was_taken_for_dead_retires_no_wallet() {
    let url = SERVER.url("retiring");
    let database = open(&url);
    database.be_alone().await.unwrap();
    SERVER.query("DELETE FROM retiring.processes");
    assert!(!database.is_overtaken());
    assert!(database.retire().await.is_err());
    assert!(database.is_overtaken());
    assert!(database.be_alone().await.is_err());
    assert_eq!(SERVER.query("SELECT count(*) FROM retiring.meta WHERE name = 'moved wallet'"), "0");
}
