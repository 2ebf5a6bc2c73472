//! The chain was followed up to a block.

use crate::ledger::rows::{FollowedBlock, FollowedTip, Immature, Rows};
use crate::ledger::{Books, Command};
use crate::model::receipt::ReceiptKey;

/// Notes up to which block the chain was followed and read, so that a reorganisation is found however long ago
/// that was. What coinbase transactions made long enough before can be spent from then on.
#[derive(Clone, Copy, Debug)]
pub struct FollowTip {
    /// The block.
    pub tip: FollowedBlock,
}

impl Command for FollowTip {
    type Answer = ();

    fn run<R: Rows>(&self, books: &mut Books<R>) -> Result<(), R::Error> {
        books.rows.put::<FollowedTip>((), &self.tip)?;
        let last = ReceiptKey { maker: u64::MAX, vout: u32::MAX };
        for ((height, key), ()) in books.rows.range::<Immature>(..=(self.tip.height, last))? {
            books.mature(height, key)?;
        }
        Ok(())
    }
}
