//! Reading blocks again.

use crate::ledger::rows::{Engine, Rescan, RescanFrom, WalletStoreError};
use crate::ledger::{Books, Command, Query};

/// Requests that blocks are read again from a place on, or records how far that has come. Nothing
/// changes if another request or another reader has changed the place meanwhile.
#[derive(Clone, Copy, Debug)]
pub struct SetRescan {
    /// The place that was read before.
    pub before: Option<RescanFrom>,
    /// The new place. `None` if all blocks were read.
    pub from: Option<RescanFrom>,
}

impl Command for SetRescan {
    /// Whether the place is the new one.
    type Answer = bool;

    fn run(&self, books: &mut Books<'_>) -> Result<bool, WalletStoreError> {
        if GetRescan.run(&books.rows)? != self.before {
            return Ok(false);
        }
        match &self.from {
            Some(from) => books.rows.put::<Rescan>((), from)?,
            None => drop(books.rows.remove::<Rescan>(())?),
        }
        Ok(true)
    }
}

/// The place from which on blocks must be read again.
#[derive(Clone, Copy, Debug)]
pub struct GetRescan;

impl Query for GetRescan {
    type Answer = Option<RescanFrom>;

    fn run(self, rows: &dyn Engine) -> Result<Self::Answer, WalletStoreError> {
        rows.get::<Rescan>(&())
    }
}
