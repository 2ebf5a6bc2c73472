//! Reorganisations: finding the blocks that have left the main chain.

use bsv_network::{ChainTip, NetworkSource};
use bsv_tx::BlockHash;

use crate::error::Error;
use crate::ledger::queries::{GetBlocks, GetFollowedTip};
use crate::ledger::rows::FollowedBlock;
use crate::ledger::{FollowReorganisation, ForgetBlock};
use crate::model::transaction::BlockPlace;
use crate::store::WalletStore;
use crate::wallet::Wallet;
use crate::wallet::sources::away;

/// How many followed blocks that hold transactions of the wallet are checked again for each new tip.
const CHECKED_AGAIN: u32 = 10;
/// How many transactions of a lost block are changed in one step. Other commands wait for the step.
const FORGOTTEN_AT_ONCE: usize = 250;

/// The relation of the node's main chain to the last followed block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fork {
    /// The main chain still holds the block.
    None,
    /// The main chain has other blocks after this height.
    After(u32),
    /// The node follows another chain, or is still reading blocks. A block that it lacks proves
    /// nothing.
    OtherChain,
}

impl Fork {
    /// The height after which the main chain has changed.
    pub(super) fn height(self) -> Option<u32> {
        match self {
            Self::After(height) => Some(height),
            Self::None | Self::OtherChain => None,
        }
    }
}

/// What the node knows about the last followed block.
enum Place {
    /// The node knows the block, and this is its relation to the main chain.
    Known(Fork),
    /// The node does not know the block and has not reached its height, because it is still reading
    /// blocks.
    NotYetKnown,
    /// The node does not know the block.
    Unknown,
}

impl Wallet {
    /// Finds and records the blocks that have left the main chain since it was followed up to
    /// `last`. If `last` is not known, the stored block takes its place.
    pub(super) async fn forget_lost_blocks(
        &self,
        source: &NetworkSource,
        tip: ChainTip,
        last: Option<ChainTip>,
    ) -> Result<Fork, Error> {
        let last = match last {
            Some(ChainTip { height, hash, .. }) => Some(FollowedBlock { height, hash }),
            None => self.store.get(GetFollowedTip).await?,
        };
        let place = match last {
            Some(last) => place(source, tip, last).await?,
            // A version that did not store the block made the store.
            None => Place::Known(Fork::After(0)),
        };
        match place {
            Place::Known(fork) => {
                // The books may have blocks after the last one, if the process ended while it read
                // them. A server whose node lags behind may have recorded a proof of a block that
                // this node has given up since.
                let followed = last.map_or(0, |last| last.height);
                let height = fork.height().unwrap_or(followed);
                let height = height.min(followed.saturating_sub(CHECKED_AGAIN));
                if fork != Fork::None {
                    self.store.execute(FollowReorganisation).await?;
                }
                let (_, lost) = self.blocks_after(source, height).await?;
                self.forget_blocks(&lost, tip.height).await?;
                Ok(fork)
            }
            Place::NotYetKnown => {
                tracing::warn!(
                    "the node has not come to the block up to which the wallet has followed the \
                     chain"
                );
                Ok(Fork::OtherChain)
            }
            Place::Unknown => {
                self.store.execute(FollowReorganisation).await?;
                let (kept, lost) = self.blocks_after(source, 0).await?;
                let is_other_chain = kept == 0;
                self.forget_blocks(&lost, if is_other_chain { 0 } else { tip.height }).await?;
                if is_other_chain {
                    tracing::error!(
                        "the node follows another chain than before: it knows neither the block up \
                         to which the wallet has followed the chain, nor any block with a \
                         transaction of the wallet ({} such blocks became unknown)",
                        lost.len()
                    );
                }
                Ok(if is_other_chain { Fork::OtherChain } else { Fork::After(0) })
            }
        }
    }

    /// Checks the blocks after a height that hold transactions of the wallet. Returns how many are
    /// in the main chain, and those that are not.
    async fn blocks_after(
        &self,
        source: &NetworkSource,
        height: u32,
    ) -> Result<(usize, Vec<BlockPlace>), Error> {
        let (mut kept, mut lost) = (0, Vec::new());
        // Nothing is known of earlier blocks.
        let height = height.max(source.begins_at());
        for block in self.store.list(GetBlocks(height)).await? {
            match is_in_main_chain(source, &block.hash).await? {
                true => kept += 1,
                false => lost.push(block),
            }
        }
        Ok((kept, lost))
    }

    /// Records that blocks have left the main chain. Up to a height, the main chain has others
    /// instead. A node that is still reading blocks may have given up those above.
    async fn forget_blocks(&self, lost: &[BlockPlace], replaced_to: u32) -> Result<(), Error> {
        if !lost.is_empty() {
            self.store.execute(FollowReorganisation).await?;
        }
        for block in lost {
            tracing::warn!("block {} at height {} left the chain", block.hash, block.height);
            self.forget_block(*block, block.height <= replaced_to).await?;
        }
        Ok(())
    }

    async fn forget_block(&self, block: BlockPlace, is_replaced: bool) -> Result<(), Error> {
        let mut next = Some(0);
        while let Some(after) = next {
            let now = self.now();
            let limit = FORGOTTEN_AT_ONCE;
            let may_have_rivals = !self.sources()?.following.excludes_rivals();
            let forget = ForgetBlock { block, is_replaced, may_have_rivals, after, limit, now };
            next = self.store.execute(forget).await?;
        }
        Ok(())
    }
}

/// Finds where the main chain has left the chain of a block, however deep.
async fn place(source: &NetworkSource, tip: ChainTip, last: FollowedBlock) -> Result<Place, Error> {
    let mut hash = last.hash;
    let mut is_first = true;
    loop {
        let block = source.header(&hash).await.map_err(away)?;
        let Some(block) = block else {
            if is_first && source.may_begin_with(last.height, &last.hash) {
                // A node was followed up to this block. Services know only later ones.
                return Ok(Place::Known(Fork::None));
            }
            let is_behind = tip.height < last.height;
            return Ok(if is_behind { Place::NotYetKnown } else { Place::Unknown });
        };
        if block.in_main_chain {
            let fork = if is_first { Fork::None } else { Fork::After(block.height) };
            return Ok(Place::Known(fork));
        }
        hash = block.header.previous_block;
        is_first = false;
    }
}

async fn is_in_main_chain(source: &NetworkSource, block: &BlockHash) -> Result<bool, Error> {
    let block = source.header(block).await.map_err(away)?;
    Ok(block.is_some_and(|block| block.in_main_chain))
}

#[cfg(test)]
mod tests {
    use std::error::Error;
    use std::sync::Arc;
    use std::time::Duration;

    use bsv_network::Services;
    use bsv_network::broadcasters::{Broadcaster, BroadcasterSet, Dialect};
    use bsv_network::headers::{Checkpoint, HeaderFile, HeaderFollower, SourceNames};
    use bsv_tx::Network;
    use reqwest::Client;

    use super::*;

    /// Blocks of the main network, and of a network for tests.
    const GENESIS: &str = "000000000019d6689c085ae165831e934ff763ae46a2a6c172b3f1b60a8ce26f";
    const OF_TESTS: &str = "0f9188f13cb7b2c71f2a335e3a4fc328bf5beb436012afca590b1a11466e2206";

    #[tokio::test]
    async fn a_block_before_all_headers_stays_unless_its_chain_is_another_one()
    -> Result<(), Box<dyn Error>> {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let directory = tempfile::tempdir()?;
        let network = Network::Livenet;
        let checkpoint = Checkpoint::of(network);
        let file = HeaderFile::open(&directory.path().join("headers"), network, &checkpoint)?;
        let names = SourceNames { urls: Vec::new(), peers: vec!["127.0.0.1:1".to_owned()] };
        let headers = HeaderFollower::new(Arc::new(file), network, names, Client::new());
        let broadcaster = Broadcaster::new(Dialect::Arc, Client::new(), "https://x.test");
        let set = BroadcasterSet::new(vec![broadcaster], 1)?;
        let services = Services::new(set, Arc::new(headers), Duration::from_secs(1), 100);
        let source = NetworkSource::services(Arc::new(services));
        let tip = source.tip().await?;
        let stays = async |height, hash: &str| {
            let last = FollowedBlock { height, hash: hash.parse().unwrap() };
            matches!(place(&source, tip, last).await, Ok(Place::Known(Fork::None)))
        };
        let tip_hash = tip.hash.to_string();
        assert!(stays(tip.height, &tip_hash).await);
        assert!(stays(tip.height - 1000, GENESIS).await);
        assert!(!stays(tip.height - 1000, OF_TESTS).await);
        assert!(!stays(tip.height - 1, GENESIS).await, "there is another block");
        assert!(!stays(tip.height + 1, GENESIS).await);
        Ok(())
    }
}
