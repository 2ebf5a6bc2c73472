//! Invoices that strangers pay with many transactions, and transactions with many outputs.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bsv_invoicing::invoices::Received;
use bsv_invoicing::ledger::queries::{
    GetIncoming, GetInvoice, GetInvoicesPaidBy, GetReceivedSum, GetRefundable, GetSettlement,
    GetStanding, GetWaitingSum,
};
use bsv_invoicing::ledger::{Notice, Noticed, Query, ShownPlace};
use bsv_invoicing::receiving::{
    IncomingPayment, MAX_RECEIPTS_LOOKED_AT, PaidByPage, PaidByQuery, PaymentPage, PaymentQuery,
    ReceiptKey,
};
use bsv_invoicing::store::WalletStore;
use bsv_tx::{Transaction, Txid};

use super::counted::Counted;
use super::making::*;
use super::noticed::{MEMPOOL, block, notice, paying_invoices, shown};
use super::refunds::refund;
use super::*;

/// The network shows all of these transactions in the same place.
async fn notice_all(store: &impl WalletStore, transactions: &[Transaction], place: &ShownPlace) {
    let noticed = |transaction: &Transaction| {
        let (transaction, place) = (transaction.into(), place.clone());
        Noticed { transaction, place, came_at: at(1), ancestry: Vec::new() }
    };
    let shown = transactions.iter().map(noticed).collect();
    store.execute(Notice { shown, now: at(1) }).await.unwrap();
}

/// How many rows a query reads.
async fn rows_of(store: &impl WalletStore, query: impl Query<Answer: Send> + Clone) -> usize {
    let count = Arc::new(AtomicUsize::new(0));
    store.list(Counted { query, count: Arc::clone(&count) }).await.unwrap();
    count.load(Ordering::Relaxed)
}

/// How many rows each answer about an invoice reads, and about a transaction that pays it.
async fn rows_read(
    store: &impl WalletStore,
    invoice: u64,
    txid: Txid,
) -> [(&'static str, usize); 9] {
    let page = |after| GetIncoming(invoice, PaymentQuery { after, limit: 10 });
    let PaymentPage { next, .. } = store.list(page(None)).await.unwrap();
    let paid_by = GetInvoicesPaidBy(PaidByQuery { txid, after: None, limit: 10 });
    [
        ("the invoice", rows_of(store, GetInvoice(invoice)).await),
        ("a payment of it", rows_of(store, GetStanding(invoice, txid)).await),
        ("its settlement", rows_of(store, GetSettlement(invoice, at(9))).await),
        ("its sum", rows_of(store, GetReceivedSum(invoice)).await),
        ("what waits", rows_of(store, GetWaitingSum(invoice)).await),
        ("what can be refunded", rows_of(store, GetRefundable(invoice, at(9))).await),
        ("the first payments", rows_of(store, page(None)).await),
        ("the next payments", rows_of(store, page(next)).await),
        ("the invoices of the transaction", rows_of(store, paid_by).await),
    ]
}

/// However many payments an invoice has, and however many outputs a payment, each answer reads the
/// same number of rows.
pub(super) async fn few_rows(store: &impl WalletStore) {
    const FEW: usize = 300;
    const MANY: usize = 3_000;
    const OUTPUTS: [usize; 2] = [2_000, 20_000];
    shown(store, 4).await;
    let mut read = Vec::new();
    for (invoice, payments) in [(1, FEW), (2, MANY)] {
        let salts = 10_000 * invoice as usize..;
        let all: Vec<_> =
            salts.take(payments).map(|salt| paying_invoices(&[(invoice, 10)], salt)).collect();
        notice_all(store, &all, &block(7)).await;
        read.push(rows_read(store, invoice, all[0].txid()).await);
    }
    assert_eq!(read[0], read[1]);
    let mut read_of_wide = Vec::new();
    for (invoice, outputs) in [(3, OUTPUTS[0]), (4, OUTPUTS[1])] {
        let wide = paying_invoices(&vec![(invoice, 1); outputs], outputs);
        notice_all(store, std::slice::from_ref(&wide), &block(8)).await;
        read_of_wide.push(rows_read(store, invoice, wide.txid()).await);
    }
    assert_eq!(read_of_wide[0], read_of_wide[1]);
    for (what, rows) in read[1].into_iter().chain(read_of_wide[1]) {
        assert!(rows < 10_000, "{what}: {rows} rows");
    }
    let [few, many] = [1, 2].map(|invoice| store.get(GetReceivedSum(invoice)));
    let (few, many) = (few.await.unwrap(), many.await.unwrap());
    assert_eq!([few, many].map(Received::sum), [FEW, MANY].map(|it| 10 * it as u64));
}

/// All pages of payments, which have at most this many.
async fn pages(store: &impl WalletStore, invoice: u64, limit: usize) -> Vec<Vec<IncomingPayment>> {
    let (mut pages, mut query) = (Vec::new(), PaymentQuery { after: None, limit });
    loop {
        let page = store.list(GetIncoming(invoice, query)).await.unwrap();
        assert!(page.payments.len() <= limit);
        pages.push(page.payments);
        query.after = page.next;
        if page.next.is_none() {
            return pages;
        }
        assert!(pages.len() < 1_000, "the pages do not end");
    }
}

/// Pages of all sizes hold the same payments. Outputs to other invoices and a refused payment are
/// not among them.
pub(super) async fn walk(store: &impl WalletStore) {
    shown(store, 2).await;
    let refused = begin(store, 1, 1, at(1)).await;
    store.refuse(refused.number, at(1)).await.unwrap();
    let outputs = [(2, 1), (1, 10), (1, 11), (2, 2), (1, 12)];
    notice(store, &paying_invoices(&outputs, 2), MEMPOOL, 2).await;
    notice(store, &paying_invoices(&[(2, 3)], 3), MEMPOOL, 2).await;
    let many: Vec<_> = (4..254).map(|salt| paying_invoices(&[(1, salt as u64)], salt)).collect();
    notice_all(store, &many, &block(7)).await;
    notice(store, &paying_invoices(&outputs, 254), MEMPOOL, 2).await;
    let expected: Vec<u64> = [10, 11, 12].into_iter().chain(4..254).chain([10, 11, 12]).collect();
    for limit in [1, 2, 3, 99, 100, 101, 255, 256, 257, usize::MAX] {
        let pages = pages(store, 1, limit).await;
        let amounts: Vec<_> = pages.iter().flatten().map(|payment| payment.satoshis).collect();
        assert_eq!(amounts, expected, "{limit} on a page");
        let full = &pages[..pages.len() - 1];
        assert!(full.iter().all(|page| page.len() == limit), "{limit} on a page");
    }
    let in_between = ReceiptKey { maker: 2, vout: 1 };
    let query = PaymentQuery { after: Some(in_between), limit: 2 };
    let page = store.list(GetIncoming(1, query)).await.unwrap();
    assert_eq!(page.payments.iter().map(|it| it.vout).collect::<Vec<_>>(), [2, 4]);
    let last = ReceiptKey { maker: u64::MAX, vout: u32::MAX };
    let query = PaymentQuery { after: Some(last), limit: 2 };
    let empty = PaymentPage { payments: Vec::new(), next: None };
    assert_eq!(store.list(GetIncoming(1, query)).await.unwrap(), empty);
}

/// A transaction pays an invoice with its first and its last output, and another invoice with very
/// many outputs in between.
pub(super) async fn wide(store: &impl WalletStore) {
    shown(store, 2).await;
    let mut outputs = vec![(2, 1); MAX_RECEIPTS_LOOKED_AT + 2];
    (outputs[0], outputs[MAX_RECEIPTS_LOOKED_AT + 1]) = ((1, 5), (1, 6));
    let wide = paying_invoices(&outputs, 1);
    notice(store, &wide, MEMPOOL, 1).await;
    let pages = pages(store, 1, 100).await;
    let amounts = pages.iter().map(|page| page.iter().map(|it| it.satoshis).collect::<Vec<_>>());
    assert_eq!(amounts.collect::<Vec<_>>(), [vec![5], vec![6]]);
    let paid = paid_by_all(store, wide.txid(), 100).await;
    assert_eq!(paid[0], [1, 2]);
    assert!(paid.len() > 2 && paid[1..].iter().all(Vec::is_empty), "{paid:?}");
}

/// The numbers on all pages of the invoices that a transaction pays.
async fn paid_by_all(store: &impl WalletStore, txid: Txid, limit: usize) -> Vec<Vec<u64>> {
    let (mut pages, mut query) = (Vec::new(), PaidByQuery { txid, after: None, limit });
    loop {
        let page = store.list(GetInvoicesPaidBy(query)).await.unwrap();
        let PaidByPage { invoices, next } = page;
        assert!(invoices.len() <= limit);
        pages.push(invoices.iter().map(|invoice| invoice.number).collect());
        query.after = next;
        if next.is_none() {
            return pages;
        }
    }
}

/// Pages of all sizes hold the same invoices. The wallet learns of some outputs later than of
/// others.
pub(super) async fn paid_by(store: &impl WalletStore) {
    const INVOICES: u64 = 40;
    let late = [5, 17];
    for invoice in 1..=INVOICES {
        create(store, at(0), HOUR).await;
        if !late.contains(&invoice) {
            watch(store, invoice).await;
        }
    }
    let there_and_back = (1..=INVOICES).rev().chain(1..=INVOICES);
    let outputs: Vec<_> = there_and_back.map(|invoice| (invoice, 1)).collect();
    let transaction = paying_invoices(&outputs, 1);
    notice(store, &transaction, MEMPOOL, 1).await;
    for invoice in late {
        watch(store, invoice).await;
    }
    notice(store, &transaction, MEMPOOL, 2).await;
    store.delete_invoice(20, at(3)).await.unwrap();
    let expected: Vec<_> = (1..=INVOICES).rev().filter(|invoice| *invoice != 20).collect();
    for limit in [1, 2, 7, 39, 40, 1_000] {
        let pages = paid_by_all(store, transaction.txid(), limit).await;
        assert_eq!(pages.concat(), expected, "{limit} on a page");
    }
    assert_eq!(paid_by_all(store, Txid::from_bytes([1; 32]), 9).await, [vec![0; 0]]);
}

async fn watch(store: &impl WalletStore, invoice: u64) {
    let keys = vec![([invoice as u8; 20], key_of(invoice))];
    store.execute(bsv_invoicing::ledger::Watch { keys }).await.unwrap();
}

/// A refund spends the unconfirmed receipts of its invoice, wherever they are among many payments.
/// If there are too many, it waits for a block.
pub(super) async fn refunds(store: &impl WalletStore) {
    shown(store, 3).await;
    let unconfirmed = paying_invoices(&[(2, 7), (1, 2_000), (2, 7)], 1);
    notice(store, &unconfirmed, MEMPOOL, 1).await;
    let mined: Vec<_> = (2..400).map(|salt| paying_invoices(&[(1, 1_000)], salt)).collect();
    notice_all(store, &mined, &block(7)).await;
    let reserved = reserve(store, refund(1, 500)).await;
    let spent: Vec<_> = reserved.selection.coins.iter().map(|coin| coin.outpoint).collect();
    assert_eq!(
        spent.iter().map(|it| (it.txid, it.vout)).collect::<Vec<_>>(),
        [(unconfirmed.txid(), 1)]
    );
    store.release(reserved.number).await.unwrap();

    let many: Vec<_> = (400..501).map(|salt| paying_invoices(&[(3, 1_000)], salt)).collect();
    notice_all(store, &many[..100], &MEMPOOL).await;
    let reserved = reserve(store, refund(3, 500)).await;
    assert_eq!(reserved.selection.coins.len(), 100);
    store.release(reserved.number).await.unwrap();
    notice_all(store, &many[100..], &MEMPOOL).await;
    assert_refused!(store.reserve(refund(3, 500)).await, Refusal::RefundMustWait(_));
    notice_all(store, &many, &block(8)).await;
    assert_eq!(reserve(store, refund(3, 500)).await.selection.coins.len(), 1);

    // One of the outputs of a wide payment pays the invoice.
    let mut outputs = vec![(2, 1); 2_000];
    outputs[0] = (3, 1_000);
    let wide = paying_invoices(&outputs, 501);
    notice(store, &wide, MEMPOOL, 9).await;
    let txid = wide.txid();
    assert_refused!(store.reserve(refund(3, 500)).await, Refusal::RefundMustWait(it) if it == txid);
}

/// However many payments an invoice has, a few refused ones among its newest are kept.
pub(super) async fn refused(store: &impl WalletStore) {
    shown(store, 1).await;
    let many: Vec<_> = (0..150).map(|salt| paying_invoices(&[(1, 1)], salt)).collect();
    notice_all(store, &many, &MEMPOOL).await;
    for number in 0..6 {
        let refused = begin(store, 1, 1_000 + number, at(2)).await;
        store.refuse(refused.number, at(2)).await.unwrap();
        let record = store.record(refused.number).await.unwrap();
        assert_eq!(record.is_some(), number < 4, "refused payment {number}");
    }
}
