use bsv_tx::{BlockHash, PublicKey};
use serde::{Deserialize, Serialize};

use crate::state::miner_id_info::{MinerIdInfo, MinerIdState};
use crate::verify::Claim;

/// A block of the main chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BlockRef {
    /// The height. The first block has height 0.
    pub height: u32,
    /// The hash.
    pub hash: BlockHash,
}

/// What a node and the blocks of its main chain show of an identity.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChainView {
    /// What the node knows of miner ids, including what it knows from blocks that have left the
    /// main chain.
    pub known: Vec<MinerIdInfo>,
    /// The identities in the blocks that were read.
    pub shown: Vec<Shown>,
    /// Whether all blocks since the announcement were read. If not, the node's answer counts
    /// without a block.
    pub is_complete: bool,
    /// The height of the tip, if blocks were read.
    pub tip: Option<u32>,
    /// The last block that was read.
    pub read_to: Option<BlockRef>,
    /// Those blocks with earlier sightings that have left the main chain.
    pub left: Vec<BlockHash>,
}

/// The identity in a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// The block.
    pub block: BlockRef,
    /// The contents of the document, or `None` if the node cannot provide them because its index of
    /// transactions lacks them.
    pub claim: Option<Claim>,
}

/// Where an announcement was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    Nowhere,
    In(BlockRef),
    /// In a block that was not read.
    Somewhere,
}

impl ChainView {
    /// Where an identity with this claim was found. An unreadable identity counts if the node knows
    /// of the announcement.
    pub(super) fn find(&self, node_says_so: bool, says: impl Fn(&Claim) -> bool) -> Found {
        let is_it = |shown: &&Shown| shown.claim.as_ref().map_or(node_says_so, &says);
        match self.shown.iter().find(is_it) {
            Some(shown) => Found::In(shown.block),
            None if self.is_complete || !node_says_so => Found::Nowhere,
            None => Found::Somewhere,
        }
    }

    /// The node's knowledge of a key that it considers current.
    pub(super) fn current(&self, key: &PublicKey) -> Option<&MinerIdInfo> {
        self.in_state(key, MinerIdState::Current)
    }

    /// Whether the node knows a later key than this one. Counts only if blocks are read, because
    /// the older generator does not ask for it.
    pub(super) fn has_later(&self, key: &PublicKey) -> bool {
        let mut known = self.known.iter();
        self.tip.is_some()
            && known.any(|info| info.miner_id == *key && info.state != MinerIdState::Current)
    }

    pub(super) fn in_state(&self, key: &PublicKey, state: MinerIdState) -> Option<&MinerIdInfo> {
        self.known.iter().find(|info| info.miner_id == *key && info.state == state)
    }
}
