//! Invoices with the fields that payments and refunds set.

use crate::ledger::recount::first_wish;
use crate::ledger::refunds::lasting_refunds;
use crate::ledger::rows::{Engine, InFlight, Invoices, WalletStoreError, try_all};
use crate::model::invoice::Invoice;
use crate::model::outgoing::{OutgoingPurpose, OutgoingRecord};

/// The invoices of these numbers that are not deleted.
pub(super) fn shown_invoices(
    rows: &dyn Engine,
    numbers: impl Iterator<Item = u64>,
) -> Result<Vec<Invoice>, WalletStoreError> {
    let invoices = try_all(numbers, |number| {
        // There is no invoice if its payment was recovered with the words alone.
        let invoice = rows.get::<Invoices>(&number)?;
        let shown = invoice.filter(|invoice| invoice.deleted_at.is_none());
        shown.map(|invoice| with_payments(rows, invoice)).transpose()
    })?;
    Ok(invoices.into_iter().flatten().collect())
}

/// The invoice, with the fields that payments and refunds set.
pub(super) fn with_payments(
    rows: &dyn Engine,
    invoice: Invoice,
) -> Result<Invoice, WalletStoreError> {
    let in_flight = rows.get::<InFlight>(&invoice.number)?.is_some();
    let refunds = lasting_refunds(rows, invoice.number)?;
    completed(rows, invoice, in_flight, refunds)
}

/// The invoice, with these facts about its payments and refunds.
pub(super) fn completed(
    rows: &dyn Engine,
    mut invoice: Invoice,
    in_flight: bool,
    mut refunds: Vec<(u64, OutgoingRecord)>,
) -> Result<Invoice, WalletStoreError> {
    if invoice.payment_received_at.is_some() {
        invoice.refund_to = first_wish(rows, invoice.number)?;
    } else {
        invoice.in_flight = in_flight;
    }
    if let Some((_, first)) = refunds.pop() {
        invoice.refunded_at = Some(first.created_at);
        if let OutgoingPurpose::Refund { to, .. } = first.purpose {
            invoice.refund_to = invoice.refund_to.or(Some(to));
        }
    }
    Ok(invoice)
}
