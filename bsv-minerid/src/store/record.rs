use bsv_tx::{OutPoint, PublicKey, Transaction};

use crate::alias::Alias;
use crate::json::CanonicalJson;
use crate::json_object::MinerContact;
use crate::operator_members::{CONTACT, OperatorMembers};
use crate::store::MinerInfoRecord;

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

/// One key of an identity. Its private half lies in the keystore as `<alias>_<number>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyRecord {
    /// The number of the key, from 1.
    pub number: u32,
    /// The public key, which is the miner id.
    pub public_key: PublicKey,
}

/// How far the validity check output of an identity has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Vctx {
    /// Not begun.
    None,
    /// Its key lies in the keystore as `<alias>_vctx`, and its address waits for coins.
    AwaitingFunds,
    /// This transaction, whose output 0 it is, may or may not have reached the network.
    Broadcasting(Transaction),
    /// It is on the network.
    Recorded(OutPoint, VctxView),
    /// Its owner spends it with this transaction, which may or may not have reached the network.
    Revoking(OutPoint, Transaction),
}

/// What the chain has shown of a validity check output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VctxView {
    /// The greatest height at which it was seen unspent.
    pub last_seen: Option<u32>,
    /// The height of the chain when, having been seen, it was first found gone.
    pub gone_since: Option<u32>,
    /// Whether it has been gone for [`VctxView::FINAL_AFTER`] blocks.
    pub is_spent: bool,
}

impl VctxView {
    /// For how many blocks, the one that spends it counted, an output must be gone to count as
    /// spent.
    pub const FINAL_AFTER: u32 = 6;

    /// What is known once the chain with its tip at `height` has been asked.
    ///
    /// An output that was never seen says nothing (it may still have to be mined), and neither
    /// does a node whose chain is shorter than one on which the output was seen.
    pub fn observe(self, height: u32, is_unspent: bool) -> Self {
        let Some(last_seen) = self.last_seen else {
            return Self { last_seen: is_unspent.then_some(height), ..Self::default() };
        };
        if is_unspent {
            return Self { last_seen: Some(last_seen.max(height)), ..Self::default() };
        }
        if height < last_seen {
            return self;
        }
        let gone_since = self.gone_since.map_or(height, |since| since.min(height));
        let is_spent = self.is_spent || height - gone_since >= Self::FINAL_AFTER - 1;
        Self { gone_since: Some(gone_since), is_spent, ..self }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn after(history: &[(u32, bool)]) -> VctxView {
        history.iter().fold(VctxView::default(), |view, (height, is_unspent)| {
            view.observe(*height, *is_unspent)
        })
    }

    #[test]
    fn an_output_is_spent_once_seen_and_then_gone_for_six_blocks() {
        for (history, is_spent) in [
            (&[(100, false), (200, false)][..], false),
            (&[(100, true)], false),
            (&[(100, true), (101, false), (105, false)], false),
            (&[(100, true), (101, false), (106, false)], true),
            (&[(100, true), (101, false), (102, false), (106, false)], true),
            // A reorganisation brings it back, and another takes it again.
            (&[(100, true), (101, false), (105, false), (105, true), (106, false)], false),
            (&[(100, true), (101, false), (106, false), (107, true)], false),
            // A node that has yet to catch up knows nothing.
            (&[(100, true), (3, false), (50, false), (99, false)], false),
            (&[(100, true), (101, false), (106, false), (3, false)], true),
            // A reorganisation to a shorter chain in which it is gone too.
            (&[(100, true), (103, false), (101, false), (106, false)], true),
        ] {
            assert_eq!(after(history).is_spent, is_spent, "{history:?}");
        }
    }
}
