//! Files that earlier versions wrote: `fixtures/README.md` tells of them.

#![allow(clippy::unwrap_used, reason = "helpers of tests may panic as tests do")]

use std::fs;
use std::path::Path;
use std::time::Duration;

use bsv_invoicing::ledger::queries::{
    GetBlocks, GetEvents, GetFollowed, GetIncoming, GetInvoices, GetLastEventAt,
};
use bsv_invoicing::ledger::{ForgetBlock, Refusal, Sweep};
use bsv_invoicing::{
    Event, EventKind, InvoiceDraft, InvoiceQuery, InvoiceState, RedbWalletStore, Timestamp,
    UserDraft, Wallet, WalletSettings, WalletStore, WalletStoreError,
};
use bsv_store::{DatabaseOptions, DirLock, Keystore, PlainKeys};
use bsv_tx::Network;
use redb::{ReadableDatabase, TableDefinition};
use serde_json::Value;
use tempfile::TempDir;

/// A copy of a fixture, which can be opened again and again.
struct Copy(TempDir);

impl Copy {
    fn of(fixture: &str) -> Self {
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(fixture);
        let copy = Self(tempfile::tempdir().unwrap());
        copy_dir(&from, copy.0.path());
        copy
    }

    fn store(&self) -> RedbWalletStore {
        let lock = DirLock::acquire(self.0.path(), "test").unwrap();
        RedbWalletStore::open(lock, DatabaseOptions::default()).unwrap()
    }

    async fn wallet(&self) -> Wallet {
        let dir = self.0.path().join("keystore");
        let keystore = Keystore::open(&dir, None, PlainKeys::Allowed, "test").unwrap();
        let settings = WalletSettings::new(Network::Regtest);
        Wallet::open(self.store(), keystore, settings).await.unwrap()
    }

    fn expected(&self, what: &str) -> Vec<Value> {
        let text = fs::read(self.0.path().join("expected.json")).unwrap();
        let expected: Value = serde_json::from_slice(&text).unwrap();
        expected[what].as_array().unwrap().clone()
    }

    fn version(&self) -> u64 {
        const SCHEMA_VERSIONS: TableDefinition<'_, &str, u64> =
            TableDefinition::new("schema_version");
        let path = self.0.path().join(RedbWalletStore::FILE_NAME);
        let database = redb::Database::open(path).unwrap();
        let table = database.begin_read().unwrap().open_table(SCHEMA_VERSIONS).unwrap();
        table.get("wallet").unwrap().unwrap().value()
    }
}

fn copy_dir(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_dir(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).unwrap();
        }
    }
}

const ALL: InvoiceQuery = InvoiceQuery { after: None, state: None, newest_first: false, limit: 9 };

/// The invoices that expire an hour after they were created, and the moment when both have expired.
const EXPIRING: [usize; 2] = [0, 3];
const BOTH_EXPIRED: &str = "2026-11-21T14:36:16.133101Z";

/// Compares all that is known through the wallet with what was written.
async fn assert_as_written(wallet: &Wallet, copy: &Copy) {
    let found = wallet.invoices(ALL).await.unwrap();
    let written = copy.expected("invoices");
    assert_eq!((found.invoices.len(), found.next), (written.len(), None));
    for (found, written) in found.invoices.iter().zip(&written) {
        assert_eq!(
            serde_json::from_str::<Value>(&found.to_json(found.created_at)).unwrap(),
            *written
        );
        let id = written["id"].as_str().unwrap();
        assert_eq!(wallet.invoice(id).await.unwrap(), *found);
        assert_eq!(wallet.invoice_number(id).await.unwrap(), found.number);
    }
    for written in copy.expected("users") {
        let found = wallet.user(written["id"].as_u64().unwrap()).await.unwrap();
        assert_eq!(serde_json::from_str::<Value>(&found.to_json()).unwrap(), written);
    }
    assert_eq!(wallet.balance().await.unwrap(), 0);
}

/// What the events of the fixture tell of, invoices by id and users by number, in no order.
fn subjects(events: &[Event]) -> Vec<String> {
    let mut subjects: Vec<_> = events
        .iter()
        .map(|event| match event.kind {
            EventKind::InvoiceCreated(id) => id.to_string(),
            EventKind::UserCreated(id) => id.to_string(),
            kind => panic!("version 1 has no event of the kind {kind:?}"),
        })
        .collect();
    subjects.sort();
    subjects
}

#[tokio::test]
async fn all_that_version_1_wrote_is_found() {
    let copy = Copy::of("version-1");
    assert_eq!(copy.version(), 1);
    let events = {
        let wallet = copy.wallet().await;
        assert_as_written(&wallet, &copy).await;
        wallet.events(0, 99).await.unwrap()
    };
    assert_eq!(copy.version(), 6);
    let mut written: Vec<_> = copy
        .expected("invoices")
        .iter()
        .map(|invoice| invoice["id"].as_str().unwrap().to_owned())
        .chain(copy.expected("users").iter().map(|user| user["id"].to_string()))
        .collect();
    written.sort();
    assert_eq!(subjects(&events), written);
    assert!(events.iter().map(|event| event.number).eq(1..=6));
    assert!(events.is_sorted_by_key(|event| event.at));
    let wallet = copy.wallet().await;
    assert_as_written(&wallet, &copy).await;
    assert_eq!(wallet.events(0, 99).await.unwrap(), events);
}

/// How much was due at a time.
async fn swept(store: &RedbWalletStore, now: Timestamp) -> usize {
    match store.execute(Sweep { now, doubted_since: None, limit: 9 }).await {
        Err(WalletStoreError::Refused(Refusal::NothingDue)) => 0,
        count => count.unwrap(),
    }
}

#[tokio::test]
async fn invoices_of_version_1_that_have_expired_meanwhile_are_told_once() {
    let copy = Copy::of("version-1");
    let store = copy.store();
    let now: Timestamp = BOTH_EXPIRED.parse().unwrap();
    let invoices = store.list(GetInvoices(ALL, now)).await.unwrap().invoices;
    let last_written = store.get(GetLastEventAt).await.unwrap();
    assert_eq!(swept(&store, last_written).await, 0);
    let first_expiry = invoices[EXPIRING[0]].expires_at;
    assert_eq!(swept(&store, first_expiry).await, 1);
    drop(store);
    let store = copy.store();
    assert_eq!(swept(&store, now).await, 1);
    assert_eq!(swept(&store, now.after(Duration::from_secs(3600))).await, 0);
    let told = store.list(GetEvents(6, 9)).await.unwrap();
    let told: Vec<_> = told.iter().map(|event| (event.at, event.kind)).collect();
    let [first, second] = EXPIRING.map(|place| EventKind::InvoiceExpired(invoices[place].id));
    assert_eq!(told, [(first_expiry, first), (now, second)]);
    let expired = InvoiceQuery { state: Some(InvoiceState::Expired), ..ALL };
    let expired = store.list(GetInvoices(expired, now)).await.unwrap().invoices;
    assert_eq!(expired, EXPIRING.map(|place| invoices[place].clone()));
}

#[tokio::test]
async fn what_is_new_continues_the_numbers_of_version_1() {
    let copy = Copy::of("version-1");
    let wallet = copy.wallet().await;
    let old = wallet.events(0, 99).await.unwrap();
    let draft = InvoiceDraft { satoshis: 7, ..InvoiceDraft::default() };
    let invoice = wallet.create_invoice(draft, None).await.unwrap();
    assert_eq!(invoice.number, 5);
    let details = UserDraft { name: "Edsger".to_owned(), ..UserDraft::default() };
    let user = wallet.create_user(details, None).await.unwrap();
    assert_eq!(user.id, 3);
    let deleted = wallet.invoices(ALL).await.unwrap().invoices[1].id;
    wallet.delete_invoice(deleted.as_str()).await.unwrap();
    drop(wallet);
    let wallet = copy.wallet().await;
    assert_eq!(wallet.invoice(invoice.id.as_str()).await.unwrap(), invoice);
    assert_eq!(wallet.user(3).await.unwrap(), user);
    let events = wallet.events(0, 99).await.unwrap();
    assert_eq!(events[..old.len()], old);
    let new: Vec<_> = events[old.len()..].iter().map(|event| event.kind).collect();
    let expected = [
        EventKind::InvoiceCreated(invoice.id),
        EventKind::UserCreated(3),
        EventKind::InvoiceDeleted(deleted),
    ];
    assert_eq!(new, expected);
}

/// Heights and hashes of the blocks that the payments of invoices are in.
async fn blocks_of_payments(store: &RedbWalletStore) -> Vec<(u32, String)> {
    let mut blocks = Vec::new();
    let all = GetInvoices(ALL, BOTH_EXPIRED.parse().unwrap());
    for invoice in store.list(all).await.unwrap().invoices {
        for payment in store.get(GetIncoming(invoice.number)).await.unwrap() {
            blocks.extend(payment.block.map(|block| (block.height, block.hash.to_string())));
        }
    }
    blocks
}

#[tokio::test]
async fn blocks_of_earlier_versions_can_leave_the_chain() {
    let [first, second] = [
        (102, "68db1e85841f8810498cedf955aad3144c628ff08f3091d273051ccd21f575a9".to_owned()),
        (103, "0eb6b14e3e576d8420171bcf8f5d4c9f1cfdb7a9537941ebd5cfeb58b38050e1".to_owned()),
    ];
    for fixture in ["version-3", "version-4"] {
        let copy = Copy::of(fixture);
        let store = copy.store();
        assert_eq!(blocks_of_payments(&store).await, [first.clone(), first.clone()]);
        let blocks = store.list(GetBlocks(0)).await.unwrap();
        let told = blocks.iter().map(|block| (block.height, block.hash.to_string()));
        assert!(told.eq([first.clone(), second.clone()]), "{blocks:?}");
        let followed = store.list(GetFollowed(0, 9)).await.unwrap().len();
        let now = store.get(GetLastEventAt).await.unwrap();
        store.execute(ForgetBlock { block: blocks[0], now }).await.unwrap();
        assert_eq!(store.list(GetBlocks(0)).await.unwrap(), blocks[1..]);
        assert_eq!(blocks_of_payments(&store).await, []);
        assert_eq!(store.list(GetFollowed(0, 9)).await.unwrap().len(), followed + 2);
    }
}
