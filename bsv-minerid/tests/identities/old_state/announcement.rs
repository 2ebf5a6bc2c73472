use std::cmp::Reverse;

use bsv_tx::{BlockHash, PublicKey};

use crate::old_state::chain_view::{ChainView, Seen, Shown, View};
use crate::old_state::miner_info_record::MinerInfoRecord;
use crate::old_state::record::{Exposure, IdentityRecord, Protocol};
use crate::old_state::sightings::{Sighted, Sighting, Sightings};
use bsv_minerid::formats::Succession;
use bsv_minerid::store::KeyRecord;
use bsv_minerid::store::MinerIdState;
use bsv_minerid::verify::Claim;

pub use bsv_minerid::store::Announcement;

impl IdentityRecord {
    /// The announcements that no block has shown yet.
    pub fn announcements(&self) -> Vec<Announcement> {
        let mut announcements = Vec::new();
        if self.is_closed() {
            return announcements;
        }
        let is_rotated = self.sightings.acknowledged != self.current_key().number;
        let own = self.miner_info();
        match own.and_then(|own| own.revocation) {
            Some(revocation) if revocation.is_complete => {
                announcements.push(Announcement::CompleteRevocation);
            }
            Some(_) => announcements.push(Announcement::PartialRevocation),
            None if is_rotated => announcements.push(Announcement::Rotation),
            None => {}
        }
        if own.is_some_and(|own| !own.later_revocation_keys.is_empty()) {
            announcements.push(Announcement::RevocationKey);
        }
        announcements
    }

    /// The last key that a block has shown, followed by the announced keys.
    pub fn unacknowledged_keys(&self) -> &[KeyRecord] {
        let acknowledged = self.sightings.acknowledged;
        let place = self.keys.iter().position(|key| key.number == acknowledged);
        &self.keys[place.unwrap_or(self.keys.len() - 1)..]
    }

    /// Whether blocks have to be read for the identity: something is announced, blocks with
    /// announcements may still leave the chain, or the identity was handed out and not seen yet.
    pub fn awaits_blocks(&self) -> bool {
        !self.announcements().is_empty()
            || !self.sightings.recent.is_empty()
            || self.exposure == Exposure::HandedOut
    }

    /// Whether only blocks that have left the main chain have shown the identity.
    pub fn is_lost(&self) -> bool {
        self.exposure == Exposure::HandedOut && self.sightings.is_repeated
    }

    /// Whether documents can have named this revocation key.
    pub fn has_revocation_key(&self, key: &PublicKey) -> bool {
        let Some(own) = self.miner_info() else { return false };
        let sighted = self.sightings.recent.iter().filter_map(|sighting| match &sighting.sighted {
            Sighted::RevocationKey(announced) => Some(announced),
            Sighted::Identity | Sighted::Key { .. } | Sighted::Revocation(_) => None,
        });
        let announced = std::iter::once(&own.revocation_key).chain(&own.later_revocation_keys);
        announced.chain(sighted).any(|known| known.previous == *key || known.current == *key)
    }

    /// Updates the identity from what a node and its chain show. Only the identity's own
    /// announcements have an effect.
    pub fn observe(&mut self, view: &ChainView) {
        self.forget_blocks(&view.left);
        self.see_identity(view);
        let keys = self.unacknowledged_keys().to_vec();
        let current = *self.current_key();
        let allowed = super::allowed();
        let is_guarded = allowed && self.exposure != Exposure::Known;
        let IdentityRecord { sightings, protocol, .. } = self;
        match protocol {
            _ if is_guarded => {}
            Protocol::Vctx(_) => self.see_coinbase_keys(view),
            Protocol::MinerInfo(record) => {
                see_keys(record, sightings, &keys, view);
                see_revocation_key(record, sightings, &keys, view);
                see_revocation(record, sightings, &current, view);
            }
        }
        match view.read_to {
            // A block before the ones that were read may show the identity.
            Some(_) if self.exposure == Exposure::HandedOut && !view.is_complete => {
                self.sightings.read_to = None;
            }
            Some(read_to) => self.sightings.note_read_to(read_to),
            None => {}
        }
        if self.announcements().is_empty() {
            self.sightings.unseen = None;
            self.sightings.is_repeated = self.is_lost();
        } else if let Some(tip) = view.tip {
            let is_own = |key| self.keys.iter().any(|own| own.public_key == key);
            let own_blocks = view
                .shown
                .iter()
                .filter(|shown| shown.claim.as_ref().is_some_and(|claim| is_own(claim.miner_id)));
            let own_blocks: Vec<_> = own_blocks.map(|shown| shown.block.height).collect();
            self.sightings.note_unseen(tip, own_blocks.into_iter());
        }
    }

    /// Announces again what only blocks off the main chain have shown.
    ///
    /// The last key that the main chain knows vouches for the current one again. A partial
    /// revocation by a key that the main chain no longer knows becomes a rotation, since nodes
    /// accept no revocation by such a key. A complete revocation continues, because the node was
    /// told.
    fn forget_blocks(&mut self, left: &[BlockHash]) {
        let mut revoked_in = None;
        let is_lost = |sighting: &Sighting| left.contains(&sighting.block.hash);
        while let Some(place) = self.sightings.recent.iter().rposition(is_lost) {
            let Sighting { block, sighted } = self.sightings.recent[place];
            let revocation = self.miner_info().and_then(|own| own.revocation);
            let is_complete = revocation.is_some_and(|revocation| revocation.is_complete);
            if is_complete && !matches!(sighted, Sighted::Revocation(seen) if seen.is_complete) {
                return;
            }
            self.sightings.recent.remove(place);
            self.sightings.is_repeated = true;
            if sighted == Sighted::Identity {
                self.exposure = Exposure::HandedOut;
            }
            if let Protocol::MinerInfo(own) = &mut self.protocol {
                match sighted {
                    Sighted::Revocation(_) => revoked_in = Some(block),
                    _ if revoked_in != Some(block) && revocation.is_some() => own.end_revocation(),
                    _ => {}
                }
                match sighted {
                    Sighted::Identity | Sighted::Key { .. } => {}
                    Sighted::RevocationKey(announced) => own.repeat_revocation_key(announced),
                    Sighted::Revocation(revocation) => own.repeat_revocation(revocation),
                }
            }
            if let Sighted::Key { before } = sighted {
                self.sightings.acknowledged = before;
                if let Protocol::Vctx(_) = self.protocol {
                    // Others do not know the later keys, one of which may vouch for the current
                    // key.
                    self.vouching = Some(before);
                }
            }
        }
    }

    /// Checks whether an identity that was handed out is known. An identity is known once a block
    /// of the main chain shows it with a key that names itself as the previous one. The current key
    /// becomes the first in two cases: only blocks off the main chain have shown such a key, or no
    /// block has and a block shows a later key, which nodes ignore.
    fn see_identity(&mut self, view: &ChainView) {
        if self.exposure != Exposure::HandedOut {
            return;
        }
        let is_known = !view.known.is_empty() && !self.sightings.is_repeated;
        let begun = |claim: &Claim| {
            let mut keys = self.keys.iter().rev();
            keys.find(|key| [claim.miner_id, claim.previous_miner_id] == [key.public_key; 2])
        };
        let begun_with = |shown: &Shown| Some((*begun(shown.claim.as_ref()?)?, shown.block));
        let shown = view.shown.iter().filter_map(begun_with);
        let newest = shown.min_by_key(|(key, block)| (Reverse(key.number), block.height));
        let seen = match newest {
            Some((_, block))
                if view.is_complete || super::allowed() && self.sightings.is_repeated =>
            {
                Seen::In(block)
            }
            Some(_) => Seen::Somewhere,
            None => view.find(is_known, |_| false),
        };
        if self.sightings.note(seen, is_known, Sighted::Identity) {
            self.exposure = Exposure::Known;
            if let Some((key, _)) = newest
                && key.number != self.sightings.acknowledged
            {
                self.begin_with(&key);
            }
        } else if view.is_complete && (self.is_lost() || self.is_ignored(view)) {
            let current = *self.current_key();
            self.begin_with(&current);
            if let Protocol::MinerInfo(own) = &mut self.protocol
                && own.revocation.is_some_and(|revocation| !revocation.is_complete)
            {
                own.end_revocation();
            }
        }
    }

    /// Whether blocks show the current key, but the node knows no key of the identity.
    fn is_ignored(&self, view: &ChainView) -> bool {
        let current = self.current_key().public_key;
        let mut claims = view.shown.iter().filter_map(|shown| shown.claim.as_ref());
        view.known.is_empty() && claims.any(|claim| claim.miner_id == current)
    }

    /// Checks which announced keys blocks have shown. Documents of generation 0.2 name the current
    /// key and its previous key in any case. If a block shows a key that was skipped, that key
    /// vouches for the current one.
    fn see_coinbase_keys(&mut self, view: &ChainView) {
        for key in self.unacknowledged_keys().to_vec().into_iter().skip(1) {
            let before = self.sightings.acknowledged;
            let is_current = key == *self.current_key();
            let vouching = if is_current { self.previous_key().number } else { before };
            let Some(previous) = self.key_numbered(vouching).map(|key| key.public_key) else {
                continue;
            };
            let info = view.current(&key.public_key);
            let is_taken = info.is_some_and(|info| info.previous_miner_id == Some(previous));
            let decides = !self.sightings.is_repeated;
            if decides && !is_taken {
                continue;
            }
            let seen = view.find(is_taken && decides, |claim| {
                (claim.miner_id, claim.previous_miner_id) == (key.public_key, previous)
            });
            if self.sightings.note(seen, is_taken && decides, Sighted::Key { before }) {
                self.sightings.acknowledged = key.number;
                if !is_current {
                    self.vouching = Some(key.number);
                }
            }
        }
    }
}

/// Checks which announced keys were seen. A block must show the key and its previous key, and the
/// node must agree. The node agrees if it calls the new key current and names the same previous
/// key. The node also agrees if it calls the previous key rotated or revoked, and the new key names
/// itself as the previous one: then later documents have followed. Such documents, if this copy
/// does not know them, come from the copy that this is a backup of. `keys` are the last key that
/// was seen, and those after it.
fn see_keys(
    record: &MinerInfoRecord,
    sightings: &mut Sightings,
    keys: &[KeyRecord],
    view: &ChainView,
) {
    let [acknowledged, announced @ ..] = keys else { return };
    let decides = node_decides(record, sightings, acknowledged, view);
    let mut previous = acknowledged.public_key;
    for key in announced {
        let names_both =
            |claim: &Claim| claim.miner_id == key.public_key && claim.previous_miner_id == previous;
        let info = view.current(&key.public_key);
        let is_taken = info.and_then(|info| info.previous_miner_id).is_some_and(|named| {
            named == previous || (named == key.public_key && view.has_later(&previous))
        });
        if decides && !is_taken {
            continue;
        }
        let seen = view.find(decides && is_taken, names_both);
        let sighted = Sighted::Key { before: sightings.acknowledged };
        if sightings.note(seen, decides && is_taken, sighted) {
            sightings.acknowledged = key.number;
            previous = key.public_key;
        }
    }
}

/// Checks whether the announced revocation key was seen. A block must show the new and the old
/// revocation key, and the node must name both. If blocks are read, it is enough that the node
/// names the new one, since later documents may have followed.
fn see_revocation_key(
    record: &mut MinerInfoRecord,
    sightings: &mut Sightings,
    keys: &[KeyRecord],
    view: &ChainView,
) {
    let announced = record.revocation_key;
    let [acknowledged, ..] = keys else { return };
    if !record.announces_revocation_key() {
        return;
    }
    let decides = node_decides(record, sightings, acknowledged, view);
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
    let seen = view.find(decides && is_taken, names_both);
    if sightings.note(seen, decides && is_taken, Sighted::RevocationKey(announced)) {
        record.follow_revocation_key();
    }
}

/// Whether the node's answer counts. The answer does not count if a block off the main chain has
/// shown the announcement to the node. The answer also does not count if blocks are read and the
/// node does not know the key that vouches, or knows another revocation key. In these cases the
/// blocks alone decide.
fn node_decides(
    record: &MinerInfoRecord,
    sightings: &Sightings,
    acknowledged: &KeyRecord,
    view: &ChainView,
) -> bool {
    let Succession { previous, current, .. } = record.revocation_key;
    let is_of_record = |key| key == previous || key == current;
    let info = view.known.iter().find(|info| info.miner_id == acknowledged.public_key);
    let agrees = info.is_some_and(|info| info.revocation_key.is_none_or(is_of_record));
    !sightings.is_repeated && (agrees || !view.is_complete)
}

/// Checks whether a revocation was seen. A partial revocation is seen with the key that replaces
/// the revoked ones. For a complete revocation, a block must show it too, because a node considers
/// it done as soon as it is told.
fn see_revocation(
    record: &mut MinerInfoRecord,
    sightings: &mut Sightings,
    current: &KeyRecord,
    view: &ChainView,
) {
    let Some(revocation) = record.revocation else { return };
    let miner_id = current.public_key;
    let sighted = Sighted::Revocation(revocation);
    if !revocation.is_complete {
        let is_seen = sightings.acknowledged == current.number;
        let is_current = |claim: &Claim| claim.miner_id == miner_id;
        if is_seen {
            sightings.note(view.find(true, is_current), false, sighted);
            record.end_revocation();
        }
        return;
    }
    let revokes_all = |claim: &Claim| {
        claim.compromised_miner_id.is_some()
            && (claim.miner_id, claim.previous_miner_id) == (miner_id, miner_id)
    };
    let is_revoked = view.in_state(&miner_id, MinerIdState::Revoked).is_some();
    let seen = view.find(is_revoked, revokes_all);
    let is_taken = is_revoked || !node_decides(record, sightings, current, view);
    if matches!(seen, Seen::In(_)) && is_taken && !record.is_closed {
        record.is_closed = sightings.note(seen, false, sighted);
    }
}
