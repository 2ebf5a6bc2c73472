//! New accounts of keys, and the last followed block.

use bsv_invoicing::coins::{Chain, KeyPath};
use bsv_invoicing::ledger::queries::GetCatchUp;
use bsv_invoicing::ledger::rows::{AccountStart, CopyEnd, FollowedBlock};
use bsv_invoicing::ledger::{BeginAccount, CaughtUp, Offer};
use bsv_invoicing::receiving::NewReceipt;
use bsv_invoicing::store::WalletStore;
use bsv_tx::BlockHash;

use super::making::*;
use super::*;

pub(super) async fn begun(store: &impl WalletStore) {
    for second in 0..3 {
        create(store, at(0), HOUR).await;
        store.create_user(user_named("Ada"), at(second), None).await.unwrap();
    }
    store.create_user(user_named("Grace"), at(3), None).await.unwrap();
    assert_eq!(store.accounts().await.unwrap(), []);
    assert_eq!(store.begin_account(300).await.unwrap(), 300);
    let start = AccountStart { last_invoice_before: 3, last_user_before: 4 };
    assert_eq!(store.accounts().await.unwrap(), [(300, start)]);
    // The numbers continue.
    assert_eq!(create(store, at(4), HOUR).await.number, 4);
    assert_eq!(store.create_user(user_named("Edsger"), at(4), None).await.unwrap().0, 5);
    // These are the same day again, an earlier day, and a later one.
    for (asked, begun) in [(300, 301), (7, 302), (400, 400)] {
        assert_eq!(store.begin_account(asked).await.unwrap(), begun);
    }
    let start = AccountStart { last_invoice_before: 4, last_user_before: 5 };
    let accounts = store.accounts().await.unwrap();
    assert_eq!(accounts[1..], [301, 302, 400].map(|account| (account, start)));
}

/// A payment of an invoice to a key.
fn to_key(invoice: u64, key: KeyPath, salt: usize) -> Offer {
    let receipts = vec![NewReceipt { vout: 0, satoshis: SATOSHIS, key }];
    Offer { receipts, ..incoming(invoice, salt, at(5)) }
}

pub(super) async fn keys(store: &impl WalletStore) {
    let receive = |account, index| KeyPath { account, chain: Chain::Receive, index };
    for _ in 0..3 {
        create(store, at(0), HOUR).await;
    }
    let first = begin_with(store, to_key(1, receive(0, 1), 1)).await;
    store.see(first.number, at(5)).await.unwrap();
    let change = reserve(store, outgoing("a", 400)).await.selection.change.unwrap();
    assert_eq!(change.key, KeyPath { account: 0, chain: Chain::Change, index: 0 });
    store.leave(None).await.unwrap();

    store.begin_account(300).await.unwrap();
    for _ in 0..2 {
        create(store, at(4), HOUR).await;
    }
    // An old invoice keeps its key, and a new one has the first of the new account.
    for (invoice, key) in [(2, receive(0, 2)), (4, receive(300, 1)), (5, receive(300, 2))] {
        let payment = begin_with(store, to_key(invoice, key, invoice as usize)).await;
        store.see(payment.number, at(6)).await.unwrap();
        let invoice = store.invoice(invoice).await.unwrap().unwrap();
        assert_eq!(invoice.payment_received_at, Some(at(6)), "{key:?}");
    }
    assert_eq!(store.balance().await.unwrap(), 4 * SATOSHIS);
    // A receipt at the key of another invoice counts for that invoice.
    let stray = begin_with(store, to_key(3, receive(300, 2), 9)).await;
    store.see(stray.number, at(7)).await.unwrap();
    assert_eq!(store.invoice(3).await.unwrap().unwrap().payment_received_at, None);
    assert_eq!(store.incoming(5).await.unwrap().len(), 2);
    // Later keys of the old account were given out after the backup, so they belong to no invoice
    // of this store.
    let before = store.incoming(4).await.unwrap();
    let stray = begin_with(store, to_key(3, receive(0, 4), 10)).await;
    store.see(stray.number, at(7)).await.unwrap();
    assert_eq!(store.incoming(4).await.unwrap(), before);
    assert_eq!(store.balance().await.unwrap(), 6 * SATOSHIS);
    for (payee, index) in [("a", 0), ("b", 1)] {
        let change = reserve(store, outgoing(payee, 400)).await.selection.change.unwrap();
        assert_eq!(change.key, KeyPath { account: 300, chain: Chain::Change, index });
    }
}

pub(super) async fn followed_tip(store: &impl WalletStore) {
    assert_eq!(store.followed_tip().await.unwrap(), None);
    // A chain of more work may be shorter.
    for height in [100, 101, 99] {
        let hash = BlockHash::from_bytes([height as u8; 32]);
        let tip = FollowedBlock { height, hash };
        store.follow_tip(tip).await.unwrap();
        assert_eq!(store.followed_tip().await.unwrap(), Some(tip));
    }
    assert_eq!(events(store).await, []);
}

/// An earlier copy catches up with the chain, from the block up to which it had followed the chain.
pub(super) async fn catch_up(store: &impl WalletStore) {
    let behind = |account| BeginAccount { account, is_behind: true };
    store.begin_account(300).await.unwrap();
    assert_eq!(store.get(GetCatchUp).await.unwrap(), None);
    store.execute(behind(301)).await.unwrap();
    let end = |followed_to| Some(CopyEnd { followed_to, last_event: 0 });
    assert_eq!(store.get(GetCatchUp).await.unwrap(), end(None), "from where is not known");
    let tip = FollowedBlock { height: 100, hash: BlockHash::from_bytes([1; 32]) };
    store.follow_tip(tip).await.unwrap();
    create(store, at(0), HOUR).await;
    store.execute(behind(302)).await.unwrap();
    store.begin_account(303).await.unwrap();
    assert_eq!(store.get(GetCatchUp).await.unwrap(), end(Some(100)), "it had not caught up");
    store.execute(CaughtUp).await.unwrap();
    assert_eq!(store.get(GetCatchUp).await.unwrap(), None);
    store.execute(behind(304)).await.unwrap();
    let caught_up = Some(CopyEnd { followed_to: Some(100), last_event: 1 });
    assert_eq!(store.get(GetCatchUp).await.unwrap(), caught_up);
}
