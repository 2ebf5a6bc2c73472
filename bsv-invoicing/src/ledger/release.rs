//! Releasing reserved coins for which no payment was recorded, so that they can be spent again.

use crate::ledger::rows::{Claims, Reservations, WalletStoreError, try_all};
use crate::ledger::{Books, Command};
use crate::model::process::Task;

/// Releases the coins of one reservation.
#[derive(Clone, Copy, Debug)]
pub struct Release {
    /// Its number.
    pub reservation: u64,
}

impl Command for Release {
    type Answer = ();

    fn run(&self, books: &mut Books<'_>) -> Result<(), WalletStoreError> {
        books.release(self.reservation)
    }
}

impl Books<'_> {
    /// Releases the reservation with this number, if there is one.
    pub(crate) fn release(&mut self, number: u64) -> Result<(), WalletStoreError> {
        let keys = self.rows.get::<Reservations>(&number)?.unwrap_or_default();
        try_all(keys, |key| match self.receipt(key)?.spender == Some(number) {
            true => self.set_holder(key, None),
            false => Ok(()),
        })?;
        self.end_reservation(number)
    }

    /// Removes a reservation. Its coins are released, or spent by a payment that is recorded.
    pub(crate) fn end_reservation(&mut self, number: u64) -> Result<(), WalletStoreError> {
        self.rows.remove::<Claims>(Task::Spending(number))?;
        self.rows.remove::<Reservations>(number).map(drop)
    }
}
