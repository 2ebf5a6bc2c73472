//! Migration of files that earlier versions wrote. `fixtures/README.md` describes the files.

#![allow(clippy::unwrap_used, reason = "helpers of tests may panic as tests do")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use bsv_invoicing::ledger::items::{FoldLedger, LedgerItem};
use bsv_invoicing::ledger::queries::{
    GetBalance, GetBlocks, GetEvents, GetFollowed, GetIncoming, GetInvoices, GetLastEventAt,
    GetOutgoing, GetOutgoingBefore, GetOutgoingTo, GetReceivedSum,
};
use bsv_invoicing::ledger::rows::RescanFrom;
use bsv_invoicing::ledger::{
    ForgetBlock, GetRescan, GetWatchBacklog, Refusal, See, Sweep, WatchBacklogged,
};
use bsv_invoicing::{
    Chain, Event, EventData, EventKind, FollowedUntil, Holdings, IncomingPayment, IncomingState,
    InvoiceDraft, InvoiceQuery, InvoiceState, KeyPath, OutgoingPayment, OutgoingState,
    PaymentQuery, Purpose, ReceiptKey, RedbWalletStore, Timestamp, TransactionState, UserDraft,
    Wallet, WalletSettings, WalletStore, WalletStoreError,
};
use bsv_store::{DatabaseOptions, DirLock, Keystore, PlainKeys};
use bsv_tx::Network;
use redb::{
    Database, ReadTransaction, ReadableDatabase, ReadableTable, TableDefinition, WriteTransaction,
};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A copy of a fixture. It can be opened several times.
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

    fn written(&self) -> Value {
        let text = fs::read(self.0.path().join("expected.json")).unwrap();
        serde_json::from_slice(&text).unwrap()
    }

    fn expected(&self, what: &str) -> Vec<Value> {
        self.written()[what].as_array().unwrap().clone()
    }

    fn database(&self) -> Database {
        Database::open(self.0.path().join(RedbWalletStore::FILE_NAME)).unwrap()
    }

    fn read<T>(&self, read: impl FnOnce(&ReadTransaction) -> T) -> T {
        read(&self.database().begin_read().unwrap())
    }

    fn write(&self, change: impl FnOnce(&WriteTransaction)) {
        let transaction = self.database().begin_write().unwrap();
        change(&transaction);
        transaction.commit().unwrap();
    }

    fn version(&self) -> u64 {
        const SCHEMA_VERSIONS: TableDefinition<'_, &str, u64> =
            TableDefinition::new("schema_version");
        self.read(|transaction| {
            let table = transaction.open_table(SCHEMA_VERSIONS).unwrap();
            table.get("wallet").unwrap().unwrap().value()
        })
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

const ALL_PAYMENTS: PaymentQuery = PaymentQuery { after: None, limit: usize::MAX };
const ALL: InvoiceQuery = InvoiceQuery { after: None, state: None, newest_first: false, limit: 9 };

/// The invoices that expire an hour after their creation, and the time at which both have expired.
const EXPIRING: [usize; 2] = [0, 3];
const BOTH_EXPIRED: &str = "2026-11-21T14:36:16.133101Z";

/// Compares everything that the wallet answers with what was written.
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

/// The subjects of the fixture's events: invoices by id and users by number, in no order.
fn subjects(events: &[Event]) -> Vec<String> {
    let mut subjects: Vec<_> = events
        .iter()
        .map(|event| match &event.data {
            EventData::Created { invoice, .. } => invoice.invoice_id.to_string(),
            EventData::User { user_id } => user_id.to_string(),
            _ => panic!("version 1 has no event like {event:?}"),
        })
        .collect();
    subjects.sort();
    subjects
}

#[tokio::test]
async fn everything_that_version_1_wrote_is_found() {
    let copy = Copy::of("version-1");
    assert_eq!(copy.version(), 1);
    let events = {
        let wallet = copy.wallet().await;
        assert_as_written(&wallet, &copy).await;
        wallet.events(0, 99).await.unwrap()
    };
    assert_eq!(copy.version(), 13);
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

/// How much a sweep at a time finds due.
async fn swept(store: &RedbWalletStore, now: Timestamp) -> usize {
    match store.execute(Sweep { now, doubted_since: None, limit: 9 }).await {
        Err(WalletStoreError::Refused(Refusal::NothingDue)) => 0,
        count => count.unwrap(),
    }
}

#[tokio::test]
async fn invoices_of_version_1_that_have_expired_meanwhile_get_one_event() {
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
    let told: Vec<_> = told.iter().map(|event| (event.at, event.kind, event.subject)).collect();
    let [first, second] = EXPIRING.map(|place| invoices[place].number);
    let expired = EventKind::InvoiceExpired;
    assert_eq!(told, [(first_expiry, expired, first), (now, expired, second)]);
    let expired = InvoiceQuery { state: Some(InvoiceState::Expired), ..ALL };
    let expired = store.list(GetInvoices(expired, now)).await.unwrap().invoices;
    assert_eq!(expired, EXPIRING.map(|place| invoices[place].clone()));
}

#[tokio::test]
async fn new_rows_continue_the_numbers_of_version_1() {
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
    let new: Vec<_> = events[old.len()..].iter().map(|it| (it.kind, it.subject)).collect();
    let expected = [
        (EventKind::InvoiceCreated, 5),
        (EventKind::UserCreated, 3),
        (EventKind::InvoiceDeleted, 2),
    ];
    assert_eq!(new, expected);
}

/// The heights and hashes of the blocks that hold the payments of invoices.
async fn blocks_of_payments(store: &RedbWalletStore) -> Vec<(u32, String)> {
    let mut blocks = Vec::new();
    let all = GetInvoices(ALL, BOTH_EXPIRED.parse().unwrap());
    for invoice in store.list(all).await.unwrap().invoices {
        let page = store.get(GetIncoming(invoice.number, ALL_PAYMENTS)).await.unwrap();
        for payment in page.payments {
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
        let forget = ForgetBlock { block: blocks[0], is_replaced: true, after: 0, limit: 9, now };
        store.execute(forget).await.unwrap();
        assert_eq!(store.list(GetBlocks(0)).await.unwrap(), blocks[1..]);
        assert_eq!(blocks_of_payments(&store).await, []);
        assert_eq!(store.list(GetFollowed(0, 9)).await.unwrap().len(), followed + 2);
    }
}

/// The wallet's answer to a request, in the form that the fixtures recorded.
async fn answer(wallet: &Wallet, path: &str) -> Value {
    let words: Vec<_> = path.trim_start_matches("/api/v1/").split('/').collect();
    let read = |json: String| serde_json::from_str(&json).unwrap();
    match words[..] {
        ["balance"] => json!({ "satoshis": wallet.balance().await.unwrap() }),
        ["users", id] => read(wallet.user(id.parse().unwrap()).await.unwrap().to_json()),
        ["invoices"] => {
            let page = wallet.invoices(InvoiceQuery { limit: 99, ..ALL }).await.unwrap();
            page.invoices.iter().map(|invoice| read(invoice.to_json(page.now))).collect()
        }
        ["invoices", id] => read(wallet.invoice(id).await.unwrap().to_json(wallet.now())),
        ["invoices", id, "payments"] => {
            let payments = wallet.payments(id, ALL_PAYMENTS).await.unwrap().payments;
            let payment = |it: &IncomingPayment| {
                json!({
                    "txid": it.txid.to_string(),
                    "vout": it.vout,
                    "satoshis": it.satoshis,
                    "state": it.state.name(),
                    "receivedAt": it.received_at,
                    "blockHash": it.block.map(|block| block.hash.to_string()),
                    "blockHeight": it.block.map(|block| block.height),
                })
            };
            payments.iter().map(payment).collect()
        }
        _ => panic!("{path}"),
    }
}

/// Whether only `tests/tests/keeping` compares this answer.
fn is_asked_of_servers_only(path: &str) -> bool {
    ["settlement", "outgoing", "withdrawals", "webhooks"].iter().any(|word| path.contains(word))
}

async fn payments_by(wallet: &Wallet) -> Value {
    let payments = wallet.store().list(GetOutgoingBefore(u64::MAX, 99)).await.unwrap();
    let payment = |it: &OutgoingPayment| {
        json!({
            "id": it.number,
            "txid": it.txid.to_string(),
            "url": it.purpose.url(),
            "satoshis": it.satoshis,
            "fee": it.fee,
            "state": it.state.name(),
            "createdAt": it.created_at,
            "expiresAt": it.expires_at,
            "memo": it.memo,
            "blockHash": it.block.map(|block| block.hash.to_string()),
            "blockHeight": it.block.map(|block| block.height),
        })
    };
    payments.iter().map(payment).collect()
}

/// The answer as it is once all its pending invoices have expired. An invoice of version 8 expires
/// the day after the fixture was made, so both sides of the comparison are changed like this.
fn at_any_time(mut answer: Value) -> Value {
    let invoices = match &mut answer {
        Value::Array(invoices) => &mut invoices[..],
        invoice => std::slice::from_mut(invoice),
    };
    for invoice in invoices.iter_mut().filter(|invoice| invoice["state"] == "pending") {
        invoice["state"] = json!("expired");
        if let Some(expires_at) = invoice["expiresAt"].as_str() {
            // Without the fraction of the second.
            invoice["updatedAt"] = json!(format!("{}Z", &expires_at[..19]));
        }
    }
    answer
}

#[tokio::test]
async fn the_answers_from_stores_of_later_versions_stay_the_same() {
    for version in 2..=12 {
        let copy = Copy::of(&format!("version-{version}"));
        assert_eq!(copy.version(), version);
        // The first opening migrates the file. The second one has nothing to migrate.
        for _ in 0..2 {
            let wallet = copy.wallet().await;
            let written = copy.written();
            let asked = written["wallet"].as_object().unwrap().iter();
            for (path, answered) in asked.filter(|(path, _)| !is_asked_of_servers_only(path)) {
                let mut found = answer(&wallet, path).await;
                if version < 8 && path.ends_with("/payments") {
                    for payment in found.as_array_mut().unwrap() {
                        payment.as_object_mut().unwrap().remove("vout");
                    }
                }
                assert_eq!(at_any_time(found), at_any_time(answered.clone()), "{version}: {path}");
            }
            if let Some(payments) = written.get("payments") {
                assert_eq!(payments_by(&wallet).await, *payments, "{version}");
            }
            drop(wallet);
            assert_eq!(copy.version(), 13);
        }
    }
}

/// The books of all versions must fit together, and give the right sums.
#[tokio::test]
async fn the_books_of_all_versions_fit_together() {
    for version in 1..=12 {
        let copy = Copy::of(&format!("version-{version}"));
        let store = copy.store();
        let (mut payments, mut counted) = (0, 0);
        let step = move |counting: &mut u64, item| match item {
            LedgerItem::Transaction(it) => {
                assert!(it.are_payments_right, "{it:?}");
                payments += it.payments;
                assert_eq!(it.is_listed_as_mined, it.state.block().is_some(), "{it:?}");
                assert_eq!(it.is_followed, it.state.block().is_none(), "{it:?}");
                assert_eq!(it.proof.is_some(), it.state.block().is_some(), "{it:?}");
                for coin in &it.coins {
                    let spender = coin.spender.as_ref();
                    let is_free = spender.is_none() && it.state.can_be_spent();
                    let can_be_chosen = is_free && !coin.is_immature;
                    assert_eq!(coin.is_spendable, can_be_chosen, "{it:?}");
                    assert!(spender.is_none_or(|spender| spender.is_listed), "{it:?}");
                    let is_spent =
                        spender.and_then(|it| it.state).is_some_and(TransactionState::spends);
                    if it.state.counts() && !is_spent {
                        *counting += coin.satoshis;
                    }
                }
            }
            LedgerItem::Invoice(it) => {
                assert_eq!(it.received, it.recounted, "invoice {}", it.number);
                counted += it.recounted.payments;
                assert!(it.is_listed && (!it.is_paid || it.recounted.payments > 0), "{it:?}");
            }
            LedgerItem::Totals(totals) => {
                assert_eq!(totals.holdings.balance(), *counting);
                assert_eq!((totals.transactions, totals.raw), (totals.raw, totals.transactions));
                assert!(!totals.is_invoice_beyond_last);
                assert_eq!((totals.payments, totals.counted), (payments, counted));
                assert_eq!(totals.account == 0, ![6, 7].contains(&version));
            }
        };
        store.verify(FoldLedger { start: 0, step }).await.unwrap();
    }
}

/// The kinds and subjects of the events in the log.
async fn told(wallet: &Wallet) -> Vec<(EventKind, u64)> {
    let events = wallet.events(0, 999).await.unwrap();
    assert!(events.iter().map(|event| event.number).eq(1..=events.len() as u64));
    events.into_iter().map(|event| (event.kind, event.subject)).collect()
}

#[tokio::test]
async fn events_of_version_5_stay_the_same() {
    use EventKind::*;
    let copy = Copy::of("version-5");
    let wallet = copy.wallet().await;
    let told = told(&wallet).await;
    let ids = copy.written()["wallet"]["/api/v1/invoices"].clone();
    let mut numbers = Vec::new();
    for invoice in ids.as_array().unwrap() {
        numbers.push(wallet.invoice_number(invoice["id"].as_str().unwrap()).await.unwrap());
    }
    let (InvoiceDeleted, deleted) = told[10] else { panic!("{told:?}") };
    let number = |place: usize| numbers[place];
    let mut expected = vec![(UserCreated, 1)];
    let paid = [0, 1, 2].map(number).into_iter();
    expected.extend(paid.flat_map(|it| [(InvoiceCreated, it), (InvoicePaid, it)]));
    expected.extend([3, 4].map(number).map(|it| (InvoiceCreated, it)));
    expected.extend([(InvoiceCreated, deleted), (InvoiceDeleted, deleted)]);
    expected.extend([(OutgoingStarted, 1), (OutgoingSettled, 1)]);
    expected.extend([(OutgoingStarted, 2), (OutgoingRefused, 2)]);
    expected.extend([(OutgoingStarted, 3), (OutgoingSettled, 3)]);
    expected.extend([(OutgoingStarted, 4), (OutgoingCancelled, 4)]);
    expected.extend([(OutgoingStarted, 5), (OutgoingSettled, 5), (OutgoingStarted, 6)]);
    expected.extend([(InvoiceExpired, number(4)), (InvoiceCreated, number(5))]);
    expected.extend([(InvoicePaid, number(5)), (OutgoingStarted, 7), (OutgoingSettled, 7)]);
    expected.extend([(OutgoingDisplaced, 7), (InvoiceUnpaid, number(5))]);
    expected.extend([(OutgoingStarted, 8), (OutgoingSettled, 8)]);
    expected.extend([(InvoiceCreated, number(6)), (InvoicePaid, number(6))]);
    assert_eq!(told, expected);
    // Values that version 5 did not store are null.
    let paid = &wallet.events(0, 999).await.unwrap()[2];
    let json: Value = serde_json::from_str(&paid.to_json(wallet.event_log())).unwrap();
    for member in ["satoshis", "txid", "paidSatoshis", "dueSatoshis", "late"] {
        assert_eq!(json["data"][member], Value::Null, "{json}");
    }
}

/// A transaction that pays two invoices and the key of a user gets one event for each.
#[tokio::test]
async fn events_of_payments_name_invoices_and_what_belongs_to_none() {
    use EventKind::*;
    let copy = Copy::of("version-9");
    let wallet = copy.wallet().await;
    let invoices = wallet.invoices(ALL).await.unwrap();
    let all = told(&wallet).await;
    let expected = [
        (InvoiceCreated, 1),
        (InvoiceCreated, 2),
        (PaymentReceived, 2),
        (InvoicePaid, 2),
        (OutgoingStarted, 1),
        (OutgoingSettled, 1),
        (OutgoingStarted, 2),
        (OutgoingSettled, 2),
        (UserCreated, 1),
        (ReceiptUnassigned, 4),
        (PaymentMined, 2),
        (OutgoingMined, 1),
        (OutgoingMined, 2),
        (PaymentReceived, 1),
        (PaymentMined, 1),
        (InvoicePaid, 1),
        (ReceiptMined, 4),
        (InvoiceCreated, 3),
        (PaymentReceived, 3),
        (OutgoingStarted, 3),
        (OutgoingSettled, 3),
        (InvoiceCreated, 4),
        (InvoiceCreated, 5),
        (PaymentReceived, 4),
        (PaymentReceived, 5),
        (ReceiptUnassigned, 8),
        (InvoicePaid, 4),
        (InvoicePaid, 5),
        (InvoiceDeleted, 3),
    ];
    assert_eq!(all, expected);
    let events = wallet.events(23, 3).await.unwrap();
    let data = |event: &Event| serde_json::to_value(&event.data).unwrap();
    let id = invoices.invoices[2].id.to_string();
    let payment = json!({
        "invoiceId": id, "reference": "both 1", "satoshis": 700, "txid": null,
        "paidSatoshis": null, "dueSatoshis": null, "late": false,
    });
    let mut told = data(&events[0]);
    let txid = told["txid"].take();
    assert_eq!(told, payment);
    let receipt = data(&events[2]);
    assert_eq!((&receipt["vout"], &receipt["satoshis"]), (&json!(2), &json!(90)));
    assert_eq!((&receipt["userId"], &receipt["txid"]), (&json!(1), &txid));
}

/// A log gets a name at the first start, and keeps it.
#[tokio::test]
async fn logs_of_older_stores_are_named_once() {
    let copies = ["version-1", "version-10"].map(Copy::of);
    let mut names = Vec::new();
    for copy in copies.iter().chain(&copies) {
        names.push(copy.wallet().await.event_log());
    }
    assert_eq!(names[..2], names[2..]);
    assert_ne!(names[0], names[1]);
}

const FOLLOWED: TableDefinition<'_, u64, u64> = TableDefinition::new("followed");

/// Older versions believed nodes too early, so the wallet asks again about everything that is in no
/// block.
#[tokio::test]
async fn settled_unconfirmed_and_displaced_transactions_are_followed_again() {
    let copy = Copy::of("version-5");
    // This looks as if a day has passed since.
    copy.write(|transaction| {
        transaction.open_table(FOLLOWED).unwrap().retain(|_, until| until == u64::MAX).unwrap();
    });
    let store = copy.store();
    let followed = store.list(GetFollowed(0, 99)).await.unwrap();
    let of = |state: TransactionState| {
        let followed = followed.iter().filter(move |followed| followed.record.state == state);
        followed.map(|followed| (followed.record.purpose, followed.until)).collect::<Vec<_>>()
    };
    let once = FollowedUntil::Time(Timestamp::from_micros(1));
    assert_eq!(
        of(TransactionState::Displaced),
        [(Purpose::Incoming(7), once), (Purpose::Outgoing(7), once)]
    );
    assert_eq!(
        of(TransactionState::Seen),
        [Purpose::Outgoing(8), Purpose::Incoming(8)].map(|of| (of, FollowedUntil::Mined))
    );
    assert_eq!(of(TransactionState::Offered), [(Purpose::Outgoing(6), FollowedUntil::Mined)]);
    // The network shows the displaced transaction, which counts again.
    let balance = store.get(GetBalance).await.unwrap();
    let displaced = followed.iter().filter(|it| it.record.state == TransactionState::Displaced);
    let now = store.get(GetLastEventAt).await.unwrap();
    for number in displaced.map(|it| it.number) {
        let see = See { transaction: number, is_fee_sufficient: true, now };
        store.execute(see).await.unwrap();
    }
    let payment = store.get(GetOutgoing(7)).await.unwrap().unwrap().0;
    assert_eq!(payment.state, OutgoingState::Settled);
    let change = 9000 - payment.satoshis - payment.fee;
    assert_eq!(store.get(GetBalance).await.unwrap(), balance + change);
}

/// A stranger's unconfirmed coin is less sure, because another transaction can still take its
/// place.
#[tokio::test]
async fn coins_that_can_be_spent_are_in_the_order_of_trust_and_amount() {
    const BY_BUCKET: TableDefinition<'_, (u8, u64, u32), u64> = TableDefinition::new("spendable");
    const BY_AMOUNT: TableDefinition<'_, (u8, u64, u64, u32), ()> =
        TableDefinition::new("spendable by amount");
    let copy = Copy::of("version-5");
    let mut before: Vec<_> = copy.read(|transaction| {
        let table = transaction.open_table(BY_BUCKET).unwrap();
        let rows = table.iter().unwrap().map(|row| row.unwrap());
        rows.map(|(key, satoshis)| (satoshis.value(), key.value().1, key.value().2)).collect()
    });
    assert!(before.len() > 1);
    drop(copy.store());
    let after: Vec<(u8, u64, u64, u32)> = copy.read(|transaction| {
        let table = transaction.open_table(BY_AMOUNT).unwrap();
        let rows = table.iter().unwrap().map(|row| row.unwrap().0.value());
        rows.collect()
    });
    let [strangers, sure] = [1, 0].map(|trust| {
        let of_it = after.iter().filter(|row| row.0 == trust);
        of_it.map(|row| row.1).collect::<Vec<_>>()
    });
    assert_eq!(strangers, [7000]);
    assert_eq!(sure.len(), before.len() - 1);
    let mut listed: Vec<_> =
        after.iter().map(|(_, satoshis, maker, vout)| (*satoshis, *maker, *vout)).collect();
    before.sort_unstable();
    listed.sort_unstable();
    assert_eq!(listed, before);
}

#[tokio::test]
async fn earlier_attempts_to_one_url_are_linked() {
    type Channel = Option<(&'static str, &'static str, &'static str, &'static str)>;
    type Purpose = (u8, u64, &'static str);
    type Row =
        (u64, Option<u64>, Option<u64>, Purpose, u64, u64, u64, Option<u64>, &'static str, Channel);
    const OUTGOING: TableDefinition<'_, u64, Row> = TableDefinition::new("outgoing by purpose");
    let copy = Copy::of("version-5");
    let store = copy.store();
    let mut lasting = Vec::new();
    for number in 1..=8 {
        let payment = store.get(GetOutgoing(number)).await.unwrap().unwrap().0;
        let url = payment.purpose.url().unwrap().to_owned();
        let to_url = store.get(GetOutgoingTo(url)).await.unwrap();
        lasting.push(to_url.map(|payment| payment.number));
    }
    // The seventh attempt failed.
    let last = [Some(1), Some(3), Some(3), Some(5), Some(5), Some(6), None, Some(8)];
    assert_eq!(lasting, last);
    drop(store);
    let previous: Vec<_> = copy.read(|transaction| {
        let table = transaction.open_table(OUTGOING).unwrap();
        (1..=8).map(|number| table.get(number).unwrap().unwrap().value().2).collect()
    });
    assert_eq!(previous, [None, None, Some(2), None, Some(4), None, None, None]);
}

/// The migration sums up what was received, puts all keys that were given out into the backlog, and
/// requests the reading of blocks.
#[tokio::test]
async fn older_stores_watch_what_was_given_out() {
    let copy = Copy::of("version-6");
    let wallet = copy.wallet().await;
    let store = wallet.store();
    let rows: BTreeMap<_, _> = copy_backlog(store).await.into_iter().collect();
    let key = |account, chain, index| KeyPath { account, chain, index };
    let last = rows.keys().last().unwrap().account;
    let invoices = wallet.invoices(InvoiceQuery { limit: 99, ..ALL }).await.unwrap().invoices;
    let before = invoices.last().unwrap().number - 1;
    let end = u32::try_from(before).unwrap() + 1;
    assert_eq!(rows[&key(0, Chain::Receive, 1)], end + 100_000);
    assert_eq!(rows[&key(last, Chain::Receive, 1)], 2);
    assert_eq!([0, last].map(|account| rows[&key(account, Chain::User, 1)]), [2, 2]);
    assert!(rows[&key(0, Chain::Change, 0)] > 1_000);
    let first = RescanFrom::Time(invoices[0].created_at);
    assert_eq!(store.get(GetRescan).await.unwrap(), Some(first));
    for invoice in invoices {
        let page = wallet.payments(invoice.id.as_str(), ALL_PAYMENTS).await.unwrap();
        let payments = page.payments;
        let counting = payments.iter().filter(|it| it.state.counts());
        let received = store.get(GetReceivedSum(invoice.number)).await.unwrap();
        assert_eq!(received.sum(), counting.map(|it| it.satoshis).sum::<u64>(), "{received:?}");
        assert_eq!(received.in_time.sum() > 0, invoice.payment_received_at.is_some());
    }
}

/// All keys of the backlog, taken out one after the other.
async fn copy_backlog(store: &RedbWalletStore) -> Vec<(KeyPath, u32)> {
    let mut rows = Vec::new();
    while let Some((from, end)) = store.get(GetWatchBacklog).await.unwrap() {
        rows.push((from, end));
        let hashes = (from.index..end).map(|index| {
            let mut hash = [0; 20];
            hash[..4].copy_from_slice(&index.to_le_bytes());
            hash
        });
        let hashes = hashes.collect();
        store.execute(WatchBacklogged { from, hashes }).await.unwrap();
    }
    rows
}

/// The fixture has receipts in blocks, in the mempool, and too new to be spent, and a payment to a
/// user.
#[tokio::test]
async fn older_stores_know_what_they_hold_and_what_pays_no_invoice() {
    let wallet = Copy::of("version-8").wallet().await;
    let held = Holdings {
        confirmed: 15_952,
        unconfirmed: 5_976,
        immature: 5_000_000_200,
        coins: 4,
        ..Holdings::default()
    };
    assert_eq!(wallet.holdings().await.unwrap(), held);
    let before = ReceiptKey { maker: u64::MAX, vout: 0 };
    let receipts = wallet.unassigned_receipts(before, 9).await.unwrap();
    let told = receipts.iter().map(|it| (it.user, it.payment.satoshis, it.payment.state));
    assert_eq!(told.collect::<Vec<_>>(), [(Some(1), 4_000, IncomingState::Mined)]);
}
