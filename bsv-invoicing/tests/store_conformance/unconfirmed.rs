//! Payments that need a block while only one service shows the tip of the chain.

use bsv_invoicing::InvoiceState;
use bsv_invoicing::invoices::{NextStep, PaymentRules};
use bsv_invoicing::ledger::queries::{GetInvoice, GetSums};
use bsv_invoicing::ledger::rows::FollowedBlock;
use bsv_invoicing::ledger::{ConfirmTip, FollowReorganisation, FollowTip, SetRules};
use bsv_invoicing::store::WalletStore;
use bsv_tx::BlockHash;

use super::making::*;
use super::noticed::{block, notice, paying_invoices, shown};
use super::*;

/// Nothing begins to count by its depth while only one service shows the tip, and everything that has
/// waited counts as soon as a second one does. What counts goes on to count.
pub(super) async fn tip(store: &impl WalletStore) {
    shown(store, 3).await;
    let follow = async |height, is_confirmed, s| {
        let tip = FollowedBlock { height, hash: BlockHash::from_bytes([height as u8; 32]) };
        store.execute(ConfirmTip(is_confirmed)).await.unwrap();
        assert!(!store.execute(FollowTip { tip, now: at(s) }).await.unwrap());
    };
    let invoice = async |number| store.get(GetInvoice(number)).await.unwrap().unwrap();
    let next = async |number| store.get(GetSums(invoice(number).await, at(9))).await.unwrap().next;
    let is_paid = async |number| invoice(number).await.state(at(9)) == InvoiceState::Paid;
    let [first, second, third] =
        [1, 2, 3].map(|invoice| paying_invoices(&[(invoice, SATOSHIS)], invoice as usize));
    let rules = |mined_blocks| {
        let zero_conf_limit = Some(SATOSHIS - 1);
        let rules = PaymentRules { zero_conf_limit, mined_blocks, ..PaymentRules::default() };
        store.execute(SetRules { rules })
    };
    rules(2).await.unwrap();
    follow(7, Some(false), 1).await;
    notice(store, &first, block(7), 1).await;
    assert_eq!(next(1).await, NextStep::AwaitSecondSource);
    follow(8, Some(false), 2).await;
    // Nor does one count that is found when it is deep.
    notice(store, &second, block(7), 2).await;
    assert!(!is_paid(1).await && !is_paid(2).await);
    assert_eq!([next(1).await, next(2).await], [NextStep::AwaitSecondSource; 2]);
    follow(8, Some(true), 3).await;
    assert!(is_paid(1).await && is_paid(2).await);
    // One confirmation is not enough either if nobody else shows it.
    rules(1).await.unwrap();
    follow(9, Some(false), 4).await;
    notice(store, &third, block(9), 4).await;
    assert!(is_paid(1).await && is_paid(2).await && !is_paid(3).await);
    store.execute(FollowReorganisation).await.unwrap();
    follow(9, Some(false), 5).await;
    assert!(!is_paid(3).await, "a reorganisation confirms nothing");
    follow(9, Some(true), 6).await;
    assert!(is_paid(3).await);
    // A node confirms its chain itself.
    follow(10, None, 7).await;
    assert_eq!(next(3).await, NextStep::NothingPaid);
}
