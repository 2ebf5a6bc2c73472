//! The miners of the last blocks, as nodes count them.

use std::collections::VecDeque;

use bsv_tx::{BlockHash, PublicKey};
use serde::{Deserialize, Serialize};

use super::miner::Place;

/// A miner's share of recent blocks, which nodes call its reputation (`numrecentblocks`). Each node
/// sets its own threshold for a good reputation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reputation {
    /// How many of the last [`Reputation::BLOCKS`] blocks are the miner's. Blocks under miner ids
    /// that were revoked later do not count.
    pub blocks: usize,
    /// Whether all these blocks were seen. If not, the miner may have more.
    pub is_complete: bool,
}

impl Reputation {
    /// The number of blocks that nodes count by default.
    pub const BLOCKS: u32 = 2016;
}

/// The last blocks with a known miner.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RecentBlocks {
    /// The height of the first block that was seen.
    first: Option<u32>,
    /// The height of the last block that was seen.
    last: Option<u32>,
    mined: VecDeque<MinedBlock>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct MinedBlock {
    height: u32,
    block: BlockHash,
    miner: usize,
    miner_id: PublicKey,
}

impl RecentBlocks {
    /// Adds the next block, with its miner and miner id if known.
    pub(super) fn connect(&mut self, place: Place, miner: Option<(usize, PublicKey)>) {
        let Place { block, height } = place;
        self.first.get_or_insert(height);
        self.last = Some(height);
        let is_too_old =
            |mined: &MinedBlock| height.saturating_sub(mined.height) >= Reputation::BLOCKS;
        while self.mined.front().is_some_and(is_too_old) {
            self.mined.pop_front();
        }
        if self.mined.back().is_none_or(|mined| mined.block != block) {
            let mined = |(miner, miner_id)| MinedBlock { height, block, miner, miner_id };
            self.mined.extend(miner.map(mined));
        }
    }

    pub(super) fn disconnect(&mut self, block: BlockHash) {
        self.mined.retain(|mined| mined.block != block);
    }

    /// Stops counting the blocks under these miner ids.
    pub(super) fn forget(&mut self, miner_ids: &[PublicKey]) {
        self.mined.retain(|mined| !miner_ids.contains(&mined.miner_id));
    }

    pub(super) fn reputation(&self, miner: usize) -> Reputation {
        let blocks = self.mined.iter().filter(|mined| mined.miner == miner).count();
        let is_complete = self.first.zip(self.last).is_some_and(|(first, last)| {
            // The first block of a chain, at height 0, has no identity.
            first <= 1 || first.saturating_add(Reputation::BLOCKS) <= last.saturating_add(1)
        });
        Reputation { blocks, is_complete }
    }

    /// Whether all blocks belong to the first `miners`.
    pub(super) fn is_of(&self, miners: usize) -> bool {
        self.mined.iter().all(|mined| mined.miner < miners)
    }
}
