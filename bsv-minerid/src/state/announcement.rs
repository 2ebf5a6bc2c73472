use std::cmp::Reverse;

use bsv_tx::BlockHash;

use crate::state::chain_view::{BlockRef, ChainView, Found, Shown};
use crate::state::key::KeyRecord;
use crate::state::miner_id_info::MinerIdState;
use crate::state::record::{Exposure, IdentityRecord};
use crate::state::revocation_keys::Roll;
use crate::state::sighting::Unseen;
use crate::state::step::{Deed, Seen, Step};
use crate::succession::Succession;
use crate::verify::Claim;

/// What documents announce until a block shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Announcement {
    /// A new key.
    Rotation,
    /// A new revocation key.
    RevocationKey,
    /// The revocation of some miner ids, and the key that replaces them.
    PartialRevocation,
    /// The revocation of all miner ids.
    CompleteRevocation,
}

impl Announcement {
    /// The announcement in words.
    pub fn in_words(self) -> &'static str {
        match self {
            Self::Rotation => "the rotation",
            Self::RevocationKey => "the new revocation key",
            Self::PartialRevocation | Self::CompleteRevocation => "the revocation",
        }
    }
}

impl IdentityRecord {
    /// The announcements that no block has shown yet.
    pub fn announcements(&self) -> Vec<Announcement> {
        if self.is_closed() {
            return Vec::new();
        }
        let of_keys = match self.revocation() {
            Some(revocation) if revocation.is_complete => Some(Announcement::CompleteRevocation),
            Some(_) => Some(Announcement::PartialRevocation),
            None if self.acknowledged_key() != self.current_key() => Some(Announcement::Rotation),
            None => None,
        };
        let of_revocation_keys = self.announced_roll().map(|_| Announcement::RevocationKey);
        of_keys.into_iter().chain(of_revocation_keys).collect()
    }

    /// Whether blocks have to be read for the identity: something is announced, blocks with
    /// announcements may still leave the chain, or the identity was handed out and not seen yet.
    pub fn awaits_blocks(&self) -> bool {
        !self.announcements().is_empty()
            || self.steps.iter().any(|step| step.seen.block().is_some())
            || self.exposure() == Exposure::HandedOut
    }

    /// Updates the identity from what a node and its chain show. Only the identity's own
    /// announcements have an effect.
    pub(super) fn observe(&mut self, view: &ChainView) {
        self.lose(&view.left);
        self.see_identity(view);
        if self.exposure() == Exposure::Known {
            self.see_announcements(view);
        }
        match view.read_to {
            // A block before the ones that were read may show the identity.
            Some(_) if self.exposure() == Exposure::HandedOut && !view.is_complete => {
                self.read_to = None;
            }
            Some(read_to) => self.note_read_to(read_to),
            None => {}
        }
        if self.announcements().is_empty() {
            self.unseen = None;
            if self.exposure() != Exposure::HandedOut {
                self.steps.iter_mut().for_each(|step| step.seen = step.seen.settled());
            }
        } else if let Some(tip) = view.tip {
            self.note_unseen(tip, view);
        }
    }

    /// Notes what only blocks off the main chain have shown: the steps in these blocks, and the keys
    /// after them. A complete revocation continues without regard to the blocks before it, because
    /// the node was told.
    fn lose(&mut self, left: &[BlockHash]) {
        let from = self.steps.iter().rposition(Step::is_complete_revocation);
        let mut is_key_lost = false;
        for step in &mut self.steps[from.unwrap_or_default()..] {
            let has_left = step.seen.block().is_some_and(|block| left.contains(&block.hash));
            let is_after = is_key_lost && step.is_of_key() && step.seen.is_shown();
            if has_left || is_after {
                step.seen = Seen::Lost;
                is_key_lost |= step.is_of_key();
            }
        }
    }

    /// Checks whether an identity that was handed out is known. An identity is known once a block
    /// of the main chain shows it with a key that names itself as the previous one. The current key
    /// becomes the first in two cases: only blocks off the main chain have shown such a key, or no
    /// block has and a block shows a later key, which nodes ignore.
    fn see_identity(&mut self, view: &ChainView) {
        if self.exposure() != Exposure::HandedOut {
            return;
        }
        let is_known = !view.known.is_empty() && !self.is_repeated();
        let acknowledged = *self.acknowledged_key();
        let begun = self.newest_begun(view);
        let found = match begun {
            // The first block, unless an earlier one was not read.
            Some((_, block)) if view.is_complete || self.is_repeated() => Found::In(block),
            Some(_) => Found::Somewhere,
            None => view.find(is_known, |_| false),
        };
        let first = begun.map_or(acknowledged, |(key, _)| key);
        if self.note(&first, found, is_known) {
            if first != acknowledged {
                self.begin_with(&first);
            }
        } else if view.is_complete && (self.is_lost() || self.is_ignored(view)) {
            let current = *self.current_key();
            self.begin_with(&current);
        }
    }

    /// The newest key that blocks show as the first, and its first block.
    fn newest_begun(&self, view: &ChainView) -> Option<(KeyRecord, BlockRef)> {
        let keys = self.keys();
        let begun = |claim: &Claim| {
            let mut keys = keys.iter().rev();
            keys.find(|key| [claim.miner_id, claim.previous_miner_id] == [key.public_key; 2])
        };
        let begun_with = |shown: &Shown| Some((*begun(shown.claim.as_ref()?)?, shown.block));
        let shown = view.shown.iter().filter_map(begun_with);
        shown.min_by_key(|(key, block)| (Reverse(key.number), block.height))
    }

    /// Whether blocks show the current key, but the node knows no key of the identity.
    fn is_ignored(&self, view: &ChainView) -> bool {
        let current = self.current_key().public_key;
        let mut claims = view.shown.iter().filter_map(|shown| shown.claim.as_ref());
        view.known.is_empty() && claims.any(|claim| claim.miner_id == current)
    }

    /// Notes where a key was found. Answers whether it was found.
    fn note(&mut self, key: &KeyRecord, found: Found, node_says_so: bool) -> bool {
        let place = self.place_of(key.number);
        place.is_some_and(|place| self.steps[place].note(found, node_says_so))
    }

    fn see_announcements(&mut self, view: &ChainView) {
        let keys = self.unacknowledged_keys();
        let (Some(statement), [acknowledged, announced @ ..]) = (self.revocation_key(), &keys[..])
        else {
            return self.see_coinbase_keys(&keys, view);
        };
        // A block may show a document from before a revocation that holds the roll back.
        let roll = self.announced_roll();
        self.see_keys(&statement, acknowledged, announced, view);
        if let Some(roll) = roll {
            self.see_revocation_key(&roll, &keys, view);
        }
        self.see_complete_revocation(&statement, view);
    }

    /// Checks which announced keys blocks have shown. Documents of generation 0.2 name the current
    /// key and its previous key in any case. If a block shows a key that was skipped, that key
    /// vouches for the current one.
    fn see_coinbase_keys(&mut self, keys: &[KeyRecord], view: &ChainView) {
        for key in keys.iter().skip(1) {
            let is_current = key == self.current_key();
            let previous = if is_current { self.previous_key() } else { self.acknowledged_key() };
            let KeyRecord { number: after, public_key: previous } = *previous;
            let info = view.current(&key.public_key);
            let is_taken = info.is_some_and(|info| info.previous_miner_id == Some(previous));
            let decides = !self.is_repeated();
            if decides && !is_taken {
                continue;
            }
            let found = view.find(is_taken && decides, |claim| {
                (claim.miner_id, claim.previous_miner_id) == (key.public_key, previous)
            });
            if self.note(key, found, is_taken && decides)
                && let Some(place) = self.place_of(key.number)
            {
                self.steps[place].deed = Deed::Key { after };
                if !is_current {
                    self.last_step_mut().deed = Deed::Key { after: key.number };
                }
            }
        }
    }

    /// Checks which announced keys were seen. A block must show the key and its previous key, and
    /// the node must agree. The node agrees if it calls the new key current and names the same
    /// previous key. The node also agrees if it calls the previous key rotated or revoked, and the
    /// new key names itself as the previous one: then later documents have followed. Such documents,
    /// if this copy does not know them, come from the copy that this is a backup of.
    fn see_keys(
        &mut self,
        statement: &Succession,
        acknowledged: &KeyRecord,
        announced: &[KeyRecord],
        view: &ChainView,
    ) {
        let decides = self.node_decides(statement, acknowledged, view);
        let mut previous = acknowledged.public_key;
        for key in announced {
            let names_both = |claim: &Claim| {
                claim.miner_id == key.public_key && claim.previous_miner_id == previous
            };
            let info = view.current(&key.public_key);
            let is_taken = info.and_then(|info| info.previous_miner_id).is_some_and(|named| {
                named == previous || (named == key.public_key && view.has_later(&previous))
            });
            if decides && !is_taken {
                continue;
            }
            let found = view.find(decides && is_taken, names_both);
            if self.note(key, found, decides && is_taken) {
                previous = key.public_key;
            }
        }
    }

    /// Checks whether the announced revocation key was seen. A block must show the new and the old
    /// revocation key, and the node must name both. If blocks are read, it is enough that the node
    /// names the new one, since later documents may have followed. `keys` are the last key that was
    /// seen, and those after it.
    fn see_revocation_key(&mut self, roll: &Roll, keys: &[KeyRecord], view: &ChainView) {
        let announced = roll.announced;
        let decides = self.node_decides(&announced, &keys[0], view);
        let is_taken = keys.iter().filter_map(|key| view.current(&key.public_key)).any(|info| {
            info.revocation_key == Some(announced.current)
                && info
                    .previous_revocation_key
                    .is_some_and(|named| named == announced.previous || view.tip.is_some())
        });
        if decides && !is_taken {
            return;
        }
        let names_both = |claim: &Claim| {
            let keys = claim.revocation_keys;
            keys.is_some_and(|keys| {
                (keys.previous, keys.current) == (announced.previous, announced.current)
            })
        };
        let found = view.find(decides && is_taken, names_both);
        self.steps[roll.place].note(found, decides && is_taken);
    }

    /// Whether the node's answer counts. The answer does not count if a block off the main chain has
    /// shown an announcement to the node. The answer also does not count if blocks are read and the
    /// node does not know the key that vouches, or knows another revocation key than those that
    /// documents name. In these cases the blocks alone decide.
    fn node_decides(
        &self,
        statement: &Succession,
        acknowledged: &KeyRecord,
        view: &ChainView,
    ) -> bool {
        let is_of_record = |key| key == statement.previous || key == statement.current;
        let info = view.known.iter().find(|info| info.miner_id == acknowledged.public_key);
        let agrees = info.is_some_and(|info| info.revocation_key.is_none_or(is_of_record));
        !self.is_repeated() && (agrees || !view.is_complete)
    }

    /// Checks whether a complete revocation was seen. A block must show it too, because a node
    /// considers it done as soon as it is told.
    fn see_complete_revocation(&mut self, statement: &Succession, view: &ChainView) {
        let is_unseen = self.last_step().is_complete_revocation() && !self.is_closed();
        if !is_unseen {
            return;
        }
        let current = *self.current_key();
        let miner_id = current.public_key;
        let revokes_all = |claim: &Claim| {
            claim.compromised_miner_id.is_some()
                && (claim.miner_id, claim.previous_miner_id) == (miner_id, miner_id)
        };
        let is_revoked = view.in_state(&miner_id, MinerIdState::Revoked).is_some();
        let found = view.find(is_revoked, revokes_all);
        let is_taken = is_revoked || !self.node_decides(statement, &current, view);
        if matches!(found, Found::In(_)) && is_taken {
            self.last_step_mut().note(found, false);
        }
    }

    /// Notes the block up to which announcements were looked for.
    fn note_read_to(&mut self, read_to: BlockRef) {
        self.read_to = Some(read_to);
        self.steps.iter_mut().for_each(|step| step.seen = step.seen.at(read_to));
    }

    /// Notes that something is still announced at this tip, and which blocks carry the identity.
    fn note_unseen(&mut self, tip: u32, view: &ChainView) {
        let keys = self.keys();
        let is_own = |claim: &Claim| keys.iter().any(|own| own.public_key == claim.miner_id);
        let own_blocks = view.shown.iter().filter(|shown| shown.claim.as_ref().is_some_and(is_own));
        let own_blocks = own_blocks.map(|shown| shown.block.height);
        self.unseen.get_or_insert(Unseen::since(tip)).note(tip, own_blocks);
    }
}
