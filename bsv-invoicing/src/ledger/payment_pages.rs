//! Pages of the payments of an invoice, and of the invoices that a transaction pays. Strangers may
//! send any number of transactions with any number of outputs.

use std::collections::BTreeMap;

use crate::ledger::effects::transaction;
use crate::ledger::figures::Figures;
use crate::ledger::keys::invoice_of;
use crate::ledger::notice::records_of;
use crate::ledger::rows::Order::Ascending;
use crate::ledger::rows::{
    AllFigures, Engine, Incoming, Paid, Receipts, RowsOf, WalletStoreError, try_all,
};
use crate::ledger::shown_invoices::shown_invoices;
use crate::model::coin::KeyPath;
use crate::model::payment::{
    IncomingPayment, MAX_RECEIPTS_LOOKED_AT, PaidByPage, PaidByQuery, PaymentPage, PaymentQuery,
};
use crate::model::receipt::ReceiptKey;
use crate::model::transaction::{TransactionRecord, TransactionState};

/// How many transactions, and how many receipts of one, are read at once at most.
const AT_ONCE: usize = 100;

pub(super) fn payment_page(
    rows: &dyn Engine,
    invoice: u64,
    query: PaymentQuery,
) -> Result<PaymentPage, WalletStoreError> {
    let figures = rows.get::<AllFigures>(&())?.unwrap_or_default();
    let start = query.after.map_or(ReceiptKey::FIRST, ReceiptKey::next);
    let (limit, mut from) = (query.limit, start.maker);
    let mut page =
        Page { limit, start, invoice, figures, payments: Vec::new(), looked_at: 0, last: None };
    loop {
        let listed = (invoice, from)..=(invoice, u64::MAX);
        let at_once = AT_ONCE.min(limit.max(1));
        let listed = rows.first::<Incoming>(listed, Ascending, at_once)?;
        let is_end = listed.len() < at_once;
        let makers = try_all(listed, |((_, number), paid)| {
            Ok::<_, WalletStoreError>((number, paid, transaction(rows, number)?))
        })?;
        for (number, paid, record) in makers {
            if !page.add(rows, number, paid, &record)? {
                return Ok(PaymentPage { payments: page.payments, next: page.last });
            }
            from = number.saturating_add(1);
        }
        if is_end {
            return Ok(PaymentPage { payments: page.payments, next: None });
        }
    }
}

/// A page that is being filled.
struct Page {
    limit: usize,
    start: ReceiptKey,
    invoice: u64,
    figures: Figures,
    payments: Vec<IncomingPayment>,
    looked_at: usize,
    /// The last receipt that was looked at.
    last: Option<ReceiptKey>,
}

impl Page {
    fn is_full(&self) -> bool {
        self.payments.len() >= self.limit || self.looked_at >= MAX_RECEIPTS_LOOKED_AT
    }

    /// Adds the payments by a transaction. Returns whether it has added all of them.
    fn add(
        &mut self,
        rows: &dyn Engine,
        maker: u64,
        paid: Paid,
        record: &TransactionRecord,
    ) -> Result<bool, WalletStoreError> {
        let first = ReceiptKey { maker, vout: paid.first };
        let (mut from, end) = (self.start.max(first), ReceiptKey { maker, vout: u32::MAX });
        loop {
            // A page does not end with a refused one, because the network may still show it.
            if record.state == TransactionState::Refused {
                return Ok(true);
            }
            if self.is_full() {
                return Ok(false);
            }
            let receipts = rows.first::<Receipts>(from..=end, Ascending, AT_ONCE)?;
            let is_end = receipts.len() < AT_ONCE;
            for (key, receipt) in receipts {
                if self.is_full() {
                    return Ok(false);
                }
                if invoice_of(rows, &self.figures, receipt.key)? == Some(self.invoice) {
                    self.payments.push(IncomingPayment::of(key, record, receipt.satoshis));
                }
                (self.last, from) = (Some(key), key.next());
                self.looked_at += 1;
            }
            if is_end {
                return Ok(true);
            }
        }
    }
}

/// How many outputs of a transaction are looked at for a page of the invoices that it pays.
const OUTPUTS_LOOKED_AT: usize = 1_000;

pub(super) fn invoices_paid_by(
    rows: &dyn Engine,
    query: PaidByQuery,
) -> Result<PaidByPage, WalletStoreError> {
    let figures = rows.get::<AllFigures>(&())?.unwrap_or_default();
    let makers: Vec<_> =
        records_of(rows, &query.txid)?.into_iter().map(|(number, _)| number).collect();
    let outputs = outputs_after(rows, &makers, query.after)?;
    let mut next = outputs.last_key_value().map(|(vout, _)| *vout);
    if outputs.len() < OUTPUTS_LOOKED_AT {
        next = None;
    }
    let paid = try_all(outputs, |(vout, key)| {
        let Some(invoice) = invoice_of(rows, &figures, key)? else { return Ok(None) };
        let is_first = first_output(rows, &makers, invoice)? == Some(vout);
        Ok::<_, WalletStoreError>(is_first.then_some((vout, invoice)))
    })?;
    let mut paid: Vec<_> = paid.into_iter().flatten().collect();
    if paid.len() > query.limit {
        paid.truncate(query.limit);
        next = paid.last().map(|(vout, _)| *vout);
    }
    let invoices = shown_invoices(rows, paid.into_iter().map(|(_, invoice)| invoice))?;
    Ok(PaidByPage { invoices, next })
}

/// The keys of the first outputs after this one that pay the wallet.
fn outputs_after(
    rows: &dyn Engine,
    makers: &[u64],
    after: Option<u32>,
) -> Result<BTreeMap<u32, KeyPath>, WalletStoreError> {
    let Some(vout) = after.map_or(Some(0), |after| after.checked_add(1)) else {
        return Ok(BTreeMap::new());
    };
    let outputs: Vec<RowsOf<Receipts>> = try_all(makers, |maker| {
        let range =
            ReceiptKey { maker: *maker, vout }..=ReceiptKey { maker: *maker, vout: u32::MAX };
        rows.first::<Receipts>(range, Ascending, OUTPUTS_LOOKED_AT)
    })?;
    let outputs: BTreeMap<_, _> =
        outputs.into_iter().flatten().map(|(key, receipt)| (key.vout, receipt.key)).collect();
    Ok(outputs.into_iter().take(OUTPUTS_LOOKED_AT).collect())
}

/// The first output of a transaction with these numbers that pays an invoice.
fn first_output(
    rows: &dyn Engine,
    makers: &[u64],
    invoice: u64,
) -> Result<Option<u32>, WalletStoreError> {
    let paid = try_all(makers, |maker| rows.get::<Incoming>(&(invoice, *maker)))?;
    Ok(paid.into_iter().flatten().map(|paid| paid.first).min())
}
