//! Numbers of keys are not given out.

use crate::ledger::rows::Rows;
use crate::ledger::{Books, Command};

/// Has numbers of keys not given out, since somebody may know the keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SkipNumbers {
    /// Those of invoices up to this.
    pub invoices: u32,
    /// Those of users up to this.
    pub users: u32,
    /// How many of change.
    pub change: u32,
}

impl Command for SkipNumbers {
    type Answer = ();

    fn run<R: Rows>(&self, books: &mut Books<R>) -> Result<(), R::Error> {
        let figures = &mut books.figures;
        figures.last_invoice = figures.last_invoice.max(self.invoices.into());
        figures.last_user = figures.last_user.max(self.users.into());
        figures.last_change = figures.last_change.max(self.change.into());
        Ok(())
    }
}
