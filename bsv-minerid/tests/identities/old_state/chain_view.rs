pub use bsv_minerid::store::{BlockRef, ChainView, MinerIdInfo, MinerIdState, Shown};
use bsv_minerid::verify::Claim;
use bsv_tx::PublicKey;

/// Where an announcement was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    Nowhere,
    In(BlockRef),
    /// In a block that was not read.
    Somewhere,
}

pub trait View {
    fn find(&self, node_says_so: bool, says: impl Fn(&Claim) -> bool) -> Seen;
    fn current(&self, key: &PublicKey) -> Option<&MinerIdInfo>;
    fn has_later(&self, key: &PublicKey) -> bool;
    fn in_state(&self, key: &PublicKey, state: MinerIdState) -> Option<&MinerIdInfo>;
}

impl View for ChainView {
    /// Where an identity with this claim was seen. An unreadable identity counts if the node knows
    /// of the announcement.
    fn find(&self, node_says_so: bool, says: impl Fn(&Claim) -> bool) -> Seen {
        let is_it = |shown: &&Shown| shown.claim.as_ref().map_or(node_says_so, &says);
        match self.shown.iter().find(is_it) {
            Some(shown) => Seen::In(shown.block),
            None if self.is_complete || !node_says_so => Seen::Nowhere,
            None => Seen::Somewhere,
        }
    }

    /// The node's knowledge of a key that it considers current.
    fn current(&self, key: &PublicKey) -> Option<&MinerIdInfo> {
        self.in_state(key, MinerIdState::Current)
    }

    /// Whether the node knows a later key than this one. Counts only if blocks are read, because
    /// the older generator does not ask for it.
    fn has_later(&self, key: &PublicKey) -> bool {
        let mut known = self.known.iter();
        self.tip.is_some()
            && known.any(|info| info.miner_id == *key && info.state != MinerIdState::Current)
    }

    fn in_state(&self, key: &PublicKey, state: MinerIdState) -> Option<&MinerIdInfo> {
        self.known.iter().find(|info| info.miner_id == *key && info.state == state)
    }
}
