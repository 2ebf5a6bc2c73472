//! Refunds: what can be refunded of an invoice, and what was refunded.

use std::collections::BTreeSet;

use crate::ledger::attempts::MAX_ATTEMPTS;
use crate::ledger::effects::transaction;
use crate::ledger::figures::Figures;
use crate::ledger::keys::invoice_of;
use crate::ledger::rows::{
    Damaged, Incoming, Invoices, LastRefunds, Outgoing, ReadRows, Receipts, Refunds, Rows,
};
use crate::ledger::{Books, Refusal};
use crate::model::invoice::{Invoice, InvoiceState};
use crate::model::outgoing::OutgoingRecord;
use crate::model::receipt::{Receipt, ReceiptKey};
use crate::model::time::Timestamp;
use crate::model::transaction::{TransactionRecord, TransactionState};

/// How many unconfirmed receipts a refund spends at most.
const MAX_UNCONFIRMED: usize = 100;

/// What can be refunded of the payments of an invoice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refundable {
    /// The sum of the payments that count, in satoshis.
    pub received: u64,
    /// What was refunded or is being refunded, in satoshis.
    pub refunded: u64,
    /// What was paid beyond what the invoice asks for and is not refunded, in satoshis.
    pub surplus: u64,
    /// Where refunds go, if all payers whose payments count name the same place.
    pub to: Option<String>,
}

impl Refundable {
    /// What can still be refunded, in satoshis.
    pub fn left(&self) -> u64 {
        self.received.saturating_sub(self.refunded)
    }
}

/// What can be refunded of the payments of an invoice, at a time.
pub(crate) fn refundable<R: ReadRows>(
    rows: &R,
    figures: &Figures,
    number: u64,
    now: Timestamp,
) -> Result<Refundable, R::Error> {
    let invoice = rows.get::<Invoices>(&number)?.ok_or(Refusal::UnknownInvoice(number))?;
    let mut received = 0_u64;
    let mut places = BTreeSet::new();
    for (payment, ..) in counting(rows, number)? {
        for (_, receipt) in receipts_of(rows, figures, number, payment)? {
            received = received.saturating_add(receipt.satoshis);
        }
        places.insert(rows.get::<Refunds>(&payment)?);
    }
    let mut refunded = 0_u64;
    for (_, refund) in lasting_refunds(rows, number)? {
        refunded = refunded.saturating_add(refund.satoshis);
    }
    let asked = if is_over(&invoice, now) { 0 } else { invoice.satoshis };
    let surplus = received.saturating_sub(asked).saturating_sub(refunded);
    // No payer may decide where another payer's money goes.
    let to = if places.len() == 1 { places.pop_first().flatten() } else { None };
    Ok(Refundable { received, refunded, surplus, to })
}

/// Whether the invoice is deleted or expired, and was not paid.
fn is_over(invoice: &Invoice, now: Timestamp) -> bool {
    invoice.payment_received_at.is_none()
        && (invoice.deleted_at.is_some() || invoice.state(now) == InvoiceState::Expired)
}

/// The transactions that count as payments of an invoice.
fn counting<R: ReadRows>(
    rows: &R,
    invoice: u64,
) -> Result<Vec<(u64, TransactionRecord)>, R::Error> {
    let mut counting = Vec::new();
    for ((_, number), ()) in rows.range::<Incoming>((invoice, 0)..=(invoice, u64::MAX))? {
        let record = transaction(rows, number)?;
        if record.state.counts() {
            counting.push((number, record));
        }
    }
    Ok(counting)
}

fn receipts_of<R: ReadRows>(
    rows: &R,
    figures: &Figures,
    invoice: u64,
    payment: u64,
) -> Result<Vec<(ReceiptKey, Receipt)>, R::Error> {
    let mut receipts = rows.range::<Receipts>(ReceiptKey::all_of(payment))?;
    let mut of_others = BTreeSet::new();
    for (key, receipt) in &receipts {
        if invoice_of(rows, figures, receipt.key)? != Some(invoice) {
            of_others.insert(*key);
        }
    }
    receipts.retain(|(key, _)| !of_others.contains(key));
    Ok(receipts)
}

/// The refunds of an invoice that are not lost, the newest first.
pub(crate) fn lasting_refunds<R: ReadRows>(
    rows: &R,
    invoice: u64,
) -> Result<Vec<(u64, OutgoingRecord)>, R::Error> {
    let mut refunds = Vec::new();
    let mut next = rows.get::<LastRefunds>(&invoice)?;
    for _ in 0..MAX_ATTEMPTS {
        let Some(number) = next else { break };
        let refund = rows.get::<Outgoing>(&number)?;
        let refund = refund.ok_or_else(|| Damaged::missing("a refund"))?;
        next = refund.previous;
        if !transaction(rows, refund.transaction)?.state.is_lost() {
            refunds.push((number, refund));
        }
    }
    Ok(refunds)
}

impl<R: Rows> Books<R> {
    /// The unconfirmed receipts of the invoice. A refund must spend them, so that the refund is
    /// lost if they are lost.
    pub(crate) fn coins_of_refund(
        &self,
        invoice: u64,
        satoshis: u64,
        now: Timestamp,
    ) -> Result<Vec<ReceiptKey>, R::Error> {
        let left = refundable(&self.rows, &self.figures, invoice, now)?.left();
        if satoshis > left {
            return Err(Refusal::RefundTooLarge { satoshis, left }.into());
        }
        let mut coins = Vec::new();
        for (number, record) in counting(&self.rows, invoice)? {
            if record.state.block().is_some() {
                continue;
            }
            for (key, receipt) in receipts_of(&self.rows, &self.figures, invoice, number)? {
                let is_free = record.state == TransactionState::Seen && receipt.spender.is_none();
                if !is_free || coins.len() == MAX_UNCONFIRMED {
                    return Err(Refusal::RefundMustWait(record.txid).into());
                }
                coins.push(key);
            }
        }
        Ok(coins)
    }
}
