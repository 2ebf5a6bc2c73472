//! Identities of generation 1.0.

use std::sync::Arc;

use bsv_store::Keystore;
use bsv_tx::{PrivateKey, PublicKey, Txid};

use super::{MinerIds, check_open, check_seen, load_key, make_key};
use crate::alias::Alias;
use crate::data_refs::OperatorDataRefs;
use crate::error::Error;
use crate::identity::Identity;
use crate::miner_info::Revocation;
use crate::store::{
    Announcement, IdentityRecord, IdentityStore, MinerIdView, MinerInfoChange, MinerInfoRecord,
    Protocol, RevocationRecord, Vctx, VctxView,
};
use crate::succession::Succession;

use Announcement::{CompleteRevocation, PartialRevocation, RevocationKey, Rotation};

/// Which miner ids are revoked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RevokedMinerIds {
    /// The current one and those before it, back to this one. A new one takes their place.
    BackTo(PublicKey),
    /// All, and none takes their place.
    All,
}

impl<S: IdentityStore> MinerIds<S> {
    /// Begins an identity of generation 1.0 with a new key, and a revocation key in a keystore of
    /// its own, which need not be at hand to make documents. Answers the key.
    pub fn generate_miner_info(
        &self,
        alias: &Alias,
        revocation_keys: &Keystore,
    ) -> Result<PublicKey, Error> {
        let _changes = self.begin_change();
        self.check_new(alias)?;
        let revocation_key = self.make_revocation_key(alias, 1, revocation_keys)?;
        let (key, private_key) = self.make_key(alias, 1)?;
        let itself = Succession::sign(&revocation_key, revocation_key.public_key());
        let miner_info = MinerInfoRecord::new(&key, 1, itself);
        let record = IdentityRecord::new(key, Protocol::MinerInfo(Box::new(miner_info)));
        self.create(alias, record, private_key)?;
        Ok(key.public_key)
    }

    /// Makes an identity of generation 0.2 one of 1.0, with a revocation key. Its first document
    /// announces the last rotation again, if there was one. The first miner id is the key numbered
    /// 1, or else the oldest, unless `first` names another of its keys.
    pub fn upgrade(
        &self,
        alias: &Alias,
        first: Option<&PublicKey>,
        revocation_keys: &Keystore,
    ) -> Result<(), Error> {
        let _changes = self.begin_change();
        let identity = self.get(alias.as_str())?;
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
        let first = match first {
            Some(first) => record
                .keys
                .iter()
                .find(|key| key.public_key == *first)
                .ok_or_else(|| Error::ForeignKey { alias: alias.clone(), key: *first })?,
            None => record.keys.iter().find(|key| key.number == 1).unwrap_or(&record.keys[0]),
        };
        let revocation_key = self.make_revocation_key(alias, 1, revocation_keys)?;
        let itself = Succession::sign(&revocation_key, revocation_key.public_key());
        let miner_info = MinerInfoRecord {
            acknowledged: record.previous_key().number,
            ..MinerInfoRecord::new(first, 1, itself)
        };
        let change = MinerInfoChange::Upgrade(Box::new(miner_info));
        self.follow_to_new_keys(&identity, self.store.change_miner_info(alias, &change))
    }

    /// Gives an identity a new revocation key, which the one until now vouches for, and answers the
    /// new one. Until a block was seen to show it, nothing else can be done with revocation keys.
    pub fn roll_revocation_key(
        &self,
        alias: &Alias,
        revocation_keys: &Keystore,
    ) -> Result<PublicKey, Error> {
        let _changes = self.begin_change();
        let identity = self.get(alias.as_str())?;
        let record = identity.record();
        let miner_info = miner_info(alias, &record)?;
        check_open(alias, &record)?;
        check_seen(alias, &record, &[RevocationKey, PartialRevocation, CompleteRevocation])?;
        let from = miner_info.revocation_key_number;
        let current = revocation_key(alias, miner_info, revocation_keys)?;
        let number = from + 1;
        let new = self.make_revocation_key(alias, number, revocation_keys)?;
        let change = MinerInfoChange::RollRevocationKey {
            from,
            number,
            announced: Succession::sign(&current, new.public_key()),
            acknowledged: Succession::sign(&new, new.public_key()),
        };
        self.follow_to_new_keys(&identity, self.store.change_miner_info(alias, &change))?;
        Ok(new.public_key())
    }

    /// Sets the data that the operator publishes. Documents go on referring to what was published
    /// before until [`output_script_with_data`](Self::output_script_with_data) names a transaction;
    /// without any data they refer to none.
    pub fn set_data(&self, alias: &Alias, data: OperatorDataRefs) -> Result<(), Error> {
        self.change_miner_info(alias, MinerInfoChange::SetData(data))
    }

    /// The output script of the document for the block at `height`, which says, as all later
    /// documents do, that the operator's data stands in the transaction `data_txid`. That is on the
    /// disk before this answers.
    pub fn output_script_with_data(
        &self,
        alias: &str,
        height: u32,
        data_txid: Txid,
    ) -> Result<Arc<[u8]>, Error> {
        let identity = self.get(alias)?;
        // Refuses what cannot be built before anything is changed.
        identity.preview_output_script_with_data(height, data_txid)?;
        let refers_already = {
            let state = identity.state();
            let record = state.record.miner_info();
            record.is_some_and(|record| record.data_refs == record.data.references(data_txid))
        };
        if !refers_already {
            self.change_miner_info(identity.alias(), MinerInfoChange::ReferToData(data_txid))?;
        }
        identity.output_script_with_data(height, data_txid)
    }

    /// Takes all that an identity announces for seen in a block, as the operator says, where no node
    /// tells. A complete revocation closes the identity.
    pub fn confirm(&self, alias: &Alias) -> Result<(), Error> {
        self.change_miner_info(alias, MinerInfoChange::Confirm)
    }

    /// Notes what a node and its chain show, and makes documents go on from there. What they show of
    /// anything but the identity's own announcements changes nothing.
    pub fn acknowledge(&self, alias: &Alias, view: MinerIdView) -> Result<(), Error> {
        self.change_miner_info(alias, MinerInfoChange::Acknowledge(view))
    }

    /// Records a revocation, which documents announce from then on, and answers it. One that is
    /// recorded already is answered as it is, so that it can be asked for again.
    ///
    /// [`revoke_miner_ids`](crate::revoke_miner_ids) also tells the node, which is what makes others
    /// mistrust the miner ids at once.
    pub fn begin_revocation(
        &self,
        alias: &Alias,
        revoked: RevokedMinerIds,
        revocation_keys: &Keystore,
    ) -> Result<RevocationRecord, Error> {
        let _changes = self.begin_change();
        let identity = self.get(alias.as_str())?;
        let record = identity.record();
        if let Some(begun) = begun_revocation(&record, revoked) {
            return Ok(begun);
        }
        let miner_info = check_revocable(alias, &record, revoked)?;
        let revocation_key = revocation_key(alias, miner_info, revocation_keys)?;
        let (compromised, key) = match revoked {
            RevokedMinerIds::All => (miner_info.first_miner_id, None),
            RevokedMinerIds::BackTo(compromised) => {
                let (key, _) = self.make_key(alias, record.last_key_number() + 1)?;
                (compromised, Some(key))
            }
        };
        let miner_id = Arc::clone(&identity.state().current_key);
        let message = Revocation::sign(compromised, &revocation_key, &miner_id);
        let from = record.current_key().number;
        let change = MinerInfoChange::BeginRevocation { from, key, message };
        self.follow_to_new_keys(&identity, self.store.change_miner_info(alias, &change))?;
        Ok(RevocationRecord { message, is_complete: key.is_none(), is_told: false })
    }

    /// Notes that the node has taken a revocation.
    pub fn note_revocation_told(&self, alias: &Alias, message: Revocation) -> Result<(), Error> {
        self.change_miner_info(alias, MinerInfoChange::NoteRevocationTold(message))
    }

    fn change_miner_info(&self, alias: &Alias, change: MinerInfoChange) -> Result<(), Error> {
        let _changes = self.begin_change();
        let identity = self.get(alias.as_str())?;
        miner_info(alias, &identity.record())?;
        let changed = self.store.change_miner_info(alias, &change);
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

/// Checks that miner ids can be revoked now.
pub(crate) fn check_revocable<'r>(
    alias: &Alias,
    record: &'r IdentityRecord,
    revoked: RevokedMinerIds,
) -> Result<&'r MinerInfoRecord, Error> {
    let miner_info = miner_info(alias, record)?;
    check_open(alias, record)?;
    check_seen(alias, record, &[Rotation, RevocationKey, PartialRevocation, CompleteRevocation])?;
    let RevokedMinerIds::BackTo(miner_id) = revoked else { return Ok(miner_info) };
    let refused = |reason| Err(Error::NotRevocable { alias: alias.clone(), miner_id, reason });
    if record.keys.iter().all(|key| key.public_key != miner_id) {
        return Err(Error::ForeignKey { alias: alias.clone(), key: miner_id });
    }
    if miner_id == miner_info.first_miner_id {
        return refused("it is the first, so that all are to be revoked (revokemineridcompletely)");
    }
    Ok(miner_info)
}

/// The revocation that is announced, if it is this one.
pub(crate) fn begun_revocation(
    record: &IdentityRecord,
    revoked: RevokedMinerIds,
) -> Option<RevocationRecord> {
    let begun = record.miner_info()?.revocation?;
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

fn revocation_key(
    alias: &Alias,
    record: &MinerInfoRecord,
    revocation_keys: &Keystore,
) -> Result<PrivateKey, Error> {
    let name = IdentityRecord::key_name(alias, record.revocation_key_number);
    load_key(revocation_keys, name, &record.revocation_key.current)
}
