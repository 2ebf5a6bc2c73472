//! Payments that come with their ancestors and proofs (BEEF).
//!
//! The node judges everything in the end. The checks here save it work, and they must pass before
//! it is given transactions that do not pay us. They check that the payer's coins are in blocks of
//! our main chain, by Merkle roots that we look up ourselves, or that the node has the transactions
//! although their blocks have left the main chain. They check that the node has none of these coins
//! spent, and that the payment pays the fees of all the ancestors that come with it.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use bsv_network::{NetworkSource, Place};
use bsv_tx::{Beef, BeefVerificationError, MerkleRoot, Tip, Transaction, Txid};
use tokio::time::{Instant, sleep};

use super::recent_tip::RecentTip;
use super::unsent::Unsent;
use crate::error::Error;
use crate::ledger::Refusal;
use crate::ledger::queries::GetShown;
use crate::store::{WalletStore, WalletStoreError};
use crate::wallet::Wallet;
use crate::wallet::mempool_entries::MAX_ANCESTORS;
use crate::wallet::sources::away;

/// How long our node may be behind the payer's node.
const PATIENCE: Duration = Duration::from_secs(2);

impl Wallet {
    /// Checks a payment with its ancestors, and that nothing keeps the network from accepting it.
    /// Returns the ancestors to offer before it, encoded. `None` if the network already has it.
    pub(super) async fn check_beef(
        &self,
        source: &NetworkSource,
        beef: &Beef,
    ) -> Result<Option<Vec<u8>>, Error> {
        let (subject, payment) = (beef.subject_txid(), beef.subject());
        let unmined: Vec<_> = beef.unmined_ancestors().collect();
        if unmined.len() > MAX_ANCESTORS {
            return Err(Error::TooManyAncestors { limit: MAX_ANCESTORS });
        }
        if source.place(&subject).await.map_err(away)? != Place::Nowhere {
            // The payer's wallet has broadcast it itself.
            return Ok(None);
        }
        let mut waiting = self.check_proofs(source, beef).await?;
        let mut unsent = Vec::new();
        let txids: Vec<_> = unmined.iter().map(|(txid, _)| *txid).collect();
        let places = source.places(&txids).await.map_err(away)?;
        for ((txid, ancestor), place) in unmined.into_iter().zip(places) {
            match place {
                // It was mined after the payer's wallet made the BEEF.
                Place::Mined(_) => {}
                Place::Unmined => waiting.push(ancestor),
                Place::Nowhere | Place::Disputed => {
                    waiting.push(ancestor);
                    unsent.push((txid, ancestor));
                }
            }
        }
        let unsent = Unsent::after(unsent, payment);
        unsent.check(source, &self.mempool_entries, self.demand()).await?;
        let mut ancestors = Vec::new();
        waiting.into_iter().for_each(|ancestor| ancestor.encode(&mut ancestors));
        Ok(Some(ancestors))
    }

    /// Checks where the coins of a payment come from. Returns the transactions whose blocks have left
    /// the main chain since the BEEF was made, and that the source has nevertheless.
    pub(super) async fn check_proofs<'b>(
        &self,
        source: &NetworkSource,
        beef: &'b Beef,
    ) -> Result<Vec<&'b Transaction>, Error> {
        let held = self.held(source, beef).await?;
        self.check_blocks(source, beef, &held).await
    }

    /// The wallet's own transactions among those of which the BEEF has only the ids.
    async fn held(
        &self,
        source: &NetworkSource,
        beef: &Beef,
    ) -> Result<HashMap<Txid, Transaction>, Error> {
        let mut held = HashMap::new();
        for txid in beef.txid_only() {
            let shown = match self.store.get(GetShown(txid)).await {
                Err(WalletStoreError::Refused(Refusal::BytesDropped(_))) => {
                    source.transaction(&txid).await.map_err(away)?
                }
                shown => shown?,
            };
            held.extend(shown.map(|transaction| (txid, transaction)));
        }
        Ok(held)
    }

    /// Checks a BEEF by itself, and then against the main chain. If the payer's node knows more
    /// blocks than ours, this waits a little for our node. Returns the transactions whose blocks
    /// have left the main chain since the BEEF was made, and that the node has in its mempool.
    async fn check_blocks<'b>(
        &self,
        source: &NetworkSource,
        beef: &'b Beef,
        held: &HashMap<Txid, Transaction>,
    ) -> Result<Vec<&'b Transaction>, Error> {
        let begun = Instant::now();
        let mut accepted = BTreeSet::new();
        let mut overtaken = Vec::new();
        let mut tip = self.recent_tip.get(source).await?;
        verify(beef, tip, &accepted, held).or_else(ignore_unknown_blocks)?;
        loop {
            for (height, claimed) in beef.claimed_roots() {
                if height > tip.height || accepted.contains(&(height, claimed)) {
                    continue;
                }
                let Some(root) = root_at(source, height).await? else { continue };
                if root != claimed {
                    let claim = (height, claimed);
                    let known = known_to(source, beef, claim).await?;
                    let wrong = BeefVerificationError::WrongRoot { height, root: claimed };
                    overtaken.extend(known.ok_or(wrong)?);
                }
                accepted.insert((height, claimed));
            }
            match verify(beef, tip, &accepted, held) {
                Err(BeefVerificationError::AboveTip { .. }) if begun.elapsed() < PATIENCE => {
                    sleep(RecentTip::AGE).await;
                    tip = self.recent_tip.get(source).await?;
                }
                verified => {
                    verified?;
                    return Ok(overtaken);
                }
            }
        }
    }
}

fn verify(
    beef: &Beef,
    tip: Tip,
    accepted: &BTreeSet<(u32, MerkleRoot)>,
    held: &HashMap<Txid, Transaction>,
) -> Result<(), BeefVerificationError> {
    let has_root = |height, root| accepted.contains(&(height, root)).then_some(true);
    beef.verify(tip, has_root, |txid| held.get(txid))
}

/// Ignores the error that a block is above our tip.
fn ignore_unknown_blocks(error: BeefVerificationError) -> Result<(), BeefVerificationError> {
    match error {
        BeefVerificationError::AboveTip { .. } => Ok(()),
        error => Err(error),
    }
}

/// The transactions in the node's mempool that a BEEF proves by a root at a height. `None` unless
/// the node has all that the root proves, so that it does not matter which block they are in.
async fn known_to<'b>(
    source: &NetworkSource,
    beef: &'b Beef,
    (height, root): (u32, MerkleRoot),
) -> Result<Option<Vec<&'b Transaction>>, Error> {
    let (txids, proved): (Vec<_>, Vec<_>) = beef.proved_by(height, root).unzip();
    let places = source.places(&txids).await.map_err(away)?;
    let is_known = !places.is_empty() && !places.contains(&Place::Nowhere);
    let waiting = proved.into_iter().zip(places);
    let waiting = waiting.filter(|(_, place)| *place == Place::Unmined);
    Ok(is_known.then(|| waiting.map(|(transaction, _)| transaction).collect()))
}

/// The Merkle root of the main chain's block at a height, or `None` if the main chain has no such
/// block now.
async fn root_at(source: &NetworkSource, height: u32) -> Result<Option<MerkleRoot>, Error> {
    let block = source.header_at(height).await.map_err(away)?;
    Ok(block.map(|block| block.header.merkle_root))
}
