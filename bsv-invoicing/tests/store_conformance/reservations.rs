//! Coins are reserved for a payment, which is then signed and recorded, or not.

use bsv_invoicing::ledger::queries::GetHolder;
use bsv_invoicing::ledger::{Claim, Left, LetGoAll, Reserve};
use bsv_invoicing::sending::OutgoingState;
use bsv_invoicing::store::{Task, WalletStore};
use futures_util::future::join_all;

use super::making::*;
use super::*;

pub(super) async fn reserved(store: &impl WalletStore) {
    for number in 1..=2 {
        paid_invoice(store, number).await;
    }
    let before = Held::of(store).await;
    let first = reserve(store, outgoing("a", 400)).await;
    let second = reserve(store, outgoing("b", 400)).await;
    assert_ne!(first.selection.coins, second.selection.coins);
    assert!(second.number > first.number);
    let keys = [&first, &second].map(|it| it.selection.change.unwrap().key.index);
    assert_eq!(keys, [0, 1], "each has a key of its own for change");
    assert_eq!(Held::of(store).await, before, "until it is recorded, it is no payment");
    let refused = store.reserve(outgoing("c", 1)).await;
    assert_refused!(refused, Refusal::InsufficientFunds { spendable: 0, .. });
    store.release(first.number).await.unwrap();
    let third = reserve(store, outgoing("c", 1)).await;
    assert_eq!(third.selection.coins, first.selection.coins);
    assert!(third.number > second.number, "numbers are not given out again");
    let payment = store.record_payment(signed(&outgoing("b", 400), &second)).await.unwrap();
    assert_eq!((payment.number, payment.satoshis, payment.fee), (1, 400, 0));
    assert_eq!(transaction_of(store, 1).await, second.number);
    // A recorded payment is not a reservation any more, and cannot be released.
    store.release(second.number).await.unwrap();
    store.leave(None).await.unwrap();
    assert_eq!(store.outgoing(1).await.unwrap().unwrap().0.state, OutgoingState::Open);
    let again = store.record_payment(signed(&outgoing("b", 400), &second)).await;
    assert_refused!(again, Refusal::NotReserved(number) if number == second.number);
    let fourth = reserve(store, outgoing("d", 1)).await;
    assert_eq!(fourth.selection.coins, first.selection.coins);
}

/// Whoever has not got the answer lets go of what may be reserved, by the number that he has drawn.
pub(super) async fn unanswered(store: &impl WalletStore) {
    for number in 1..=3 {
        paid_invoice(store, number).await;
    }
    let let_go = |number| store.execute(LetGoAll { number });
    let all = || Reserve { claim: 8, ..outgoing("a", 3 * SATOSHIS) };
    let lost = reserve(store, all()).await;
    let_go(9).await.unwrap();
    let refused = store.reserve(outgoing("b", 1)).await;
    assert_refused!(refused, Refusal::InsufficientFunds { spendable: 0, .. });
    store.execute(Claim { task: Task::Following, number: 8 }).await.unwrap();
    for _ in 0..2 {
        let_go(8).await.unwrap();
        assert_eq!(store.get(GetHolder(Task::Following)).await.unwrap(), None);
    }
    let late = store.record_payment(signed(&all(), &lost)).await;
    assert_refused!(late, Refusal::NotReserved(number) if number == lost.number);
    let reservation = reserve(store, all()).await;
    store.record_payment(signed(&all(), &reservation)).await.unwrap();
    let_go(8).await.unwrap();
    assert_eq!(store.outgoing(1).await.unwrap().unwrap().0.state, OutgoingState::Open);
}

/// Released coins may be reserved for another payment.
pub(super) async fn recorded_too_late(store: &impl WalletStore) {
    paid_invoice(store, 1).await;
    let payment = outgoing("a", 400);
    let lost = reserve(store, payment.clone()).await;
    store.release(lost.number).await.unwrap();
    let before = Held::of(store).await;
    let late = store.record_payment(signed(&payment, &lost)).await;
    assert_refused!(late, Refusal::NotReserved(number) if number == lost.number);
    let other = reserve(store, outgoing("b", 500)).await;
    let late = store.record_payment(signed(&payment, &lost)).await;
    assert_refused!(late, Refusal::NotReserved(number) if number == lost.number);
    assert_eq!(Held::of(store).await, before);
    store.record_payment(signed(&outgoing("b", 500), &other)).await.unwrap();
    assert_eq!(store.outgoing_to(payment.purpose.url().unwrap()).await.unwrap(), None);
}

/// The network shows a transaction that contradicts the maker of a reserved coin.
pub(super) async fn displaced(store: &impl WalletStore) {
    let payment = paid_invoice(store, 1).await;
    let reservation = reserve(store, outgoing("a", 400)).await;
    store.displace(payment.number, at(6)).await.unwrap();
    let late = store.record_payment(signed(&outgoing("a", 400), &reservation)).await;
    assert_refused!(late, Refusal::NotReserved(number) if number == reservation.number);
    store.see(payment.number, at(7)).await.unwrap();
    reserve(store, outgoing("a", 400)).await;
}

/// A new attempt spends a coin of every earlier attempt whose bytes have left.
pub(super) async fn attempts(store: &impl WalletStore) {
    for number in 1..=3 {
        paid_invoice(store, number).await;
    }
    let purpose = outgoing("a", 900).purpose;
    let coins = async |payment: Reserve| {
        let reservation = reserve(store, payment.clone()).await;
        let recorded = store.record_payment(signed(&payment, &reservation)).await.unwrap();
        (recorded.number, reservation.selection.coins)
    };
    let (other, elsewhere) = coins(outgoing("b", 900)).await;
    let (first, spent) = coins(outgoing("a", 900)).await;
    store.refuse_by_payee(first, "no", at(6)).await.unwrap();
    let (second, again) = coins(outgoing("a", 1900)).await;
    assert_eq!(again.len(), 2);
    assert!(again.contains(&spent[0]));
    store.refuse_by_payee(second, "no", at(7)).await.unwrap();
    let (third, once_more) = coins(outgoing("a", 900)).await;
    let is_kept = |earlier: &[_]| once_more.iter().any(|coin| earlier.contains(coin));
    assert!(is_kept(&spent) && is_kept(&again), "{spent:?} {again:?} {once_more:?}");
    assert!(elsewhere.iter().all(|coin| !once_more.contains(coin)));
    // The network shows the first attempt, so no other payment is made.
    store.see(transaction_of(store, first).await, at(8)).await.unwrap();
    let states = async |number| store.outgoing(number).await.unwrap().unwrap().0.state;
    assert_eq!(states(third).await, OutgoingState::Displaced);
    assert_eq!(states(other).await, OutgoingState::Open);
    assert_eq!(store.outgoing_to(purpose.url().unwrap()).await.unwrap().unwrap().number, first);
    assert_eq!(made_before(store, outgoing("a", 900)).await.number, first);
}

/// An earlier attempt whose coins are all reserved elsewhere can still be mined.
pub(super) async fn attempt_without_a_coin(store: &impl WalletStore) {
    for number in 1..=2 {
        paid_invoice(store, number).await;
    }
    let first = pay(store, outgoing("a", 1000)).await.unwrap();
    store.refuse_by_payee(first.number, "no", at(6)).await.unwrap();
    let rival = reserve(store, outgoing("b", 2000)).await;
    store.record_payment(signed(&outgoing("b", 2000), &rival)).await.unwrap();
    let third = paid_invoice(store, 3).await;
    assert_eq!(store.balance().await.unwrap(), 3 * SATOSHIS);
    let refused = store.reserve(outgoing("a", 1000)).await;
    assert_refused!(refused, Refusal::EarlierAttempt(number) if number == first.number);
    // Once the coin is spent in a block, the first attempt is void.
    store.mine(rival.number, proof(9), at(7)).await.unwrap();
    let anew = reserve(store, outgoing("a", 1000)).await;
    assert_eq!(anew.selection.coins[0].outpoint.txid, third.txid);
}

/// The process that had reserved coins has ended.
pub(super) async fn crashed<P: Place>() {
    let place = P::fresh();
    let store = place.open();
    paid_invoice(&store, 1).await;
    let payment = outgoing("a", 400);
    let lost = reserve(&store, payment.clone()).await;
    drop(store);
    let store = place.open();
    let refused = store.reserve(outgoing("b", 1)).await;
    assert_refused!(refused, Refusal::InsufficientFunds { spendable: 0, .. });
    assert_eq!(store.join(None).await.unwrap(), None);
    let late = store.record_payment(signed(&payment, &lost)).await;
    assert_refused!(late, Refusal::NotReserved(number) if number == lost.number);
    assert_eq!(store.balance().await.unwrap(), SATOSHIS);
    let anew = reserve(&store, payment.clone()).await;
    assert_eq!(anew.selection.coins, lost.selection.coins);
    assert!(anew.number > lost.number);
    let key = |it: &bsv_invoicing::ledger::Reservation| it.selection.change.unwrap().key;
    assert_ne!(key(&anew), key(&lost), "who signed may have told somebody");
    store.record_payment(signed(&payment, &anew)).await.unwrap();
}

/// However many claims a process has, a step ends a part of them.
pub(super) async fn many_claims<P: Place>() {
    let place = P::fresh();
    let store = place.open();
    paid_invoice(&store, 1).await;
    let paying = |number: u16| {
        let mut name = [0; 32];
        name[..2].copy_from_slice(&number.to_be_bytes());
        Task::Paying(name)
    };
    let claim_many = async |store: &P::Store| {
        reserve(store, outgoing("a", 400)).await;
        for number in 0..600 {
            assert!(store.execute(Claim { task: paying(number), number: 1 }).await.unwrap());
        }
    };
    let claimed = async |store: &P::Store| {
        let tasks = (0..600).map(paying);
        let holders = tasks.map(|task| store.get(GetHolder(task)));
        join_all(holders)
            .await
            .into_iter()
            .filter(|holder| holder.as_ref().unwrap().is_some())
            .count()
    };
    assert_eq!(store.join(None).await.unwrap(), None);
    claim_many(&store).await;
    let begun = store.leave(None).await.unwrap();
    assert!(!begun.was_there && claimed(&store).await > 300, "{begun:?}");
    let on = store.leave(begun.next).await.unwrap();
    assert!(!on.was_there && on.next.is_some(), "{on:?}");
    assert_eq!(store.leave(on.next).await.unwrap(), Left { was_there: true, next: None });
    assert_eq!(claimed(&store).await, 0);
    drop(store);
    // A process ends without leaving.
    claim_many(&place.open()).await;
    let store = place.open();
    let begun = store.join(None).await.unwrap();
    assert!(begun.is_some() && claimed(&store).await > 300, "{begun:?}");
    let on = store.join(begun).await.unwrap();
    assert_eq!(store.join(on).await.unwrap(), None);
    assert_eq!(claimed(&store).await, 0);
    reserve(&store, outgoing("a", 400)).await;
}
