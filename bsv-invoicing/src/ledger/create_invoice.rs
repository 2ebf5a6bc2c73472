//! An invoice is created.

use std::time::Duration;

use crate::ledger::idempotency::Route;
use crate::ledger::keys::MAX_NUMBER;
use crate::ledger::rows::{
    Damaged, Engine, Expiries, InFlight, Invoices, InvoicesByReference, WalletStoreError,
};
use crate::ledger::{Books, Command, Refusal};
use crate::model::event::EventKind;
use crate::model::idempotency::IdempotencyKey;
use crate::model::invoice::{Invoice, InvoiceDraft};
use crate::model::invoice_id::NewId;
use crate::model::time::Timestamp;

/// Creates an invoice with the next number.
#[derive(Clone, Debug)]
pub struct CreateInvoice {
    /// What the invoice asks for.
    pub draft: InvoiceDraft,
    /// How long it can be paid, if the draft does not say.
    pub expiry: Duration,
    /// What makes its id out of its number.
    pub id: NewId,
    /// If the key is already known, the answer is the invoice that was created first.
    pub idempotency: Option<IdempotencyKey>,
    /// The time. The time of creation is never earlier than the last event.
    pub now: Timestamp,
}

impl Command for CreateInvoice {
    type Answer = Invoice;

    fn run(&self, books: &mut Books<'_>) -> Result<Invoice, WalletStoreError> {
        let key = self.idempotency.as_ref();
        if let Some(number) = books.first_answer(Route::Invoices, key, self.now)? {
            let invoice = books.invoice(number)?;
            return Ok(invoice.ok_or_else(|| Damaged::missing("an invoice"))?);
        }
        let last = books.figures.last_invoice;
        if last - books.figures.last_invoice_before >= MAX_NUMBER {
            return Err(Refusal::Full(last).into());
        }
        let created_at = books.next_event_at(self.now);
        let number = last + 1;
        let numbered = (number, self.id.of(number));
        let invoice = Invoice::new(numbered, self.draft.clone(), created_at, self.expiry);
        if invoice.expires_at <= created_at {
            return Err(Refusal::AlreadyExpired.into());
        }
        books.figures.last_invoice = number;
        books.rows.add::<Invoices>(number, &invoice)?;
        books.rows.add::<Expiries>((invoice.expires_at, number), &())?;
        if let Some(reference) = &invoice.reference {
            books.rows.add::<InvoicesByReference>((reference.clone(), number), &())?;
        }
        books.append_event(created_at, EventKind::InvoiceCreated, number)?;
        books.remember(Route::Invoices, key, number, self.now)?;
        Ok(invoice)
    }
}

impl Books<'_> {
    /// The invoice with this number, even a deleted one, and whether it is being paid.
    pub(crate) fn invoice(&self, number: u64) -> Result<Option<Invoice>, WalletStoreError> {
        stored_invoice(&self.rows, number)
    }
}

/// The invoice with this number, even a deleted one, and whether it is being paid.
pub(crate) fn stored_invoice(
    rows: &dyn Engine,
    number: u64,
) -> Result<Option<Invoice>, WalletStoreError> {
    let Some(invoice) = rows.get::<Invoices>(&number)? else { return Ok(None) };
    let in_flight = rows.get::<InFlight>(&number)?.is_some();
    Ok(Some(Invoice { in_flight, ..invoice }))
}
