//! The sweep: work that becomes due as time passes.

use crate::ledger::rows::Order::Ascending;
use crate::ledger::rows::{Expiries, Invoices, WalletStoreError};
use crate::ledger::{Books, Command, Refusal};
use crate::model::event::EventKind;
use crate::model::invoice::{Invoice, InvoiceState};
use crate::model::time::Timestamp;

/// Writes events of invoices that have expired, deletes idempotency keys that are older than
/// [`IDEMPOTENCY_PERIOD`](crate::invoices::IDEMPOTENCY_PERIOD), and lists receipts of deleted invoices as
/// unassigned.
#[derive(Clone, Copy, Debug)]
pub struct Sweep {
    /// The time.
    pub now: Timestamp,
    /// Since when the clock is doubted, if it is. Nothing expires after that time.
    pub doubted_since: Option<Timestamp>,
    /// How many invoices and keys together are looked at, at most, and how many receipts.
    pub limit: usize,
}

impl Command for Sweep {
    /// How many were looked at, receipts included. Some of the invoices may have been paid in time.
    type Answer = usize;

    fn run(&self, books: &mut Books<'_>) -> Result<usize, WalletStoreError> {
        let at = books.next_event_at(self.now);
        let end = self.doubted_since.map_or(at, |since| since.min(at));
        let due = books.rows.first::<Expiries>(..=(end, u64::MAX), Ascending, self.limit)?;
        for (expiry, ()) in &due {
            books.rows.remove::<Expiries>(*expiry)?;
            // An invoice that is being paid is looked at again if the payment fails.
            let invoice = books.invoice(expiry.1)?;
            let expired = invoice.filter(|it| it.state(end) == InvoiceState::Expired);
            if let Some(invoice) = expired {
                let expired = Invoice { expired_at: Some(end), ..invoice };
                books.rows.put::<Invoices>(expiry.1, &expired)?;
                books.tell_standing(at, EventKind::InvoiceExpired, expiry.1)?;
            }
        }
        let forgotten = books.forget_keys(at, self.limit - due.len())?;
        let listed = books.list_receipts_of_deleted(self.limit)?;
        match due.len() + forgotten + listed {
            0 => Err(Refusal::NothingDue.into()),
            count => Ok(count),
        }
    }
}
