use crate::old_state::chain_view::{BlockRef, Seen};
use crate::old_state::miner_info_record::RevocationRecord;
use bsv_minerid::formats::Succession;

/// How many further blocks make a block final. From then on, coins of its coinbase transaction can
/// be spent.
const FINAL_AFTER: u32 = 100;
/// How many own blocks of an identity may lack its announcement before that is overdue.
const MOST_OWN_BLOCKS: usize = 3;
/// How many blocks of anybody may pass before an announcement is overdue: three days.
const MOST_BLOCKS: u32 = 3 * 144;

/// What blocks of the main chain have shown of an identity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sightings {
    /// The number of the last key that a block has shown. The later keys are announced; all but the
    /// last of them were skipped.
    pub acknowledged: u32,
    /// What blocks that may still leave the main chain have shown, the oldest first.
    pub recent: Vec<Sighting>,
    /// Whether only blocks off the main chain have shown an announcement or the identity itself.
    /// The node has seen these blocks, so its answer does not count until everything is seen again.
    pub is_repeated: bool,
    /// The last block that was read. Announcements are looked for in later blocks.
    pub read_to: Option<BlockRef>,
    /// How long something has been announced without being seen.
    pub unseen: Option<Unseen>,
}

/// What a block has shown of an announcement. If the block leaves the main chain, this is announced
/// again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sighting {
    /// The block.
    pub block: BlockRef,
    /// What the block has shown.
    pub sighted: Sighted,
}

/// What a block can show of announcements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sighted {
    /// An identity that nobody knew before.
    Identity,
    /// A new key.
    Key {
        /// The number of the last key that had been seen before.
        before: u32,
    },
    /// A new revocation key, in the words of documents.
    RevocationKey(Succession),
    /// A revocation.
    Revocation(RevocationRecord),
}

/// How long something has been announced without a block that shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unseen {
    /// The height of the tip at the first look.
    pub since: u32,
    /// The number of blocks since then.
    pub blocks: u32,
    /// The heights of the blocks since then that carry the identity.
    pub own_blocks: Vec<u32>,
}

impl Sightings {
    /// The sightings of an identity whose last publicly known key has this number.
    pub fn of(acknowledged: u32) -> Self {
        Self { acknowledged, recent: Vec::new(), is_repeated: false, read_to: None, unseen: None }
    }

    /// Records that a block has shown an announcement. If no block shows it but the node knows it,
    /// a block that has left the main chain has shown it. Answers whether the announcement was
    /// seen.
    pub fn note(&mut self, seen: Seen, node_says_so: bool, sighted: Sighted) -> bool {
        match seen {
            Seen::In(block) => self.recent.push(Sighting { block, sighted }),
            Seen::Somewhere => {}
            Seen::Nowhere => self.is_repeated |= node_says_so,
        }
        seen != Seen::Nowhere
    }

    /// Forgets what blocks have shown of keys that count no more.
    pub fn forget(&mut self) {
        self.recent.clear();
        self.is_repeated = false;
        self.unseen = None;
    }

    /// Whether later blocks were read than the tip of a chain with this height.
    pub fn reach_beyond(&self, tip: u32) -> bool {
        self.read_to.is_some_and(|read_to| read_to.height > tip)
    }

    /// Records the block up to which announcements were looked for.
    pub fn note_read_to(&mut self, read_to: BlockRef) {
        self.read_to = Some(read_to);
        let can_leave = |sighting: &Sighting| {
            sighting.block.height.saturating_add(FINAL_AFTER) > read_to.height
        };
        self.recent.retain(can_leave);
    }

    /// Records that something is still announced at this tip, and which blocks carry the identity.
    pub fn note_unseen(&mut self, tip: u32, own_blocks: impl Iterator<Item = u32>) {
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
    /// Whether an announcement has taken so long that nodes may be refusing it.
    pub fn is_overdue(&self) -> bool {
        self.own_blocks.len() >= MOST_OWN_BLOCKS || self.blocks >= MOST_BLOCKS
    }
}
