//! Following miner identities through a chain, by the rules of the nodes' database.

mod event;
mod miner;
mod recent;
mod wire;

use std::collections::{BTreeMap, BTreeSet};

use bsv_tx::{BlockHash, PublicKey};
use serde::{Deserialize, Serialize};

pub use self::event::{Entry, Event, Refusal};
pub use self::miner::{Key, KeyState, Miner};
pub use self::recent::Reputation;

use self::miner::Place;
use self::recent::RecentBlocks;
use self::wire::Unchecked;
use crate::verify::{Claim, RevocationKeys};

/// The miners of a chain of blocks, as nodes understand them. Pass each block of the chain with the
/// identity that a node takes from it ([`Report::passes_node`](crate::verify::Report::passes_node)). The
/// ledger answers what the block changed.
///
/// As in a node's database, the ledger keeps what a block taught it when the block leaves the
/// chain. Nodes also learn from other sources, above all from `revokeminerid` messages. The ledger
/// does not know these sources, because it follows only the chain.
///
/// The ledger can be serialised, so that a scan of the chain can continue later.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", try_from = "Unchecked")]
pub struct Ledger {
    miners: Vec<Miner>,
    #[serde(with = "wire::keys")]
    keys: BTreeMap<PublicKey, Key>,
    /// Blocks that were in the chain and have left it.
    orphans: BTreeSet<BlockHash>,
    recent: RecentBlocks,
}

impl TryFrom<Unchecked> for Ledger {
    type Error = &'static str;

    fn try_from(unchecked: Unchecked) -> Result<Self, Self::Error> {
        let Unchecked { miners, keys, orphans, recent } = unchecked;
        if keys.values().any(|key| key.miner >= miners.len()) || !recent.is_of(miners.len()) {
            return Err("a miner id or a block is of a miner that is not there");
        }
        Ok(Self { miners, keys, orphans, recent })
    }
}

impl Ledger {
    /// Makes a ledger without miners.
    pub fn new() -> Self {
        Self::default()
    }

    /// All miners, in the order of their first blocks.
    pub fn miners(&self) -> &[Miner] {
        &self.miners
    }

    /// The information on a miner id.
    pub fn key(&self, miner_id: &PublicKey) -> Option<&Key> {
        self.keys.get(miner_id)
    }

    /// The miner ids of a miner: the current one first, then the others from the latest on.
    pub fn keys_of(&self, miner: usize) -> Vec<&Key> {
        let mut keys: Vec<_> = self.keys.values().filter(|key| key.miner == miner).collect();
        keys.sort_by_key(|key| {
            (key.state != KeyState::Current, std::cmp::Reverse(key.creation_height))
        });
        keys
    }

    /// The miner's share of recent blocks.
    pub fn reputation(&self, miner: usize) -> Reputation {
        self.recent.reputation(miner)
    }

    /// Adds the next block of the chain, with the identity that a node takes from it.
    pub fn connect(&mut self, block: BlockHash, height: u32, claim: Option<&Claim>) -> Entry {
        self.orphans.remove(&block);
        let place = Place { block, height };
        let Some(claim) = claim else {
            self.recent.connect(place, None);
            return Entry { event: Event::NoIdentity, miner: None, revocation_key_roll: None };
        };
        let (event, miner) = match self.apply(place, claim) {
            Ok((event, miner)) => (event, Some(miner)),
            Err(refusal) => (Event::Refused(refusal), None),
        };
        // Nodes count a revoking block for the previous miner id, or for none.
        let counted = match &event {
            Event::RevokedCompletely { .. } => None,
            Event::RevokedPartially { .. } => miner.map(|miner| (miner, claim.previous_miner_id)),
            _ => miner.map(|miner| (miner, claim.miner_id)),
        };
        self.recent.connect(place, counted);
        let roll = claim.revocation_keys.filter(|keys| miner.is_some() && keys.is_roll());
        Entry { event, miner, revocation_key_roll: roll }
    }

    /// Removes the latest block of the chain. What it taught the ledger stays.
    pub fn disconnect(&mut self, block: BlockHash) {
        self.orphans.insert(block);
        self.recent.disconnect(block);
    }

    fn apply(&mut self, place: Place, claim: &Claim) -> Result<(Event, usize), Refusal> {
        self.check_revocation_keys(claim)?;
        let is_new_key = claim.miner_id != claim.previous_miner_id;
        match (&claim.compromised_miner_id, is_new_key) {
            (Some(_), _) if claim.revocation_keys.as_ref().is_some_and(RevocationKeys::is_roll) => {
                Err(Refusal::RollWithRevocation)
            }
            (Some(compromised), true) => self.revoke_partially(place, claim, compromised),
            (Some(_), false) => self.revoke_completely(place, claim),
            (None, true) => self.rotate(place, claim),
            (None, false) => self.begin_or_continue(place, claim),
        }
    }

    /// Checks the revocation keys: the previous one must be the last that was seen, whatever else a
    /// document announces. A document that upgrades from an older generation must not roll the key.
    fn check_revocation_keys(&self, claim: &Claim) -> Result<(), Refusal> {
        let Some(announced) = claim.revocation_keys else { return Ok(()) };
        let Some(known) = self.keys.get(&claim.previous_miner_id) else { return Ok(()) };
        match known.revocation_key {
            Some(expected) if expected != announced.previous => {
                Err(Refusal::RevocationKey { expected })
            }
            None if announced.is_roll() => Err(Refusal::RollWithUpgrade),
            _ => Ok(()),
        }
    }

    fn begin_or_continue(
        &mut self,
        place: Place,
        claim: &Claim,
    ) -> Result<(Event, usize), Refusal> {
        let Some(key) = self.keys.get_mut(&claim.miner_id) else {
            let miner = self.miners.len();
            self.miners.push(Miner {
                first_block: place.block,
                last_block: place.block,
                latest_miner_id: claim.miner_id,
            });
            self.keys.insert(claim.miner_id, Key::new(miner, place, claim));
            return Ok((Event::First, miner));
        };
        if key.state != KeyState::Current {
            return Err(Refusal::NotCurrent { miner_id: key.miner_id, state: key.state });
        }
        if self.orphans.contains(&key.creation_block) {
            (key.creation_block, key.creation_height) = (place.block, place.height);
        }
        key.adopt(claim);
        let miner = key.miner;
        self.miners[miner].last_block = place.block;
        Ok((Event::Continued, miner))
    }

    fn rotate(&mut self, place: Place, claim: &Claim) -> Result<(Event, usize), Refusal> {
        let from = claim.previous_miner_id;
        let is_current = |key: &Key| key.state == KeyState::Current;
        let is_known = self.keys.get(&claim.miner_id).is_some_and(is_current);
        let previous = self.keys.get_mut(&from).ok_or(Refusal::UnknownPrevious(from))?;
        let is_repeated = previous.state == KeyState::Rotated && is_known;
        if previous.state != KeyState::Current && !is_repeated {
            return Err(Refusal::NotCurrent { miner_id: from, state: previous.state });
        }
        previous.state = KeyState::Rotated;
        previous.next = Some(claim.miner_id);
        let miner = previous.miner;
        self.introduce(miner, place, claim);
        let event =
            if is_repeated { Event::RotationRepeated { from } } else { Event::Rotated { from } };
        Ok((event, miner))
    }

    /// Revokes the miner ids from the current one back to the compromised one, or all if the
    /// compromised one is not among them.
    fn revoke_partially(
        &mut self,
        place: Place,
        claim: &Claim,
        compromised: &str,
    ) -> Result<(Event, usize), Refusal> {
        let from = claim.previous_miner_id;
        let previous = self.keys.get(&from).ok_or(Refusal::UnknownPrevious(from))?;
        let miner = previous.miner;
        let is_repeated = previous.state == KeyState::Revoked;
        let mut affected = Vec::new();
        let mut before = None;
        for key in self.keys_of(miner) {
            affected.push(key.miner_id);
            before = Some(key.previous);
            if key.miner_id.to_string() == compromised {
                break;
            }
        }
        if is_repeated {
            affected.clear();
        }
        self.revoke(&affected);
        if let Some(before) = before.and_then(|before| self.keys.get_mut(&before)) {
            before.next = Some(claim.miner_id);
        }
        self.introduce(miner, place, claim);
        Ok((Event::RevokedPartially { from, revoked: affected }, miner))
    }

    fn revoke_completely(
        &mut self,
        place: Place,
        claim: &Claim,
    ) -> Result<(Event, usize), Refusal> {
        let key = self.keys.get(&claim.miner_id).ok_or(Refusal::UnknownPrevious(claim.miner_id))?;
        let miner = key.miner;
        let affected: Vec<_> = self.keys_of(miner).iter().map(|key| key.miner_id).collect();
        self.revoke(&affected);
        self.miners[miner].last_block = place.block;
        Ok((Event::RevokedCompletely { revoked: affected }, miner))
    }

    fn revoke(&mut self, miner_ids: &[PublicKey]) {
        for miner_id in miner_ids {
            if let Some(key) = self.keys.get_mut(miner_id) {
                key.state = KeyState::Revoked;
            }
        }
        self.recent.forget(miner_ids);
    }

    /// Makes the miner id of `claim` the current one of a miner.
    fn introduce(&mut self, miner: usize, place: Place, claim: &Claim) {
        self.keys.insert(claim.miner_id, Key::new(miner, place, claim));
        self.miners[miner].last_block = place.block;
        self.miners[miner].latest_miner_id = claim.miner_id;
    }
}
