use serde::{Deserialize, Serialize};

use crate::state::chain_view::BlockRef;

/// How many own blocks of an identity may lack its announcement before that is overdue.
const MOST_OWN_BLOCKS: usize = 3;
/// How many blocks of anybody may pass before an announcement is overdue: three days.
const MOST_BLOCKS: u32 = 3 * 144;

/// What a block has shown of an identity. If the block leaves the main chain, this is announced
/// again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sighting {
    /// The block.
    pub block: BlockRef,
    /// What the block has shown.
    pub sighted: Sighted,
}

/// What a block can show of an identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sighted {
    /// An identity that nobody knew before.
    Identity,
    /// A new key.
    Key,
    /// A new revocation key.
    RevocationKey,
    /// A revocation.
    Revocation,
}

/// How long something has been announced without a block that shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Unseen {
    /// The height of the tip at the first look.
    pub since: u32,
    /// The number of blocks since then.
    pub blocks: u32,
    /// The heights of the blocks since then that carry the identity.
    pub own_blocks: Vec<u32>,
}

impl Unseen {
    /// Something is announced at this tip for the first time.
    pub(super) fn since(tip: u32) -> Self {
        Self { since: tip, blocks: 0, own_blocks: Vec::new() }
    }

    /// Records that something is still announced at this tip, and which blocks carry the identity.
    pub(super) fn note(&mut self, tip: u32, own_blocks: impl Iterator<Item = u32>) {
        self.blocks = tip.saturating_sub(self.since);
        for height in own_blocks.filter(|height| *height > self.since) {
            if self.own_blocks.len() < MOST_OWN_BLOCKS && !self.own_blocks.contains(&height) {
                self.own_blocks.push(height);
            }
        }
    }

    /// Whether an announcement has taken so long that nodes may be refusing it.
    pub fn is_overdue(&self) -> bool {
        self.own_blocks.len() >= MOST_OWN_BLOCKS || self.blocks >= MOST_BLOCKS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_announcement_is_overdue_after_three_own_blocks_or_three_days() {
        for (own_blocks, tip, expected, is_overdue) in [
            (&[][..], 931, &[][..], false),
            (&[], 932, &[], true),
            // A block at the height of the first look may be older than the announcement.
            (&[499, 500, 501, 502], 502, &[501, 502], false),
            (&[501, 502, 502, 501], 502, &[501, 502], false),
            (&[501, 502, 503], 503, &[501, 502, 503], true),
            (&[501, 502, 503, 504], 504, &[501, 502, 503], true),
        ] {
            let mut unseen = Unseen::since(500);
            unseen.note(tip, own_blocks.iter().copied());
            assert_eq!((unseen.since, unseen.blocks), (500, tip - 500));
            assert_eq!(unseen.own_blocks, expected);
            assert_eq!(unseen.is_overdue(), is_overdue, "{own_blocks:?} {tip}");
        }
    }
}
