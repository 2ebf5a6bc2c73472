//! Numbers of keys are not given out.

use crate::ledger::rows::{Rows, WatchBacklog};
use crate::ledger::{Books, Command};
use crate::model::coin::{Chain, KeyPath};

/// Has numbers of keys of account 0 not given out, since somebody may know the keys. They are watched.
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
        let keys = [
            (Chain::Receive, 1, self.invoices.saturating_add(1)),
            (Chain::Change, 0, self.change),
            (Chain::User, 1, self.users.saturating_add(1)),
        ];
        for (chain, index, end) in keys.into_iter().filter(|(_, index, end)| index < end) {
            books.rows.put::<WatchBacklog>(KeyPath { account: 0, chain, index }, &end)?;
        }
        Ok(())
    }
}
