//! The data of one alias in a home directory.

use bsv_tx::{ExtendedPrivateKey, Network, OutPoint, PrivateKey, Txid};
use zeroize::Zeroizing;

use super::outcome::{Import, VctxFinding};
use crate::alias::Alias;
use crate::operator_members::OperatorMembers;
use crate::state::{
    Deed, IdentityRecord, KeyRecord, MinerInfoRecord, Protocol, RevocationRecord, Seen, Step, Vctx,
};

pub(crate) struct OlderIdentity {
    pub(crate) alias: Alias,
    /// The keys; the current one is last. Never empty.
    pub(super) keys: Vec<NumberedKey>,
    /// The number of the last key that blocks have shown, as far as the directory tells.
    pub(super) acknowledged: u32,
    pub(super) handed_out: bool,
    pub(super) operator: OperatorMembers,
    pub(crate) protocol: OlderProtocol,
    pub(crate) vctx: VctxFinding,
}

pub(crate) type NumberedKey = (u32, ExtendedPrivateKey);

pub(crate) enum OlderProtocol {
    Vctx(Option<(PrivateKey, Txid)>),
    MinerInfo {
        record: Box<MinerInfoRecord>,
        /// The revocation key that is announced.
        roll: Option<Box<Deed>>,
        revocation: Option<RevocationRecord>,
        revocation_keys: Vec<NumberedKey>,
    },
}

impl OlderIdentity {
    pub(crate) fn as_taken_over(&self) -> Import {
        Import::TakenOver(self.vctx)
    }

    /// The outcome for an alias that already exists, perhaps with an unreadable record.
    pub(crate) fn as_known(&self, known: Option<&IdentityRecord>) -> Import {
        let known = known.map(IdentityRecord::keys);
        let is_known = |key: KeyRecord| {
            let mut known = known.iter().flatten();
            known.any(|known| known.public_key == key.public_key)
        };
        let has_keys = known.is_none() || self.keys.iter().map(key_record).all(is_known);
        Import::Known { has_keys }
    }

    /// The names and secrets that the keystore must hold.
    pub(crate) fn secrets(&self, network: Network) -> Vec<(String, Zeroizing<Vec<u8>>)> {
        let mut secrets = self.named(&self.keys);
        if let OlderProtocol::Vctx(Some((key, _))) = &self.protocol {
            let wif = key.to_wif(network);
            let name = IdentityRecord::vctx_key_name(&self.alias);
            secrets.push((name, Zeroizing::new(wif.as_bytes().to_vec())));
        }
        secrets
    }

    /// The names and secrets that the keystore of revocation keys must hold.
    pub(crate) fn revocation_secrets(&self) -> Vec<(String, Zeroizing<Vec<u8>>)> {
        match &self.protocol {
            OlderProtocol::Vctx(_) => Vec::new(),
            OlderProtocol::MinerInfo { revocation_keys, .. } => self.named(revocation_keys),
        }
    }

    fn named(&self, keys: &[NumberedKey]) -> Vec<(String, Zeroizing<Vec<u8>>)> {
        let named = keys.iter().map(|(number, key)| {
            let name = IdentityRecord::key_name(&self.alias, *number);
            (name, Zeroizing::new(key.as_text().as_bytes().to_vec()))
        });
        named.collect()
    }

    /// Makes the record. Documents may have been handed out, but only a node tells whether blocks
    /// have shown them. The older generator does not store which output is the VCTx: it is always
    /// the first.
    pub(crate) fn to_record(&self) -> IdentityRecord {
        let protocol = match &self.protocol {
            OlderProtocol::Vctx(None) => Protocol::Vctx(Vctx::None),
            OlderProtocol::Vctx(Some((_, txid))) => {
                let outpoint = OutPoint { txid: *txid, vout: 0 };
                Protocol::Vctx(Vctx::Recorded(outpoint, self.vctx.view()))
            }
            OlderProtocol::MinerInfo { record, .. } => Protocol::MinerInfo(record.clone()),
        };
        let record = IdentityRecord::of_steps(self.steps(), self.acknowledged, protocol);
        IdentityRecord { operator: self.operator.clone(), ..record }
    }

    fn steps(&self) -> Vec<Step> {
        let numbers = self.keys.iter().map(|(number, _)| *number);
        let before = numbers.clone().take(1).chain(numbers);
        let keys = self.keys.iter().map(key_record).zip(before);
        let mut deeds: Vec<_> = keys.map(|(key, after)| (Deed::Key { after }, key)).collect();
        let current = deeds.last().map(|(_, key)| *key);
        if let (OlderProtocol::MinerInfo { roll, revocation, .. }, Some(current)) =
            (&self.protocol, current)
        {
            let revoked = revocation.map(|revocation| (Deed::Revoked(revocation), current));
            // Nodes would take a partial revocation without a new key for a complete one.
            if revocation.is_some_and(|it| !it.is_complete && it.miner_id != current.number) {
                deeds.pop();
                deeds.extend(revoked);
            }
            deeds.extend(roll.as_ref().map(|roll| (**roll, current)));
            deeds.extend(revoked.filter(|_| revocation.is_some_and(|it| it.is_complete)));
        }
        let handed_out = |(deed, key)| Step { seen: Seen::HandedOut, ..Step::new(deed, key) };
        let mut steps: Vec<_> = deeds.into_iter().map(handed_out).collect();
        if let Some(last) = steps.last_mut() {
            last.is_handed_out = self.handed_out;
        }
        steps
    }
}

pub(super) fn key_record((number, key): &NumberedKey) -> KeyRecord {
    KeyRecord { number: *number, public_key: key.private_key().public_key() }
}
