//! Refunds: where they go, and how much.

use bsv_invoicing::invoices::{LatePayments, NextStep, PaymentRules};
use bsv_invoicing::ledger::queries::{GetReceivedSum, GetRefundable, GetSums};
use bsv_invoicing::ledger::{Contest, MarkPaid, Offer, Refundable, Reserve, SetRules};
use bsv_invoicing::sending::{OutgoingPurpose, OutgoingState};
use bsv_invoicing::store::WalletStore;

use super::making::*;
use super::noticed::to_decide;
use super::*;

/// The `refund_to` of the first invoice.
async fn refund_to(store: &impl WalletStore) -> Option<String> {
    store.invoice(1).await.unwrap().unwrap().refund_to
}

/// Anybody can send a transaction that the network shows.
pub(super) async fn first_payer(store: &impl WalletStore) {
    paid_invoice(store, 1).await;
    let known = |salt| Offer { is_known: true, ..incoming(1, salt, at(5)) };
    let second = begin_with(store, known(2)).await;
    assert_eq!(refund_to(store).await.as_deref(), Some("refund to 1"));
    store.refuse(second.number, at(6)).await.unwrap();
    assert_eq!(refund_to(store).await.as_deref(), Some("refund to 1"));
    let third = begin_with(store, known(3)).await;
    store.see(third.number, at(7)).await.unwrap();
    assert_eq!(refund_to(store).await.as_deref(), Some("refund to 1"));
    assert_eq!(store.balance().await.unwrap(), 2 * SATOSHIS);
}

/// Two payers say where refunds go, and the network shows the payment of one of them, or of both.
pub(super) async fn shown_payment(store: &impl WalletStore) {
    create(store, at(0), HOUR).await;
    let first = begin(store, 1, 1, at(1)).await;
    assert_eq!(refund_to(store).await, None, "nothing is paid");
    store.refuse(first.number, at(2)).await.unwrap();
    let second = begin(store, 1, 2, at(3)).await;
    store.see(second.number, at(4)).await.unwrap();
    assert_eq!(refund_to(store).await.as_deref(), Some("refund to 2"));
    store.see(first.number, at(5)).await.unwrap();
    assert_eq!(refund_to(store).await.as_deref(), Some("refund to 1"), "it came first");
    store.displace(first.number, at(6)).await.unwrap();
    assert_eq!(refund_to(store).await.as_deref(), Some("refund to 2"));
    store.displace(second.number, at(7)).await.unwrap();
    assert_eq!(refund_to(store).await, None);
}

/// Refunds go where all payers whose payments count want them, whichever payments stop counting and
/// count again.
pub(super) async fn agreed(store: &impl WalletStore) {
    create(store, at(0), HOUR).await;
    let mut numbers = Vec::new();
    for (salt, wish) in [(1, "a"), (2, "b"), (3, "a"), (4, "a")] {
        let refund_to = Some(wish.to_owned());
        let payment = begin_with(store, Offer { refund_to, ..incoming(1, salt, at(1)) }).await;
        store.refuse(payment.number, at(1)).await.unwrap();
        numbers.push(payment.number);
    }
    let [first, other, third, last] = numbers[..] else { panic!("{numbers:?}") };
    let to = async || (refundable(store, 1, 9).await.to, refund_to(store).await);
    let both = |agreed: Option<&str>, first: Option<&str>| {
        (agreed.map(str::to_owned), first.map(str::to_owned))
    };
    for number in [last, first, third] {
        store.see(number, at(2)).await.unwrap();
        assert_eq!(to().await, both(Some("a"), Some("a")));
    }
    store.see(other, at(3)).await.unwrap();
    assert_eq!(to().await, both(None, Some("a")));
    store.displace(first, at(4)).await.unwrap();
    assert_eq!(to().await, both(None, Some("b")));
    store.displace(third, at(5)).await.unwrap();
    assert_eq!(to().await, both(None, Some("b")));
    store.displace(last, at(6)).await.unwrap();
    assert_eq!(to().await, both(Some("b"), Some("b")));
    store.see(third, at(7)).await.unwrap();
    store.displace(other, at(8)).await.unwrap();
    assert_eq!(to().await, both(Some("a"), Some("a")));
    // Somebody who names no place has paid as well.
    let silent = Offer { refund_to: None, is_known: true, ..incoming(1, 5, at(9)) };
    let silent = begin_with(store, silent).await;
    store.see(silent.number, at(9)).await.unwrap();
    assert_eq!(to().await, both(None, Some("a")));
    store.displace(silent.number, at(10)).await.unwrap();
    assert_eq!(to().await, both(Some("a"), Some("a")));
    store.displace(third, at(11)).await.unwrap();
    assert_eq!(to().await, both(None, None));
    // One comes between two that differ.
    let refund_to = Some("b".to_owned());
    let end = begin_with(store, Offer { refund_to, ..incoming(1, 6, at(12)) }).await.number;
    for number in [first, end, third] {
        store.see(number, at(12)).await.unwrap();
    }
    assert_eq!(to().await, both(None, Some("a")));
    store.displace(end, at(13)).await.unwrap();
    assert_eq!(to().await, both(Some("a"), Some("a")));
}

pub(super) fn refund(invoice: u64, satoshis: u64) -> Reserve {
    let purpose = OutgoingPurpose::Refund { invoice, to: "somewhere".to_owned() };
    Reserve { purpose, ..outgoing("", satoshis) }
}

async fn refundable(store: &impl WalletStore, invoice: u64, seconds: u64) -> Refundable {
    store.get(GetRefundable(invoice, at(seconds))).await.unwrap()
}

/// An invoice is refunded in parts, and a part that fails can be refunded again, but not both.
pub(super) async fn in_parts(store: &impl WalletStore) {
    paid_invoice(store, 1).await;
    let payer = Some("refund to 1".to_owned());
    let whole =
        Refundable { received: SATOSHIS, refunded: 0, surplus: 0, to: payer, is_any_named: true };
    assert_eq!(refundable(store, 1, 9).await, whole);
    // The receipt is unconfirmed, so the refund spends it, although another coin fits better.
    let other = paid_invoice(store, 2).await;
    store.mine(other.number, proof(9), at(4)).await.unwrap();
    let first = reserve(store, refund(1, 400)).await;
    let paid = store.transaction(1).await.unwrap().unwrap().txid();
    assert_eq!(first.selection.coins[0].outpoint.txid, paid);
    let recorded = store.record_payment(signed(&refund(1, 400), &first)).await.unwrap();
    assert_eq!((recorded.state, recorded.expires_at), (OutgoingState::Open, None));
    let invoice = store.invoice(1).await.unwrap().unwrap();
    assert_eq!(recorded.invoice, Some(invoice.id));
    assert_eq!(invoice.refunded_at, Some(recorded.created_at));
    assert_eq!(invoice.refund_to.as_deref(), Some("refund to 1"), "the payer's word stays");
    assert_eq!(refundable(store, 1, 9).await.left(), 600);
    let refused = store.reserve(refund(1, 601)).await;
    assert_refused!(refused, Refusal::RefundTooLarge { satoshis: 601, left: 600 });
    // The rest must wait, because the receipt is spent.
    assert_refused!(store.reserve(refund(1, 600)).await, Refusal::RefundMustWait(of) if of == paid);
    let cancellation = take_back(store, 1, 0, at(20)).await.unwrap();
    store.see(cancellation, at(21)).await.unwrap();
    assert_eq!(refundable(store, 1, 9).await.left(), SATOSHIS);
    assert_eq!(store.invoice(1).await.unwrap().unwrap().refunded_at, None);
    store.mine(1, proof(9), at(22)).await.unwrap();
    // The second refund spends a coin of the transaction that took the first one's coin, so both
    // cannot be mined.
    let second = pay(store, refund(1, 400)).await.unwrap();
    let took_back = store.transaction(cancellation).await.unwrap().unwrap().txid();
    let (_, transaction) = store.outgoing_transaction(second.number).await.unwrap();
    assert_eq!(transaction.inputs[0].previous_output.txid, took_back);
    // No coin would keep a third refund and the first one from both being mined, until a block
    // does.
    assert_refused!(store.reserve(refund(1, 600)).await, Refusal::EarlierAttempt(1));
    store.mine(cancellation, proof(10), at(23)).await.unwrap();
    let third = pay(store, refund(1, 600)).await.unwrap();
    assert_eq!(refundable(store, 1, 9).await.left(), 0);
    for payment in [second, third] {
        store.see(transaction_of(store, payment.number).await, at(30)).await.unwrap();
    }
    assert_eq!(store.balance().await.unwrap(), SATOSHIS);
}

/// The surplus of an expired or deleted unpaid invoice is everything. The surplus of a paid one is
/// the overpaid part.
pub(super) async fn surplus(store: &impl WalletStore) {
    paid_invoice(store, 1).await;
    let more = Offer { is_known: true, ..offering(1, &[300], 7, at(5)) };
    let more = begin_with(store, more).await;
    store.see(more.number, at(6)).await.unwrap();
    let expected =
        Refundable { received: 1300, refunded: 0, surplus: 300, to: None, is_any_named: true };
    assert_eq!(refundable(store, 1, 9).await, expected, "two payers, and one has said nothing");
    create(store, at(0), HOUR).await;
    let part = Offer { is_known: true, ..offering(2, &[300], 8, at(5)) };
    let part = begin_with(store, part).await;
    store.see(part.number, at(6)).await.unwrap();
    assert_eq!(refundable(store, 2, 9).await.surplus, 0, "the rest may come");
    assert_eq!(refundable(store, 2, 4000).await.surplus, 300, "it is expired");
    let rest = begin_with(store, offering(2, &[700], 9, at(7))).await;
    assert_eq!(refundable(store, 2, 4000).await.surplus, 0, "the rest is on its way");
    store.refuse(rest.number, at(8)).await.unwrap();
    store.delete_invoice(2, at(9)).await.unwrap();
    assert_eq!(refundable(store, 2, 9).await.surplus, 300, "it is deleted");
    assert_refused!(store.get(GetRefundable(3, at(9))).await, Refusal::UnknownInvoice(3));
}

/// What was refunded before an invoice is paid does not pay it, unless the refund comes to nothing.
pub(super) async fn of_unpaid(store: &impl WalletStore) {
    let rules = PaymentRules { late: LatePayments::Accept, ..PaymentRules::default() };
    store.execute(SetRules { rules }).await.unwrap();
    for _ in 0..2 {
        create(store, at(0), HOUR).await;
    }
    let pay_in = async |invoice, satoshis, salt, s| {
        let offer = Offer { is_known: true, ..offering(invoice, &[satoshis], salt, at(s)) };
        let payment = begin_with(store, offer).await;
        store.see(payment.number, at(s)).await.unwrap();
        payment.number
    };
    let is_paid = async |invoice| {
        store.invoice(invoice).await.unwrap().unwrap().payment_received_at.is_some()
    };
    let fees = create(store, at(0), HOUR).await.number;
    let coin = pay_in(fees, 5 * SATOSHIS, 1, 1).await;
    store.mine(coin, proof(7), at(2)).await.unwrap();
    for (invoice, salt) in [(1, 2), (2, 3)] {
        pay_in(invoice, 800, salt, 10).await;
        pay(store, refund(invoice, 800)).await.unwrap();
        pay_in(invoice, 200, salt + 2, 4000).await;
        assert!(!is_paid(invoice).await, "800 of 1000 went back");
        let due = store.get(GetSums(store.invoice(invoice).await.unwrap().unwrap(), at(4000)));
        assert_eq!(due.await.unwrap().due, 800);
    }
    let last = pay_in(1, 800, 8, 4001).await;
    assert!(is_paid(1).await, "the payer has sent the rest again");
    store.displace(last, at(4002)).await.unwrap();
    assert!(!is_paid(1).await, "what was refunded before does not keep it paid");
    // A refund of a paid invoice does not judge it by other rules.
    let tolerant = PaymentRules { underpaid_tolerance: 10, ..rules };
    store.execute(SetRules { rules: tolerant }).await.unwrap();
    let almost = create(store, at(0), HOUR).await.number;
    pay_in(almost, SATOSHIS - 10, 9, 4002).await;
    store.execute(SetRules { rules }).await.unwrap();
    pay(store, refund(almost, 100)).await.unwrap();
    assert!(is_paid(almost).await);
    // The second refund comes to nothing.
    let cancellation = take_back(store, 2, 0, at(4003)).await.unwrap();
    store.see(cancellation, at(4004)).await.unwrap();
    assert!(is_paid(2).await);
}

/// A refund of a paid invoice does not judge it by other rules, not even if there was one before. What
/// happens at the same time happens one after the other.
pub(super) async fn before_and_after(store: &impl WalletStore) {
    let tolerant = PaymentRules { underpaid_tolerance: 10, ..PaymentRules::default() };
    store.execute(SetRules { rules: tolerant }).await.unwrap();
    create(store, at(0), HOUR).await;
    let coin = create(store, at(0), HOUR).await.number;
    let pay_in = async |invoice, satoshis, salt| {
        let offer = Offer { is_known: true, ..offering(invoice, &[satoshis], salt, at(5)) };
        let payment = begin_with(store, offer).await;
        store.see(payment.number, at(5)).await.unwrap();
        payment.number
    };
    let of_fees = pay_in(coin, 5 * SATOSHIS, 1).await;
    store.mine(of_fees, proof(7), at(5)).await.unwrap();
    let sums = async || {
        let received = store.get(GetReceivedSum(1)).await.unwrap();
        (received.refunded, received.refunded_before)
    };
    let first = pay_in(1, 400, 2).await;
    store.mine(first, proof(7), at(5)).await.unwrap();
    pay(store, refund(1, 400)).await.unwrap();
    pay_in(1, 990, 3).await;
    let paid = async || store.invoice(1).await.unwrap().unwrap().is_paid();
    assert!(paid().await && sums().await == (400, 400));
    store.execute(SetRules { rules: PaymentRules::default() }).await.unwrap();
    pay(store, refund(1, 90)).await.unwrap();
    assert!(paid().await, "990 would not do by the rules of today");
    assert_eq!(sums().await, (490, 400));
    // The first refund comes to nothing, and then is there all the same.
    let refunded = transaction_of(store, 1).await;
    store.see(refunded, at(5)).await.unwrap();
    store.displace(refunded, at(5)).await.unwrap();
    assert!(paid().await && sums().await == (90, 0));
    store.see(refunded, at(5)).await.unwrap();
    assert_eq!(sums().await.0, 490);
    assert!(!paid().await, "what it takes off is judged by the rules of today");
}

/// A payment is displaced after its surplus, or all of it, was refunded with other coins. That is a
/// case until its owner closes it, and so is a surplus.
pub(super) async fn lost_afterwards(store: &impl WalletStore) {
    let pay_in = async |invoice, satoshis, salt| {
        let offer = Offer { is_known: true, ..offering(invoice, &[satoshis], salt, at(5)) };
        let payment = begin_with(store, offer).await;
        store.see(payment.number, at(5)).await.unwrap();
        store.mine(payment.number, proof(7), at(5)).await.unwrap();
        payment.number
    };
    for invoice in 1..=4 {
        create(store, at(0), HOUR).await;
        pay_in(invoice, SATOSHIS, invoice as usize).await;
    }
    let second = pay_in(3, SATOSHIS, 9).await;
    for invoice in [3, 4] {
        // The coins of the first two invoices are the first ones of this amount.
        let refund = pay(store, refund(invoice, SATOSHIS)).await.unwrap();
        store.see(transaction_of(store, refund.number).await, at(6)).await.unwrap();
    }
    assert_eq!(to_decide(store, 7).await, []);
    store.displace(second, at(8)).await.unwrap();
    store.displace(4, at(8)).await.unwrap();
    let lost = NextStep::DecideLost(SATOSHIS);
    assert_eq!(to_decide(store, 8).await, [(3, lost), (4, lost)]);
    assert!(store.invoice(3).await.unwrap().unwrap().is_paid());
    store.delete_invoice(4, at(8)).await.unwrap();
    store.execute(MarkPaid { invoice: 3, now: at(8) }).await.unwrap();
    assert_eq!(to_decide(store, 8).await, []);

    pay_in(1, 14, 10).await;
    assert_eq!(to_decide(store, 8).await, [], "it is worth less than an input costs");
    pay_in(1, 286, 11).await;
    assert_eq!(to_decide(store, 8).await, [(1, NextStep::RefundSurplus(300))]);
    store.execute(MarkPaid { invoice: 1, now: at(8) }).await.unwrap();
    assert_eq!(to_decide(store, 8).await, []);
    let more = pay_in(1, 20, 12).await;
    assert_eq!(to_decide(store, 8).await, [(1, NextStep::RefundSurplus(320))]);
    store.execute(MarkPaid { invoice: 1, now: at(8) }).await.unwrap();
    assert_eq!(to_decide(store, 8).await, []);
    store.displace(more, at(9)).await.unwrap();
    assert_eq!(to_decide(store, 9).await, [(1, NextStep::DecideLost(20))]);
}

/// A small payment that the network does not show any more hides no surplus, and holds up no refund of
/// the rest.
pub(super) async fn beside_a_vanished_one(store: &impl WalletStore) {
    create(store, at(0), HOUR).await;
    for (satoshis, salt) in [(SATOSHIS + 300, 1), (1, 2)] {
        let offer = Offer { is_known: true, ..offering(1, &[satoshis], salt, at(5)) };
        let payment = begin_with(store, offer).await;
        store.see(payment.number, at(5)).await.unwrap();
    }
    store.mine(1, proof(7), at(5)).await.unwrap();
    store.execute(Contest { transaction: 2, now: at(6) }).await.unwrap();
    assert_eq!(to_decide(store, 7).await, [(1, NextStep::RefundSurplus(301))]);
    let vanished = store.transaction(2).await.unwrap().unwrap().txid();
    let refused = store.reserve(refund(1, SATOSHIS + 301)).await;
    assert_refused!(refused, Refusal::RefundMustWait(of) if of == vanished);
    pay(store, refund(1, 301)).await.unwrap();
    assert_eq!(to_decide(store, 7).await, []);
}

/// A refund with a key is returned again while it lasts, and made anew after it is lost.
pub(super) async fn with_a_key(store: &impl WalletStore) {
    paid_invoice(store, 1).await;
    let with_key = || Reserve { idempotency: Some(key("k", "a")), ..refund(1, 400) };
    let first = pay(store, with_key()).await.unwrap();
    assert_eq!(made_before(store, with_key()).await, first);
    let cancellation = take_back(store, 1, 0, at(20)).await.unwrap();
    store.see(cancellation, at(21)).await.unwrap();
    store.mine(1, proof(9), at(22)).await.unwrap();
    let second = pay(store, with_key()).await.unwrap();
    assert_eq!(second.number, 2);
    assert_eq!(made_before(store, with_key()).await.number, 2);
}
