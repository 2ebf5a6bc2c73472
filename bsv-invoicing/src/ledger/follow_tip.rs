//! The chain was followed up to a block.

use crate::ledger::rows::{FollowedBlock, FollowedTip, Rows};
use crate::ledger::{Books, Command};

/// Notes up to which block the chain was followed, so that a reorganisation is found however long ago that
/// was.
#[derive(Clone, Copy, Debug)]
pub struct FollowTip {
    /// The block.
    pub tip: FollowedBlock,
}

impl Command for FollowTip {
    type Answer = ();

    fn run<R: Rows>(&self, books: &mut Books<R>) -> Result<(), R::Error> {
        books.rows.put::<FollowedTip>((), &self.tip)
    }
}
