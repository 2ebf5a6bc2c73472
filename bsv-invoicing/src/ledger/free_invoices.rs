//! A payment that has a rival, or of which nobody has said for long what became of it, so that its invoice
//! may be paid otherwise.

use crate::ledger::rows::{Expiries, InFlight, WalletStoreError, try_all};
use crate::ledger::{Books, Command};
use crate::model::transaction::TransactionState;

/// The invoices of a payment that is still being offered take another payment from now on, and expire in
/// their time. The payment itself keeps its state, and counts if the network shows it.
#[derive(Clone, Copy, Debug)]
pub struct FreeInvoices {
    /// The number of the transaction.
    pub transaction: u64,
}

impl Command for FreeInvoices {
    type Answer = ();

    fn run(&self, books: &mut Books<'_>) -> Result<(), WalletStoreError> {
        books.known_transaction(self.transaction)?;
        books.free_invoices(self.transaction)
    }
}

impl Books<'_> {
    /// Lets the invoices of a payment that is still being offered be paid otherwise.
    pub(crate) fn free_invoices(&mut self, number: u64) -> Result<(), WalletStoreError> {
        if self.transaction(number)?.state != TransactionState::Offered {
            return Ok(());
        }
        let made = self.made_by(number)?;
        let invoices = self.invoices_of(made.iter().map(|(_, receipt)| receipt.key))?;
        let freed = try_all(invoices, |invoice| {
            if self.rows.get::<InFlight>(&invoice)? != Some(number) {
                return Ok(());
            }
            self.rows.remove::<InFlight>(invoice)?;
            // The sweep may have looked at it in the meantime.
            let may_expire = self.invoice(invoice)?.filter(|it| {
                it.expired_at.is_none()
                    && it.payment_received_at.is_none()
                    && it.deleted_at.is_none()
            });
            match may_expire {
                Some(it) => self.rows.put::<Expiries>((it.expires_at, invoice), &()),
                None => Ok(()),
            }
        });
        freed.map(drop)
    }
}
