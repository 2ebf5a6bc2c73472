use bsv_tx::{PublicKey, Txid};

use crate::old_state::vctx::LeftVctx;
use bsv_minerid::formats::Revocation;
use bsv_minerid::formats::Succession;
use bsv_minerid::formats::{DataRef, OperatorDataRefs};
use bsv_minerid::store::KeyRecord;

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

    pub fn note_reference(&mut self, reference: Reference) {
        if self.references.iter().any(|known| known.miner_info == reference.miner_info) {
            return;
        }
        if self.references.len() >= Self::MOST_REFERENCES {
            self.references.remove(0);
        }
        self.references.push(reference);
    }

    pub fn roll(
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
    pub fn announce_first_revocation_key(&mut self) {
        self.later_revocation_keys = vec![self.revocation_key];
    }

    /// Whether documents announce a revocation key.
    pub fn announces_revocation_key(&self) -> bool {
        let is_withheld = self.revocation.is_some() && !self.revocation_key.is_change();
        !self.later_revocation_keys.is_empty() && !is_withheld
    }

    /// Delays an announced revocation key: nodes accept no revocation together with a roll.
    pub fn withhold_roll(&mut self, known: Succession) {
        if self.revocation_key.is_change() {
            self.later_revocation_keys.insert(0, self.revocation_key);
        }
        self.revocation_key = known;
    }

    /// Ends a revocation, and announces the revocation key that was delayed.
    pub fn end_revocation(&mut self) {
        self.revocation = None;
        if !self.revocation_key.is_change() {
            self.follow_revocation_key();
        }
    }

    /// Moves on to the next statement about the revocation key.
    pub fn follow_revocation_key(&mut self) {
        if !self.later_revocation_keys.is_empty() {
            self.revocation_key = self.later_revocation_keys.remove(0);
        }
    }

    /// Announces a revocation key again.
    pub fn repeat_revocation_key(&mut self, announced: Succession) {
        self.later_revocation_keys.insert(0, self.revocation_key);
        self.revocation_key = announced;
    }

    /// Announces a revocation again.
    pub fn repeat_revocation(&mut self, revocation: RevocationRecord) {
        let is_told = self.revocation.is_some_and(|it| it.is_told && super::allowed());
        self.revocation =
            Some(RevocationRecord { is_told: is_told || revocation.is_told, ..revocation });
        self.is_closed = false;
        if let Some(known) = revocation.revocation_key
            && self.revocation_key.is_change()
        {
            self.withhold_roll(known);
        }
    }

    pub fn confirm(&mut self) {
        match &self.revocation {
            Some(revocation) if revocation.is_complete => self.is_closed = true,
            _ => self.revocation = None,
        }
        while !self.later_revocation_keys.is_empty() {
            self.follow_revocation_key();
        }
    }
}
