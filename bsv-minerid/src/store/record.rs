use bsv_tx::{OutPoint, Transaction};

use crate::alias::Alias;
use crate::json::CanonicalJson;
use crate::json_object::MinerContact;
use crate::operator_members::{CONTACT, OperatorMembers};
use crate::store::{KeyRecord, MinerInfoRecord, Vctx, VctxView};

/// What is stored of an identity. Private keys are not: they lie in the keystore.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdentityRecord {
    /// All keys there have been, the current one last. Never empty.
    pub keys: Vec<KeyRecord>,
    /// Whether a document has been handed out since the last rotation, roll of the revocation key,
    /// or revocation.
    pub handed_out: bool,
    /// Whether the identity signs any digest that it is asked to sign, besides documents.
    pub blind_signing: bool,
    /// What the operator adds to documents. Generation 0.2 has room for `minerContact` alone.
    pub operator: OperatorMembers,
    /// What else there is, which depends on the generation of the protocol.
    pub protocol: Protocol,
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
            blind_signing: true,
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
    /// current one, if there is one; in 1.0 the last that was seen in a block, which is the current
    /// one once that was.
    pub fn previous_key(&self) -> &KeyRecord {
        let previous = match &self.protocol {
            Protocol::Vctx(_) => self.keys.iter().rev().nth(1),
            Protocol::MinerInfo(record) => {
                self.keys.iter().find(|key| key.number == record.acknowledged)
            }
        };
        previous.unwrap_or(self.current_key())
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

    /// The changes below answer why they cannot be made from this state.
    pub(super) fn rotate(&mut self, from: u32, key: KeyRecord) -> Result<(), &'static str> {
        if self.current_key().number != from {
            return Err("its key was rotated");
        }
        self.keys.push(key);
        self.handed_out = false;
        Ok(())
    }

    pub(super) fn await_vctx_funding(&mut self) -> Result<(), &'static str> {
        match self.vctx_mut()? {
            vctx @ (Vctx::None | Vctx::AwaitingFunds) => *vctx = Vctx::AwaitingFunds,
            _ => return Err("its VCTx is made already"),
        }
        Ok(())
    }

    pub(super) fn begin_vctx(&mut self, transaction: &Transaction) -> Result<(), &'static str> {
        match self.vctx_mut()? {
            vctx @ Vctx::AwaitingFunds => *vctx = Vctx::Broadcasting(transaction.clone()),
            _ => return Err("its VCTx does not wait for funds"),
        }
        Ok(())
    }

    pub(super) fn abandon_vctx(&mut self) -> Result<(), &'static str> {
        match self.vctx_mut()? {
            vctx @ Vctx::Broadcasting(_) => *vctx = Vctx::AwaitingFunds,
            _ => return Err("its VCTx is not being broadcast"),
        }
        Ok(())
    }

    pub(super) fn record_vctx(&mut self, outpoint: OutPoint) -> Result<(), &'static str> {
        match self.vctx_mut()? {
            Vctx::Recorded(recorded, _) if *recorded == outpoint => {}
            Vctx::Recorded(..) => return Err("it has another VCTx"),
            Vctx::Revoking(..) => return Err("its VCTx is being spent"),
            vctx => *vctx = Vctx::Recorded(outpoint, VctxView::default()),
        }
        Ok(())
    }

    pub(super) fn revoke_vctx(&mut self, spending: &Transaction) -> Result<(), &'static str> {
        let vctx = self.vctx_mut()?;
        let Vctx::Recorded(outpoint, _) = *vctx else {
            return Err("it has no VCTx that can be spent");
        };
        *vctx = Vctx::Revoking(outpoint, spending.clone());
        Ok(())
    }

    pub(super) fn note_vctx_view(&mut self, seen: OutPoint, seen_view: VctxView) {
        match &mut self.protocol {
            Protocol::Vctx(Vctx::Recorded(outpoint, view)) if *outpoint == seen => {
                *view = seen_view;
            }
            _ => {}
        }
    }

    fn vctx_mut(&mut self) -> Result<&mut Vctx, &'static str> {
        match &mut self.protocol {
            Protocol::Vctx(vctx) => Ok(vctx),
            Protocol::MinerInfo(_) => Err("it is of protocol 1.0"),
        }
    }
}
