//! The data of events. It never changes.

use bsv_invoicing::coins::{Chain, KeyPath};
use bsv_invoicing::events::LogName;
use bsv_invoicing::invoices::{MAX_DESCRIPTION_LEN, MAX_REFERENCE_LEN};
use bsv_invoicing::ledger::queries::GetEvents;
use bsv_invoicing::ledger::{GetLogName, MarkPaid, NameLog, Reserve, Watch};
use bsv_invoicing::sending::{OutgoingPurpose, WithdrawalAmount};
use bsv_invoicing::store::WalletStore;
use bsv_tx::{OutPoint, Script, Transaction, TxOut};
use serde_json::{Value, json};

use super::making::*;
use super::noticed::{MEMPOOL, block, notice, paying_invoices, shown};
use super::refunds::refund;
use super::withdrawals::{coins, signed_for, withdrawing};
use super::*;

const LOG: LogName = LogName::from_bytes([0x3f, 0x9a, 0x1c, 0x02]);

/// All events as JSON.
async fn texts(store: &impl WalletStore) -> Vec<String> {
    let events = store.list(GetEvents(0, 10_000)).await.unwrap();
    events.iter().map(|event| event.to_json(LOG)).collect()
}

/// The kinds and the data of the events after the one with this number.
async fn told(store: &impl WalletStore, after: usize) -> Vec<(String, Value)> {
    let texts = texts(store).await;
    let of = |text: &String| {
        let event: Value = serde_json::from_str(text).unwrap();
        (event["type"].as_str().unwrap().to_owned(), event["data"].clone())
    };
    texts[after..].iter().map(of).collect()
}

fn expected(events: &[(&str, Value)]) -> Vec<(String, Value)> {
    events.iter().map(|(kind, data)| ((*kind).to_owned(), data.clone())).collect()
}

/// The data of an event of a payment: its amount, and what is paid and due.
fn payment(invoice: u64, transaction: &Transaction, [satoshis, paid, due]: [u64; 3]) -> Value {
    json!({
        "invoiceId": id(invoice).to_string(), "reference": null, "satoshis": satoshis,
        "txid": transaction.txid().to_string(), "paidSatoshis": paid, "dueSatoshis": due,
        "receivedSatoshis": paid, "countedSatoshis": paid, "late": false,
    })
}

/// The value with more members.
fn with(mut value: Value, more: Value) -> Value {
    let Value::Object(more) = more else { panic!("{more}") };
    value.as_object_mut().unwrap().extend(more);
    value
}

pub(super) async fn form(store: &impl WalletStore) {
    let draft = InvoiceDraft {
        satoshis: 5,
        reference: Some("order \"7\"".to_owned()),
        ..InvoiceDraft::default()
    };
    store.create_invoice(CreateInvoice { draft, ..new_invoice(at(0), HOUR) }).await.unwrap();
    let expected = format!(
        r#"{{"id":"evt_3f9a1c02_1","number":1,"type":"invoice.created","timestamp":"{}","#,
        at(0)
    ) + &format!(
        r#""data":{{"invoiceId":"{}","reference":"order \"7\"","satoshis":5,"expiresAt":"{}"}}}}"#,
        id(1),
        at(3600)
    );
    assert_eq!(texts(store).await, [expected]);
}

/// An event has less than 20 kB, even with the longest texts of others and with escapes in JSON.
pub(super) async fn longest(store: &impl WalletStore) {
    let draft = InvoiceDraft {
        satoshis: 1000,
        reference: Some("\u{1}".repeat(MAX_REFERENCE_LEN)),
        description: Some("\u{1}".repeat(MAX_DESCRIPTION_LEN)),
        ..InvoiceDraft::default()
    };
    store.create_invoice(CreateInvoice { draft, ..new_invoice(at(0), HOUR) }).await.unwrap();
    let payment = begin(store, 1, 1, at(1)).await;
    store.mine(payment.number, proof(7), at(2)).await.unwrap();
    let url = "\u{1}".repeat(2048);
    let purpose = OutgoingPurpose::Url(url);
    pay(store, Reserve { purpose, ..outgoing("", 1) }).await.unwrap();
    for text in texts(store).await {
        assert!(text.len() < 20_000, "{} bytes: {text}", text.len());
    }
}

/// A transaction pays two invoices and the key of a user.
pub(super) async fn payments(store: &impl WalletStore) {
    shown(store, 2).await;
    store.create_user(user_named("Ada"), at(0), None).await.unwrap();
    let (hash, key) = ([99; 20], KeyPath { account: 0, chain: Chain::User, index: 1 });
    store.execute(Watch { keys: vec![(hash, key)] }).await.unwrap();
    let mut both = paying_invoices(&[(1, SATOSHIS), (2, 300), (2, 100)], 1);
    both.outputs.push(TxOut { satoshis: 7, locking_script: Script::p2pkh(&hash) });
    notice(store, &both, MEMPOOL, 1).await;
    let first = payment(1, &both, [SATOSHIS, SATOSHIS, 0]);
    let second = payment(2, &both, [400, 400, 600]);
    let of_user = json!({
        "txid": both.txid().to_string(), "vout": 3, "outputs": 1, "satoshis": 7, "userId": 1,
    });
    let events = [
        ("invoice.payment_received", first.clone()),
        ("invoice.paid", first.clone()),
        ("invoice.payment_received", second.clone()),
        ("receipt.unassigned", of_user.clone()),
    ];
    assert_eq!(told(store, 3).await, expected(&events));

    let rest = paying_invoices(&[(2, 700)], 2);
    notice(store, &rest, MEMPOOL, 2).await;
    let rest = payment(2, &rest, [700, 1100, 0]);
    let events = [("invoice.payment_received", rest.clone()), ("invoice.paid", rest)];
    assert_eq!(told(store, 7).await, expected(&events));

    notice(store, &both, block(9), 3).await;
    let mined = json!({ "blockHash": "09".repeat(32), "blockHeight": 9 });
    let second = payment(2, &both, [400, 1100, 0]);
    let events = [
        ("invoice.payment_mined", with(first, mined.clone())),
        ("invoice.payment_mined", with(second, mined.clone())),
        ("receipt.mined", with(of_user, mined)),
    ];
    assert_eq!(told(store, 9).await, expected(&events));
}

/// A stranger's transaction has one event for each owner whose keys it pays, however many outputs it
/// has.
pub(super) async fn many_outputs(store: &impl WalletStore) {
    const OUTPUTS: u64 = 4_000;
    shown(store, 1).await;
    let [ada, grace, change] = [90, 91, 92];
    for (hash, chain, index) in
        [(ada, Chain::User, 1), (grace, Chain::User, 2), (change, Chain::Change, 0)]
    {
        if chain == Chain::User {
            store.create_user(user_named("Ada"), at(0), None).await.unwrap();
        }
        let keys = vec![([hash as u8; 20], KeyPath { account: 0, chain, index })];
        store.execute(Watch { keys }).await.unwrap();
    }
    let outputs = (0..OUTPUTS).map(|it| match it % 4 {
        0 => (ada, 1),
        1 => (change, 2),
        2 => (1, 3),
        _ => (ada, 4),
    });
    let many = paying_invoices(&outputs.chain([(grace, 5)]).collect::<Vec<_>>(), 1);
    let before = texts(store).await.len();
    notice(store, &many, MEMPOOL, 1).await;
    notice(store, &many, block(9), 2).await;

    let received = payment(1, &many, [3_000, 3_000, 0]);
    let of = |user: Option<u64>, outputs: u64, satoshis: u64| {
        let txid = many.txid().to_string();
        json!({ "txid": txid, "outputs": outputs, "satoshis": satoshis, "userId": user })
    };
    let of_grace = with(of(Some(2), 1, 5), json!({ "vout": 4_000 }));
    let receipts = [of(None, 1_000, 2_000), of(Some(1), 2_000, 5_000), of_grace];
    let mined = json!({ "blockHash": "09".repeat(32), "blockHeight": 9 });
    let mut events =
        vec![("invoice.payment_received", received.clone()), ("invoice.paid", received.clone())];
    events.extend(receipts.clone().map(|receipt| ("receipt.unassigned", receipt)));
    events.push(("invoice.payment_mined", with(received, mined.clone())));
    events.extend(receipts.map(|receipt| ("receipt.mined", with(receipt, mined.clone()))));
    assert_eq!(told(store, before).await, expected(&events));
}

/// A late payment leaves an invoice expired until its owner marks it.
pub(super) async fn late(store: &impl WalletStore) {
    shown(store, 1).await;
    let part = paying_invoices(&[(1, 300)], 1);
    notice(store, &part, MEMPOOL, 1).await;
    store.sweep(at(3600), 9).await.unwrap();
    let rest = paying_invoices(&[(1, 700)], 2);
    notice(store, &rest, MEMPOOL, 3601).await;
    store.execute(MarkPaid { invoice: 1, now: at(3602) }).await.unwrap();
    store.execute(MarkPaid { invoice: 1, now: at(3603) }).await.unwrap();
    let id = id(1).to_string();
    let standing = |paid| {
        json!({
            "invoiceId": id, "reference": null, "satoshis": SATOSHIS, "paidSatoshis": paid,
            "receivedSatoshis": paid,
        })
    };
    let late =
        with(payment(1, &rest, [700, 1000, 700]), json!({ "late": true, "countedSatoshis": 300 }));
    let by_mark =
        with(payment(1, &rest, [0, 1000, 0]), json!({ "txid": null, "countedSatoshis": 300 }));
    let events = [
        ("invoice.payment_received", payment(1, &part, [300, 300, 700])),
        ("invoice.expired", standing(300)),
        ("invoice.payment_received", late),
        ("invoice.marked", standing(1000)),
        ("invoice.paid", by_mark),
    ];
    assert_eq!(told(store, 1).await, expected(&events));
}

/// A refund gets its event once the network shows it.
pub(super) async fn refunded(store: &impl WalletStore) {
    paid_invoice(store, 1).await;
    let refund = pay(store, refund(1, 400)).await.unwrap();
    let before = texts(store).await.len();
    store.see(transaction_of(store, refund.number).await, at(9)).await.unwrap();
    let (invoice, txid) = (id(1).to_string(), refund.txid.to_string());
    let outgoing = json!({
        "outgoingId": 1, "purpose": "refund", "url": null, "withdrawalId": null,
        "invoiceId": invoice, "satoshis": 400, "fee": 0, "txid": txid,
    });
    let refunded = json!({
        "invoiceId": invoice, "reference": null, "outgoingId": 1, "satoshis": 400, "fee": 0,
        "txid": txid,
    });
    let events = [("outgoing.settled", outgoing), ("invoice.refunded", refunded)];
    assert_eq!(told(store, before).await, expected(&events));
}

/// A refund of an invoice that is not paid changes what is due, and so does the loss of the refund.
pub(super) async fn refunded_unpaid(store: &impl WalletStore) {
    shown(store, 1).await;
    let part = paying_invoices(&[(1, 300)], 1);
    notice(store, &part, MEMPOOL, 1).await;
    let before = texts(store).await.len();
    pay(store, refund(1, 200)).await.unwrap();
    let cancellation = take_back(store, 1, 0, at(20)).await.unwrap();
    store.see(cancellation, at(21)).await.unwrap();
    let sums = |due, counted| {
        let sums = json!({ "txid": null, "countedSatoshis": counted });
        ("invoice.sums_changed", with(payment(1, &part, [0, 300, due]), sums))
    };
    let mut told = told(store, before).await;
    told.retain(|(kind, _)| kind.starts_with("invoice."));
    assert_eq!(told, expected(&[sums(900, 100), sums(700, 300)]));
}

/// A withdrawal of several transactions gets its event once the network shows the last of them.
pub(super) async fn withdrawn(store: &impl WalletStore) {
    coins(store, &[10; 1001]).await;
    let withdrawal =
        store.execute(signed_for(store, withdrawing(WithdrawalAmount::All)).await).await.unwrap();
    let before = texts(store).await.len();
    for payment in withdrawal.payments.iter().rev() {
        store.see(transaction_of(store, payment.number).await, at(9)).await.unwrap();
    }
    let txids: Vec<_> = withdrawal.payments.iter().map(|it| it.txid.to_string()).collect();
    let all = json!({
        "withdrawalId": 1, "reference": "rent", "satoshis": 10_000, "fee": 0, "txids": txids,
    });
    let told = told(store, before).await;
    let kinds: Vec<_> = told.iter().map(|(kind, _)| kind.as_str()).collect();
    assert_eq!(kinds, ["outgoing.settled", "outgoing.settled", "withdrawal.settled"]);
    assert_eq!(told[2].1, all);
}

/// A transaction by somebody with the same words that spends coins of the wallet.
pub(super) async fn spent_elsewhere(store: &impl WalletStore) {
    shown(store, 1).await;
    let paid = paying_invoices(&[(1, SATOSHIS)], 1);
    notice(store, &paid, MEMPOOL, 1).await;
    let mut spending = paying(&[900], 2);
    spending.inputs[0].previous_output = OutPoint { txid: paid.txid(), vout: 0 };
    notice(store, &spending, MEMPOOL, 2).await;
    let found = json!({ "txid": spending.txid().to_string(), "satoshis": 0 });
    assert_eq!(told(store, 3).await, expected(&[("transaction.found", found)]));
}

/// An event stays the same when its subject changes.
pub(super) async fn unchanged(store: &impl WalletStore) {
    shown(store, 3).await;
    let mut before = texts(store).await;
    let mut check = async || {
        let now = texts(store).await;
        assert!(now.len() > before.len(), "nothing was told");
        assert_eq!(now[..before.len()], before);
        before = now;
    };
    let part = paying_invoices(&[(1, 600), (2, 100)], 1);
    notice(store, &part, MEMPOOL, 1).await;
    check().await;
    let rest = paying_invoices(&[(1, 900)], 2);
    notice(store, &rest, MEMPOOL, 2).await;
    check().await;
    notice(store, &part, block(7), 3).await;
    check().await;
    notice(store, &part, block(8), 4).await;
    check().await;
    let refunded = pay(store, refund(1, 500)).await.unwrap();
    check().await;
    store.accept(refunded.number, "thanks", at(6)).await.unwrap();
    check().await;
    store.see(transaction_of(store, refunded.number).await, at(7)).await.unwrap();
    check().await;
    store.delete_invoice(2, at(8)).await.unwrap();
    check().await;
    let of_refund = transaction_of(store, refunded.number).await;
    store.displace(of_refund, at(9)).await.unwrap();
    check().await;
    let number = store.incoming(1).await.unwrap()[1].number;
    store.displace(number, at(10)).await.unwrap();
    check().await;
    store.sweep(at(3600), 9).await.unwrap();
    check().await;
}

/// A log has the last name that it was given.
pub(super) async fn named(store: &impl WalletStore) {
    assert_eq!(store.get(GetLogName).await.unwrap(), None);
    for name in [LOG, LogName::from_bytes([0; 4])] {
        store.execute(NameLog(name)).await.unwrap();
        assert_eq!(store.get(GetLogName).await.unwrap(), Some(name));
    }
}
