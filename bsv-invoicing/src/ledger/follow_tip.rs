//! The chain was followed up to a block.

use crate::ledger::rows::{FollowedBlock, FollowedTip, Immature, Rows};
use crate::ledger::{Books, Command};
use crate::model::receipt::ReceiptKey;

/// Records the block up to which the wallet has followed and read the chain. With this block, the
/// wallet finds a reorganisation even after a long pause. Outputs of coinbase transactions that are
/// old enough now become spendable.
#[derive(Clone, Copy, Debug)]
pub struct FollowTip {
    /// The block.
    pub tip: FollowedBlock,
}

impl Command for FollowTip {
    type Answer = ();

    fn run<R: Rows>(&self, books: &mut Books<R>) -> Result<(), R::Error> {
        if books.rows.get::<FollowedTip>(&())? != Some(self.tip) {
            books.rows.put::<FollowedTip>((), &self.tip)?;
        }
        let last = ReceiptKey { maker: u64::MAX, vout: u32::MAX };
        for ((height, key), ()) in books.rows.range::<Immature>(..=(self.tip.height, last))? {
            books.mature(height, key)?;
        }
        Ok(())
    }
}
