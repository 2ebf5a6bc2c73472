use bsv_tx::PublicKey;

use crate::data_refs::{DataRef, OperatorDataRefs};
use crate::miner_info::Revocation;
use crate::store::KeyRecord;
use crate::succession::Succession;

/// What is stored of an identity of generation 1.0 besides its keys.
///
/// A node takes one change of keys at a time and then wants documents to go on from there, so the
/// record tells what was announced from what was seen in a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MinerInfoRecord {
    /// The first miner id, which a complete revocation goes back to.
    pub first_miner_id: PublicKey,
    /// The number of the last key that was seen in a block. Those after it are announced; all but
    /// the last of these were passed over by a forced rotation.
    pub acknowledged: u32,
    /// The number of the current revocation key, whose private half lies in a keystore of its own.
    pub revocation_key_number: u32,
    /// What documents say of the revocation key.
    pub revocation_key: Succession,
    /// What they say of a new revocation key once it was seen in a block.
    pub acknowledged_revocation_key: Option<Succession>,
    /// The revocation that is being announced.
    pub revocation: Option<RevocationRecord>,
    /// The data that the operator publishes in transactions of its own.
    pub data: OperatorDataRefs,
    /// Where documents say that the data stands.
    pub data_refs: Vec<DataRef>,
    /// Whether a block has shown that all miner ids are revoked.
    pub is_closed: bool,
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
}

impl MinerInfoRecord {
    /// A record of an identity that has only begun.
    pub fn new(first: &KeyRecord, revocation_key_number: u32, revocation_key: Succession) -> Self {
        Self {
            first_miner_id: first.public_key,
            acknowledged: first.number,
            revocation_key_number,
            revocation_key,
            acknowledged_revocation_key: None,
            revocation: None,
            data: OperatorDataRefs::default(),
            data_refs: Vec::new(),
            is_closed: false,
        }
    }

    /// Takes a new revocation key for the current one.
    pub(super) fn confirm_revocation_key(&mut self) {
        if let Some(acknowledged) = self.acknowledged_revocation_key.take() {
            self.revocation_key = acknowledged;
        }
    }
}
