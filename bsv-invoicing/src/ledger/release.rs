//! Releasing reserved coins for which no payment was recorded, so that they can be spent again.

use crate::ledger::rows::{Reservations, Rows};
use crate::ledger::{Books, Command};

/// Releases the coins of one reservation.
#[derive(Clone, Copy, Debug)]
pub struct Release {
    /// Its number.
    pub reservation: u64,
}

impl Command for Release {
    type Answer = ();

    fn run<R: Rows>(&self, books: &mut Books<R>) -> Result<(), R::Error> {
        books.release(self.reservation)
    }
}

/// Releases the coins of all reservations, for example after the process that made them has ended.
#[derive(Clone, Copy, Debug)]
pub struct ReleaseAll;

impl Command for ReleaseAll {
    type Answer = ();

    fn run<R: Rows>(&self, books: &mut Books<R>) -> Result<(), R::Error> {
        for (number, _) in books.rows.range::<Reservations>(..)? {
            books.release(number)?;
        }
        Ok(())
    }
}

impl<R: Rows> Books<R> {
    /// Releases the reservation with this number, if there is one.
    pub(crate) fn release(&mut self, number: u64) -> Result<(), R::Error> {
        for key in self.rows.get::<Reservations>(&number)?.unwrap_or_default() {
            if self.receipt(key)?.spender == Some(number) {
                self.set_holder(key, None)?;
            }
        }
        self.rows.remove::<Reservations>(number).map(drop)
    }
}
