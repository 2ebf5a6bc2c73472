use crate::state::chain_view::{BlockRef, Seen};
use crate::state::miner_info_record::RevocationRecord;
use crate::succession::Succession;

/// After how many blocks on top of it a block counts as one that never leaves the main chain: coins of coinbase
/// transactions can be spent from there on.
const FINAL_AFTER: u32 = 100;
/// How many blocks of its own an identity may announce something in vain.
const MOST_OWN_BLOCKS: usize = 3;
/// In how many blocks of anybody, which are three days.
const MOST_BLOCKS: u32 = 3 * 144;

/// What blocks of the main chain have shown of an identity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sightings {
    /// The number of the last key that was seen in a block. Those after it are announced; all but
    /// the last of these were passed over.
    pub acknowledged: u32,
    /// What was seen in blocks that may still leave the main chain, the oldest first.
    pub recent: Vec<Sighting>,
    /// Whether only blocks that have left the main chain have shown what is announced, or the identity itself. The node
    /// has seen them, so that its word does not count until all is seen again.
    pub is_repeated: bool,
    /// The last block that was read. What is announced is looked for in those after it.
    pub read_to: Option<BlockRef>,
    /// Since when something is announced in vain.
    pub unseen: Option<Unseen>,
}

/// What a block has shown of what was announced, which is announced again if the block leaves the main chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sighting {
    /// The block.
    pub block: BlockRef,
    /// What it has shown.
    pub sighted: Sighted,
}

/// What a block can show of what was announced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sighted {
    /// The identity, which nobody knew before.
    Identity,
    /// A new key.
    Key {
        /// The number of the last key that had been seen before.
        before: u32,
    },
    /// A new revocation key, and what documents say of it.
    RevocationKey(Succession),
    /// A revocation.
    Revocation(RevocationRecord),
}

/// For how long something is announced that no block was seen to show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unseen {
    /// The height of the tip when that was looked for first.
    pub since: u32,
    /// How many blocks have come since then.
    pub blocks: u32,
    /// The heights of those among them that carry the identity.
    pub own_blocks: Vec<u32>,
}

impl Sightings {
    /// Of an identity whose last key that others can know has this number.
    pub fn of(acknowledged: u32) -> Self {
        Self { acknowledged, recent: Vec::new(), is_repeated: false, read_to: None, unseen: None }
    }

    /// Notes what a block has shown, or that none has though the node says so: then it was a block that has left the main
    /// chain. Answers whether it was seen at all.
    pub(super) fn note(&mut self, seen: Seen, node_says_so: bool, sighted: Sighted) -> bool {
        match seen {
            Seen::In(block) => self.recent.push(Sighting { block, sighted }),
            Seen::Somewhere => {}
            Seen::Nowhere => self.is_repeated |= node_says_so,
        }
        seen != Seen::Nowhere
    }

    /// Notes up to which block it was looked for what is announced.
    pub(super) fn note_read_to(&mut self, read_to: BlockRef) {
        self.read_to = Some(read_to);
        let can_leave = |sighting: &Sighting| {
            sighting.block.height.saturating_add(FINAL_AFTER) > read_to.height
        };
        self.recent.retain(can_leave);
    }

    /// Notes that something is still announced at this tip, and which blocks carry the identity.
    pub(super) fn note_unseen(&mut self, tip: u32, own_blocks: impl Iterator<Item = u32>) {
        let unseen =
            self.unseen.get_or_insert(Unseen { since: tip, blocks: 0, own_blocks: vec![] });
        unseen.blocks = tip.saturating_sub(unseen.since);
        for height in own_blocks.filter(|height| *height > unseen.since) {
            if unseen.own_blocks.len() < MOST_OWN_BLOCKS && !unseen.own_blocks.contains(&height) {
                unseen.own_blocks.push(height);
            }
        }
    }
}

impl Unseen {
    /// Whether it takes so long that nodes may refuse what is announced.
    pub fn is_overdue(&self) -> bool {
        self.own_blocks.len() >= MOST_OWN_BLOCKS || self.blocks >= MOST_BLOCKS
    }
}
