//! The chain was followed up to a block.

use crate::ledger::rows::Order::Ascending;
use crate::ledger::rows::{
    Engine, FollowedBlock, FollowedTip, Immature, Reorganisations, Reorganised, Shallow,
    WalletStoreError, try_all,
};
use crate::ledger::{Books, Command};
use crate::model::receipt::ReceiptKey;
use crate::model::time::Timestamp;

/// How many outputs one step makes spendable, and how many payments of invoices it counts.
const AT_ONCE: usize = 250;

/// Records the block up to which the wallet has followed and read the chain. With this block, the
/// wallet finds a reorganisation even after a long pause. Outputs of coinbase transactions that are
/// old enough now become spendable, and payments of invoices that are deep enough now count, a part of
/// them in each step. A later block finds those that are left too.
#[derive(Clone, Copy, Debug)]
pub struct FollowTip {
    /// The block.
    pub tip: FollowedBlock,
    /// The time.
    pub now: Timestamp,
}

impl Command for FollowTip {
    /// Whether something may be left. The next step with the same block goes on.
    type Answer = bool;

    fn run(&self, books: &mut Books<'_>) -> Result<bool, WalletStoreError> {
        if books.rows.get::<FollowedTip>(&())? != Some(self.tip) {
            books.rows.put::<FollowedTip>((), &self.tip)?;
        }
        let reorganised = books.rows.get::<Reorganisations>(&())?.unwrap_or_default();
        if reorganised.is_under_way {
            let over = Reorganised { is_under_way: false, ..reorganised };
            books.rows.put::<Reorganisations>((), &over)?;
        }
        let last = ReceiptKey { maker: u64::MAX, vout: u32::MAX };
        let old_enough = ..=(self.tip.height, last);
        let matured = books.rows.first::<Immature>(old_enough, Ascending, AT_ONCE)?;
        let are_matured = matured.len() < AT_ONCE;
        try_all(matured, |((height, key), ())| books.mature(height, key))?;
        // What waits for a second service that shows the tip is counted once there is one.
        let are_counted = reorganised.is_confirmed == Some(false)
            || books.count_deep(self.tip.height, self.now)?;
        Ok(!(are_counted && are_matured))
    }
}

impl Books<'_> {
    /// Counts payments of invoices whose blocks are deep enough under a tip of this height. Returns
    /// whether these were all.
    fn count_deep(&mut self, tip: u32, now: Timestamp) -> Result<bool, WalletStoreError> {
        let Some(deep) = tip.checked_sub(self.rules.mined_blocks.saturating_sub(1)) else {
            return Ok(true);
        };
        let are_released = self.release_exposure(deep, AT_ONCE)?;
        let deep = ..=(deep, u64::MAX, u64::MAX);
        let counted = self.rows.first::<Shallow>(deep, Ascending, AT_ONCE)?;
        let are_all = counted.len() < AT_ONCE;
        let at = self.next_event_at(now);
        try_all(counted, |((_, invoice, number), _)| self.count_anew(invoice, number, at))?;
        Ok(are_all && are_released)
    }
}

/// The height up to which the chain was followed.
pub(crate) fn followed_height(rows: &dyn Engine) -> Result<u32, WalletStoreError> {
    Ok(rows.get::<FollowedTip>(&())?.map_or(0, |tip| tip.height))
}
