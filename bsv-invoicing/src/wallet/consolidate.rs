//! Consolidation: one transaction turns many small coins into one. Nodes take it without a fee.

use std::sync::Arc;

use super::sending::Plan;
use super::sources::away;
use crate::error::Error;
use crate::ledger::{Refusal, ReserveConsolidation};
use crate::model::outgoing::{OutgoingPayment, OutgoingPurpose, OutgoingState};
use crate::wallet::Wallet;

/// The least number of confirmations of a coin that is consolidated.
const MIN_CONFIRMATIONS: u32 = 6;
/// The least number of coins that are consolidated.
const MIN_COINS: usize = 20;
/// How many consolidations the wallet makes by itself for each new block, at most.
const MAX_AT_ONCE: usize = 10;
/// The longest script that unlocks a coin of the wallet, in bytes.
const UNLOCKING_SCRIPT_LEN: u64 = 107;

impl Wallet {
    /// Consolidates until nothing more is due, or the limit for this block is reached.
    pub(super) async fn consolidate_some(self: &Arc<Self>) -> Result<(), Error> {
        for _ in 0..MAX_AT_ONCE {
            // A consolidation that the node does not take keeps its coins reserved.
            match self.consolidate().await? {
                Some(payment) if payment.state == OutgoingState::Settled => {}
                _ => break,
            }
        }
        Ok(())
    }

    /// Consolidates up to 500 of the smallest coins into one, if at least 20 have 6 confirmations.
    /// A node may require more coins or confirmations. Returns the payment, or `None` if nothing is
    /// due.
    ///
    /// The consolidation goes on even if the caller stops waiting.
    pub async fn consolidate(self: &Arc<Self>) -> Result<Option<OutgoingPayment>, Error> {
        self.check_caught_up().await?;
        self.alone("consolidation", |wallet| async move { wallet.consolidate_alone().await }).await
    }

    async fn consolidate_alone(self: &Arc<Self>) -> Result<Option<OutgoingPayment>, Error> {
        let source = &self.sources()?.operating;
        let policy = source.policy().await.map_err(away)?;
        let rules = policy.consolidation;
        let is_free = rules.min_factor > 0 && rules.max_script_size >= UNLOCKING_SCRIPT_LEN;
        let fee_rate = if is_free { 0 } else { self.sending_fee_rate().await? };
        let least = usize::try_from(rules.min_factor).unwrap_or(usize::MAX).max(MIN_COINS);
        let confirmations = rules.min_confirmations.max(MIN_CONFIRMATIONS);
        let tip = source.tip().await.map_err(away)?;
        let Some(up_to_height) = (tip.height + 1).checked_sub(confirmations) else {
            return Ok(None);
        };
        let plan = Plan::new(OutgoingPurpose::Consolidation, Vec::new(), fee_rate);
        let reserve =
            |_: &Plan, claim, _| ReserveConsolidation { fee_rate, least, up_to_height, claim };
        match self.make(plan, reserve, async |_| Ok(None)).await {
            Err(Error::Refused(Refusal::NothingDue)) => Ok(None),
            made => made.map(Some),
        }
    }
}
