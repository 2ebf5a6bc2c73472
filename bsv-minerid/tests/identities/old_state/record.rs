use crate::old_state::miner_info_record::MinerInfoRecord;
use crate::old_state::sightings::Sightings;
use crate::old_state::vctx::Vctx;
use bsv_minerid::formats::OperatorMembers;
use bsv_minerid::store::KeyRecord;

/// The stored data of an identity. Private keys are in the keystore instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdentityRecord {
    /// All keys so far; the current one is last. Never empty.
    pub keys: Vec<KeyRecord>,
    /// Whether a document has been handed out since the last rotation, roll of the revocation key,
    /// or revocation.
    pub handed_out: bool,
    /// The number of the key that documents of generation 0.2 name as the previous one, unless it
    /// is the key before the current one.
    pub vouching: Option<u32>,
    /// Whether others can know the identity.
    pub exposure: Exposure,
    /// What blocks have shown of the identity.
    pub sightings: Sightings,
    /// Whether the identity signs any digest on request, besides documents.
    pub blind_signing: bool,
    /// Whether the identity is deleted. The record stays, so that no new identity gets the alias
    /// and with it revoked keys.
    pub is_deleted: bool,
    /// The members that the operator adds to documents. Generation 0.2 only has room for
    /// `minerContact`.
    pub operator: OperatorMembers,
    /// The data that depends on the generation of the protocol.
    pub protocol: Protocol,
}

/// Whether others can know an identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exposure {
    /// No document was handed out.
    Kept,
    /// Documents were handed out, but no block of the main chain has shown one of its keys.
    HandedOut,
    /// A block of the main chain shows it. If not all blocks were read, it is enough that a node
    /// knows it.
    Known,
}

/// The generation of the protocol of an identity, and its data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// Generation 0.2: the validity check output.
    Vctx(Vctx),
    /// Generation 1.0.
    MinerInfo(Box<MinerInfoRecord>),
}

impl Protocol {
    /// The name of the generation.
    pub fn version(&self) -> &'static str {
        match self {
            Self::Vctx(_) => "0.2",
            Self::MinerInfo(_) => "1.0",
        }
    }
}

impl IdentityRecord {
    /// Makes the record of a new identity.
    pub fn new(key: KeyRecord, protocol: Protocol) -> Self {
        Self {
            keys: vec![key],
            handed_out: true,
            vouching: None,
            exposure: Exposure::Kept,
            sightings: Sightings::of(key.number),
            blind_signing: true,
            is_deleted: false,
            operator: OperatorMembers::default(),
            protocol,
        }
    }

    /// The validity check output, in generation 0.2.
    pub fn vctx(&self) -> Option<&Vctx> {
        match &self.protocol {
            Protocol::Vctx(vctx) => Some(vctx),
            Protocol::MinerInfo(_) => None,
        }
    }

    /// The data of generation 1.0.
    pub fn miner_info(&self) -> Option<&MinerInfoRecord> {
        match &self.protocol {
            Protocol::Vctx(_) => None,
            Protocol::MinerInfo(record) => Some(record),
        }
    }

    /// The key that signs documents.
    pub fn current_key(&self) -> &KeyRecord {
        self.keys.last().expect("an identity always has a key")
    }

    /// The key that documents name as the previous one. In generation 0.2 it is the key before the
    /// current one, if others can know that key. In generation 1.0 it is the last key that a block
    /// has shown, which is the current key if nothing is announced.
    pub fn previous_key(&self) -> &KeyRecord {
        let numbered = |number| self.key_numbered(number);
        let previous = match (&self.protocol, self.vouching) {
            (Protocol::MinerInfo(_), _) => numbered(self.sightings.acknowledged),
            (Protocol::Vctx(_), Some(vouching)) => numbered(vouching),
            (Protocol::Vctx(_), None) => self.keys.iter().rev().nth(1),
        };
        previous.unwrap_or(self.current_key())
    }

    pub fn key_numbered(&self, number: u32) -> Option<&KeyRecord> {
        self.keys.iter().find(|key| key.number == number)
    }

    /// Whether the record says that a block has shown the current key.
    pub fn has_shown_current_key(&self) -> bool {
        self.exposure == Exposure::Known && self.sightings.acknowledged == self.current_key().number
    }

    /// Whether a document with the current key was handed out.
    pub fn is_current_key_handed_out(&self) -> bool {
        let document_key = self.miner_info().and_then(|own| own.document_key);
        self.handed_out || document_key == Some(self.current_key().number)
    }

    /// Whether the identity is revoked for good, so that it makes no documents.
    pub fn is_closed(&self) -> bool {
        match &self.protocol {
            Protocol::Vctx(Vctx::Recorded(_, view)) => view.is_spent,
            Protocol::Vctx(vctx) => matches!(vctx, Vctx::Revoking(..)),
            Protocol::MinerInfo(record) => record.is_closed,
        }
    }

    /// The greatest number of a key.
    pub fn last_key_number(&self) -> u32 {
        self.keys.iter().map(|key| key.number).max().unwrap_or_default()
    }
}
