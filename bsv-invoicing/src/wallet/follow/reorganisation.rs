//! Which blocks have left the main chain.

use bsv_network::{ChainTip, NodeRpc};
use bsv_tx::BlockHash;

use crate::error::Error;
use crate::ledger::ForgetBlock;
use crate::ledger::queries::{GetBlocks, GetFollowedTip};
use crate::ledger::rows::FollowedBlock;
use crate::store::WalletStore;
use crate::wallet::Wallet;
use crate::wallet::node::away;

/// What the node's main chain is to the block up to which it was followed.
enum Fork {
    /// It still holds the block.
    None,
    /// It left the chain of the block after this height.
    After(u32),
    /// The node does not know the block, and has not come to its height: it is still reading blocks.
    NotYetKnown,
    /// The node does not know the block.
    Unknown,
}

impl<S: WalletStore> Wallet<S> {
    /// Notices which blocks have left the main chain since it was followed up to `last` or, if that is not
    /// known, to the block that is stored. Answers whether the node follows another chain altogether.
    pub(super) async fn forget_lost_blocks(
        &self,
        node: &NodeRpc,
        tip: ChainTip,
        last: Option<ChainTip>,
    ) -> Result<bool, Error> {
        let last = match last {
            Some(ChainTip { height, hash, .. }) => Some(FollowedBlock { height, hash }),
            None => self.store.get(GetFollowedTip).await?,
        };
        let fork = match last {
            Some(last) => fork(node, tip, last).await?,
            // The store is of a version that did not keep it.
            None => Fork::After(0),
        };
        match fork {
            Fork::None => Ok(false),
            Fork::After(height) => {
                self.forget_blocks_after(node, height).await?;
                Ok(false)
            }
            Fork::NotYetKnown => {
                tracing::warn!("the node has not come to the block up to which it was followed");
                Ok(true)
            }
            Fork::Unknown => {
                let (kept, lost) = self.forget_blocks_after(node, 0).await?;
                let is_other_chain = kept == 0;
                if is_other_chain {
                    tracing::error!(
                        "the node follows another chain than before: it knows neither the block up \
                         to which it was followed nor any that holds a transaction of the wallet \
                         ({lost} more are missing now)"
                    );
                }
                Ok(is_other_chain)
            }
        }
    }

    /// Looks for the blocks that hold transactions of the wallet. Answers how many are in the main chain,
    /// and how many are not.
    async fn forget_blocks_after(
        &self,
        node: &NodeRpc,
        height: u32,
    ) -> Result<(usize, usize), Error> {
        let (mut kept, mut lost) = (0, 0);
        for block in self.store.list(GetBlocks(height)).await? {
            if is_in_main_chain(node, &block.hash).await? {
                kept += 1;
                continue;
            }
            lost += 1;
            tracing::warn!("block {} of height {} left the chain", block.hash, block.height);
            self.store.execute(ForgetBlock { block, now: self.now() }).await?;
        }
        Ok((kept, lost))
    }
}

/// Finds where the main chain has left the chain of a block, however long ago.
async fn fork(node: &NodeRpc, tip: ChainTip, last: FollowedBlock) -> Result<Fork, Error> {
    let mut hash = last.hash;
    let mut is_first = true;
    loop {
        let block = node.block_header(&hash).await.map_err(away)?;
        let Some(block) = block else {
            return Ok(if tip.height < last.height { Fork::NotYetKnown } else { Fork::Unknown });
        };
        if block.in_main_chain {
            return Ok(if is_first { Fork::None } else { Fork::After(block.height) });
        }
        hash = block.header.previous_block;
        is_first = false;
    }
}

async fn is_in_main_chain(node: &NodeRpc, block: &BlockHash) -> Result<bool, Error> {
    let block = node.block_header(block).await.map_err(away)?;
    Ok(block.is_some_and(|block| block.in_main_chain))
}
