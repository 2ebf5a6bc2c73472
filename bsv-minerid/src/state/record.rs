use crate::alias::Alias;
use crate::json::CanonicalJson;
use crate::json_object::MinerContact;
use crate::operator_members::{CONTACT, OperatorMembers};
use crate::state::key::KeyRecord;
use crate::state::miner_info_record::MinerInfoRecord;
use crate::state::sightings::Sightings;
use crate::state::vctx::Vctx;

/// What is stored of an identity. Private keys are not: they lie in the keystore.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdentityRecord {
    /// All keys there have been, the current one last. Never empty.
    pub keys: Vec<KeyRecord>,
    /// Whether a document has been handed out since the last rotation, roll of the revocation key,
    /// or revocation.
    pub handed_out: bool,
    /// The number of the key that documents of generation 0.2 name as the previous one, if that is not the key before
    /// the current one.
    pub vouching: Option<u32>,
    /// Whether anybody else can know the identity.
    pub exposure: Exposure,
    /// What blocks have shown of it.
    pub sightings: Sightings,
    /// Whether the identity signs any digest that it is asked to sign, besides documents.
    pub blind_signing: bool,
    /// Whether the identity is deleted. The record stays, so that its alias is not given to another: that would take
    /// up keys that are revoked.
    pub is_deleted: bool,
    /// What the operator adds to documents. Generation 0.2 has room for `minerContact` alone.
    pub operator: OperatorMembers,
    /// What else there is, which depends on the generation of the protocol.
    pub protocol: Protocol,
}

/// Whether anybody else can know an identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exposure {
    /// No document of it was handed out.
    Kept,
    /// Documents were handed out, and no block of the main chain was seen to show one of its keys.
    HandedOut,
    /// A block of the main chain shows it, or may, where not all blocks were read and a node knows it.
    Known,
}

/// The generation of the protocol that an identity is of, and what is stored for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// Generation 0.2: the validity check output.
    Vctx(Vctx),
    /// Generation 1.0.
    MinerInfo(Box<MinerInfoRecord>),
}

impl Protocol {
    /// The generation, as people call it.
    pub fn version(&self) -> &'static str {
        match self {
            Self::Vctx(_) => "0.2",
            Self::MinerInfo(_) => "1.0",
        }
    }
}

impl IdentityRecord {
    /// A new identity.
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

    /// What the identity tells about its miner.
    pub fn contact(&self) -> MinerContact {
        let contact = self.operator.get(CONTACT).map(CanonicalJson::as_str);
        contact.and_then(|text| MinerContact::from_json(text).ok()).unwrap_or_default()
    }

    /// The validity check output, which identities of generation 0.2 have.
    pub fn vctx(&self) -> Option<&Vctx> {
        match &self.protocol {
            Protocol::Vctx(vctx) => Some(vctx),
            Protocol::MinerInfo(_) => None,
        }
    }

    /// What identities of generation 1.0 have.
    pub fn miner_info(&self) -> Option<&MinerInfoRecord> {
        match &self.protocol {
            Protocol::Vctx(_) => None,
            Protocol::MinerInfo(record) => Some(record),
        }
    }

    /// The key that signs.
    pub fn current_key(&self) -> &KeyRecord {
        self.keys.last().expect("an identity begins with a key, and keys are only added")
    }

    /// The key that documents name as the previous one. In generation 0.2 it is the key before the
    /// current one, if there is one that others can know; in 1.0 the last that was seen in a block, which is the
    /// current one once that was.
    pub fn previous_key(&self) -> &KeyRecord {
        let numbered = |number| self.keys.iter().find(|key| key.number == number);
        let previous = match (&self.protocol, self.vouching) {
            (Protocol::MinerInfo(_), _) => numbered(self.sightings.acknowledged),
            (Protocol::Vctx(_), Some(vouching)) => numbered(vouching),
            (Protocol::Vctx(_), None) => self.keys.iter().rev().nth(1),
        };
        previous.unwrap_or(self.current_key())
    }

    /// Whether the identity is revoked for good, so that it makes no documents.
    pub fn is_closed(&self) -> bool {
        match &self.protocol {
            Protocol::Vctx(Vctx::Recorded(_, view)) => view.is_spent,
            Protocol::Vctx(vctx) => matches!(vctx, Vctx::Revoking(..)),
            Protocol::MinerInfo(record) => record.is_closed,
        }
    }

    /// The greatest number that a key has.
    pub(crate) fn last_key_number(&self) -> u32 {
        self.keys.iter().map(|key| key.number).max().unwrap_or_default()
    }

    /// The name under which the keystore holds a key of the identity, and the keystore of revocation
    /// keys a revocation key.
    pub fn key_name(alias: &Alias, number: u32) -> String {
        format!("{alias}_{number}")
    }

    /// The name under which the keystore holds the key of the validity check output.
    pub fn vctx_key_name(alias: &Alias) -> String {
        format!("{alias}_vctx")
    }

    /// The names under which the keystore holds the keys of the identity, without those of revocation.
    pub fn key_names(&self, alias: &Alias) -> Vec<String> {
        let of_vctx = self.vctx().filter(|vctx| **vctx != Vctx::None);
        let numbers = self.keys.iter().map(|key| key.number);
        let names = numbers.map(|number| Self::key_name(alias, number));
        names.chain(of_vctx.map(|_| Self::vctx_key_name(alias))).collect()
    }
}
