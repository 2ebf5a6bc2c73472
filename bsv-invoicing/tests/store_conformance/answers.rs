//! What queries and estimates answer.

use bsv_invoicing::coins::{Chain, KeyPath, Spending};
use bsv_invoicing::invoices::{LatePayments, NextStep, PaymentRules};
use bsv_invoicing::ledger::queries::{
    CountOpenPayments, GetInvoicesOf, GetInvoicesPaidBy, GetSettlement, GetWaitingSum,
};
use bsv_invoicing::ledger::rows::{FollowedBlock, RescanFrom};
use bsv_invoicing::ledger::{
    EstimateFee, EstimateWithdrawal, FindPayment, FollowTip, GetKnown, GetRescan, GetRules,
    IsWatched, MarkPaid, NewPayment, Record, Reserve, ReserveWithdrawal, SetRescan, SetRules,
    ShownPlace, Sighting, Watch,
};
use bsv_invoicing::receiving::{PaidByQuery, ReceiptKey};
use bsv_invoicing::sending::{WithdrawalAmount, WithdrawalCost};
use bsv_invoicing::store::WalletStore;
use bsv_tx::{BlockHash, OutPoint, Script, Transaction};

use super::making::*;
use super::noticed::{MEMPOOL, block, notice, paying_invoices, shown, to_decide};
use super::withdrawals::{coins, withdrawing};
use super::*;

/// The confirmations of the payments that count, whether one of them is contested, and whether the
/// invoice is marked.
async fn settlement(store: &impl WalletStore, invoice: u64) -> (Option<u32>, bool, bool) {
    let it = store.get(GetSettlement(invoice, at(9))).await.unwrap().unwrap();
    (it.confirmations, it.contested, it.marked)
}

pub(super) async fn settlements(store: &impl WalletStore) {
    shown(store, 1).await;
    let offered = begin(store, 1, 9, at(1)).await;
    assert_eq!(settlement(store, 1).await, (None, false, false));
    store.refuse(offered.number, at(1)).await.unwrap();
    let tip = |height| FollowTip {
        tip: FollowedBlock { height, hash: BlockHash::from_bytes([height as u8; 32]) },
        now: at(0),
    };
    store.execute(tip(9)).await.unwrap();
    let parts = [1, 2].map(|salt| paying_invoices(&[(1, 100)], salt));
    notice(store, &parts[0], block(7), 2).await;
    assert_eq!(settlement(store, 1).await, (Some(3), false, false), "blocks 7, 8 and 9");
    notice(store, &parts[1], MEMPOOL, 3).await;
    assert_eq!(settlement(store, 1).await, (Some(0), false, false));
    store.contest(3, at(4)).await.unwrap();
    assert_eq!(settlement(store, 1).await, (Some(0), true, false));
    store.execute(MarkPaid { invoice: 1, now: at(5) }).await.unwrap();
    assert_eq!(settlement(store, 1).await, (Some(0), true, true));
    notice(store, &parts[1], block(9), 6).await;
    assert_eq!(settlement(store, 1).await, (Some(1), false, true));
}

/// A marked invoice stays paid when a payment comes that would not pay it.
pub(super) async fn marked(store: &impl WalletStore) {
    shown(store, 1).await;
    store.execute(MarkPaid { invoice: 1, now: at(1) }).await.unwrap();
    let before = events(store).await.len();
    notice(store, &paying_invoices(&[(1, 300)], 1), MEMPOOL, 2).await;
    assert_eq!(happened(store, before).await, [(at(2), (EventKind::PaymentReceived, 1))]);
    assert_eq!(store.invoice(1).await.unwrap().unwrap().payment_received_at, Some(at(1)));
}

/// What the owner had when an unpaid invoice was marked as paid is missing if it is lost after that.
/// Surplus is still a case then.
pub(super) async fn lost_after_marking(store: &impl WalletStore) {
    let mark = async |invoice, s| store.execute(MarkPaid { invoice, now: at(s) }).await.unwrap();
    shown(store, 3).await;
    store.sweep(at(3600), 9).await.unwrap();
    notice(store, &paying_invoices(&[(1, 300)], 1), MEMPOOL, 3601).await;
    notice(store, &paying_invoices(&[(2, SATOSHIS + 300)], 2), MEMPOOL, 3601).await;
    for invoice in 1..=3 {
        mark(invoice, 3602).await;
    }
    assert_eq!(to_decide(store, 3602).await, [(2, NextStep::RefundSurplus(300))]);
    for transaction in 1..=2 {
        store.displace(transaction, at(3603)).await.unwrap();
    }
    let lost = [(1, NextStep::DecideLost(300)), (2, NextStep::DecideLost(SATOSHIS))];
    assert_eq!(to_decide(store, 3603).await, lost);
    assert!(store.invoice(1).await.unwrap().unwrap().is_paid());
    for invoice in 1..=2 {
        mark(invoice, 3604).await;
    }
    assert_eq!(to_decide(store, 3604).await, []);
}

/// An expired invoice that gets a part of its amount late expires only once.
pub(super) async fn late_part(store: &impl WalletStore) {
    shown(store, 1).await;
    assert_eq!(store.sweep(at(3600), 9).await.unwrap(), 1);
    notice(store, &paying_invoices(&[(1, 300)], 1), MEMPOOL, 3601).await;
    assert_eq!(store.sweep(at(3602), 9).await.unwrap(), 0);
}

pub(super) async fn rules(store: &impl WalletStore) {
    assert_eq!(store.get(GetRules).await.unwrap(), PaymentRules::default());
    let rules = PaymentRules {
        underpaid_tolerance: 10,
        late: LatePayments::Accept,
        zero_conf_limit: Some(5),
        mined_blocks: 3,
        ..PaymentRules::default()
    };
    store.execute(SetRules { rules }).await.unwrap();
    assert_eq!(store.get(GetRules).await.unwrap(), rules);
    let places = [None, Some(RescanFrom::Height(7)), Some(RescanFrom::Time(at(1))), None];
    for pair in places.windows(2) {
        let [before, from] = [pair[0], pair[1]];
        assert!(store.execute(SetRescan { before, from }).await.unwrap());
        assert_eq!(store.get(GetRescan).await.unwrap(), from);
        // Somebody else has read another place before, and comes too late.
        let late = SetRescan { before: Some(RescanFrom::Height(9)), from: None };
        assert!(!store.execute(late).await.unwrap());
        assert_eq!(store.get(GetRescan).await.unwrap(), from);
    }
}

/// Invoices are found by their reference and by a transaction that pays them. Deleted ones are not.
pub(super) async fn invoices_found(store: &impl WalletStore) {
    for name in ["a", "b", "a", "a"] {
        let draft = InvoiceDraft {
            satoshis: SATOSHIS,
            reference: Some(name.to_owned()),
            ..InvoiceDraft::default()
        };
        store.create_invoice(CreateInvoice { draft, ..new_invoice(at(0), HOUR) }).await.unwrap();
    }
    let keys = (1..=4).map(|number| ([number as u8; 20], key_of(number))).collect();
    store.execute(Watch { keys }).await.unwrap();
    let payment = paying_invoices(&[(4, 1), (1, 1), (2, 1), (4, 1)], 1);
    notice(store, &payment, MEMPOOL, 1).await;
    store.delete_invoice(1, at(2)).await.unwrap();
    let numbers = |invoices: Vec<Invoice>| -> Vec<_> {
        invoices.iter().map(|invoice| invoice.number).collect()
    };
    let of = async |name: &str, limit| {
        numbers(store.list(GetInvoicesOf(name.to_owned(), limit)).await.unwrap())
    };
    assert_eq!(of("a", 9).await, [4, 3]);
    assert_eq!(of("a", 1).await, [4]);
    assert_eq!(of("c", 9).await, [0; 0]);
    let query = PaidByQuery { txid: payment.txid(), after: None, limit: 9 };
    let paid = store.list(GetInvoicesPaidBy(query)).await.unwrap();
    assert_eq!((numbers(paid.invoices), paid.next), (vec![4, 2], None));
}

/// Only the payments that wait for a block are added up, and only what they pay to the invoice.
pub(super) async fn waiting(store: &impl WalletStore) {
    shown(store, 2).await;
    let sum = async |invoice| store.get(GetWaitingSum(invoice)).await.unwrap();
    assert_eq!(sum(1).await, 0);
    let low = ShownPlace::Mempool(Sighting::judged(false));
    let first = paying_invoices(&[(1, 20), (2, 300), (1, 4)], 1);
    notice(store, &first, low.clone(), 1).await;
    notice(store, &paying_invoices(&[(1, 100)], 2), MEMPOOL, 1).await;
    assert_eq!((sum(1).await, sum(2).await), (24, 300));
    notice(store, &paying_invoices(&[(2, 7)], 3), low, 2).await;
    assert_eq!((sum(1).await, sum(2).await), (24, 307));
    notice(store, &first, block(7), 3).await;
    assert_eq!((sum(1).await, sum(2).await), (0, 7));
}

/// Payments by the wallet are open until the network shows them or they are lost.
pub(super) async fn open_payments(store: &impl WalletStore) {
    let count = async || store.get(CountOpenPayments).await.unwrap();
    for number in 1..=2 {
        paid_invoice(store, number).await;
    }
    create(store, at(0), HOUR).await;
    begin(store, 3, 3, at(1)).await;
    assert_eq!(count().await, 0, "payments to the wallet do not matter");
    let first = pay(store, outgoing("a", 900)).await.unwrap().number;
    let second = pay(store, outgoing("b", 900)).await.unwrap().number;
    assert_eq!(count().await, 2);
    store.accept(first, "", at(6)).await.unwrap();
    assert_eq!(count().await, 2);
    store.see(transaction_of(store, first).await, at(7)).await.unwrap();
    assert_eq!(count().await, 1);
    store.refuse_by_payee(second, "no", at(8)).await.unwrap();
    assert_eq!(count().await, 0);
}

/// An estimate is the fee that the payment then has.
pub(super) async fn estimates(store: &impl WalletStore) {
    coins(store, &[5000]).await;
    let spending = Spending { satoshis: 600, output_bytes: 34, fee_rate: 1000 };
    let payment = Reserve { spending, ..outgoing("a", 600) };
    let purpose = payment.purpose.clone();
    let estimate = EstimateFee(payment.clone());
    // A transaction of 14 bytes, an input, an output and change.
    let fee = 14 + 149 + 34 + 34;
    assert_eq!(store.execute(estimate).await.unwrap(), fee);
    let amount = WithdrawalAmount::Satoshis(600);
    let withdrawal = ReserveWithdrawal { fee_rate: 1000, ..withdrawing(amount) };
    let costs = store.execute(EstimateWithdrawal(withdrawal)).await.unwrap();
    assert_eq!(costs, [WithdrawalCost { satoshis: 600, fee }]);

    let find = || FindPayment { purpose: purpose.clone(), idempotency: None, now: at(6) };
    assert_eq!(store.execute(find()).await.unwrap(), None);
    let made = pay(store, payment).await.unwrap();
    assert_eq!((made.satoshis, made.fee), (600, fee));
    assert_eq!(store.execute(find()).await.unwrap(), Some(made));
}

/// The script of change is watched once the payment is recorded.
pub(super) async fn change_is_watched(store: &impl WalletStore) {
    paid_invoice(store, 1).await;
    let payment = outgoing("a", 400);
    let reservation = reserve(store, payment.clone()).await;
    let record = signed(&payment, &reservation);
    let mut transaction = record.payment.transaction.clone();
    transaction.outputs[1].locking_script = Script::p2pkh(&[9; 20]);
    let is_watched = async |hash| store.get(IsWatched(hash)).await.unwrap();
    assert!(!is_watched([9; 20]).await);
    let payment = NewPayment { transaction, ..record.payment };
    store.execute(Record { payment, ..record }).await.unwrap();
    assert!(is_watched([9; 20]).await);
    assert!(!is_watched([8; 20]).await);
}

/// What the books know about a transaction, and what they lack of it.
pub(super) async fn known(store: &impl WalletStore) {
    shown(store, 1).await;
    let paying = paying_invoices(&[(1, SATOSHIS), (200, 5), (1, 7)], 1);
    let known = async |it: &Transaction| {
        let known = store.get(GetKnown(std::sync::Arc::new(it.into()))).await.unwrap();
        let numbers: Vec<_> = known.records.iter().map(|(number, _)| *number).collect();
        let vouts: Vec<_> = known.lacking.receipts.iter().map(|it| (it.vout, it.key)).collect();
        (numbers, vouts, known.lacking.spends)
    };
    let both = vec![(0, key_of(1)), (2, key_of(1))];
    assert_eq!(known(&paying).await, (vec![], both, vec![]));
    notice(store, &paying, MEMPOOL, 1).await;
    assert_eq!(known(&paying).await, (vec![1], vec![], vec![]));
    let mut spender = paying_invoices(&[(1, 3)], 2);
    spender.inputs[0].previous_output = OutPoint { txid: paying.txid(), vout: 2 };
    let spent = ReceiptKey { maker: 1, vout: 2 };
    assert_eq!(known(&spender).await, (vec![], vec![(0, key_of(1))], vec![spent]));
    notice(store, &spender, block(7), 2).await;
    assert_eq!(known(&spender).await, (vec![2], vec![], vec![]));
    // A script that is watched later is lacking.
    let keys = vec![([200; 20], KeyPath { account: 0, chain: Chain::User, index: 1 })];
    store.execute(Watch { keys: keys.clone() }).await.unwrap();
    assert_eq!(known(&paying).await, (vec![1], vec![(1, keys[0].1)], vec![]));
}
