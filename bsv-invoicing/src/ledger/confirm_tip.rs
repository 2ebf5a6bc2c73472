//! Whether more than one service shows the tip of the chain.

use crate::ledger::follow_tip::followed_height;
use crate::ledger::rows::{Engine, Reorganisations, Reorganised, WalletStoreError};
use crate::ledger::{Books, Command, Query};

/// Records whether a second service is at the tip or above it. Headers prove work, and not that blocks
/// are valid: while only one service shows the tip, no payment begins to count because of the depth of
/// its block. What counts already goes on to count. [`FollowTip`](super::FollowTip) counts afterwards
/// what has waited. `None` if a node validates blocks.
#[derive(Clone, Copy, Debug)]
pub struct ConfirmTip(pub Option<bool>);

impl Command for ConfirmTip {
    type Answer = ();

    fn run(&self, books: &mut Books<'_>) -> Result<(), WalletStoreError> {
        let reorganised = books.rows.get::<Reorganisations>(&())?.unwrap_or_default();
        if reorganised.is_confirmed == self.0 {
            return Ok(());
        }
        let reorganised = Reorganised { is_confirmed: self.0, ..reorganised };
        books.rows.put::<Reorganisations>((), &reorganised)
    }
}

impl Books<'_> {
    /// Whether services, and no node, show the chain.
    pub(crate) fn has_services(&self) -> Result<bool, WalletStoreError> {
        let reorganised = self.rows.get::<Reorganisations>(&())?.unwrap_or_default();
        Ok(reorganised.is_confirmed.is_some())
    }

    /// Whether a block at this height is deep enough for payments that need one.
    pub(crate) fn is_deep(&self, height: u32) -> Result<bool, WalletStoreError> {
        let Reorganised { is_under_way, is_confirmed, .. } =
            self.rows.get::<Reorganisations>(&())?.unwrap_or_default();
        let more = self.rules.mined_blocks.saturating_sub(1);
        if more == 0 && is_confirmed.is_none() {
            return Ok(true);
        }
        let may_count = !is_under_way && is_confirmed != Some(false);
        Ok(may_count && followed_height(&self.rows)? >= height.saturating_add(more))
    }
}

/// Whether only one service shows the tip.
#[derive(Clone, Copy, Debug)]
pub struct IsTipUnconfirmed;

impl Query for IsTipUnconfirmed {
    type Answer = bool;

    fn run(self, rows: &dyn Engine) -> Result<bool, WalletStoreError> {
        let reorganised = rows.get::<Reorganisations>(&())?.unwrap_or_default();
        Ok(reorganised.is_confirmed == Some(false))
    }
}
