//! Helpers of scenarios for offering, paying, cancelling and proving.

use bsv_invoicing::coins::{Chain, KeyPath, Selection, Spending};
use bsv_invoicing::ledger::{
    Command, NewPayment, Offer, Offered, PreparedCancellation, Record, RecordCancellation,
    Reservation, Reserve, Reserved, Watch,
};
use bsv_invoicing::receiving::{IncomingPayment, NewReceipt};
use bsv_invoicing::sending::{OutgoingPayment, OutgoingPurpose, Posting};
use bsv_invoicing::store::WalletStore;
use bsv_invoicing::transactions::{BlockPlace, Proof};
use bsv_tx::{BlockHash, MerkleBranch, OutPoint, Script, Sibling, Transaction, TxIn, TxOut, Txid};

use super::calls::Answer;
use super::noticed::{MEMPOOL, notice, paying_invoices};
use super::*;

/// The amount that an invoice asks for and most payments pay.
pub(super) const SATOSHIS: u64 = 1000;

/// A transaction with these outputs that spends somebody else's coin. Each `salt` gives another
/// transaction.
pub(super) fn paying(amounts: &[u64], salt: usize) -> Transaction {
    let script = Script::from_bytes(vec![0x51; 25]);
    let output = |satoshis: &u64| TxOut { satoshis: *satoshis, locking_script: script.clone() };
    let previous_output = OutPoint { txid: Txid::from_bytes([7; 32]), vout: salt as u32 };
    Transaction {
        version: 1,
        inputs: vec![input(previous_output)],
        outputs: amounts.iter().map(output).collect(),
        lock_time: 0,
    }
}

/// The transaction that spends chosen coins.
pub(super) fn spending(selection: &Selection, outputs: [Option<u64>; 2]) -> Transaction {
    let amounts: Vec<_> = outputs.into_iter().flatten().collect();
    let inputs = selection.coins.iter().map(|coin| input(coin.outpoint)).collect();
    // This makes transactions of the same coins differ, as the keys for change do outside tests.
    let lock_time = selection.change.map_or(0, |change| change.key.index);
    Transaction { inputs, lock_time, ..paying(&amounts, 0) }
}

fn input(previous_output: OutPoint) -> TxIn {
    TxIn { previous_output, unlocking_script: Script::from_bytes([]), sequence: u32::MAX }
}

/// The key of an invoice while there is only the first account.
pub(super) fn key_of(invoice: u64) -> KeyPath {
    KeyPath { account: 0, chain: Chain::Receive, index: invoice as u32 }
}

/// A payment whose outputs all go to the invoice.
pub(super) fn offering(invoice: u64, amounts: &[u64], salt: usize, now: Timestamp) -> Offer {
    let receipt = |(vout, satoshis): (u32, &u64)| NewReceipt {
        vout,
        satoshis: *satoshis,
        key: key_of(invoice),
    };
    Offer {
        invoice,
        transaction: (&paying(amounts, salt)).into(),
        ancestors: Vec::new(),
        receipts: (0..).zip(amounts).map(receipt).collect(),
        refund_to: Some(format!("refund to {salt}")),
        is_known: false,
        may_have_rivals: false,
        are_coins_known: true,
        claim: 0,
        now,
        doubted_since: None,
    }
}

/// A payment of the amount that an invoice asks for.
pub(super) fn incoming(invoice: u64, salt: usize, now: Timestamp) -> Offer {
    offering(invoice, &[SATOSHIS], salt, now)
}

/// Begins to offer such a payment.
pub(super) async fn begin(
    store: &impl WalletStore,
    invoice: u64,
    salt: usize,
    now: Timestamp,
) -> IncomingPayment {
    begin_with(store, incoming(invoice, salt, now)).await
}

pub(super) async fn begin_with(store: &impl WalletStore, offer: Offer) -> IncomingPayment {
    match store.offer(offer).await.unwrap() {
        Offered::Now(payment, _) => payment,
        other => panic!("shown before, or offered elsewhere: {other:?}"),
    }
}

/// An invoice that is paid 2 seconds after its payment was offered.
pub(super) async fn paid_invoice(store: &impl WalletStore, number: u64) -> IncomingPayment {
    create(store, at(0), HOUR).await;
    let payment = begin(store, number, number as usize, at(1)).await;
    store.see(payment.number, at(3)).await.unwrap();
    payment
}

/// The purpose of paying this payee.
pub(super) fn to_payee(payee: impl std::fmt::Display) -> OutgoingPurpose {
    OutgoingPurpose::Url(format!("http://payee.example/{payee}"))
}

/// The number of the claim under which coins are reserved.
pub(super) const CLAIM: u64 = 7;

/// A payment to a payee without a fee.
pub(super) fn outgoing(payee: &str, satoshis: u64) -> Reserve {
    let purpose = to_payee(payee);
    let spending = Spending { satoshis, output_bytes: 34, fee_rate: 0 };
    let prefers_short = false;
    Reserve { purpose, spending, prefers_short, idempotency: None, claim: CLAIM, now: at(5) }
}

/// Reserves coins for a payment that was not made before.
pub(super) async fn reserve(
    store: &impl WalletStore,
    payment: impl Command<Answer = Reserved>,
) -> Reservation {
    match store.execute(payment).await.unwrap() {
        Reserved::Now(reservation) => reservation,
        Reserved::Before(payment) => panic!("made before: {payment:?}"),
    }
}

/// The earlier payment, for which nothing is reserved now.
pub(super) async fn made_before(store: &impl WalletStore, payment: Reserve) -> OutgoingPayment {
    match store.reserve(payment).await.unwrap() {
        Reserved::Before(payment) => payment,
        Reserved::Now(reservation) => panic!("coins are reserved: {reservation:?}"),
    }
}

/// What is posted for each payment to a payment URL.
pub(super) fn posting() -> Posting {
    let url = Some("https://payee.example:8443/take".to_owned());
    Posting { url, body: b"message".to_vec() }
}

/// The command that records the payment after signing.
pub(super) fn signed(payment: &Reserve, reservation: &Reservation) -> Record {
    let satoshis = payment.spending.satoshis;
    let change = reservation.selection.change.map(|change| change.satoshis);
    let is_to_url = payment.purpose.url().is_some();
    let new = NewPayment {
        reservation: reservation.clone(),
        transaction: spending(&reservation.selection, [Some(satoshis), change]),
        purpose: payment.purpose.clone(),
        satoshis,
        expires_at: is_to_url.then(|| payment.now.after(HOUR)),
    };
    Record {
        payment: new,
        posting: is_to_url.then(posting),
        idempotency: payment.idempotency.clone(),
        now: payment.now,
    }
}

/// Reserves coins, signs and records, unless that was done before.
pub(super) async fn pay(store: &impl WalletStore, payment: Reserve) -> Answer<OutgoingPayment> {
    match store.reserve(payment.clone()).await? {
        Reserved::Before(payment) => Ok(payment),
        Reserved::Now(reservation) => store.record_payment(signed(&payment, &reservation)).await,
    }
}

/// The number of the transaction of a payment by the wallet.
pub(super) async fn transaction_of(store: &impl WalletStore, payment: u64) -> u64 {
    store.outgoing_transaction(payment).await.unwrap().0
}

/// Reserves a coin for a payment with change. The network has shown the coin.
#[allow(dead_code, reason = "only the tests of the file use it")]
pub(crate) async fn reserve_with_change(store: &impl WalletStore) -> Answer<Reserved> {
    store.execute(Watch { keys: vec![([1; 20], key_of(1))] }).await.unwrap();
    notice(store, &paying_invoices(&[(1, SATOSHIS)], 1), MEMPOOL, 1).await;
    store.reserve(outgoing("a", 400)).await
}

/// Makes, signs and records the cancellation of a payment, unless there is one. Returns the number
/// of the transaction.
pub(super) async fn take_back(
    store: &impl WalletStore,
    payment: u64,
    fee_rate: u64,
    now: Timestamp,
) -> Answer<u64> {
    let whole = Spending { satoshis: 0, output_bytes: 0, fee_rate };
    match store.prepare_cancellation(payment, whole).await? {
        PreparedCancellation::Before(number) => Ok(number),
        PreparedCancellation::New(selection) => {
            let change = selection.change.unwrap();
            let transaction = spending(&selection, [Some(change.satoshis), None]);
            let cancellation = RecordCancellation { payment, transaction, change, now };
            store.record_cancellation(cancellation).await
        }
    }
}

/// A proof that something is in a block at this height.
pub(super) fn proof(height: u8) -> Proof {
    Proof {
        block: BlockPlace { hash: BlockHash::from_bytes([height; 32]), height: height.into() },
        branch: MerkleBranch { position: 0, siblings: vec![Sibling::Hash([height; 32])] },
    }
}
