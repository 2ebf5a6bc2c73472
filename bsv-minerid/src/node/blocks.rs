//! Reading the identities in the last blocks of the main chain.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use bsv_network::{ChainTip, NodeError, NodeRpc};
use bsv_tx::BlockHash;

use crate::node::data_cache::DataCache;
use crate::node::gather::gather;
use crate::output_script::is_identity;
use crate::state::{BlockRef, ChainView, Shown};
use crate::verify::{Claim, verify};

/// How many blocks are read if it is unknown which ones were read before. An older announcement may
/// be missed.
const FIRST: u32 = 6;
/// How many blocks are read again each time. A node lists the identity of a block a moment after it
/// has the block, and blocks can leave the chain.
const AGAIN: u32 = 6;
/// The most blocks that are read. For an older announcement, the node's answer counts.
const MOST: usize = 2_016;
/// How many blocks are remembered.
const REMEMBERED: usize = 16;

/// The newest blocks that were read, the newest first.
#[derive(Debug, Default)]
pub(crate) struct ReadBlocks(Mutex<VecDeque<ReadBlock>>);

#[derive(Clone, Debug)]
struct ReadBlock {
    block: BlockRef,
    previous: BlockHash,
    /// The block's identity, if there is one that nodes may accept. An unreadable claim is `None`.
    identity: Option<Option<Claim>>,
}

impl ReadBlocks {
    /// Adds to a view what the blocks after `read_to` show, up to the tip.
    pub(crate) async fn view(
        &self,
        node: &NodeRpc,
        tip: &ChainTip,
        read_to: Option<BlockRef>,
        view: &mut ChainView,
    ) -> Result<(), NodeError> {
        let mut floor = read_to.map_or(tip.height.saturating_sub(FIRST), |block| block.height);
        view.is_complete = read_to.is_some();
        view.tip = Some(tip.height);
        view.read_to = read_to;
        let mut hash = tip.hash;
        for count in 0.. {
            let Some(read) = self.block(node, &hash).await? else {
                view.is_complete = false;
                break;
            };
            if read.block.height.saturating_add(AGAIN) == tip.height {
                view.read_to = Some(read.block);
            }
            if read.block.height == floor && read_to.is_some_and(|known| known != read.block) {
                // The block that was read last has left the chain, and perhaps earlier ones too.
                floor = floor.saturating_sub(AGAIN);
            }
            if read.block.height <= floor || read.block.height == 0 {
                break;
            }
            if count == MOST {
                view.is_complete = false;
                break;
            }
            hash = read.previous;
            let ReadBlock { block, identity, .. } = read;
            view.shown.extend(identity.map(|claim| Shown { block, claim }));
        }
        view.shown.reverse();
        Ok(())
    }

    async fn block(
        &self,
        node: &NodeRpc,
        hash: &BlockHash,
    ) -> Result<Option<ReadBlock>, NodeError> {
        if let Some(known) = self.known(hash) {
            return Ok(Some(known));
        }
        let Some(read) = read(node, hash).await? else { return Ok(None) };
        self.remember(&read);
        Ok(Some(read))
    }

    fn remember(&self, read: &ReadBlock) {
        // The claim may become readable: the node's index of transactions may lag behind.
        if read.identity == Some(None) {
            return;
        }
        let mut blocks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let place = blocks.partition_point(|known| known.block.height > read.block.height);
        blocks.insert(place, read.clone());
        blocks.truncate(REMEMBERED);
    }

    fn known(&self, hash: &BlockHash) -> Option<ReadBlock> {
        let blocks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        blocks.iter().find(|read| read.block.hash == *hash).cloned()
    }
}

async fn read(node: &NodeRpc, hash: &BlockHash) -> Result<Option<ReadBlock>, NodeError> {
    let Some(found) = node.block_coinbase(hash).await? else { return Ok(None) };
    let mut outputs = found.coinbase.outputs.iter();
    let identity = match outputs.any(|output| is_identity(output.locking_script.as_bytes())) {
        true => identity(node, hash).await?,
        false => None,
    };
    let block = BlockRef { height: found.info.height, hash: *hash };
    Ok(Some(ReadBlock { block, previous: found.info.header.previous_block, identity }))
}

async fn identity(node: &NodeRpc, block: &BlockHash) -> Result<Option<Option<Claim>>, NodeError> {
    let Some(gathered) = gather(node, block, &DataCache::default()).await? else { return Ok(None) };
    let report = verify(&gathered.proof, &gathered.evidence);
    let may_be_taken = report.passes_node() != Some(false);
    Ok(may_be_taken.then(|| report.claim().cloned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Blocks are read from the tip downwards.
    #[test]
    fn the_newest_blocks_are_remembered() {
        let blocks = ReadBlocks::default();
        let hash = |height: u32| BlockHash::from_bytes([height as u8; 32]);
        for height in (1..=40).rev().chain([41]) {
            let block = BlockRef { height, hash: hash(height) };
            blocks.remember(&ReadBlock { block, previous: hash(height - 1), identity: None });
        }
        let known = |height: &u32| blocks.known(&hash(*height)).is_some();
        assert_eq!((1..=41).filter(known).collect::<Vec<_>>(), (26..=41).collect::<Vec<_>>());
    }

    #[test]
    fn a_block_whose_identity_cannot_be_read_yet_is_read_again() {
        let blocks = ReadBlocks::default();
        let [empty, unread] = [(1, None), (2, Some(None))].map(|(byte, identity)| {
            let hash = BlockHash::from_bytes([byte; 32]);
            ReadBlock { block: BlockRef { height: 9, hash }, previous: hash, identity }
        });
        blocks.remember(&empty);
        blocks.remember(&unread);
        assert!(blocks.known(&empty.block.hash).is_some());
        assert!(blocks.known(&unread.block.hash).is_none());
    }
}
