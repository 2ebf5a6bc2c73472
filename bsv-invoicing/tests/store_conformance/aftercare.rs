//! How long a lost transaction is followed.

use bsv_invoicing::store::WalletStore;
use bsv_invoicing::transactions::{FollowedUntil, TransactionState};

use super::making::*;
use super::*;

/// Until when a transaction is followed.
async fn until(store: &impl WalletStore, number: u64) -> Option<FollowedUntil> {
    let followed = store.followed(number - 1, 1).await.unwrap();
    followed.first().filter(|it| it.number == number).map(|it| it.until)
}

fn days_after(from: Timestamp, days: u32) -> Option<FollowedUntil> {
    Some(FollowedUntil::Time(from.after(24 * HOUR * days)))
}

/// The maker of a coin may come back, and then the spender of the coin may be mined, too.
pub(super) async fn of_a_followed_maker(store: &impl WalletStore) {
    let maker = paid_invoice(store, 1).await.number;
    let payment = pay(store, outgoing("a", 400)).await.unwrap().number;
    let spender = transaction_of(store, payment).await;
    store.see(spender, at(6)).await.unwrap();
    store.displace(maker, at(7)).await.unwrap();
    for number in [maker, spender] {
        let record = store.record(number).await.unwrap().unwrap();
        assert_eq!(record.state, TransactionState::Displaced);
        assert_eq!(until(store, number).await, days_after(at(7), 1));
    }
    for days in 2..=3 {
        store.unfollow(spender).await.unwrap();
        assert_eq!(until(store, spender).await, days_after(at(7), days), "its maker is followed");
    }
    store.unfollow(maker).await.unwrap();
    assert_eq!(until(store, maker).await, None, "nothing is known of what it spends");
    store.unfollow(spender).await.unwrap();
    assert_eq!(until(store, spender).await, None);
    // Both come back if the network shows them.
    store.see(maker, at(8)).await.unwrap();
    store.see(spender, at(9)).await.unwrap();
    assert_eq!(store.balance().await.unwrap(), SATOSHIS - 400);
}

/// A refused transaction may be mined until another transaction that spends its coin is mined.
pub(super) async fn of_a_taken_coin(store: &impl WalletStore) {
    paid_invoice(store, 1).await;
    let refused = pay(store, outgoing("a", 400)).await.unwrap().number;
    let transaction = transaction_of(store, refused).await;
    store.refuse_by_payee(refused, "no", at(6)).await.unwrap();
    let rival = pay(store, outgoing("b", 500)).await.unwrap().number;
    let rival = transaction_of(store, rival).await;
    for days in 2..=4 {
        store.unfollow(transaction).await.unwrap();
        assert_eq!(until(store, transaction).await, days_after(at(6), days));
        if days == 2 {
            store.see(rival, at(7)).await.unwrap();
        }
    }
    store.mine(rival, proof(9), at(8)).await.unwrap();
    store.unfollow(transaction).await.unwrap();
    assert_eq!(until(store, transaction).await, None);
}
