//! Skipping numbers of keys.

use crate::ledger::rows::{WalletStoreError, WatchBacklog};
use crate::ledger::{Books, Command};
use crate::model::coin::{Chain, KeyPath};

/// Skips numbers of keys of account 0, because somebody may know the keys. The wallet watches them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SkipNumbers {
    /// Skips the numbers of invoices up to this one.
    pub invoices: u32,
    /// Skips the numbers of users up to this one.
    pub users: u32,
    /// Skips this many keys for change.
    pub change: u32,
    /// The last used keys of further accounts. The wallet watches the keys before and after them.
    pub used: Vec<KeyPath>,
}

impl Command for SkipNumbers {
    type Answer = ();

    fn run(&self, books: &mut Books<'_>) -> Result<(), WalletStoreError> {
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
        for key in &self.used {
            books.watch_ahead(KeyPath { index: 0, ..*key })?;
            books.note_used(*key)?;
        }
        Ok(())
    }
}
