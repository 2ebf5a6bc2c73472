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
use crate::signer::{make_key, open_key};
use crate::state::{
    Announcement, ChainView, Change, IdentityRecord, KeyRecord, MinerInfoRecord, Protocol,
    RevocationRecord, Vctx, VctxView,
};
use crate::store::IdentityStore;
use crate::succession::Succession;

use Announcement::{CompleteRevocation, PartialRevocation, RevocationKey};

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
        let itself = Succession::sign(&revocation_key, revocation_key.public_key())?;
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
        let first = match first {
            Some(first) => record
                .keys
                .iter()
                .find(|key| key.public_key == *first)
                .ok_or_else(|| Error::ForeignKey { alias: alias.clone(), key: *first })?,
            None => record.keys.iter().find(|key| key.number == 1).unwrap_or(&record.keys[0]),
        };
        let revocation_key = self.make_revocation_key(alias, 1, revocation_keys)?;
        let itself = Succession::sign(&revocation_key, revocation_key.public_key())?;
        let miner_info = MinerInfoRecord::new(first, 1, itself);
        let change = Change::Upgrade(Box::new(miner_info));
        self.follow_to_new_keys(&identity, self.store.change(alias, &change))
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
        self.record_hand_outs_of([Arc::clone(&identity)])?;
        let record = identity.record();
        let miner_info = miner_info(alias, &record)?;
        check_open(alias, &record)?;
        check_newest(&identity)?;
        check_seen(alias, &record, &[RevocationKey, PartialRevocation, CompleteRevocation])?;
        let from = miner_info.revocation_key_number;
        let current = revocation_key(alias, miner_info, revocation_keys)?;
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

    /// Sets the data that the operator publishes. Documents go on referring to what was published
    /// before until [`output_script_with_data`](Self::output_script_with_data) names a transaction;
    /// without any data they refer to none.
    pub fn set_data(&self, alias: &Alias, data: OperatorDataRefs) -> Result<(), Error> {
        self.change_miner_info(alias, &Change::SetData(data))
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
            self.change_miner_info(identity.alias(), &Change::ReferToData(data_txid))?;
        }
        identity.output_script_with_data(height, data_txid)
    }

    /// `coinbase2` with one output more, which refers to the miner-info transaction, of generation 1.0, and binds it to
    /// the block that `job` tells the place of. All else is byte for byte as it was.
    ///
    /// The key that signs the first reference to a transaction signs all, even if the identity is rotated meanwhile:
    /// nodes want the one that its document names. That is on the disk before this answers. If it cannot be written,
    /// this answers all the same, and the log tells.
    pub fn coinbase2_with_reference(
        &self,
        alias: &str,
        miner_info_txid: Txid,
        coinbase2: &[u8],
        job: &BlockBindJob,
    ) -> Result<Arc<[u8]>, Error> {
        let identity = self.get(alias)?;
        let made = identity.preview_coinbase2_with_reference(miner_info_txid, coinbase2, job)?;
        if identity.has_noted_reference(&miner_info_txid) {
            return Ok(made);
        }
        let reference = identity.reference(miner_info_txid);
        if let Err(error) = self.change(identity.alias(), &Change::NoteReference(reference)) {
            tracing::error!(
                "the key that signs references to {miner_info_txid} is not noted: {error}"
            );
        }
        identity.preview_coinbase2_with_reference(miner_info_txid, coinbase2, job)
    }

    /// Takes all that an identity announces for seen in a block, as the operator says, where no node
    /// tells. A complete revocation closes the identity.
    pub fn confirm(&self, alias: &Alias) -> Result<(), Error> {
        self.change_miner_info(alias, &Change::Confirm)
    }

    /// Follows what a node and its chain show, and makes documents go on from there. What they show of
    /// anything but the identity's own announcements changes nothing.
    pub fn observe(&self, alias: &Alias, view: ChainView) -> Result<(), Error> {
        let _changes = self.begin_change();
        let identity = self.get(alias.as_str())?;
        let changed = self.store.change(alias, &Change::Observe(view));
        self.follow_with(&identity, changed, Identity::continue_with)
    }

    /// Records a revocation, which documents announce from then on, and answers it. One that is
    /// recorded already is answered as it is, so that it can be asked for again.
    ///
    /// `revoke_miner_ids` also tells the node, which is what makes others mistrust the miner ids at once.
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
        let revocation_key = revocation_key(alias, miner_info, revocation_keys)?;
        let (compromised, key) = match revoked {
            RevokedMinerIds::All => (miner_info.first_miner_id, None),
            RevokedMinerIds::BackTo(compromised) => {
                let (key, _) = self.make_key(alias, record.last_key_number() + 1)?;
                (compromised, Some(key))
            }
        };
        // What no block has shown is passed over: nodes take a revocation from the key that they know.
        let known_key = Arc::clone(&identity.state().previous_key);
        let message = Revocation::sign(compromised, &revocation_key, &*known_key)?;
        let change = Change::BeginRevocation {
            from: record.current_key().number,
            key,
            message,
            revocation_key: Succession::sign(&revocation_key, revocation_key.public_key())?,
        };
        self.follow_to_new_keys(&identity, self.store.change(alias, &change))?;
        let begun = identity.record().miner_info().and_then(|own| own.revocation);
        Ok(begun.expect("it was recorded just now"))
    }

    /// The identities that need revocation keys, and the names under which their keystore holds these.
    pub fn revocation_key_names(&self) -> Vec<(Alias, Vec<String>)> {
        let names_of = |identity: Arc<Identity>| {
            let record = identity.record();
            let miner_info = record.miner_info().filter(|miner_info| !miner_info.is_closed)?;
            let alias = identity.alias().clone();
            let keys = miner_info.useful_revocation_keys();
            let names = keys.iter().map(|(number, _)| IdentityRecord::key_name(&alias, *number));
            Some((alias.clone(), names.collect()))
        };
        self.all().into_iter().filter_map(names_of).collect()
    }

    /// Proves that a keystore holds the revocation keys of an identity that are still of use.
    pub fn check_revocation_keys(
        &self,
        alias: &Alias,
        revocation_keys: &Keystore,
    ) -> Result<(), Error> {
        let record = self.get(alias.as_str())?.record();
        for (number, public_key) in miner_info(alias, &record)?.useful_revocation_keys() {
            open_key(revocation_keys, IdentityRecord::key_name(alias, number), &public_key)?;
        }
        Ok(())
    }

    /// Notes that the node has taken a revocation.
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

/// Checks that miner ids can be revoked now.
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
    let is_it = |key: &KeyRecord| key.public_key == miner_id;
    if !record.keys.iter().any(is_it) {
        return Err(Error::ForeignKey { alias: alias.clone(), key: miner_id });
    }
    if miner_id == miner_info.first_miner_id {
        return refused("it is the first, so that only all of them can be revoked");
    }
    // A node that does not know a compromised miner id revokes all of its miner's.
    if record.unacknowledged_keys().iter().skip(1).any(is_it) {
        return refused("no block has shown it: pass over it with a forced rotation");
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
    let (number, public_key) = record.known_revocation_key();
    open_key(revocation_keys, IdentityRecord::key_name(alias, number), &public_key)
}
