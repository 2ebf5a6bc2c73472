//! A payment of which nobody says what became of it, for so long that its invoice may be paid otherwise.

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
        let number = self.transaction;
        if books.known_transaction(number)?.state != TransactionState::Offered {
            return Ok(());
        }
        let made = books.made_by(number)?;
        let invoices = books.invoices_of(made.iter().map(|(_, receipt)| receipt.key))?;
        let freed = try_all(invoices, |invoice| {
            if books.rows.get::<InFlight>(&invoice)? != Some(number) {
                return Ok(());
            }
            books.rows.remove::<InFlight>(invoice)?;
            // The sweep may have looked at it in the meantime.
            let may_expire = books.invoice(invoice)?.filter(|it| {
                it.expired_at.is_none()
                    && it.payment_received_at.is_none()
                    && it.deleted_at.is_none()
            });
            match may_expire {
                Some(it) => books.rows.put::<Expiries>((it.expires_at, invoice), &()),
                None => Ok(()),
            }
        });
        freed.map(drop)
    }
}
