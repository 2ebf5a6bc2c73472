use bsv_tx::PublicKey;

use crate::state::miner_info_record::RevocationKeyRecord;
use crate::state::record::IdentityRecord;
use crate::state::step::{Deed, Seen};
use crate::succession::Succession;

/// A step that announces a revocation key.
pub(super) struct Roll {
    /// The place of the step.
    pub(super) place: usize,
    /// What documents say about the key until a block shows it.
    pub(super) announced: Succession,
    /// The key.
    pub(super) key: RevocationKeyRecord,
}

/// The revocation keys of generation 1.0. Each one follows once a block has shown the one before.
impl IdentityRecord {
    fn rolls(&self) -> impl DoubleEndedIterator<Item = Roll> {
        let first = self.miner_info().map(|own| own.first_revocation_key);
        self.steps.iter().enumerate().filter_map(move |(place, step)| match step.deed {
            Deed::Upgraded => first.map(|key| Roll { place, announced: key.itself, key }),
            Deed::RevocationKey { announced, key } => Some(Roll { place, announced, key }),
            Deed::Key { .. } | Deed::Revoked(_) | Deed::Closed => None,
        })
    }

    fn unseen_rolls(&self) -> impl Iterator<Item = Roll> {
        self.rolls().filter(|roll| !self.steps[roll.place].seen.is_shown())
    }

    /// The revocation key that documents announce, or will announce after the revocation: nodes
    /// accept no revocation together with a new revocation key.
    pub(super) fn announced_roll(&self) -> Option<Roll> {
        self.unseen_rolls().next()
    }

    /// The revocation key that nodes know: the last that a block has shown.
    pub fn known_revocation_key(&self) -> Option<RevocationKeyRecord> {
        let is_shown = |roll: &Roll| self.steps[roll.place].seen.is_shown();
        let shown = self.rolls().take_while(is_shown).last();
        Some(shown.map_or(self.miner_info()?.first_revocation_key, |roll| roll.key))
    }

    /// Whether nodes know the revocation key with this number, and no other one.
    pub(crate) fn knows_revocation_key(&self, number: u32) -> bool {
        let is_lost =
            |roll: Roll| roll.key.number == number && self.steps[roll.place].seen == Seen::Lost;
        self.known_revocation_key().is_some_and(|known| known.number == number)
            && !self.rolls().any(is_lost)
    }

    /// The revocation key with this number.
    #[cfg(feature = "node")]
    pub(crate) fn revocation_key_numbered(&self, number: u32) -> Option<PublicKey> {
        let first = self.miner_info().map(|own| own.first_revocation_key);
        let mut keys = first.into_iter().chain(self.rolls().map(|roll| roll.key));
        keys.find(|key| key.number == number).map(|key| key.itself.current)
    }

    /// What documents say about the revocation key.
    pub fn revocation_key(&self) -> Option<Succession> {
        let known = self.known_revocation_key()?.itself;
        let roll = self.announced_roll().filter(|_| self.revocation().is_none());
        Some(roll.map_or(known, |roll| roll.announced))
    }

    /// The number of the newest revocation key, whose private half is in a separate keystore.
    pub fn revocation_key_number(&self) -> Option<u32> {
        let newest = self.rolls().next_back().map(|roll| roll.key);
        Some(newest.unwrap_or(self.miner_info()?.first_revocation_key).number)
    }

    /// The revocation keys that can still be used, with their numbers: the one that nodes know, and
    /// the announced ones.
    pub fn useful_revocation_keys(&self) -> Vec<(u32, PublicKey)> {
        let announced = self.unseen_rolls().filter(|roll| roll.announced.is_change());
        let keys = self.known_revocation_key().into_iter().chain(announced.map(|roll| roll.key));
        keys.map(|key| (key.number, key.itself.current)).collect()
    }

    /// Whether documents can have named this revocation key.
    pub fn has_revocation_key(&self, key: &PublicKey) -> bool {
        let can_change = |roll: &Roll| {
            let seen = self.steps[roll.place].seen;
            !seen.is_shown() || seen.block().is_some()
        };
        let named = self.rolls().filter(can_change).map(|roll| roll.announced);
        let mut named = named.chain(self.known_revocation_key().map(|known| known.itself));
        named.any(|named| named.previous == *key || named.current == *key)
    }
}
