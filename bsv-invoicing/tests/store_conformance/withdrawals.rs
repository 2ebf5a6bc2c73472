//! Withdrawals. They are reserved and recorded as a whole.

use bsv_invoicing::ledger::queries::{GetWithdrawal, GetWithdrawalsBefore};
use bsv_invoicing::ledger::{
    EstimateWithdrawal, NewPayment, RecordWithdrawal, ReserveConsolidation, ReserveWithdrawal,
    ReservedWithdrawal,
};
use bsv_invoicing::sending::{
    OutgoingPurpose, OutgoingState, Withdrawal, WithdrawalAmount, WithdrawalCost,
};
use bsv_invoicing::store::WalletStore;

use super::making::*;
use super::*;

pub(super) fn withdrawing(amount: WithdrawalAmount) -> ReserveWithdrawal {
    let (output_bytes, fee_rate, idempotency, claim, now) = (34, 0, None, CLAIM, at(5));
    ReserveWithdrawal { amount, output_bytes, fee_rate, idempotency, claim, now }
}

/// A mined payment of an invoice with outputs of these amounts.
pub(super) async fn coins(store: &impl WalletStore, amounts: &[u64]) {
    let invoice = create(store, at(0), HOUR).await.number;
    let offer = offering(invoice, amounts, invoice as usize, at(1));
    let payment = begin_with(store, offer).await;
    store.mine(payment.number, proof(9), at(3)).await.unwrap();
}

/// Reserves and signs a withdrawal that was not made before.
pub(super) async fn signed_for(
    store: &impl WalletStore,
    reserve: ReserveWithdrawal,
) -> RecordWithdrawal {
    let idempotency = reserve.idempotency.clone();
    let reserved = match store.execute(reserve).await.unwrap() {
        ReservedWithdrawal::Now(reserved) => reserved,
        ReservedWithdrawal::Before(withdrawal) => panic!("made before: {withdrawal:?}"),
    };
    let payments = reserved.into_iter().map(|(reservation, cost)| {
        let change = reservation.selection.change.map(|change| change.satoshis);
        NewPayment {
            transaction: spending(&reservation.selection, [Some(cost.satoshis), change]),
            reservation,
            purpose: OutgoingPurpose::Withdrawal(0),
            satoshis: cost.satoshis,
            expires_at: None,
        }
    });
    let (to, reference) = ("somewhere".to_owned(), Some("rent".to_owned()));
    RecordWithdrawal { payments: payments.collect(), to, reference, idempotency, now: at(6) }
}

/// All sure coins leave in as many transactions as that takes. The withdrawal is recorded as a
/// whole or not at all.
pub(super) async fn all(store: &impl WalletStore) {
    coins(store, &[10; 1001]).await;
    // A stranger's unconfirmed coin stays.
    let invoice = create(store, at(0), HOUR).await.number;
    let strangers = begin_with(store, offering(invoice, &[777], 77, at(1))).await;
    store.see(strangers.number, at(2)).await.unwrap();
    let all = withdrawing(WithdrawalAmount::All);
    let costs = store.execute(EstimateWithdrawal(all.clone())).await.unwrap();
    let cost = |satoshis| WithdrawalCost { satoshis, fee: 0 };
    assert_eq!(costs, [cost(5000), cost(5000)], "10 satoshis alone are not worth their fee");
    let record = signed_for(store, all.clone()).await;
    assert_eq!(record.payments.len(), 2);
    // If one reservation was released meanwhile, the withdrawal is not recorded, not even in part.
    let released = record.payments[1].reservation.number;
    store.release(released).await.unwrap();
    let before = Held::of(store).await;
    let refused = store.execute(record.clone()).await;
    assert_refused!(refused, Refusal::NotReserved(number) if number == released);
    assert_eq!(Held::of(store).await, before);
    store.release(record.payments[0].reservation.number).await.unwrap();

    let record = signed_for(store, all).await;
    let withdrawal = store.execute(record).await.unwrap();
    assert_eq!((withdrawal.number, withdrawal.satoshis(), withdrawal.fee()), (1, 10_000, 0));
    let states: Vec<_> = withdrawal.payments.iter().map(|it| (it.number, it.state)).collect();
    assert_eq!(states, [(1, OutgoingState::Open), (2, OutgoingState::Open)]);
    for payment in &withdrawal.payments {
        assert_eq!(payment.purpose, OutgoingPurpose::Withdrawal(1));
        assert_eq!((payment.expires_at, &*payment.memo), (None, ""));
        store.see(transaction_of(store, payment.number).await, at(8)).await.unwrap();
    }
    assert_eq!(store.balance().await.unwrap(), 10 + 777);
}

/// A withdrawal is returned for its key in its current state, even if it is lost.
pub(super) async fn once_per_key(store: &impl WalletStore) {
    coins(store, &[1000, 1000]).await;
    let with_key = |request: &str| ReserveWithdrawal {
        idempotency: Some(key("k", request)),
        ..withdrawing(WithdrawalAmount::Satoshis(600))
    };
    let record = signed_for(store, with_key("a")).await;
    let made = store.execute(record).await.unwrap();
    let before = async |request| match store.execute(with_key(request)).await {
        Ok(ReservedWithdrawal::Before(withdrawal)) => Ok(withdrawal),
        Ok(ReservedWithdrawal::Now(reserved)) => panic!("coins are reserved: {reserved:?}"),
        Err(error) => Err(error),
    };
    assert_eq!(before("a").await.unwrap(), made);
    assert_refused!(before("b").await, Refusal::KeyReused);
    let cancellation = take_back(store, 1, 0, at(20)).await.unwrap();
    store.see(cancellation, at(21)).await.unwrap();
    assert_eq!(before("a").await.unwrap().payments[0].state, OutgoingState::Cancelled);
    let record = signed_for(store, withdrawing(WithdrawalAmount::Satoshis(700))).await;
    let second = store.execute(record).await.unwrap();
    assert_eq!((second.number, second.payments[0].number), (2, 2));
    let listed: Vec<Withdrawal> = store.list(GetWithdrawalsBefore(u64::MAX, 9)).await.unwrap();
    assert_eq!(listed[0], second);
    assert_eq!(store.list(GetWithdrawalsBefore(2, 9)).await.unwrap(), listed[1..]);
    assert_eq!(store.get(GetWithdrawal(1)).await.unwrap().as_ref(), Some(&listed[1]));
    assert_eq!(store.get(GetWithdrawal(3)).await.unwrap(), None);
}

/// Coins that do not pay for themselves are not sent. A withdrawal of too many coins is refused.
pub(super) async fn limits(store: &impl WalletStore) {
    coins(store, &[100; 30]).await;
    let dear = |amount| ReserveWithdrawal { fee_rate: 1000, ..withdrawing(amount) };
    let refused = store.execute(dear(WithdrawalAmount::All)).await;
    assert_refused!(refused, Refusal::InsufficientFunds { needed: 346, spendable: 0 });
    let refused = store.execute(withdrawing(WithdrawalAmount::Satoshis(3001))).await;
    assert_refused!(refused, Refusal::InsufficientFunds { needed: 3001, spendable: 3000 });
    for _ in 0..2 {
        coins(store, &[100; 4985]).await;
    }
    let all = withdrawing(WithdrawalAmount::All);
    assert_eq!(store.execute(EstimateWithdrawal(all.clone())).await.unwrap().len(), 20);
    coins(store, &[100]).await;
    assert_refused!(store.execute(all).await, Refusal::TooManyCoins(10_000));
}

/// Old coins are consolidated, the smallest first.
pub(super) async fn consolidated(store: &impl WalletStore) {
    coins(store, &[[7; 499].as_slice(), &[8, 9]].concat()).await;
    let consolidate =
        |up_to_height| ReserveConsolidation { fee_rate: 0, least: 20, up_to_height, claim: CLAIM };
    assert_refused!(store.execute(consolidate(8)).await, Refusal::NothingDue);
    let reservation = reserve(store, consolidate(9)).await;
    let amounts: Vec<_> = reservation.selection.coins.iter().map(|coin| coin.satoshis).collect();
    assert_eq!(amounts, [[7; 499].as_slice(), &[8]].concat());
    assert_eq!(reservation.selection.change.unwrap().satoshis, 499 * 7 + 8);
    assert_refused!(store.execute(consolidate(9)).await, Refusal::NothingDue);
    let change = reservation.selection.change.map(|change| change.satoshis);
    let payment = NewPayment {
        transaction: spending(&reservation.selection, [None, change]),
        reservation,
        purpose: OutgoingPurpose::Consolidation,
        satoshis: 0,
        expires_at: None,
    };
    let record =
        bsv_invoicing::ledger::Record { payment, posting: None, idempotency: None, now: at(6) };
    let made = store.execute(record).await.unwrap();
    let number = transaction_of(store, made.number).await;
    store.see(number, at(7)).await.unwrap();
    assert_eq!(store.balance().await.unwrap(), 499 * 7 + 17);
    let chosen = reserve(store, outgoing("a", 9)).await.selection.coins;
    assert_eq!(chosen[0].satoshis, 9, "what may have no fee is spent last");
    let all = EstimateWithdrawal(withdrawing(WithdrawalAmount::All));
    assert_refused!(store.execute(all.clone()).await, Refusal::InsufficientFunds { .. });
    store.mine(number, proof(10), at(8)).await.unwrap();
    assert_eq!(store.execute(all).await.unwrap()[0].satoshis, 499 * 7 + 8);
}

/// A consolidation needs its least number of coins, takes no coin that is worth less than the fee
/// for its own input, and leaves something.
pub(super) async fn not_consolidated(store: &impl WalletStore) {
    // An input has 149 bytes.
    coins(store, &[[148].as_slice(), &[149; 2], &[300; 3]].concat()).await;
    let consolidate =
        |least, fee_rate| ReserveConsolidation { fee_rate, least, up_to_height: 9, claim: CLAIM };
    assert_refused!(store.execute(consolidate(6, 1000)).await, Refusal::NothingDue);
    let reservation = reserve(store, consolidate(5, 1000)).await;
    let coins: Vec<_> = reservation.selection.coins.iter().map(|coin| coin.satoshis).collect();
    assert_eq!(coins, [149, 149, 300, 300, 300]);
    store.release(reservation.number).await.unwrap();
    assert_refused!(store.execute(consolidate(1, 1900)).await, Refusal::NothingDue);
    let reservation = reserve(store, consolidate(6, 0)).await;
    assert_eq!(reservation.selection.change.unwrap().satoshis, 148 + 2 * 149 + 3 * 300);
}
