//! Reading blocks again.

use crate::ledger::rows::{ReadRows, Rescan, RescanFrom, Rows};
use crate::ledger::{Books, Command, Query};

/// Requests that blocks are read again from a place on, or records how far that has come.
#[derive(Clone, Copy, Debug)]
pub struct SetRescan {
    /// The place. `None` if all blocks were read.
    pub from: Option<RescanFrom>,
}

impl Command for SetRescan {
    type Answer = ();

    fn run<R: Rows>(&self, books: &mut Books<R>) -> Result<(), R::Error> {
        match &self.from {
            Some(from) => books.rows.put::<Rescan>((), from),
            None => books.rows.remove::<Rescan>(()).map(drop),
        }
    }
}

/// The place from which on blocks must be read again.
#[derive(Clone, Copy, Debug)]
pub struct GetRescan;

impl Query for GetRescan {
    type Answer = Option<RescanFrom>;

    fn run<R: ReadRows>(self, rows: &R) -> Result<Self::Answer, R::Error> {
        rows.get::<Rescan>(&())
    }
}
