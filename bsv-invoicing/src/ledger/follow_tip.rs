//! The chain was followed up to a block.

use crate::ledger::rows::Order::Ascending;
use crate::ledger::rows::{
    Engine, FollowedBlock, FollowedTip, Immature, WalletStoreError, try_all,
};
use crate::ledger::{Books, Command};
use crate::model::receipt::ReceiptKey;

/// How many outputs one step makes spendable.
const MATURED_AT_ONCE: usize = 250;

/// Records the block up to which the wallet has followed and read the chain. With this block, the
/// wallet finds a reorganisation even after a long pause. Outputs of coinbase transactions that are
/// old enough now become spendable, a part of them in each step. A later block finds those that are
/// left too.
#[derive(Clone, Copy, Debug)]
pub struct FollowTip {
    /// The block.
    pub tip: FollowedBlock,
}

impl Command for FollowTip {
    /// Whether outputs may be left. The next step with the same block goes on.
    type Answer = bool;

    fn run(&self, books: &mut Books<'_>) -> Result<bool, WalletStoreError> {
        if books.rows.get::<FollowedTip>(&())? != Some(self.tip) {
            books.rows.put::<FollowedTip>((), &self.tip)?;
        }
        let last = ReceiptKey { maker: u64::MAX, vout: u32::MAX };
        let old_enough = ..=(self.tip.height, last);
        let matured = books.rows.first::<Immature>(old_enough, Ascending, MATURED_AT_ONCE)?;
        let is_full = matured.len() == MATURED_AT_ONCE;
        try_all(matured, |((height, key), ())| books.mature(height, key))?;
        Ok(is_full)
    }
}

/// The height up to which the chain was followed.
pub(crate) fn followed_height(rows: &dyn Engine) -> Result<u32, WalletStoreError> {
    Ok(rows.get::<FollowedTip>(&())?.map_or(0, |tip| tip.height))
}
