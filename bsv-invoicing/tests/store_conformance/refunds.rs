//! Where refunds of a paid invoice go.

use bsv_invoicing::WalletStore;
use bsv_invoicing::ledger::Offer;

use super::making::*;
use super::*;

/// What the first invoice answers.
async fn refund_to(store: &impl WalletStore) -> Option<String> {
    store.invoice(1).await.unwrap().unwrap().refund_to
}

/// Anybody can come with a transaction that the network shows.
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
