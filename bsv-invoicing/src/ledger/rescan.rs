//! Blocks are to be read once more.

use crate::ledger::rows::{ReadRows, Rescan, RescanFrom, Rows};
use crate::ledger::{Books, Command, Query};

/// Has blocks read once more from a place on, or notes how far that has come.
#[derive(Clone, Copy, Debug)]
pub struct SetRescan {
    /// From where on; `None` once all were read.
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

/// From where on blocks are to be read once more.
#[derive(Clone, Copy, Debug)]
pub struct GetRescan;

impl Query for GetRescan {
    type Answer = Option<RescanFrom>;

    fn run<R: ReadRows>(self, rows: &R) -> Result<Self::Answer, R::Error> {
        rows.get::<Rescan>(&())
    }
}
