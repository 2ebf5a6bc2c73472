//! Identities of generation 1.0.

use std::sync::Arc;

use bsv_store::Keystore;
use bsv_tx::{PrivateKey, PublicKey, Txid};

use super::{MinerIds, check_newest, check_open, check_seen};
use crate::alias::Alias;
use crate::data_refs::OperatorDataRefs;
use crate::error::Error;
use crate::identity::Identity;
use crate::job_data::BlockBindJob;
use crate::miner_info_script::Revocation;
use crate::state::{
    Announcement, ChainView, Change, Exposure, IdentityRecord, KeyRecord, MinerInfoRecord,
    Protocol, RevocationKeyRecord, RevocationRecord, Vctx, VctxView,
};
use crate::store::IdentityStore;
use crate::stored_keys::{make_key, open_key};
use crate::succession::Succession;

use Announcement::{CompleteRevocation, PartialRevocation, RevocationKey};

/// The miner ids to revoke.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RevokedMinerIds {
    /// The miner ids from the current one back to this one. A new one replaces them.
    BackTo(PublicKey),
    /// All miner ids. None replaces them.
    All,
}

impl<S: IdentityStore> MinerIds<S> {
    /// Creates an identity of generation 1.0 with a new key, and answers the key. The revocation
    /// key goes into its own keystore, which is not needed to make documents.
    pub fn generate_miner_info(
        &self,
        alias: &Alias,
        revocation_keys: &Keystore,
    ) -> Result<PublicKey, Error> {
        let _changes = self.begin_change();
        self.check_new(alias)?;
        let revocation_key = self.make_revocation_key(alias, 1, revocation_keys)?;
        let (key, private_key) = self.make_key(alias, 1)?;
        let itself = Succession::sign(&revocation_key, revocation_key.public_key())?;
        let miner_info = MinerInfoRecord::new(&key, 1, itself);
        let record = IdentityRecord::new(key, Protocol::MinerInfo(Box::new(miner_info)));
        self.create(alias, record, private_key)?;
        Ok(key.public_key)
    }

    /// Upgrades an identity of generation 0.2 to 1.0, with a revocation key. Its first document
    /// announces the last rotation again, if there was one. The first miner id is the key numbered
    /// 1, otherwise the oldest, unless `first` names another of its keys.
    pub fn upgrade(
        &self,
        alias: &Alias,
        first: Option<&PublicKey>,
        revocation_keys: &Keystore,
    ) -> Result<(), Error> {
        let _changes = self.begin_change();
        let identity = self.get(alias.as_str())?;
        self.record_hand_outs_of([Arc::clone(&identity)])?;
        let record = identity.record();
        match &record.protocol {
            Protocol::MinerInfo(_) => {
                return Err(Error::OtherProtocol { alias: alias.clone(), protocol: "1.0" });
            }
            Protocol::Vctx(
                Vctx::Revoking(outpoint, _)
                | Vctx::Recorded(outpoint, VctxView { is_spent: true, .. }),
            ) => return Err(Error::Revoked { alias: alias.clone(), outpoint: *outpoint }),
            Protocol::Vctx(_) => {}
        }
        check_newest(&identity)?;
        let keys = record.keys();
        let first = match first {
            Some(first) => keys
                .iter()
                .find(|key| key.public_key == *first)
                .ok_or_else(|| Error::ForeignKey { alias: alias.clone(), key: *first })?,
            None => keys.iter().find(|key| key.number == 1).unwrap_or(&keys[0]),
        };
        let revocation_key = self.make_revocation_key(alias, 1, revocation_keys)?;
        let itself = Succession::sign(&revocation_key, revocation_key.public_key())?;
        let miner_info = MinerInfoRecord::new(first, 1, itself);
        let change = Change::Upgrade(Box::new(miner_info));
        self.follow_to_new_keys(&identity, self.store.change(alias, &change))
    }

    /// Gives an identity a new revocation key, which the current one vouches for, and answers the
    /// new key. Until a block shows the new key, it cannot be rolled again.
    pub fn roll_revocation_key(
        &self,
        alias: &Alias,
        revocation_keys: &Keystore,
    ) -> Result<PublicKey, Error> {
        let _changes = self.begin_change();
        let identity = self.get(alias.as_str())?;
        self.record_hand_outs_of([Arc::clone(&identity)])?;
        let record = identity.record();
        miner_info(alias, &record)?;
        check_open(alias, &record)?;
        check_newest(&identity)?;
        check_seen(alias, &record, &[RevocationKey, PartialRevocation, CompleteRevocation])?;
        let (from, current) = revocation_key(alias, &record, revocation_keys)?;
        let number = from + 1;
        let new = self.make_revocation_key(alias, number, revocation_keys)?;
        let change = Change::RollRevocationKey {
            from,
            number,
            announced: Succession::sign(&current, new.public_key())?,
            acknowledged: Succession::sign(&new, new.public_key())?,
        };
        self.follow_to_new_keys(&identity, self.store.change(alias, &change))?;
        Ok(new.public_key())
    }

    /// Sets the data that the operator publishes. Documents keep their references until
    /// [`output_script_with_data`](Self::output_script_with_data) names a transaction. If `data` is
    /// empty, documents refer to none.
    pub fn set_data(&self, alias: &Alias, data: OperatorDataRefs) -> Result<(), Error> {
        self.change_miner_info(alias, &Change::SetData(data))
    }

    /// The output script of the document for the block at `height`. This document and all later
    /// ones refer to the operator's data in the transaction `data_txid`. The reference is durable
    /// before this answers.
    pub fn output_script_with_data(
        &self,
        alias: &str,
        height: u32,
        data_txid: Txid,
    ) -> Result<Arc<[u8]>, Error> {
        let identity = self.get(alias)?;
        // Refuses invalid requests before it changes anything.
        identity.preview_output_script_with_data(height, data_txid)?;
        if !identity.refers_to_data(data_txid) {
            self.change_miner_info(identity.alias(), &Change::ReferToData(data_txid))?;
        }
        identity.output_script_with_data(height, data_txid)
    }

    /// Adds an output to `coinbase2` that refers to the miner-info transaction, of generation 1.0,
    /// and binds it to the block with the place in `job`. All other bytes stay the same.
    ///
    /// The key that signs the first reference to a transaction signs all references to it, even
    /// after a rotation: nodes require the key that its document names. The choice of the key is
    /// durable before this answers. If it cannot be written, or that takes longer than a second,
    /// this logs an error and answers all the same.
    pub fn coinbase2_with_reference(
        &self,
        alias: &str,
        miner_info_txid: Txid,
        coinbase2: &[u8],
        job: &BlockBindJob,
    ) -> Result<Arc<[u8]>, Error> {
        self.get(alias)?.coinbase2_with_reference(miner_info_txid, coinbase2, job)
    }

    /// Marks all announcements of an identity as seen in a block. The operator calls this if no
    /// node can tell. A complete revocation closes the identity.
    pub fn confirm(&self, alias: &Alias) -> Result<(), Error> {
        self.change_miner_info(alias, &Change::Confirm)
    }

    /// Updates an identity from what a node and its chain show. Only the identity's own
    /// announcements have an effect.
    pub fn observe(&self, alias: &Alias, view: ChainView) -> Result<(), Error> {
        let _changes = self.begin_change();
        let identity = self.get(alias.as_str())?;
        let changed = self.store.change(alias, &Change::Observe(view));
        self.follow_with(&identity, changed, Identity::continue_with)
    }

    /// Records a revocation, and answers it. Documents announce it from then on. If the same
    /// revocation is already recorded, this answers the existing record, so the call can be
    /// repeated.
    ///
    /// `revoke_miner_ids` also tells the node, so that others distrust the miner ids at once.
    pub fn begin_revocation(
        &self,
        alias: &Alias,
        revoked: RevokedMinerIds,
        revocation_keys: &Keystore,
    ) -> Result<RevocationRecord, Error> {
        let _changes = self.begin_change();
        let identity = self.get(alias.as_str())?;
        self.record_hand_outs_of([Arc::clone(&identity)])?;
        let record = identity.record();
        if let Some(begun) = begun_revocation(&record, revoked) {
            return Ok(begun);
        }
        let miner_info = check_revocable(&identity, &record, revoked)?;
        let (_, revocation_key) = revocation_key(alias, &record, revocation_keys)?;
        let (compromised, key) = match revoked {
            RevokedMinerIds::All => (miner_info.first_miner_id, None),
            RevokedMinerIds::BackTo(compromised) => {
                let (key, _) = self.make_key(alias, record.last_key_number() + 1)?;
                (compromised, Some(key))
            }
        };
        // Keys that no block has shown are skipped: nodes accept a revocation only from a key that
        // they know.
        let known_key = Arc::clone(&identity.state().previous_key);
        let message = Revocation::sign(compromised, &revocation_key, &*known_key)?;
        let change = Change::BeginRevocation { from: record.current_key().number, key, message };
        self.follow_to_new_keys(&identity, self.store.change(alias, &change))?;
        let record = identity.record();
        let (_, begun) = record.last_revocation().expect("the revocation was just recorded");
        Ok(begun)
    }

    /// The identities that need revocation keys, with the names of these keys in their keystore.
    pub fn revocation_key_names(&self) -> Vec<(Alias, Vec<String>)> {
        let names_of = |identity: Arc<Identity>| {
            let record = identity.record();
            if record.miner_info().is_none() || record.is_closed() {
                return None;
            }
            let alias = identity.alias().clone();
            let keys = record.useful_revocation_keys();
            let names = keys.iter().map(|(number, _)| IdentityRecord::key_name(&alias, *number));
            Some((alias.clone(), names.collect()))
        };
        self.all().into_iter().filter_map(names_of).collect()
    }

    /// Proves that a keystore holds the revocation keys that an identity can still use.
    pub fn check_revocation_keys(
        &self,
        alias: &Alias,
        revocation_keys: &Keystore,
    ) -> Result<(), Error> {
        let record = self.get(alias.as_str())?.record();
        miner_info(alias, &record)?;
        for (number, public_key) in record.useful_revocation_keys() {
            open_key(revocation_keys, IdentityRecord::key_name(alias, number), &public_key)?;
        }
        Ok(())
    }

    /// Notes that the node has accepted a revocation.
    pub fn note_revocation_told(&self, alias: &Alias, message: Revocation) -> Result<(), Error> {
        self.change_miner_info(alias, &Change::NoteRevocationTold(message))
    }

    pub(super) fn change_miner_info(&self, alias: &Alias, change: &Change) -> Result<(), Error> {
        let _changes = self.begin_change();
        let identity = self.get(alias.as_str())?;
        miner_info(alias, &identity.record())?;
        let changed = self.store.change(alias, change);
        self.follow_with(&identity, changed, Identity::continue_with)
    }

    fn make_revocation_key(
        &self,
        alias: &Alias,
        number: u32,
        revocation_keys: &Keystore,
    ) -> Result<PrivateKey, Error> {
        make_key(revocation_keys, &IdentityRecord::key_name(alias, number), self.network)
    }
}

/// Checks that these miner ids can be revoked now.
pub(crate) fn check_revocable<'r>(
    identity: &Identity,
    record: &'r IdentityRecord,
    revoked: RevokedMinerIds,
) -> Result<&'r MinerInfoRecord, Error> {
    let alias = identity.alias();
    let miner_info = miner_info(alias, record)?;
    check_open(alias, record)?;
    check_newest(identity)?;
    check_seen(alias, record, &[PartialRevocation, CompleteRevocation])?;
    let RevokedMinerIds::BackTo(miner_id) = revoked else { return Ok(miner_info) };
    let refused = |reason| Err(Error::NotRevocable { alias: alias.clone(), miner_id, reason });
    let is_compromised = |key: &KeyRecord| key.public_key == miner_id;
    if !record.keys().iter().any(is_compromised) {
        return Err(Error::ForeignKey { alias: alias.clone(), key: miner_id });
    }
    if miner_id == miner_info.first_miner_id {
        return refused("it is the first miner id, which only a complete revocation revokes");
    }
    // If a node does not know the compromised miner id, it revokes all miner ids of the miner.
    if record.unacknowledged_keys().iter().skip(1).any(is_compromised) {
        return refused("no block has shown it: skip it with a forced rotation");
    }
    // It would count no more as soon as it is recorded. If others know no key, documents begin anew.
    let known = record.known_revocation_key().filter(|_| record.exposure() == Exposure::Known);
    if known.is_some_and(|known| !record.knows_revocation_key(known.number)) {
        return Err(Error::Unseen { alias: alias.clone(), announcement: RevocationKey });
    }
    Ok(miner_info)
}

/// The announced revocation, if it is this one.
pub(crate) fn begun_revocation(
    record: &IdentityRecord,
    revoked: RevokedMinerIds,
) -> Option<RevocationRecord> {
    let begun = record.revocation().or_else(|| record.untold_revocation())?;
    let is_same = match revoked {
        RevokedMinerIds::All => begun.is_complete,
        RevokedMinerIds::BackTo(miner_id) => {
            !begun.is_complete && begun.message.compromised == miner_id
        }
    };
    is_same.then_some(begun)
}

fn miner_info<'r>(alias: &Alias, record: &'r IdentityRecord) -> Result<&'r MinerInfoRecord, Error> {
    let other = || Error::OtherProtocol { alias: alias.clone(), protocol: "0.2" };
    record.miner_info().ok_or_else(other)
}

/// The revocation key that nodes know, with its number.
fn revocation_key(
    alias: &Alias,
    record: &IdentityRecord,
    revocation_keys: &Keystore,
) -> Result<(u32, PrivateKey), Error> {
    let other = || Error::OtherProtocol { alias: alias.clone(), protocol: "0.2" };
    let RevocationKeyRecord { number, itself } = record.known_revocation_key().ok_or_else(other)?;
    let name = IdentityRecord::key_name(alias, number);
    Ok((number, open_key(revocation_keys, name, &itself.current)?))
}
