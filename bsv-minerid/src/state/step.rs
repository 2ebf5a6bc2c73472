use serde::{Deserialize, Serialize};

use crate::miner_info_script::Revocation;
use crate::state::chain_view::{BlockRef, Found};
use crate::state::key::KeyRecord;
use crate::state::miner_info_record::RevocationKeyRecord;
use crate::succession::Succession;

/// How many further blocks make a block final. From then on, coins of its coinbase transaction can
/// be spent.
const FINAL_AFTER: u32 = 100;

/// A step in the history of an identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Step {
    /// The change.
    pub deed: Deed,
    /// The current key from this step on.
    pub key: KeyRecord,
    /// The chain's view of the step.
    pub seen: Seen,
    /// Whether a document was handed out after this step and before the next one. The documents of
    /// a new and of an upgraded identity count as handed out from the start.
    pub is_handed_out: bool,
}

/// The change that a step makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum Deed {
    /// A new key, from the beginning, an import or a rotation.
    Key {
        /// The number of the key that vouches for it in generation 0.2: its own if it is the first.
        /// Once a block shows the key, it is the previous key of that block's document.
        after: u32,
    },
    /// The upgrade to generation 1.0 of an identity that others may know. Documents announce its
    /// first revocation key, and the last rotation once more.
    Upgraded,
    /// A new revocation key.
    RevocationKey {
        /// What documents say about it until a block shows it.
        announced: Succession,
        /// The key.
        key: RevocationKeyRecord,
    },
    /// A revocation. A partial one brings a new key. A complete one returns to the key that it
    /// began with, because nodes accept it from no other key.
    Revoked(RevocationRecord),
    /// The end of an identity that nobody knows.
    Closed,
}

/// A revocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RevocationRecord {
    /// The revocation in documents.
    pub message: Revocation,
    /// Whether all miner ids are revoked, without a replacement.
    pub is_complete: bool,
    /// Whether the node has accepted it.
    pub is_told: bool,
    /// The number of the key that has signed it: the last one that a block had shown.
    pub miner_id: u32,
    /// The number of the revocation key that has signed it.
    pub revocation_key: u32,
}

/// What the chain shows of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum Seen {
    /// Nobody has a document with it, or the identity has begun anew since then.
    Never,
    /// Somebody has a document with it, which may get into a block.
    HandedOut,
    /// This is the first block of the main chain that shows it.
    In(BlockRef),
    /// This block shows it after another one that has left the main chain. The node has seen both,
    /// so its own record counts only after everything is seen.
    Again(BlockRef),
    /// A block with 100 successors shows it, or one that is not known.
    Final,
    /// Only blocks off the main chain have shown it. The node has seen these blocks, so its own
    /// record does not count.
    Lost,
}

impl Step {
    /// A step of which no block has shown anything.
    pub(crate) fn new(deed: Deed, key: KeyRecord) -> Self {
        Self { deed, key, seen: Seen::Never, is_handed_out: false }
    }

    /// Whether the step brings a new key.
    pub(super) fn is_of_key(&self) -> bool {
        match self.deed {
            Deed::Key { .. } => true,
            Deed::Revoked(revocation) => !revocation.is_complete,
            Deed::Upgraded | Deed::RevocationKey { .. } | Deed::Closed => false,
        }
    }

    pub(super) fn is_complete_revocation(&self) -> bool {
        matches!(self.deed, Deed::Revoked(revocation) if revocation.is_complete)
    }

    /// Notes where the step was found. If no block shows it but the node knows it, a block that has
    /// left the main chain has shown it. Answers whether it was found.
    pub(super) fn note(&mut self, found: Found, node_says_so: bool) -> bool {
        self.seen = match (found, self.seen) {
            (Found::In(block), Seen::Lost) => Seen::Again(block),
            (Found::In(block), _) => Seen::In(block),
            (Found::Somewhere, _) => Seen::Final,
            (Found::Nowhere, _) if node_says_so => Seen::Lost,
            (Found::Nowhere, seen) => seen,
        };
        self.seen.is_shown()
    }
}

impl Seen {
    /// Whether a block of the main chain shows the step.
    pub fn is_shown(self) -> bool {
        matches!(self, Self::In(_) | Self::Again(_) | Self::Final)
    }

    /// Whether blocks off the main chain have shown the step, so that the node's own record does
    /// not count.
    pub(super) fn was_lost(self) -> bool {
        matches!(self, Self::Again(_) | Self::Lost)
    }

    /// The block that shows the step and may still leave the main chain.
    pub fn block(self) -> Option<BlockRef> {
        match self {
            Self::In(block) | Self::Again(block) => Some(block),
            Self::Never | Self::HandedOut | Self::Final | Self::Lost => None,
        }
    }

    /// The same after blocks up to this one were read.
    pub(super) fn at(self, read_to: BlockRef) -> Self {
        match self {
            Self::In(block) if block.height.saturating_add(FINAL_AFTER) <= read_to.height => {
                Self::Final
            }
            seen => seen,
        }
    }

    /// The same after everything was seen: the node's own record counts again.
    pub(super) fn settled(self) -> Self {
        match self {
            Self::Again(block) => Self::In(block),
            Self::Lost => Self::HandedOut,
            seen => seen,
        }
    }
}
