//! The wallet's store in a redb file.

#![allow(clippy::unwrap_used, reason = "helpers of tests may panic as tests do")]

mod store_conformance;

use std::pin::pin;
use std::sync::Mutex;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::task::Poll;
use std::time::Duration;

use bsv_invoicing::events::{
    Event, EventFilter, EventKind, EventPage, EventQuery, MAX_EVENTS_LOOKED_AT,
};
use bsv_invoicing::invoices::{IdempotencyKey, InvoiceQuery, MAX_LOOKED_AT, MAX_PAGE_TEXT};
use bsv_invoicing::ledger::events::{EventDetails, EventRow, PaymentDetails, Sums};
use bsv_invoicing::ledger::figures::Figures;
use bsv_invoicing::ledger::items::{FoldLedger, LedgerItem};
use bsv_invoicing::ledger::rows::{
    AllFigures, Events, Expiries, IdempotencyAges, IdempotentAnswers, Invoices, Kind, Owner, Row,
    Users,
};
use bsv_invoicing::ledger::{
    Books, Command, CreateInvoice, CreateUser, DeleteInvoice, GetEventPage, Refusal, Sweep,
};
use bsv_invoicing::store::{OpenWalletStoreError, Store, WalletStore, WalletStoreError};
use bsv_invoicing::{Invoice, InvoiceDraft, InvoiceState, RedbWalletStore, Timestamp, UserDraft};
use bsv_store::{DatabaseOptions, DirLock, KeyEvent, StoreError};
use redb::{Database, ReadableTable, ReadableTableMetadata, TableDefinition, WriteTransaction};
use store_conformance::{Calls, Place, assert_refused, new_id};
use tempfile::TempDir;

struct RedbPlace(TempDir);

impl RedbPlace {
    fn try_open(&self) -> Result<RedbWalletStore, OpenWalletStoreError> {
        let lock = DirLock::acquire(self.0.path(), "test").unwrap();
        RedbWalletStore::open(lock, DatabaseOptions::default())
    }

    /// Changes the file behind the store's back.
    fn write(&self, change: impl FnOnce(&WriteTransaction)) {
        let database = Database::open(self.0.path().join(RedbWalletStore::FILE_NAME)).unwrap();
        let transaction = database.begin_write().unwrap();
        change(&transaction);
        transaction.commit().unwrap();
    }
}

impl Place for RedbPlace {
    type Store = RedbWalletStore;

    fn fresh() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn open(&self) -> Self::Store {
        self.try_open().unwrap()
    }
}

#[tokio::test]
async fn redb_does_what_every_back_end_must() {
    store_conformance::run::<RedbPlace>().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn redb_serves_many_at_once_as_every_back_end_must() {
    store_conformance::run_at_once::<RedbPlace>(50).await;
}

#[test]
fn redb_adds_coins_up_as_every_back_end_must() {
    store_conformance::run_random_steps::<RedbPlace>(100);
}

#[tokio::test]
async fn redb_commits_nothing_where_nothing_changes() {
    let place = RedbPlace::fresh();
    let store = place.open();
    store_conformance::run_unchanged(&store, || store.counts().commits.counts().count()).await;
}

const SCHEMA_VERSIONS: TableDefinition<'_, &str, u64> = TableDefinition::new("schema_version");

/// The row of an invoice that is right.
fn right_row(number: u64) -> Invoice {
    let draft = InvoiceDraft { satoshis: 5, ..InvoiceDraft::default() };
    let numbered = (number, "bwWEkOWIH8Ck".parse().unwrap());
    Invoice::new(numbered, draft, Timestamp::from_micros(1), Duration::from_micros(999))
}

/// The row of an invoice that is paid.
fn paid_row(number: u64) -> Vec<u8> {
    let payment_received_at = Some(Timestamp::from_micros(50));
    Invoice { payment_received_at, ..right_row(number) }.encode()
}

/// The row of an invoice whose id consists of these bytes.
fn row_with_id(number: u64, id: [u8; 12]) -> Vec<u8> {
    let (mut row, right) = (right_row(number).encode(), right_row(number).id);
    let place = row.windows(12).position(|it| it == right.as_str().as_bytes()).unwrap();
    row[place..place + 12].copy_from_slice(&id);
    row
}

const ALL: InvoiceQuery =
    InvoiceQuery { after: None, state: None, needs_decision: false, newest_first: false, limit: 9 };

fn now() -> Timestamp {
    Timestamp::from_micros(100)
}

fn new_invoice() -> CreateInvoice {
    let draft = InvoiceDraft { satoshis: 5, ..InvoiceDraft::default() };
    let expiry = Duration::from_micros(900);
    CreateInvoice { draft, expiry, id: new_id(), now: now(), idempotency: None }
}

async fn create(
    store: &RedbWalletStore,
    invoice: CreateInvoice,
) -> Result<Invoice, WalletStoreError> {
    store.create_invoice(invoice).await
}

/// A store with three invoices, whose file was then changed. The second invoice was made with the
/// idempotency key `k`.
async fn changed(change: impl FnOnce(&WriteTransaction)) -> (RedbPlace, RedbWalletStore) {
    let place = RedbPlace::fresh();
    let store = place.open();
    let key = IdempotencyKey::new("k", b"{}").unwrap();
    for idempotency in [None, Some(key), None] {
        create(&store, CreateInvoice { idempotency, ..new_invoice() }).await.unwrap();
    }
    drop(store);
    place.write(change);
    let store = place.open();
    (place, store)
}

#[track_caller]
fn assert_damaged<T: std::fmt::Debug>(result: Result<T, WalletStoreError>) {
    let error = result.unwrap_err();
    assert!(matches!(error, WalletStoreError::Store(StoreError::Damaged(_))), "{error}");
}

type RawTable<'t> = redb::Table<'t, &'static [u8], &'static [u8]>;

fn table<K: Kind>(transaction: &WriteTransaction) -> RawTable<'_> {
    transaction.open_table(TableDefinition::new(K::TABLE.name())).unwrap()
}

fn set<K: Kind>(transaction: &WriteTransaction, key: &K::Key, row: &[u8]) {
    table::<K>(transaction).insert(&*K::key(key), row).unwrap();
}

fn remove<K: Kind>(transaction: &WriteTransaction, key: &K::Key) {
    table::<K>(transaction).remove(&*K::key(key)).unwrap();
}

/// Changes the figures.
fn change_figures(transaction: &WriteTransaction, change: impl FnOnce(&mut Figures)) {
    let row = table::<AllFigures>(transaction).get(&[][..]).unwrap().unwrap().value().to_vec();
    let mut figures = Figures::decode(&row).unwrap();
    change(&mut figures);
    set::<AllFigures>(transaction, &(), &figures.encode());
}

#[tokio::test]
async fn a_damaged_invoice_is_an_error_and_does_not_disturb_the_others() {
    for id in [*b"bwWEkOWIH8C ", *b"bwWEkOWIH8C\xff", [0; 12], *b"../../../../"] {
        let row = row_with_id(2, id);
        let (_place, store) = changed(|transaction| set::<Invoices>(transaction, &2, &row)).await;
        let key = IdempotencyKey::new("k", b"{}").unwrap();
        assert_damaged(store.invoice(2).await);
        assert_damaged(store.delete_invoice(2, now()).await);
        assert_damaged(
            create(&store, CreateInvoice { idempotency: Some(key), ..new_invoice() }).await,
        );
        assert_damaged(store.invoices(ALL, now()).await);
        assert_damaged(store.events(0, 9).await);
        for number in [1, 3] {
            assert_eq!(store.invoice(number).await.unwrap().unwrap().number, number);
        }
        let page = store.invoices(InvoiceQuery { after: Some(2), ..ALL }, now()).await.unwrap();
        assert_eq!((page.invoices.len(), page.next), (1, None));
        assert_eq!(store.events(2, 9).await.unwrap().len(), 1);
        assert_eq!(create(&store, new_invoice()).await.unwrap().number, 4);
        store.delete_invoice(3, now()).await.unwrap();
    }
}

#[tokio::test]
async fn an_expiry_without_an_invoice_tells_nothing() {
    let (_place, store) = changed(|transaction| {
        remove::<Invoices>(transaction, &2);
    })
    .await;
    let later = Timestamp::from_micros(2000);
    assert_eq!(store.sweep(later, 9).await.unwrap(), 3);
    let told = store.events(3, 9).await.unwrap();
    let told: Vec<_> = told.iter().map(|event| (event.kind, event.subject)).collect();
    assert_eq!(told, [1, 3].map(|number| (EventKind::InvoiceExpired, number)));
}

#[tokio::test]
async fn a_damaged_event_is_an_error_and_does_not_disturb_the_others() {
    // These rows cannot be read, have unknown kinds, name missing invoices and transactions, or have
    // details of another kind.
    let row = |kind, subject, details| {
        EventRow { at: now(), kind, subject, details, block: None }.encode()
    };
    let right = row(EventKind::InvoiceCreated, 1, EventDetails::None);
    // The kind is the second member, after a time of two bytes.
    let of_kind = |kind: &[u8]| [&right[..3], kind, &right[4..]].concat();
    let payment = PaymentDetails {
        transaction: 7,
        satoshis: 5,
        late: false,
        sums: Sums { paid: 5, due: 0, counted: 5 },
    };
    for damaged in [
        Vec::new(),
        right[..right.len() - 1].to_vec(),
        [&right[..], &[0]].concat(),
        of_kind(&[0]),
        of_kind(&[0x18, 99]),
        of_kind(&[0x18, 255]),
        row(EventKind::InvoiceCreated, 9, EventDetails::None),
        row(EventKind::InvoiceExpired, 0, EventDetails::None),
        row(EventKind::PaymentReceived, 1, EventDetails::Payment(payment)),
        row(EventKind::ReceiptUnassigned, 1, EventDetails::None),
    ] {
        let (_place, store) = changed(|transaction| set::<Events>(transaction, &2, &damaged)).await;
        assert_damaged(store.events(0, 9).await);
        assert_damaged(store.events(1, 1).await);
        let numbers: Vec<_> = [store.events(0, 1).await, store.events(2, 9).await]
            .into_iter()
            .flat_map(|events| events.unwrap().into_iter().map(|event| event.number))
            .collect();
        assert_eq!(numbers, [1, 3]);
        assert_eq!(store.invoices(ALL, now()).await.unwrap().invoices.len(), 3);
        create(&store, new_invoice()).await.unwrap();
        let last = store.events(3, 9).await.unwrap();
        assert_eq!(last.iter().map(|event| event.number).collect::<Vec<_>>(), [4]);
    }
}

#[tokio::test]
async fn a_missing_invoice_or_user_of_a_known_idempotency_key_is_damage() {
    let (place, store) = changed(|transaction| {
        remove::<Invoices>(transaction, &2);
    })
    .await;
    let key = || IdempotencyKey::new("k", b"{}").ok();
    assert_damaged(create(&store, CreateInvoice { idempotency: key(), ..new_invoice() }).await);
    store.create_user(UserDraft::default(), now(), key()).await.unwrap();
    drop(store);
    place.write(|transaction| remove::<Users>(transaction, &1));
    let store = place.open();
    assert_damaged(store.create_user(UserDraft::default(), now(), key()).await);
    assert_eq!(store.create_user(UserDraft::default(), now(), None).await.unwrap().0, 2);
}

/// Keeps the writer busy until it gets the signal to go on.
struct Wait {
    begun: SyncSender<()>,
    go_on: Mutex<Receiver<()>>,
}

impl Command for Wait {
    type Answer = ();

    fn run(&self, _: &mut Books<'_>) -> Result<(), WalletStoreError> {
        self.begun.send(()).unwrap();
        self.go_on.lock().unwrap().recv().unwrap();
        Ok(())
    }
}

/// Runs two commands that share a commit.
async fn at_once<A: Command, B: Command>(
    store: &RedbWalletStore,
    a: A,
    b: B,
) -> (Result<A::Answer, WalletStoreError>, Result<B::Answer, WalletStoreError>) {
    let ((begun, is_begun), (go_on, told)) = (mpsc::sync_channel(1), mpsc::channel());
    let mut wait = pin!(store.execute(Wait { begun, go_on: Mutex::new(told) }));
    let mut both = pin!(async { tokio::join!(store.execute(a), store.execute(b)) });
    std::future::poll_fn(|context| {
        assert!(wait.as_mut().poll(context).is_pending());
        is_begun.recv().unwrap();
        // Both commands are in the queue now.
        assert!(both.as_mut().poll(context).is_pending());
        go_on.send(()).unwrap();
        Poll::Ready(())
    })
    .await;
    wait.await.unwrap();
    both.await
}

#[tokio::test]
async fn a_damaged_row_fails_only_the_command_that_reads_it() {
    let row = row_with_id(2, *b"bwWEkOWIH8C ");
    for is_damaged_first in [true, false] {
        let (_place, store) = changed(|transaction| set::<Invoices>(transaction, &2, &row)).await;
        let [damaged, right] = [2, 3].map(|number| DeleteInvoice { number, now: now() });
        let (of_damaged, of_right) = if is_damaged_first {
            at_once(&store, damaged, right).await
        } else {
            let (of_right, of_damaged) = at_once(&store, right, damaged).await;
            (of_damaged, of_right)
        };
        assert_damaged(of_damaged);
        of_right.unwrap();
        assert!(store.invoice(3).await.unwrap().unwrap().deleted_at.is_some());
        let told: Vec<_> =
            store.events(3, 9).await.unwrap().iter().map(|it| (it.kind, it.subject)).collect();
        assert_eq!(told, [(EventKind::InvoiceDeleted, 3)], "once, though it ran twice");
    }
}

/// The changes of a command that then reads a damaged row are undone.
#[tokio::test]
async fn a_command_that_fails_midway_has_done_nothing() {
    let row = row_with_id(2, *b"bwWEkOWIH8C ");
    let (place, store) = changed(|transaction| set::<Invoices>(transaction, &2, &row)).await;
    let later = Timestamp::from_micros(5000);
    let sweep = Sweep { now: later, doubted_since: None, limit: 9 };
    let user = CreateUser { details: UserDraft::default(), idempotency: None, now: now() };
    // The sweep expires the first of three invoices before it finds the damage.
    let (swept, created) = at_once(&store, sweep, user).await;
    assert_damaged(swept);
    assert_eq!(created.unwrap().0, 1);
    let told = async |store: &RedbWalletStore| {
        let events = store.events(3, 9).await.unwrap();
        let told = |event: &Event| (event.number, event.kind, event.subject);
        events.iter().map(told).collect::<Vec<_>>()
    };
    assert_eq!(told(&store).await, [(4, EventKind::UserCreated, 1)]);
    drop(store);
    place.write(|transaction| set::<Invoices>(transaction, &2, &right_row(2).encode()));
    let store = place.open();
    assert_eq!(store.sweep(later, 9).await.unwrap(), 3, "all are still due");
    assert_eq!(told(&store).await.len(), 4);
}

#[tokio::test]
async fn a_damaged_fingerprint_belongs_to_no_wallet() {
    for bytes in [&[][..], &[1; 19], &[1; 21]] {
        let (_place, store) = changed(|transaction| set::<Owner>(transaction, &(), bytes)).await;
        assert_damaged(store.owner().await);
        assert_damaged(store.adopt([1; 20], KeyEvent::Made).await);
    }
}

#[tokio::test]
async fn files_of_newer_versions_and_of_other_programs_are_refused() {
    let place = RedbPlace::fresh();
    drop(place.open());
    place.write(|transaction| {
        transaction.open_table(SCHEMA_VERSIONS).unwrap().insert("bsv-wallet", 2).unwrap();
    });
    let newer = place.try_open().unwrap_err();
    let is_newer = matches!(
        newer,
        OpenWalletStoreError::Store(StoreError::NewerSchema { found: 2, known: 1, .. })
    );
    assert!(is_newer, "{newer}");
    place.write(|transaction| {
        let mut versions = transaction.open_table(SCHEMA_VERSIONS).unwrap();
        versions.remove("bsv-wallet").unwrap();
        versions.insert("wallet", 1).unwrap();
    });
    let unreleased = place.try_open().unwrap_err();
    assert!(
        matches!(unreleased, OpenWalletStoreError::Store(StoreError::Unreleased { .. })),
        "{unreleased}"
    );
    place.write(|transaction| {
        let mut versions = transaction.open_table(SCHEMA_VERSIONS).unwrap();
        versions.remove("wallet").unwrap();
        versions.insert("identities", 1).unwrap();
    });
    let other = place.try_open().unwrap_err();
    assert!(
        matches!(other, OpenWalletStoreError::Store(StoreError::OtherSchema { .. })),
        "{other}"
    );
}

/// Rows that a sweep has handled take no room in the file any more.
#[tokio::test]
async fn a_sweep_removes_what_it_forgets() {
    let held = |transaction: &WriteTransaction| {
        let (keys, len) =
            (table::<IdempotentAnswers>(transaction), |it: RawTable<'_>| it.len().unwrap());
        let route = |row: Result<(redb::AccessGuard<'_, &[u8]>, _), _>| {
            row.map(|(key, _): (_, redb::AccessGuard<'_, &[u8]>)| key.value()[0]).unwrap()
        };
        let routes = keys.iter().unwrap().map(route).collect::<Vec<_>>();
        (len(table::<Expiries>(transaction)), routes, len(table::<IdempotencyAges>(transaction)))
    };
    let (place, store) = changed(|_| {}).await;
    let key = IdempotencyKey::new("k", b"{}").ok();
    store.create_user(UserDraft::default(), now(), key).await.unwrap();
    drop(store);
    place.write(|transaction| assert_eq!(held(transaction), (3, vec![1, 2], 2)));
    assert_eq!(place.open().sweep(Timestamp::MAX, 9).await.unwrap(), 5);
    place.write(|transaction| assert_eq!(held(transaction), (0, vec![], 0)));
}

/// The test writes the row of a paid invoice itself.
#[tokio::test]
async fn a_paid_invoice_stays() {
    let row = paid_row(2);
    let (_place, store) = changed(|transaction| set::<Invoices>(transaction, &2, &row)).await;
    assert_refused!(store.delete_invoice(2, now()).await, Refusal::Paid(2));
    let invoice = store.invoice(2).await.unwrap().unwrap();
    assert_eq!(invoice.payment_received_at, Some(Timestamp::from_micros(50)));
    let query = InvoiceQuery { state: Some(InvoiceState::Paid), ..ALL };
    assert_eq!(store.invoices(query, Timestamp::MAX).await.unwrap().invoices, [invoice]);
    assert_eq!(store.events(0, 9).await.unwrap().len(), 3);
}

#[tokio::test]
async fn numbers_that_no_key_can_be_derived_for_are_not_given_out() {
    const LAST: u64 = (1 << 31) - 1;
    let (_place, store) = changed(|transaction| {
        change_figures(transaction, |figures| {
            (figures.last_invoice, figures.last_user) = (LAST - 1, LAST - 1);
            figures.last_change = LAST;
        });
    })
    .await;
    assert_eq!(create(&store, new_invoice()).await.unwrap().number, LAST);
    assert_eq!(store.create_user(UserDraft::default(), now(), None).await.unwrap().0, LAST);
    for _ in 0..2 {
        assert_refused!(create(&store, new_invoice()).await, Refusal::Full(LAST));
        let full = store.create_user(UserDraft::default(), now(), None).await;
        assert_refused!(full, Refusal::Full(LAST));
    }
    let last = store.events(4, 9).await.unwrap();
    assert_eq!(
        last.iter().map(|event| (event.kind, event.subject)).collect::<Vec<_>>(),
        [(EventKind::UserCreated, LAST)]
    );
    assert_refused!(store_conformance::reserve_with_change(&store).await, Refusal::Full(LAST));
    // A new account begins with new keys.
    store.begin_account(1).await.unwrap();
    assert_eq!(create(&store, new_invoice()).await.unwrap().number, LAST + 1);
    let user = store.create_user(UserDraft::default(), now(), None).await.unwrap();
    assert_eq!(user.0, LAST + 1);
}

#[tokio::test]
async fn a_page_looks_at_a_limited_number_of_invoices() {
    let bound = MAX_LOOKED_AT as u64;
    let (_place, store) = changed(|transaction| {
        for number in 1..=bound + 2 {
            set::<Invoices>(transaction, &number, &right_row(number).encode());
        }
        // The only paid invoice comes right after the last one that is looked at.
        set::<Invoices>(transaction, &(bound + 1), &paid_row(bound + 1));
    })
    .await;
    let paid = InvoiceQuery { state: Some(InvoiceState::Paid), ..ALL };
    let page = store.invoices(paid, now()).await.unwrap();
    assert_eq!((page.invoices.len(), page.next.unwrap().0), (0, bound));
    let next = InvoiceQuery { after: Some(bound), ..paid };
    let page = store.invoices(next, now()).await.unwrap();
    assert_eq!((page.invoices[0].number, page.next), (bound + 1, None));
    let newest = InvoiceQuery { newest_first: true, ..paid };
    let page = store.invoices(newest, now()).await.unwrap();
    assert_eq!((page.invoices.len(), page.next.unwrap().0), (1, 3));
}

#[tokio::test]
async fn a_page_holds_a_limited_amount_of_text() {
    let half = "a".repeat(MAX_PAGE_TEXT / 2);
    let (_place, store) = changed(|transaction| {
        for number in [1, 2] {
            let row = Invoice { reference: Some(half.clone()), ..right_row(number) };
            set::<Invoices>(transaction, &number, &row.encode());
        }
    })
    .await;
    let page = store.invoices(ALL, now()).await.unwrap();
    assert_eq!((page.invoices.len(), page.next.unwrap().0), (2, 2));
}

#[tokio::test]
async fn an_audit_notices_an_invoice_beyond_the_last_one_given_out() {
    for (last, is_beyond) in [(2, true), (3, false), (4, false)] {
        let (_place, store) = changed(|transaction| {
            change_figures(transaction, |figures| figures.last_invoice = last);
        })
        .await;
        let step = |found: &mut bool, item| {
            if let LedgerItem::Totals(totals) = item {
                *found = totals.is_invoice_beyond_last;
            }
        };
        let found = store.list(FoldLedger { start: false, step }).await.unwrap();
        assert_eq!(found, is_beyond, "{last}");
    }
}

#[tokio::test]
async fn the_events_of_each_kind_are_counted() {
    let place = RedbPlace::fresh();
    let store = place.open();
    for number in 1..=3 {
        create(&store, new_invoice()).await.unwrap();
        if number > 1 {
            store.delete_invoice(number, now()).await.unwrap();
        }
    }
    let counts: Vec<_> = store.event_counts().invoices().collect();
    let expected = [("created", 3), ("expired", 0), ("deleted", 2), ("paid", 0), ("unpaid", 0)];
    assert_eq!(counts, expected);
}

#[tokio::test]
async fn a_page_looks_at_a_limited_number_of_events() {
    let bound = MAX_EVENTS_LOOKED_AT as u64;
    let (_place, store) = changed(|transaction| {
        let set_event = |number, kind, subject| {
            let row =
                EventRow { at: now(), kind, subject, details: EventDetails::None, block: None };
            set::<Events>(transaction, &number, &row.encode());
        };
        for number in 1..=bound + 1 {
            set_event(number, EventKind::UserCreated, number);
        }
        // The only event of an invoice comes right after the last one that is looked at.
        set_event(bound + 2, EventKind::InvoiceCreated, 1);
        change_figures(transaction, |figures| figures.last_event = bound + 2);
    })
    .await;
    let of_invoices = EventQuery { after: 1, filter: "invoice.*".parse().unwrap(), limit: 9 };
    let page = async |query| store.list(GetEventPage(query)).await.unwrap();
    let empty = EventPage { events: Vec::new(), next: bound + 1, last: bound + 2 };
    assert_eq!(page(of_invoices).await, empty);
    let rest = page(EventQuery { after: empty.next, ..of_invoices }).await;
    assert_eq!((rest.events[0].number, rest.next, rest.last), (bound + 2, bound + 2, bound + 2));
    let all = EventQuery { after: 7, filter: EventFilter::ALL, limit: 3 };
    let next = page(all).await;
    assert!(next.events.iter().map(|event| event.number).eq(8..=10));
    assert_eq!((next.next, next.last), (10, bound + 2));
}

/// What nobody can read is not copied as if it were in order.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_with_a_damaged_row_is_not_copied() {
    let (_place, store) = changed(|transaction| set::<Users>(transaction, &7, &[0xff])).await;
    let target = RedbPlace::fresh();
    let error =
        bsv_invoicing::store::copy_wallet(&store, &target.open()).await.unwrap_err().to_string();
    assert!(error.contains("UserDraft"), "{error}");
}
