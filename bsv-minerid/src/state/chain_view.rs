use bsv_tx::{BlockHash, PublicKey};

use crate::state::miner_id_info::{MinerIdInfo, MinerIdState};
use crate::verify::Claim;

/// A block of the main chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockRef {
    /// Its height; the first block has height 0.
    pub height: u32,
    /// Its hash.
    pub hash: BlockHash,
}

/// What a node, and the blocks of its main chain, show of an identity.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChainView {
    /// What the node knows of miner ids. Blocks that have left the main chain count there.
    pub known: Vec<MinerIdInfo>,
    /// The identities in the blocks that were read.
    pub shown: Vec<Shown>,
    /// Whether all blocks since the announcement were read. If not, the node is believed without a block.
    pub is_complete: bool,
    /// The height of the tip, if blocks were read.
    pub tip: Option<u32>,
    /// The last block that was read.
    pub read_to: Option<BlockRef>,
    /// The blocks that have left the main chain, of those in which something was seen.
    pub left: Vec<BlockHash>,
}

/// The identity in a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// The block.
    pub block: BlockRef,
    /// What the document says; `None` where the node cannot tell, which needs its index of transactions.
    pub claim: Option<Claim>,
}

/// Where something that is announced was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    Nowhere,
    In(BlockRef),
    /// In a block that was not read.
    Somewhere,
}

impl ChainView {
    /// Where an identity was seen that says this. One that cannot be read counts if the node says so, too.
    pub(super) fn find(&self, node_says_so: bool, says: impl Fn(&Claim) -> bool) -> Seen {
        let is_it = |shown: &&Shown| shown.claim.as_ref().map_or(node_says_so, &says);
        match self.shown.iter().find(is_it) {
            Some(shown) => Seen::In(shown.block),
            None if self.is_complete || !node_says_so => Seen::Nowhere,
            None => Seen::Somewhere,
        }
    }

    /// What the node knows of a key, if it calls it current.
    pub(super) fn current(&self, key: &PublicKey) -> Option<&MinerIdInfo> {
        self.in_state(key, MinerIdState::Current)
    }

    /// Whether the node knows a later key than this one. The older generator does not ask, so that it counts only where
    /// blocks are read too.
    pub(super) fn has_later(&self, key: &PublicKey) -> bool {
        let mut known = self.known.iter();
        self.tip.is_some()
            && known.any(|info| info.miner_id == *key && info.state != MinerIdState::Current)
    }

    pub(super) fn in_state(&self, key: &PublicKey, state: MinerIdState) -> Option<&MinerIdInfo> {
        self.known.iter().find(|info| info.miner_id == *key && info.state == state)
    }
}
