//! Who has mined the last blocks, as nodes count them.

use std::collections::VecDeque;

use bsv_tx::{BlockHash, PublicKey};
use serde::{Deserialize, Serialize};

use super::miner::Place;
use super::text;

/// How often a miner was seen of late: what nodes call its reputation (`numrecentblocks`), which is
/// good from a number on that each node sets for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reputation {
    /// How many of the last [`Reputation::BLOCKS`] blocks are the miner's. Those of miner ids that
    /// were revoked later do not count.
    pub blocks: usize,
    /// Whether all of these blocks were seen, so that there cannot be more of the miner's.
    pub is_complete: bool,
}

impl Reputation {
    /// How many of the last blocks nodes look at, if they are not told otherwise.
    pub const BLOCKS: u32 = 2016;
}

/// The last blocks that have a miner.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RecentBlocks {
    /// The height of the first block of all that were seen.
    first: Option<u32>,
    /// The height of the last one.
    last: Option<u32>,
    mined: VecDeque<MinedBlock>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct MinedBlock {
    height: u32,
    #[serde(with = "text::as_text")]
    block: BlockHash,
    miner: usize,
    #[serde(with = "text::as_text")]
    miner_id: PublicKey,
}

impl RecentBlocks {
    /// Takes note of the next block, and of who has mined it under which miner id, if that is known.
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

    /// Takes note that blocks under these miner ids do not count.
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

    /// Whether all blocks are those of the first `miners`.
    pub(super) fn is_of(&self, miners: usize) -> bool {
        self.mined.iter().all(|mined| mined.miner < miners)
    }
}
