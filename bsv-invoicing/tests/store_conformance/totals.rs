//! Everything that the books hold about money, item by item.

use bsv_invoicing::coins::Spending;
use bsv_invoicing::ledger::items::{FoldLedger, LedgerItem, LedgerTotals, LedgerTransaction};
use bsv_invoicing::ledger::{MarkPaid, Notice, Noticed, Reserve};
use bsv_invoicing::store::WalletStore;
use bsv_tx::{OutPoint, Transaction, TxIn};
use futures_util::future::try_join_all;

use super::making::*;
use super::noticed::{block, paying_invoices, shown};
use super::*;

#[derive(Debug, Default)]
pub(super) struct Items {
    pub(super) transactions: Vec<LedgerTransaction>,
    /// The number of each paid invoice, and whether a payment of it counts.
    paid: Vec<(u64, bool)>,
    pub(super) totals: LedgerTotals,
}

pub(super) async fn items(store: &impl WalletStore) -> Items {
    let step = |items: &mut Items, item| match item {
        LedgerItem::Transaction(it) => items.transactions.push(*it),
        LedgerItem::Invoice(it) => {
            assert!(it.is_listed && it.received == it.recounted, "{it:?}");
            if it.is_paid {
                items.paid.push((it.number, it.recounted.payments > 0));
            }
        }
        LedgerItem::Totals(totals) => items.totals = totals,
    };
    store.verify(FoldLedger { start: Items::default(), step }).await.unwrap()
}

/// The books hold thousands of everything.
pub(super) async fn many(store: &impl WalletStore) {
    const MANY: u64 = 1001;
    shown(store, 1).await;
    let new = || store.create_invoice(new_invoice(at(0), HOUR));
    try_join_all((1..MANY).map(|_| new())).await.unwrap();
    for number in [2, MANY - 1, MANY] {
        store.execute(MarkPaid { invoice: number, now: at(1) }).await.unwrap();
    }
    // Each of many transactions pays 1 satoshi. The last one has many outputs.
    let singles = (1..MANY).map(|salt| paying_invoices(&[(1, 1)], salt as usize));
    let wide = paying_invoices(&[(1, 1); MANY as usize], MANY as usize);
    let all: Vec<Transaction> = singles.chain([wide]).collect();
    let noticed = |(transaction, place): (&Transaction, _)| {
        let transaction = transaction.into();
        Noticed { transaction, place, came_at: at(2), ancestry: Vec::new() }
    };
    let shown = all.iter().map(|it| noticed((it, block(7)))).collect();
    store.execute(Notice { shown, now: at(2) }).await.unwrap();
    let before = items(store).await.totals;
    let (coins, transactions) = (2 * MANY - 1, MANY);
    let expected = LedgerTotals {
        last_transaction: transactions,
        transactions,
        raw: transactions,
        coins,
        spendable: coins,
        mined: transactions,
        payments: transactions,
        counted: transactions,
        ..before
    };
    assert_eq!(before, expected);
    assert_eq!((before.holdings.balance(), before.spends, before.last_change), (coins, 0, 0));

    // One transaction spends most of the coins of the wide one, and one of another.
    let txids = [all[MANY as usize - 1].txid(), all[0].txid()];
    let outpoints = (0..MANY as u32).map(|vout| OutPoint { txid: txids[0], vout });
    let outpoints = outpoints.chain([OutPoint { txid: txids[1], vout: 0 }]);
    let input = |previous_output| TxIn { previous_output, ..all[0].inputs[0].clone() };
    let inputs = outpoints.map(input).collect();
    let spender = Transaction { inputs, ..paying_invoices(&[(200, 1)], 0) };
    store.execute(Notice { shown: vec![noticed((&spender, block(8)))], now: at(3) }).await.unwrap();
    let Items { transactions: listed, paid, totals: after } = items(store).await;
    assert_eq!(after.spends, MANY + 1);
    assert_eq!((after.coins, after.spendable), (coins, coins - MANY - 1));
    assert_eq!(after.holdings.balance(), coins - MANY - 1);
    assert!(listed.iter().map(|it| it.number).eq(1..=MANY + 1));
    assert!(listed[MANY as usize - 1].coins.iter().map(|coin| coin.vout).eq(0..MANY as u32));
    assert_eq!(paid, [(1, true), (2, false), (MANY - 1, false), (MANY, false)]);
    assert!(!after.is_invoice_beyond_last);
}

/// A payment by the wallet is listed with its fee, and its change key is counted.
pub(super) async fn of_a_payment(store: &impl WalletStore) {
    paid_invoice(store, 1).await;
    let spending = Spending { satoshis: 400, output_bytes: 34, fee_rate: 500 };
    let payment = pay(store, Reserve { spending, ..outgoing("a", 400) }).await.unwrap();
    let Items { transactions, paid, totals } = items(store).await;
    // A transaction of 14 bytes, an input, an output and change.
    assert_eq!(payment.fee, (14 + 149 + 34 + 34_u64).div_ceil(2));
    assert_eq!(transactions.iter().map(|it| it.fee).collect::<Vec<_>>(), [None, Some(payment.fee)]);
    assert_eq!((totals.last_transaction, totals.last_change), (2, 1));
    assert_eq!(paid, [(1, true)]);
}
