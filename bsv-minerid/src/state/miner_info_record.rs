use bsv_tx::{PublicKey, Txid};

use crate::data_refs::{DataRef, OperatorDataRefs};
use crate::miner_info_script::Revocation;
use crate::state::key::KeyRecord;
use crate::state::vctx::LeftVctx;
use crate::succession::Succession;

/// The stored data of an identity of generation 1.0, besides its keys.
///
/// A node accepts one change of keys at a time, and then expects documents to continue from it. So
/// the record separates what is announced from what a block has shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MinerInfoRecord {
    /// The first miner id. A complete revocation revokes back to it.
    pub first_miner_id: PublicKey,
    /// The number of the current revocation key, whose private half is in a separate keystore.
    pub revocation_key_number: u32,
    /// What documents say about the revocation key.
    pub revocation_key: Succession,
    /// What documents say about it later, in this order. Each step follows once a block has shown
    /// the one before.
    pub later_revocation_keys: Vec<Succession>,
    /// The announced revocation.
    pub revocation: Option<RevocationRecord>,
    /// The data that the operator publishes in its own transactions.
    pub data: OperatorDataRefs,
    /// The references to that data in documents.
    pub data_refs: Vec<DataRef>,
    /// Whether nodes know that all miner ids are revoked, or nobody has to know.
    pub is_closed: bool,
    /// The number of the key that signed the last document that was handed out, unless it is the
    /// current key.
    pub document_key: Option<u32>,
    /// The keys that sign references to miner-info transactions, the oldest entry first.
    pub references: Vec<Reference>,
    /// What remains of the validity check output from generation 0.2.
    pub left_vctx: LeftVctx,
}

/// An announced revocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RevocationRecord {
    /// The revocation in documents.
    pub message: Revocation,
    /// Whether all miner ids are revoked, without a replacement.
    pub is_complete: bool,
    /// Whether the node has accepted it.
    pub is_told: bool,
    /// What documents say about the revocation key during the revocation: it follows itself. Older
    /// records lack this.
    pub revocation_key: Option<Succession>,
}

/// A miner-info transaction, and the number of the key that signs references to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reference {
    /// The transaction.
    pub miner_info: Txid,
    /// The number of the key.
    pub key: u32,
}

impl MinerInfoRecord {
    /// For how many miner-info transactions the key is remembered. Each block has one.
    const MOST_REFERENCES: usize = 16;

    /// The record of a new identity.
    pub fn new(first: &KeyRecord, revocation_key_number: u32, revocation_key: Succession) -> Self {
        Self {
            first_miner_id: first.public_key,
            revocation_key_number,
            revocation_key,
            later_revocation_keys: Vec::new(),
            revocation: None,
            data: OperatorDataRefs::default(),
            data_refs: Vec::new(),
            is_closed: false,
            document_key: None,
            references: Vec::new(),
            left_vctx: LeftVctx::default(),
        }
    }

    /// The revocation keys that can still be used, with their numbers: the one that nodes know, and
    /// the announced ones.
    pub fn useful_revocation_keys(&self) -> Vec<(u32, PublicKey)> {
        let (number, known) = self.known_revocation_key();
        let rolls = std::iter::once(&self.revocation_key).chain(&self.later_revocation_keys);
        let rolls = rolls.filter(|succession| succession.is_change());
        let keys = std::iter::once(known).chain(rolls.map(|succession| succession.current));
        (number..).zip(keys).collect()
    }

    /// The number of the revocation key that nodes know, and the key: the last that a block has
    /// shown.
    pub fn known_revocation_key(&self) -> (u32, PublicKey) {
        let rolls = std::iter::once(&self.revocation_key).chain(&self.later_revocation_keys);
        let unseen = rolls.filter(|succession| succession.is_change()).count();
        let unseen = u32::try_from(unseen).unwrap_or(u32::MAX);
        (self.revocation_key_number.saturating_sub(unseen), self.revocation_key.previous)
    }

    pub(super) fn set_data(&mut self, data: &OperatorDataRefs) {
        self.data = data.clone();
        if data.is_empty() {
            self.data_refs.clear();
        }
    }

    pub(super) fn note_reference(&mut self, reference: Reference) {
        if self.references.iter().any(|known| known.miner_info == reference.miner_info) {
            return;
        }
        if self.references.len() >= Self::MOST_REFERENCES {
            self.references.remove(0);
        }
        self.references.push(reference);
    }

    pub(super) fn roll(
        &mut self,
        from: u32,
        number: u32,
        announced: Succession,
        acknowledged: Succession,
    ) -> Result<(), &'static str> {
        if self.revocation_key_number != from {
            return Err("its revocation key was rolled");
        }
        self.revocation_key_number = number;
        self.revocation_key = announced;
        self.later_revocation_keys = vec![acknowledged];
        Ok(())
    }

    /// Announces the first revocation key. Nodes that know the identity accept no other key from
    /// the first document that names one.
    pub(super) fn announce_first_revocation_key(&mut self) {
        self.later_revocation_keys = vec![self.revocation_key];
    }

    /// Whether documents announce a revocation key.
    pub(super) fn announces_revocation_key(&self) -> bool {
        let is_withheld = self.revocation.is_some() && !self.revocation_key.is_change();
        !self.later_revocation_keys.is_empty() && !is_withheld
    }

    /// Delays an announced revocation key: nodes accept no revocation together with a roll.
    pub(super) fn withhold_roll(&mut self, known: Succession) {
        if self.revocation_key.is_change() {
            self.later_revocation_keys.insert(0, self.revocation_key);
        }
        self.revocation_key = known;
    }

    /// Ends a revocation, and announces the revocation key that was delayed.
    pub(super) fn end_revocation(&mut self) {
        self.revocation = None;
        if !self.revocation_key.is_change() {
            self.follow_revocation_key();
        }
    }

    /// Moves on to the next statement about the revocation key.
    pub(super) fn follow_revocation_key(&mut self) {
        if !self.later_revocation_keys.is_empty() {
            self.revocation_key = self.later_revocation_keys.remove(0);
        }
    }

    /// Announces a revocation key again.
    pub(super) fn repeat_revocation_key(&mut self, announced: Succession) {
        self.later_revocation_keys.insert(0, self.revocation_key);
        self.revocation_key = announced;
    }

    /// Announces a revocation again.
    pub(super) fn repeat_revocation(&mut self, revocation: RevocationRecord) {
        self.revocation = Some(revocation);
        self.is_closed = false;
        if let Some(known) = revocation.revocation_key
            && self.revocation_key.is_change()
        {
            self.withhold_roll(known);
        }
    }

    pub(super) fn confirm(&mut self) {
        match &self.revocation {
            Some(revocation) if revocation.is_complete => self.is_closed = true,
            _ => self.revocation = None,
        }
        while !self.later_revocation_keys.is_empty() {
            self.follow_revocation_key();
        }
    }
}

#[cfg(test)]
mod tests {
    use bsv_tx::PrivateKey;

    use super::*;

    fn keys<const N: usize>() -> [PrivateKey; N] {
        [(); N].map(|()| PrivateKey::generate().unwrap())
    }

    fn record(number: u32, revocation_key: Succession) -> MinerInfoRecord {
        let first = KeyRecord { number: 1, public_key: revocation_key.previous };
        MinerInfoRecord::new(&first, number, revocation_key)
    }

    #[test]
    fn the_last_16_miner_info_transactions_keep_the_key_that_first_referred_to_them() {
        let [key] = keys();
        let itself = Succession::sign(&key, key.public_key()).unwrap();
        let mut record = record(1, itself);
        let reference =
            |number: u8, key| Reference { miner_info: Txid::from_bytes([number; 32]), key };
        for number in 1..=16 {
            record.note_reference(reference(number, 1));
        }
        record.note_reference(reference(1, 2));
        let expected: Vec<_> = (1..=16).map(|number| reference(number, 1)).collect();
        assert_eq!(record.references, expected);
        record.note_reference(reference(17, 2));
        assert_eq!(record.references[..15], expected[1..]);
        assert_eq!(record.references[15..], [reference(17, 2)]);
    }

    /// The first key alone, its change to the second one, and the second key alone.
    fn successions(first: &PrivateKey, second: &PrivateKey) -> [Succession; 3] {
        let successors = [(first, first), (first, second), (second, second)];
        successors.map(|(key, next)| Succession::sign(key, next.public_key()).unwrap())
    }

    #[test]
    fn nodes_know_the_revocation_key_before_all_announced_ones() {
        let [first, second] = keys();
        let [first_key, second_key] = [&first, &second].map(PrivateKey::public_key);
        let [itself, change, afterwards] = successions(&first, &second);

        let mut record = record(1, itself);
        assert_eq!(record.known_revocation_key(), (1, first_key));
        assert_eq!(record.useful_revocation_keys(), [(1, first_key)]);
        assert!(!record.announces_revocation_key());
        assert_eq!(record.roll(2, 3, change, afterwards), Err("its revocation key was rolled"));
        record.roll(1, 2, change, afterwards).unwrap();
        assert_eq!(record.known_revocation_key(), (1, first_key));
        assert_eq!(record.useful_revocation_keys(), [(1, first_key), (2, second_key)]);
        assert!(record.announces_revocation_key());
        record.follow_revocation_key();
        assert_eq!(record.known_revocation_key(), (2, second_key));
        assert_eq!(record.useful_revocation_keys(), [(2, second_key)]);
        assert!(!record.announces_revocation_key());
        record.follow_revocation_key();
        assert_eq!(record.revocation_key, afterwards);
    }

    #[test]
    fn a_revocation_delays_the_announcement_of_a_revocation_key() {
        let [first, second] = keys();
        let first_key = first.public_key();
        let [itself, change, afterwards] = successions(&first, &second);
        let mut record = record(1, itself);
        record.roll(1, 2, change, afterwards).unwrap();
        record.withhold_roll(itself);
        record.revocation = Some(RevocationRecord {
            message: Revocation::sign(first_key, &first, &first).unwrap(),
            is_complete: false,
            is_told: false,
            revocation_key: Some(itself),
        });
        assert_eq!(record.revocation_key, itself);
        assert!(!record.announces_revocation_key());
        record.end_revocation();
        assert_eq!((record.revocation, record.revocation_key), (None, change));
        assert!(record.announces_revocation_key());
        assert_eq!(record.later_revocation_keys, [afterwards]);
    }

    #[test]
    fn the_first_revocation_key_is_announced_although_it_follows_itself() {
        let [key] = keys();
        let itself = Succession::sign(&key, key.public_key()).unwrap();
        let mut record = record(1, itself);
        record.announce_first_revocation_key();
        assert!(record.announces_revocation_key());
        record.follow_revocation_key();
        assert_eq!(record.revocation_key, itself);
        assert!(!record.announces_revocation_key());
    }
}
