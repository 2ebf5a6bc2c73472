//! An invoice is deleted.

use crate::ledger::rows::{Attention, Expiries, Invoices, Unlisted, WalletStoreError};
use crate::ledger::{Books, Command, Refusal};
use crate::model::event::EventKind;
use crate::model::invoice::{Invoice, InvoiceState};
use crate::model::receipt::ReceiptKey;
use crate::model::time::Timestamp;

/// How many receipts the deletion itself lists as unassigned, at most.
const LISTED_AT_ONCE: usize = 100;

/// Deletes an invoice that is not paid. If it has many receipts, the sweep lists the others as
/// unassigned, because strangers choose their number.
#[derive(Clone, Copy, Debug)]
pub struct DeleteInvoice {
    /// Its number.
    pub number: u64,
    /// The time.
    pub now: Timestamp,
}

impl Command for DeleteInvoice {
    type Answer = ();

    fn run(&self, books: &mut Books<'_>) -> Result<(), WalletStoreError> {
        let number = self.number;
        let invoice = books.invoice(number)?.filter(|invoice| invoice.deleted_at.is_none());
        let invoice = invoice.ok_or(Refusal::UnknownInvoice(number))?;
        if invoice.payment_received_at.is_some() {
            return Err(Refusal::Paid(number).into());
        }
        if invoice.in_flight {
            return Err(Refusal::InFlight(number).into());
        }
        let at = books.next_event_at(self.now);
        let was_due = books.rows.remove::<Expiries>((invoice.expires_at, number))?;
        if was_due && invoice.state(at) == InvoiceState::Expired {
            books.tell_standing(at, EventKind::InvoiceExpired, number)?;
        }
        let deleted = Invoice { deleted_at: Some(at), awaits_block_since: None, ..invoice };
        books.rows.put::<Invoices>(number, &deleted)?;
        books.rows.remove::<Attention>(number)?;
        books.rows.put::<Unlisted>(number, &ReceiptKey::FIRST)?;
        books.list_receipts_of_deleted(LISTED_AT_ONCE)?;
        books.append_event(at, EventKind::InvoiceDeleted, number)
    }
}
