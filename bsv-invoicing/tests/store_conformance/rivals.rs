//! Transactions that spend one coin, and the word of services about them.

use bsv_invoicing::coins::{Holding, Holdings};
use bsv_invoicing::ledger::items::{FoldLedger, LedgerCoin, LedgerItem, LedgerTotals};
use bsv_invoicing::ledger::queries::{
    GetBalance, GetFigures, GetReceipt, GetReceivedSum, GetRecord,
};
use bsv_invoicing::ledger::{
    CheckedProof, Evidence, ForgetBlock, FreeInvoices, GetExposure, Mine, NoteRival, Offer,
    RefuseByPayee, Reserved, See, ShownPlace, Sighting, TellByServices,
};
use bsv_invoicing::receiving::{IncomingPayment, IncomingState, ReceiptKey};
use bsv_invoicing::sending::OutgoingState;
use bsv_invoicing::store::WalletStore;
use bsv_invoicing::transactions::TransactionState::{
    self, Cancelled, Contested, Displaced, Mined, Offered, Refused, Seen, Waiting,
};
use bsv_tx::{OutPoint, Transaction, TxIn, Txid};

use super::making::*;
use super::noticed::{block, notice, paying_invoices, shown};
use super::refunds::refund;
use super::*;

pub(super) const WORD: Sighting = Sighting { is_fee_sufficient: true, evidence: Evidence::Word };
pub(super) const HEARSAY: Sighting =
    Sighting { is_fee_sufficient: true, evidence: Evidence::Hearsay };
pub(super) const GONE: TransactionState = Contested { told: false };

pub(super) async fn state(store: &impl WalletStore, number: u64) -> TransactionState {
    store.get(GetRecord(number)).await.unwrap().unwrap().state
}

/// Services or a node tell of a transaction. Returns the state that it then has.
pub(super) async fn told(
    store: &impl WalletStore,
    transaction: u64,
    sighting: Sighting,
    s: u64,
) -> TransactionState {
    store.execute(See { transaction, sighting, now: at(s) }).await.unwrap();
    state(store, transaction).await
}

pub(super) async fn mined(store: &impl WalletStore, transaction: u64, height: u8, s: u64) {
    let checked = CheckedProof { proof: proof(height), reorganisations: 0 };
    store.execute(Mine { transaction, checked, now: at(s) }).await.unwrap();
}

async fn coins(store: &impl WalletStore) -> u64 {
    store.get(GetFigures).await.unwrap().unproven_coins
}

/// A payment of an invoice that spends the coin of this number, of which services will tell. Each
/// `lock_time` gives another transaction.
pub(super) async fn offered(
    store: &impl WalletStore,
    invoice: u64,
    coin: usize,
    lock_time: u32,
) -> IncomingPayment {
    let transaction = Transaction { lock_time, ..paying(&[SATOSHIS], coin) };
    let offer = Offer { transaction: (&transaction).into(), ..incoming(invoice, coin, at(1)) };
    begin_with(store, Offer { may_have_rivals: true, ..offer }).await
}

/// The same of which only the sender says that the coin exists.
async fn claimed(store: &impl WalletStore, invoice: u64, coin: usize, lock_time: u32) -> u64 {
    let transaction = Transaction { lock_time, ..paying(&[SATOSHIS], coin) };
    let offer = Offer { transaction: (&transaction).into(), ..incoming(invoice, coin, at(1)) };
    let offer = Offer { may_have_rivals: true, are_coins_known: false, ..offer };
    begin_with(store, offer).await.number
}

async fn invoices(store: &impl WalletStore, count: u64) {
    for _ in 0..count {
        create(store, at(0), HOUR).await;
    }
}

/// The second transaction for a coin takes the first one's standing, and neither counts by a word. The
/// one that a block holds counts, and displaces the other.
pub(super) async fn two_for_one_coin(store: &impl WalletStore) {
    invoices(store, 3).await;
    let first = offered(store, 1, 5, 1).await.number;
    assert_eq!(told(store, first, WORD, 2).await, Seen);
    assert_eq!((coins(store).await, store.balance().await.unwrap()), (1, SATOSHIS));
    let second = offered(store, 2, 5, 2).await.number;
    assert_eq!(state(store, first).await, GONE);
    assert_eq!(told(store, second, WORD, 3).await, Waiting);
    for number in [first, second] {
        assert!(store.record(number).await.unwrap().unwrap().has_rival());
        let before = state(store, number).await;
        assert_eq!(told(store, number, WORD, 4).await, before);
        assert_eq!(told(store, number, HEARSAY, 4).await, before);
    }
    assert_eq!((coins(store).await, store.balance().await.unwrap()), (2, SATOSHIS));
    mined(store, second, 7, 5).await;
    assert_eq!(state(store, first).await, Displaced);
    assert_eq!((coins(store).await, store.balance().await.unwrap()), (0, SATOSHIS));
    // The coin is spent in a block, whatever services say.
    for evidence in [WORD, HEARSAY] {
        assert_eq!(told(store, first, evidence, 6).await, Displaced);
    }
    assert_eq!(store.get(GetReceivedSum(1)).await.unwrap().sum(), 0);
    assert_eq!(store.get(GetReceivedSum(2)).await.unwrap().sum(), SATOSHIS);
}

/// Anybody can claim to spend another payer's coin. That changes nothing until services show it.
pub(super) async fn of_claimed_coins(store: &impl WalletStore) {
    invoices(store, 3).await;
    let first = offered(store, 1, 5, 1).await.number;
    assert_eq!(told(store, first, WORD, 2).await, Seen);
    let forged = claimed(store, 2, 5, 2).await;
    assert_eq!(state(store, first).await, Seen);
    assert!(!store.record(forged).await.unwrap().unwrap().has_rival());
    audited(store).await;
    store.refuse(forged, at(3)).await.unwrap();
    let forged = claimed(store, 2, 5, 2).await;
    assert_eq!(state(store, first).await, Seen);
    assert_eq!(told(store, forged, HEARSAY, 4).await, Waiting);
    assert_eq!(state(store, first).await, GONE, "services show both");
    audited(store).await;
}

/// A payment that has a rival holds its invoice no longer, and neither does one whose rival comes later.
pub(super) async fn of_two_invoices(store: &impl WalletStore) {
    invoices(store, 3).await;
    let other = |invoice, coin| Offer { may_have_rivals: true, ..incoming(invoice, coin, at(2)) };
    let told_of = offered(store, 1, 5, 1).await.number;
    assert!(store.offer(other(1, 7)).await.is_err(), "the first one is in flight");
    for _ in 0..2 {
        store.execute(NoteRival { transaction: told_of, now: at(3) }).await.unwrap();
    }
    begin_with(store, other(1, 7)).await;
    let found = offered(store, 2, 6, 1).await.number;
    offered(store, 3, 6, 2).await;
    assert!(store.record(found).await.unwrap().unwrap().has_rival());
    begin_with(store, other(2, 8)).await;
    audited(store).await;
}

/// Services know a rival of one payment that counts, of one that is offered, and of one that a block
/// holds.
pub(super) async fn known_to_services(store: &impl WalletStore) {
    invoices(store, 3).await;
    let mut payments = Vec::new();
    for (invoice, coin) in [(1, 1), (2, 2), (3, 3)] {
        payments.push(offered(store, invoice, coin, 1).await.number);
    }
    let [seen, offered, in_block] = payments[..] else { panic!("there are three") };
    assert_eq!(told(store, seen, WORD, 2).await, Seen);
    mined(store, in_block, 7, 2).await;
    let place = state(store, in_block).await;
    let events = store.events(0, 99).await.unwrap().len();
    for transaction in payments {
        store.execute(NoteRival { transaction, now: at(3) }).await.unwrap();
    }
    assert_eq!(store.events(0, 99).await.unwrap().len(), events, "no state is told twice");
    assert_eq!(state(store, seen).await, GONE);
    assert_eq!(told(store, seen, WORD, 4).await, GONE);
    assert_eq!(told(store, offered, WORD, 4).await, Waiting);
    assert_eq!(told(store, in_block, WORD, 4).await, place);
    store.displace(seen, at(5)).await.unwrap();
    assert_eq!(told(store, seen, WORD, 6).await, Displaced, "whatever was shown before");
    mined(store, offered, 8, 7).await;
    assert!(matches!(state(store, offered).await, Mined(_)));
}

/// What services knew of a transaction counts again once its block has left the chain. A transaction
/// that came with a block is compared with others from then on.
pub(super) async fn reorganised(store: &impl WalletStore) {
    shown(store, 2).await;
    let first = paying_invoices(&[(1, SATOSHIS)], 4);
    notice(store, &first, block(7), 1).await;
    let Mined(place) = state(store, 1).await else { panic!("it is mined") };
    assert_eq!(coins(store).await, 0);
    let forget = |may_have_rivals| ForgetBlock {
        block: place,
        is_replaced: true,
        may_have_rivals,
        after: 0,
        limit: 9,
        now: at(2),
    };
    store.execute(forget(true)).await.unwrap();
    assert_eq!((state(store, 1).await, coins(store).await), (GONE, 1));
    assert_eq!(told(store, 1, WORD, 3).await, Seen);
    let second = Transaction { lock_time: 1, ..paying_invoices(&[(2, SATOSHIS)], 4) };
    notice(store, &second, ShownPlace::Mempool(WORD), 4).await;
    assert_eq!((state(store, 1).await, state(store, 2).await), (GONE, Waiting));
    mined(store, 1, 7, 5).await;
    assert_eq!((state(store, 2).await, coins(store).await), (Displaced, 0));
    store.execute(forget(false)).await.unwrap();
    assert_eq!((state(store, 1).await, coins(store).await), (GONE, 1));
    assert_eq!(told(store, 1, WORD, 6).await, GONE, "the mark stands");
}

/// With a node no coins are listed, and what it shows has no rival.
pub(super) async fn judged(store: &impl WalletStore) {
    invoices(store, 2).await;
    begin(store, 1, 1, at(1)).await;
    assert_eq!(told(store, 1, Sighting::judged(true), 2).await, Seen);
    assert_eq!(coins(store).await, 0);
    let second = offered(store, 2, 2, 1).await.number;
    assert_eq!(told(store, second, WORD, 3).await, Seen);
    store.execute(NoteRival { transaction: second, now: at(4) }).await.unwrap();
    assert_eq!(told(store, second, Sighting::judged(true), 5).await, Seen);
    assert_eq!(coins(store).await, 0);
    assert!(!store.record(second).await.unwrap().unwrap().has_rival());
    assert_eq!(told(store, second, HEARSAY, 6).await, Seen);
    assert_eq!(told(store, second, WORD, 6).await, Seen);
}

/// Strangers choose how many coins a transaction spends. Not all are listed, so it counts only in a
/// block.
pub(super) async fn very_many_coins(store: &impl WalletStore) {
    shown(store, 2).await;
    for (invoice, count, expected) in [(1, 1_000_u32, Seen), (2, 1_001, Waiting)] {
        let mut transaction = paying_invoices(&[(invoice, SATOSHIS)], 1);
        let input = transaction.inputs[0].clone();
        let coin = |vout| OutPoint { txid: Txid::from_bytes([invoice as u8; 32]), vout };
        transaction.inputs =
            (0..count).map(|vout| TxIn { previous_output: coin(vout), ..input.clone() }).collect();
        notice(store, &transaction, ShownPlace::Mempool(WORD), 1).await;
        assert_eq!((state(store, invoice).await, coins(store).await), (expected, invoice * 1_000));
    }
    assert_eq!(store.incoming(2).await.unwrap()[0].state, IncomingState::Waiting);
    assert_eq!(store.get(GetBalance).await.unwrap(), SATOSHIS);
}

/// What the books hold agrees with what they keep about it.
pub(super) async fn audited(store: &impl WalletStore) {
    let step = |(kept, differences): &mut (LedgerTotals, Vec<String>), item| match item {
        LedgerItem::Transaction(it) => {
            kept.unproven_coins += it.unproven_coins;
            kept.exposed += it.exposed;
            for coin in &it.coins {
                kept.spendable += u64::from(coin.is_spendable);
                let is_free = it.can_be_spent && coin.spender.is_none() && !coin.is_immature;
                kept.holdings = add(kept.holdings, coin);
                if is_free != coin.is_spendable {
                    differences.push(format!("output {} of {}", coin.vout, it.number));
                }
            }
        }
        LedgerItem::Invoice(it) => {
            if it.received != it.recounted || !it.is_listed {
                differences.push(format!("{it:?}"));
            }
        }
        LedgerItem::Totals(it) => {
            let of = |it: &LedgerTotals| (it.spendable, it.unproven_coins, it.holdings.balance());
            if of(&it) != of(kept)
                || it.exposed != kept.exposed
                || it.holdings.reserved != kept.holdings.reserved
            {
                differences.push(format!("{it:?}, and {kept:?}"));
            }
        }
    };
    let start = (LedgerTotals::default(), Vec::new());
    let (_, differences) = store.list(FoldLedger { start, step }).await.unwrap();
    assert_eq!(differences, Vec::<String>::new());
}

fn add(holdings: Holdings, coin: &LedgerCoin) -> Holdings {
    let mut sums = holdings;
    match coin.holding {
        Some(Holding::Reserved) => sums.reserved += coin.satoshis,
        Some(Holding::Waiting) | None => {}
        Some(_) => sums.confirmed += coin.satoshis,
    }
    sums
}

/// A payment by the wallet that spends its only coin, and a stranger's transaction that spends that
/// coin too. Returns the number of the payment, and those of both transactions.
async fn with_stranger(store: &impl WalletStore) -> (u64, [u64; 2]) {
    shown(store, 2).await;
    let coin = paying_invoices(&[(1, SATOSHIS)], 1);
    notice(store, &coin, block(7), 1).await;
    let payment = pay(store, outgoing("payee", 900)).await.unwrap().number;
    let mut strangers = paying_invoices(&[(2, SATOSHIS)], 2);
    strangers.inputs[0].previous_output = OutPoint { txid: coin.txid(), vout: 0 };
    notice(store, &strangers, ShownPlace::Mempool(WORD), 6).await;
    let strangers = store.incoming(2).await.unwrap()[0].number;
    (payment, [transaction_of(store, payment).await, strangers])
}

/// The transaction that holds the output 0 of the first one.
async fn spender(store: &impl WalletStore) -> Option<u64> {
    let step = |spender: &mut Option<u64>, item| match item {
        LedgerItem::Transaction(it) if it.number == 1 => {
            *spender = it.coins[0].spender.as_ref().map(|it| it.number);
        }
        _ => {}
    };
    store.list(FoldLedger { start: None, step }).await.unwrap()
}

async fn outgoing_state(store: &impl WalletStore, payment: u64) -> OutgoingState {
    store.outgoing(payment).await.unwrap().unwrap().0.state
}

/// Services tell of a stranger's transaction that spends a coin of a payment by the wallet. The payment
/// keeps its state and the coin, and a block decides.
pub(super) async fn of_a_payment(store: &impl WalletStore) {
    let (payment, [own, strangers]) = with_stranger(store).await;
    assert_eq!((state(store, own).await, state(store, strangers).await), (Offered, Waiting));
    assert_eq!(spender(store).await, Some(own));
    audited(store).await;
    assert_eq!(told(store, own, WORD, 7).await, Waiting);
    assert_eq!(outgoing_state(store, payment).await, OutgoingState::Waiting);
    assert_eq!(told(store, strangers, WORD, 7).await, Waiting);
    audited(store).await;
    mined(store, strangers, 8, 8).await;
    assert_eq!((state(store, own).await, spender(store).await), (Displaced, Some(strangers)));
    audited(store).await;
    assert_eq!(told(store, own, WORD, 9).await, Displaced);
    assert_eq!(spender(store).await, Some(strangers), "a block holds its spender");
    assert_eq!(store.balance().await.unwrap(), SATOSHIS);
    audited(store).await;
}

/// The payee refuses a payment by the wallet while services tell of another one that spends the coin:
/// that one has it then. A block that holds the payment brings it back.
pub(super) async fn of_a_refused_payment(store: &impl WalletStore) {
    let (payment, [own, strangers]) = with_stranger(store).await;
    store.refuse_by_payee(payment, "no", at(7)).await.unwrap();
    assert_eq!((state(store, own).await, state(store, strangers).await), (Refused, Waiting));
    assert_eq!(spender(store).await, Some(strangers));
    audited(store).await;
    mined(store, own, 8, 8).await;
    assert_eq!((state(store, strangers).await, spender(store).await), (Displaced, Some(own)));
    audited(store).await;
}

/// Services have taken the cancellation of a payment: it waits, and the payment keeps its state and its
/// coins. Returns the numbers of the payment and of both transactions.
async fn cancelling(store: &impl WalletStore) -> (u64, [u64; 2]) {
    shown(store, 1).await;
    notice(store, &paying_invoices(&[(1, SATOSHIS)], 1), block(7), 1).await;
    let payment = pay(store, outgoing("payee", 900)).await.unwrap().number;
    let own = transaction_of(store, payment).await;
    let cancellation = take_back(store, payment, 0, at(20)).await.unwrap();
    assert_eq!(told(store, cancellation, WORD, 21).await, Waiting);
    let again = take_back(store, payment, 0, at(22)).await.unwrap();
    assert_eq!(again, cancellation, "one cancellation is under way");
    store.refuse_by_payee(payment, "no", at(22)).await.unwrap();
    assert_eq!(state(store, own).await, Offered);
    assert_eq!(outgoing_state(store, payment).await, OutgoingState::Cancelling);
    assert_eq!(spender(store).await, Some(own));
    let refused = store.reserve(outgoing("another", 100)).await;
    assert_refused!(refused, Refusal::InsufficientFunds { spendable: 0, .. });
    audited(store).await;
    (payment, [own, cancellation])
}

pub(super) async fn cancelled_by_a_block(store: &impl WalletStore) {
    let (payment, [own, cancellation]) = cancelling(store).await;
    mined(store, cancellation, 8, 23).await;
    assert_eq!(outgoing_state(store, payment).await, OutgoingState::Cancelled);
    assert_eq!((state(store, own).await, spender(store).await), (Cancelled, Some(cancellation)));
    assert_eq!(store.balance().await.unwrap(), SATOSHIS);
    audited(store).await;
}

pub(super) async fn mined_in_spite(store: &impl WalletStore) {
    let (payment, [own, cancellation]) = cancelling(store).await;
    mined(store, own, 8, 23).await;
    assert_eq!(outgoing_state(store, payment).await, OutgoingState::Settled);
    assert_eq!((state(store, cancellation).await, spender(store).await), (Displaced, Some(own)));
    assert_eq!(store.balance().await.unwrap(), SATOSHIS - 900);
    audited(store).await;
}

/// A payee has refused a payment that the network may have. The next payment to it spends what the
/// cancellation brings back, so that only one of the two can be mined. Returns the transactions of
/// both payments, and the cancellation.
async fn refused_and_paid_anew(store: &impl WalletStore) -> [u64; 3] {
    shown(store, 1).await;
    notice(store, &paying_invoices(&[(1, SATOSHIS)], 1), block(7), 1).await;
    let refused = pay(store, outgoing("payee", 500)).await.unwrap().number;
    let first = transaction_of(store, refused).await;
    let reason = "sold out".to_owned();
    let refuse = RefuseByPayee { payment: refused, reason, is_absent: false, now: at(20) };
    store.execute(refuse).await.unwrap();
    assert_eq!((state(store, first).await, spender(store).await), (Offered, Some(first)));
    assert_eq!(outgoing_state(store, refused).await, OutgoingState::Cancelling);
    let early = store.reserve(outgoing("payee", 400)).await;
    assert_refused!(early, Refusal::EarlierAttempt(1));
    let cancellation = take_back(store, refused, 0, at(21)).await.unwrap();
    let early = store.reserve(outgoing("payee", 400)).await;
    assert_refused!(early, Refusal::EarlierAttempt(1));
    assert_eq!(told(store, cancellation, WORD, 22).await, Waiting);
    let other = store.reserve(outgoing("another", 100)).await;
    assert_refused!(other, Refusal::InsufficientFunds { spendable: 0, .. });
    let anew = pay(store, outgoing("payee", 400)).await.unwrap().number;
    let second = transaction_of(store, anew).await;
    let key = ReceiptKey { maker: cancellation, vout: 0 };
    assert_eq!(store.get(GetReceipt(key)).await.unwrap().unwrap().spender, Some(second));
    assert_eq!(told(store, second, WORD, 23).await, Seen);
    audited(store).await;
    [first, second, cancellation]
}

pub(super) async fn paid_anew_after_a_refusal(store: &impl WalletStore) {
    let [first, second, cancellation] = refused_and_paid_anew(store).await;
    mined(store, cancellation, 8, 25).await;
    mined(store, second, 8, 25).await;
    assert_eq!(state(store, first).await, Cancelled);
    assert_eq!(store.balance().await.unwrap(), SATOSHIS - 400);
    audited(store).await;
}

pub(super) async fn mined_after_a_refusal(store: &impl WalletStore) {
    let [first, second, cancellation] = refused_and_paid_anew(store).await;
    mined(store, first, 8, 25).await;
    for other in [second, cancellation] {
        assert_eq!(state(store, other).await, Displaced);
    }
    assert_eq!(store.balance().await.unwrap(), SATOSHIS - 500);
    let before = store.reserve(outgoing("payee", 400)).await.unwrap();
    assert!(matches!(before, Reserved::Before(payment) if payment.number == 1), "it is paid");
    audited(store).await;
}

/// A stranger's coin is spent once a block holds it, and the wallet's own change at once, unless its
/// transaction has a rival.
pub(super) async fn spendable(store: &impl WalletStore) {
    invoices(store, 1).await;
    let coin = offered(store, 1, 1, 1).await.number;
    assert_eq!(told(store, coin, WORD, 2).await, Seen);
    let refused = store.reserve(outgoing("payee", 400)).await;
    assert_refused!(refused, Refusal::InsufficientFunds { spendable: 0, .. });
    assert_refused!(store.reserve(refund(1, 100)).await, Refusal::RefundMustWait(_));
    audited(store).await;
    mined(store, coin, 7, 3).await;
    let first = pay(store, outgoing("payee", 400)).await.unwrap().number;
    let first = transaction_of(store, first).await;
    assert_eq!(told(store, first, WORD, 4).await, Seen);
    let change = reserve(store, outgoing("another", 400)).await;
    store.release(change.number).await.unwrap();
    store.execute(NoteRival { transaction: first, now: at(5) }).await.unwrap();
    assert_eq!(state(store, first).await, GONE);
    let refused = store.reserve(outgoing("another", 400)).await;
    assert_refused!(refused, Refusal::InsufficientFunds { spendable: 0, .. });
    audited(store).await;
}

/// A payment of which nobody says anything no longer keeps its invoice from being paid, or from expiring,
/// and counts if it is shown after all.
pub(super) async fn of_unknown_outcome(store: &impl WalletStore) {
    invoices(store, 2).await;
    let [first, lonely] = [offered(store, 1, 5, 1).await, offered(store, 2, 6, 1).await];
    let other = || Offer { may_have_rivals: true, ..incoming(1, 7, at(2)) };
    assert!(store.offer(other()).await.is_err(), "the first one is in flight");
    for number in [first.number, lonely.number] {
        store.execute(FreeInvoices { transaction: number }).await.unwrap();
        assert_eq!(state(store, number).await, Offered);
    }
    let second = begin_with(store, other()).await;
    // It holds the invoice by now, and the first one frees nothing of it.
    store.execute(FreeInvoices { transaction: first.number }).await.unwrap();
    let third = Offer { may_have_rivals: true, ..incoming(1, 8, at(2)) };
    assert!(store.offer(third).await.is_err(), "the second one is in flight");
    assert_eq!(told(store, second.number, WORD, 3).await, Seen);
    assert_eq!(told(store, first.number, WORD, 4).await, Seen);
    assert_eq!(store.balance().await.unwrap(), 2 * SATOSHIS);
    store.sweep(at(3 * 3600), 9).await.unwrap();
    let invoice = store.invoice(2).await.unwrap().unwrap();
    assert!(invoice.expired_at.is_some(), "{invoice:?}");
}

/// Services tell of what a node has shown before: their coins are listed then, so that rivals are found,
/// and strangers' receipts are not spent. A node that tells of it again ends that.
pub(super) async fn of_another_source(store: &impl WalletStore) {
    invoices(store, 2).await;
    let node = |invoice, lock_time| {
        let transaction = Transaction { lock_time, ..paying(&[SATOSHIS], 5) };
        Offer { transaction: (&transaction).into(), ..incoming(invoice, 5, at(1)) }
    };
    let first = begin_with(store, node(1, 1)).await.number;
    assert_eq!(told(store, first, Sighting::judged(true), 2).await, Seen);
    assert_eq!(coins(store).await, 0);
    let tell = TellByServices { transaction: first, now: at(3) };
    for _ in 0..2 {
        store.execute(tell).await.unwrap();
        assert_eq!((state(store, first).await, coins(store).await), (Seen, 1));
        assert_eq!(store.get(GetExposure).await.unwrap().satoshis, SATOSHIS);
        let record = store.record(first).await.unwrap().unwrap();
        assert!(!record.can_be_spent());
    }
    let second = offered(store, 2, 5, 2).await.number;
    assert_eq!(state(store, first).await, GONE);
    assert_eq!(told(store, second, WORD, 4).await, Waiting);
    assert_eq!(told(store, first, Sighting::judged(true), 5).await, Seen);
    let record = store.record(first).await.unwrap().unwrap();
    assert!(record.can_be_spent() && !record.has_rival());
    assert_eq!(store.get(GetExposure).await.unwrap().satoshis, 0);
    // What is offered or in a block stays as it is.
    mined(store, first, 7, 6).await;
    store.execute(tell).await.unwrap();
    assert_eq!(store.record(first).await.unwrap().unwrap().word, None);
    audited(store).await;
}
