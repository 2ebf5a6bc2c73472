use bsv_tx::{PublicKey, Txid};

use crate::data_refs::{DataRef, OperatorDataRefs};
use crate::miner_info_script::Revocation;
use crate::state::key::KeyRecord;
use crate::state::vctx::LeftVctx;
use crate::succession::Succession;

/// What is stored of an identity of generation 1.0 besides its keys.
///
/// A node takes one change of keys at a time and then wants documents to go on from there, so the
/// record tells what was announced from what was seen in a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MinerInfoRecord {
    /// The first miner id, which a complete revocation goes back to.
    pub first_miner_id: PublicKey,
    /// The number of the current revocation key, whose private half lies in a keystore of its own.
    pub revocation_key_number: u32,
    /// What documents say of the revocation key.
    pub revocation_key: Succession,
    /// What they say of it afterwards, in this order. Each follows once the one before was seen in a block.
    pub later_revocation_keys: Vec<Succession>,
    /// The revocation that is being announced.
    pub revocation: Option<RevocationRecord>,
    /// The data that the operator publishes in transactions of its own.
    pub data: OperatorDataRefs,
    /// Where documents say that the data stands.
    pub data_refs: Vec<DataRef>,
    /// Whether nodes have heard that all miner ids are revoked, or nobody has to hear it.
    pub is_closed: bool,
    /// The number of the key that has signed the last document that was handed out, if that is not the current one.
    pub document_key: Option<u32>,
    /// The keys that sign references to miner-info transactions, the oldest first.
    pub references: Vec<Reference>,
    /// What is left of the validity check output that the identity had in generation 0.2.
    pub left_vctx: LeftVctx,
}

/// A revocation that is being announced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RevocationRecord {
    /// What documents say.
    pub message: Revocation,
    /// Whether all miner ids are revoked, and none takes their place.
    pub is_complete: bool,
    /// Whether the node has taken it.
    pub is_told: bool,
    /// What documents say of the revocation key beside it: that it follows itself. Missing in older records.
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
    /// Of how many miner-info transactions the key is remembered. One is made for each block.
    const MOST_REFERENCES: usize = 16;

    /// A record of an identity that has only begun.
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

    /// The revocation keys that are still of use, with their numbers: the one that nodes know, and those announced.
    pub fn useful_revocation_keys(&self) -> Vec<(u32, PublicKey)> {
        let (number, known) = self.known_revocation_key();
        let rolls = std::iter::once(&self.revocation_key).chain(&self.later_revocation_keys);
        let rolls = rolls.filter(|succession| succession.is_change());
        let keys = std::iter::once(known).chain(rolls.map(|succession| succession.current));
        (number..).zip(keys).collect()
    }

    /// The revocation key that nodes know, and the number of it: the last that was seen in a block.
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

    /// The identity has had no revocation key until now. Nodes that know it take no other one from the first document
    /// that names one.
    pub(super) fn announce_first_revocation_key(&mut self) {
        self.later_revocation_keys = vec![self.revocation_key];
    }

    /// Whether documents announce a revocation key.
    pub(super) fn announces_revocation_key(&self) -> bool {
        let is_withheld = self.revocation.is_some() && !self.revocation_key.is_change();
        !self.later_revocation_keys.is_empty() && !is_withheld
    }

    /// Nodes take no revocation together with a roll, which has to wait.
    pub(super) fn withhold_roll(&mut self, known: Succession) {
        if self.revocation_key.is_change() {
            self.later_revocation_keys.insert(0, self.revocation_key);
        }
        self.revocation_key = known;
    }

    /// A roll that waited for a revocation is announced after it.
    pub(super) fn end_revocation(&mut self) {
        self.revocation = None;
        if !self.revocation_key.is_change() {
            self.follow_revocation_key();
        }
    }

    /// Takes what documents say next of the revocation key.
    pub(super) fn follow_revocation_key(&mut self) {
        if !self.later_revocation_keys.is_empty() {
            self.revocation_key = self.later_revocation_keys.remove(0);
        }
    }

    /// A revocation key is announced once more.
    pub(super) fn repeat_revocation_key(&mut self, announced: Succession) {
        self.later_revocation_keys.insert(0, self.revocation_key);
        self.revocation_key = announced;
    }

    /// A revocation is announced once more.
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
