//! The sum of receipts that count by the word of services alone.

use bsv_invoicing::invoices::{NextStep, PaymentRules};
use bsv_invoicing::ledger::queries::{GetReceivedSum, GetSums};
use bsv_invoicing::ledger::{
    ConfirmTip, Exposure, ForgetBlock, GetExposure, NoteRival, SetRules, Sighting,
};
use bsv_invoicing::store::WalletStore;
use bsv_invoicing::transactions::TransactionState::{Mined, Seen, Waiting};
use bsv_invoicing::transactions::WaitReason;
use serde_json::json;

use super::making::*;
use super::noticed::{block, notice, paying_invoices, shown};
use super::rivals::{GONE, HEARSAY, WORD, audited, mined, offered, state, told};
use super::*;

/// Invoices, and rules with a limit for two payments of them. Payments that need a block need two.
async fn limited(store: &impl WalletStore, count: u64) {
    for _ in 0..count {
        create(store, at(0), HOUR).await;
    }
    let rules = PaymentRules {
        zero_conf_limit: Some(SATOSHIS),
        exposure_limit: Some(2 * SATOSHIS),
        mined_blocks: 2,
        ..PaymentRules::default()
    };
    store.execute(SetRules { rules }).await.unwrap();
}

/// The sum, which must be the one that the audit counts.
async fn exposed(store: &impl WalletStore) -> u64 {
    audited(store).await;
    let Exposure { satoshis, limit } = store.get(GetExposure).await.unwrap();
    assert_eq!(limit, Some(2 * SATOSHIS));
    satoshis
}

async fn reached(store: &impl WalletStore) -> Vec<Event> {
    let events = store.events(0, 999).await.unwrap();
    events.into_iter().filter(|it| it.kind == EventKind::ExposureReached).collect()
}

async fn follow(store: &impl WalletStore, height: u32) {
    let hash = bsv_tx::BlockHash::from_bytes([height as u8; 32]);
    assert!(!store.follow_tip(FollowedBlock { height, hash }).await.unwrap());
}

/// A payment that would lift the sum above its limit waits until the block of another one is deep enough.
/// One event tells it, and the next one after that.
pub(super) async fn limit(store: &impl WalletStore) {
    limited(store, 4).await;
    let mut payments = Vec::new();
    for invoice in 1..=4 {
        payments.push(offered(store, invoice, invoice as usize, 1).await);
    }
    let [first, second, third, fourth] = [0, 1, 2, 3].map(|it: usize| payments[it].number);
    assert_eq!(told(store, first, WORD, 2).await, Seen);
    assert_eq!(told(store, second, WORD, 2).await, Seen);
    assert_eq!((exposed(store).await, reached(store).await.len()), (2 * SATOSHIS, 0));
    for number in [third, third, fourth] {
        assert_eq!(told(store, number, WORD, 3).await, Waiting);
    }
    let events = reached(store).await;
    let [event] = &events[..] else { panic!("one event: {events:?}") };
    let data = json!({
        "txid": payments[2].txid.to_string(), "satoshis": SATOSHIS,
        "exposedSatoshis": 2 * SATOSHIS, "limitSatoshis": 2 * SATOSHIS,
    });
    assert_eq!(serde_json::to_value(&event.data).unwrap(), data);
    assert_eq!(exposed(store).await, 2 * SATOSHIS);
    mined(store, first, 7, 4).await;
    follow(store, 7).await;
    assert_eq!(told(store, third, WORD, 5).await, Waiting);
    assert_eq!(exposed(store).await, 2 * SATOSHIS);
    follow(store, 8).await;
    assert_eq!(exposed(store).await, SATOSHIS);
    assert_eq!(told(store, third, WORD, 6).await, Seen);
    assert_eq!(reached(store).await.len(), 1);
    assert_eq!(told(store, fourth, WORD, 6).await, Waiting);
    assert_eq!((exposed(store).await, reached(store).await.len()), (2 * SATOSHIS, 2));
    mined(store, fourth, 9, 7).await;
    assert_eq!(exposed(store).await, 2 * SATOSHIS, "nobody's word makes it count");
    // What counts already goes on to count when its block has left the chain.
    let Mined(block) = state(store, first).await else { panic!("it is mined") };
    let forget = ForgetBlock {
        block,
        is_replaced: true,
        may_have_rivals: true,
        after: 0,
        limit: 9,
        now: at(8),
    };
    store.execute(forget).await.unwrap();
    assert_eq!((state(store, first).await, exposed(store).await), (GONE, 3 * SATOSHIS));
    assert_eq!(told(store, first, WORD, 9).await, Seen);
    store.displace(second, at(10)).await.unwrap();
    assert_eq!(exposed(store).await, 2 * SATOSHIS);
    assert_eq!(told(store, third, Sighting::judged(true), 11).await, Seen);
    assert_eq!(exposed(store).await, SATOSHIS);
}

/// What a word has not made count does not count in a block either, until that is as deep as those of
/// invoices above the limit. If the block leaves the chain, the payment waits as before.
pub(super) async fn uncounted(store: &impl WalletStore) {
    limited(store, 3).await;
    let mut numbers = Vec::new();
    for (invoice, evidence) in [(1, HEARSAY), (2, WORD), (3, HEARSAY)] {
        let number = offered(store, invoice, invoice as usize, 1).await.number;
        told(store, number, evidence, 2).await;
        numbers.push(number);
    }
    let [waiting, counted, reorganised] = numbers[..] else { panic!("there are three") };
    let received = async |invoice| store.get(GetReceivedSum(invoice)).await.unwrap().sum();
    let is_paid = async |invoice| {
        audited(store).await;
        store.invoice(invoice).await.unwrap().unwrap().payment_received_at.is_some()
    };
    follow(store, 7).await;
    for number in [waiting, counted, reorganised] {
        mined(store, number, 7, 3).await;
    }
    assert_eq!((received(1).await, is_paid(1).await), (0, false));
    assert_eq!((received(2).await, is_paid(2).await), (SATOSHIS, true));
    let invoice = store.invoice(1).await.unwrap().unwrap();
    let sums = store.get(GetSums(invoice, at(3))).await.unwrap();
    assert_eq!((sums.waiting, sums.to_send), (SATOSHIS, 0));
    let Mined(block) = state(store, reorganised).await else { panic!("it is mined") };
    let (is_replaced, may_have_rivals) = (true, true);
    let forget =
        ForgetBlock { block, is_replaced, may_have_rivals, after: 0, limit: 9, now: at(4) };
    store.execute(forget).await.unwrap();
    assert_eq!(state(store, counted).await, GONE);
    for number in [waiting, reorganised] {
        assert_eq!(state(store, number).await, Waiting);
    }
    for number in [waiting, counted] {
        mined(store, number, 8, 5).await;
    }
    assert_eq!((is_paid(1).await, is_paid(2).await), (false, true));
    follow(store, 8).await;
    assert!(!is_paid(1).await);
    follow(store, 9).await;
    assert_eq!((received(1).await, is_paid(1).await), (SATOSHIS, true));
    assert_eq!((received(3).await, is_paid(3).await), (0, false));
}

/// The same for what nobody has told of before a payer proves that a block holds it.
pub(super) async fn found_in_a_block(store: &impl WalletStore) {
    shown(store, 1).await;
    limited(store, 0).await;
    store.execute(ConfirmTip(Some(true))).await.unwrap();
    follow(store, 7).await;
    notice(store, &paying_invoices(&[(1, SATOSHIS)], 1), block(7), 3).await;
    let is_paid = async || {
        audited(store).await;
        store.invoice(1).await.unwrap().unwrap().payment_received_at.is_some()
    };
    assert_eq!((store.incoming(1).await.unwrap().len(), is_paid().await), (1, false));
    follow(store, 8).await;
    assert!(is_paid().await);
}

/// Invoices that need a block are not in the sum, and keys of no invoice are.
pub(super) async fn parts(store: &impl WalletStore) {
    limited(store, 2).await;
    let rules = PaymentRules {
        zero_conf_limit: Some(SATOSHIS - 1),
        exposure_limit: Some(2 * SATOSHIS),
        ..PaymentRules::default()
    };
    store.execute(SetRules { rules }).await.unwrap();
    let payment = offered(store, 1, 1, 1).await.number;
    assert_eq!(told(store, payment, WORD, 2).await, Seen);
    assert_eq!(exposed(store).await, 0);
    let payment = offered(store, 2, 2, 1).await.number;
    store
        .execute(SetRules { rules: PaymentRules { zero_conf_limit: None, ..rules } })
        .await
        .unwrap();
    assert_eq!(told(store, payment, WORD, 3).await, Seen);
    assert_eq!(exposed(store).await, SATOSHIS);
    store.execute(SetRules { rules }).await.unwrap();
    mined(store, payment, 7, 4).await;
    assert_eq!(exposed(store).await, 0, "one block is deep enough");
}

/// What the owner of an invoice reads while its payment waits.
pub(super) async fn reasons(store: &impl WalletStore) {
    limited(store, 5).await;
    let low = Sighting { is_fee_sufficient: false, ..WORD };
    let seen = [(1, WORD), (2, WORD), (3, low), (4, HEARSAY), (5, WORD)];
    let mut numbers = Vec::new();
    for (invoice, sighting) in seen {
        let number = offered(store, invoice, invoice as usize, 1).await.number;
        told(store, number, sighting, 2).await;
        numbers.push(number);
    }
    let next = async |number| {
        let invoice = store.invoice(number).await.unwrap().unwrap();
        store.get(GetSums(invoice, at(3))).await.unwrap().next
    };
    for (invoice, reason) in
        [(3, WaitReason::LowFee), (4, WaitReason::UnknownCoins), (5, WaitReason::Exposure)]
    {
        assert_eq!(next(invoice).await, NextStep::AwaitUncounted(reason));
    }
    let events = store.events(0, 999).await.unwrap().len();
    assert_eq!(told(store, numbers[3], WORD, 4).await, Waiting);
    assert_eq!(next(4).await, NextStep::AwaitUncounted(WaitReason::Exposure));
    store.execute(NoteRival { transaction: numbers[3], now: at(4) }).await.unwrap();
    assert_eq!(next(4).await, NextStep::AwaitUncounted(WaitReason::Rival));
    assert_eq!(store.events(0, 999).await.unwrap().len(), events, "no state is told twice");
    let text = next(4).await.to_string();
    assert!(text.contains("another transaction spends the same coins"), "{text}");
}
