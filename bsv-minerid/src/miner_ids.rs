use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use bsv_store::{AuditCheck, AuditEntry, KeyEvent, Keystore, KeystoreError};
use bsv_tx::{Network, OutPoint, PrivateKey, PublicKey};

use crate::alias::Alias;
use crate::error::Error;
use crate::identity::{Identity, State};
use crate::import::{HomeFiles, Import, OlderHome};
use crate::json::CanonicalJson;
use crate::json_object::MinerContact;
#[cfg(feature = "node")]
use crate::node::ChainWatch;
use crate::operator_members::{CONTACT, EXTENSIONS, OperatorMembers, OperatorMembersError};
use crate::signer::{Signer, make_key, open_key};
use crate::state::{Announcement, Change, IdentityRecord, KeyRecord, Protocol, Rotation, Vctx};
#[cfg(feature = "store")]
use crate::store::RedbIdentityStore;
use crate::store::{IdentityStore, IdentityStoreError};

mod announcing;
#[cfg(feature = "node")]
mod on_chain;

pub use announcing::RevokedMinerIds;
#[cfg(feature = "node")]
pub(crate) use announcing::{begun_revocation, check_revocable};

/// All miner identities of a service: their store and their keys.
///
/// Reading and signing go on while a change waits for the disk. A private key is on the disk, and
/// has been read back from there, before the store points to it.
pub struct MinerIds<
    #[cfg(feature = "store")] S = RedbIdentityStore,
    #[cfg(not(feature = "store"))] S,
> {
    store: S,
    keystore: Arc<Keystore>,
    network: Network,
    identities: RwLock<BTreeMap<Alias, Arc<Identity>>>,
    /// Held while something is changed.
    changes: Mutex<()>,
    /// Those with a change that failed, and of which it could not be read what it has left.
    unsettled: Mutex<BTreeSet<Alias>>,
    refuses_if_stale: Arc<AtomicBool>,
    /// Those that could not be opened, and why.
    broken: BTreeMap<Alias, BrokenIdentity>,
    /// What is known of the chain.
    #[cfg(feature = "node")]
    pub(crate) chain: ChainWatch,
}

/// An identity that could not be opened.
struct BrokenIdentity {
    reason: String,
    /// The names of its keys, where its record can be read.
    key_names: Vec<String>,
}

impl<S: IdentityStore> MinerIds<S> {
    /// Opens all identities in `store`, whose keys lie in `keystore`. One with a record that cannot be read, or with a
    /// key that is missing, damaged, or not the one on record, is answered with [`Error::Broken`], and keeps no other
    /// from working.
    pub fn open(
        store: S,
        keystore: impl Into<Arc<Keystore>>,
        network: Network,
    ) -> Result<Self, Error> {
        let mut ids = Self {
            store,
            keystore: keystore.into(),
            network,
            identities: RwLock::default(),
            changes: Mutex::default(),
            unsettled: Mutex::default(),
            refuses_if_stale: Arc::default(),
            broken: BTreeMap::new(),
            #[cfg(feature = "node")]
            chain: ChainWatch::default(),
        };
        for (alias, record) in ids.store.identities()? {
            if record.as_ref().is_ok_and(|record| record.is_deleted) {
                continue;
            }
            let key_names = record.as_ref().map(|record| record.key_names(&alias));
            let key_names = key_names.unwrap_or_default();
            let loaded =
                record.map_err(Error::from).and_then(|record| ids.load_state(&alias, record));
            match loaded {
                Ok(state) => ids.add(alias, state),
                Err(error) => {
                    let reason = error.to_string();
                    tracing::error!("alias {alias} cannot be used: {reason}");
                    ids.broken.insert(alias, BrokenIdentity { reason, key_names });
                }
            }
        }
        Ok(ids)
    }

    /// Where the identities are kept.
    pub fn store(&self) -> &S {
        &self.store
    }

    /// Adds to the audit log what happens to keys that the identities have a part in.
    pub fn note_key_event(&self, event: KeyEvent, subject: &str) -> Result<(), Error> {
        Ok(self.store.note_key_event(event, subject)?)
    }

    /// Up to `limit` entries of the audit log after the one of this number, in order.
    pub fn audit_log(&self, after: u64, limit: usize) -> Result<Vec<AuditEntry>, Error> {
        Ok(self.store.audit_log(after, limit)?)
    }

    /// Reads the audit log from its beginning, off the disk, and looks whether its entries fit.
    pub fn verify_audit_log(&self) -> Result<AuditCheck, Error> {
        Ok(self.store.verify_audit_log()?)
    }

    /// Makes older copies of identities refuse documents, or answer them, as they do at first. An identity that nodes
    /// ignore costs nothing; a refusal may cost a caller its job.
    pub fn refuse_if_stale(&self, refuses: bool) {
        self.refuses_if_stale.store(refuses, Ordering::Relaxed);
    }

    /// The names under which the keystore must hold keys.
    pub fn key_names(&self) -> Vec<String> {
        let names_of = |identity: Arc<Identity>| identity.record().key_names(identity.alias());
        let names = self.all().into_iter().flat_map(names_of);
        names.chain(self.broken.values().flat_map(|broken| broken.key_names.clone())).collect()
    }

    /// The network whose forms of keys and addresses are used.
    pub fn network(&self) -> Network {
        self.network
    }

    /// The identity that `alias` selects. Any text may be asked for.
    pub fn get(&self, alias: &str) -> Result<Arc<Identity>, Error> {
        let identities = self.identities.read().unwrap_or_else(PoisonError::into_inner);
        identities.get(alias).cloned().ok_or_else(|| match self.broken.get_key_value(alias) {
            Some((alias, broken)) => {
                Error::Broken { alias: alias.clone(), reason: broken.reason.clone() }
            }
            None => Error::UnknownAlias(alias.to_owned()),
        })
    }

    /// The identities that could not be opened, ordered by alias, and why.
    pub fn broken(&self) -> impl Iterator<Item = (&Alias, &str)> {
        self.broken.iter().map(|(alias, broken)| (alias, broken.reason.as_str()))
    }

    /// All identities, ordered by alias.
    pub fn all(&self) -> Vec<Arc<Identity>> {
        let identities = self.identities.read().unwrap_or_else(PoisonError::into_inner);
        identities.values().cloned().collect()
    }

    /// How much all identities announce that no block was seen to show yet.
    pub fn announced(&self) -> usize {
        let identities = self.identities.read().unwrap_or_else(PoisonError::into_inner);
        identities.values().map(|identity| identity.announced()).sum()
    }

    /// Whether there is an identity of which nobody was shown a document.
    pub fn has_kept(&self) -> bool {
        let identities = self.identities.read().unwrap_or_else(PoisonError::into_inner);
        identities.values().any(|identity| identity.is_kept_on_record())
    }

    /// Whether there is a revocation that the node was not told of.
    pub fn has_untold(&self) -> bool {
        let identities = self.identities.read().unwrap_or_else(PoisonError::into_inner);
        identities.values().any(|identity| identity.has_untold())
    }

    /// Begins an identity of generation 0.2 with a new key, and answers the key.
    pub fn generate(&self, alias: &Alias) -> Result<PublicKey, Error> {
        let _changes = self.begin_change();
        self.check_new(alias)?;
        let (key, private_key) = self.make_key(alias, 1)?;
        let record = IdentityRecord::new(key, Protocol::Vctx(Vctx::None));
        self.create(alias, record, private_key)?;
        Ok(key.public_key)
    }

    /// Gives an identity a new key, which the one until now vouches for, and answers the new key.
    ///
    /// An identity of which no document was handed out begins anew with the new key: nobody knows the one until now.
    /// One of generation 1.0 announces one new key at a time: until a block was seen to show it, the next is refused
    /// with [`Error::Unseen`]. [`rotate_miner_id`](crate::rotate_miner_id) asks a node first.
    pub fn rotate(&self, alias: &Alias) -> Result<PublicKey, Error> {
        self.rotate_unless(alias, &[Announcement::Rotation], Rotation::Succeed)
    }

    /// Gives an identity a new key even if no block was seen to show the last one. Documents of
    /// generation 1.0 then pass over that one: the last key that was seen vouches for the new one.
    /// If it turns out that a block has shown it, they go on from there.
    pub fn rotate_again(&self, alias: &Alias) -> Result<PublicKey, Error> {
        self.rotate_unless(alias, &[], Rotation::Succeed)
    }

    fn rotate_unless(
        &self,
        alias: &Alias,
        unseen: &[Announcement],
        rotation: Rotation,
    ) -> Result<PublicKey, Error> {
        let _changes = self.begin_change();
        let identity = self.get(alias.as_str())?;
        self.record_hand_outs_of([Arc::clone(&identity)])?;
        let record = identity.record();
        let revocations = [Announcement::PartialRevocation, Announcement::CompleteRevocation];
        check_open(alias, &record)?;
        check_newest(&identity)?;
        // The older generator rotates identities of generation 0.2 whatever blocks have shown.
        let unseen = record.miner_info().map_or(&[][..], |_| unseen);
        check_seen(alias, &record, &[&revocations, unseen].concat())?;
        let (key, _) = self.make_key(alias, record.last_key_number() + 1)?;
        let from = record.current_key().number;
        let rotation = if identity.is_kept() { Rotation::Replace } else { rotation };
        let change = Change::Rotate { rotation, from, key };
        self.follow_to_new_keys(&identity, self.store.change(alias, &change))?;
        Ok(key.public_key)
    }

    /// Deletes an identity that is revoked for good. Its alias is not given to another identity. Its keys stay in the
    /// keystore unless `with_keys` says otherwise; that of its validity check output stays in any case, since it owns
    /// what spending that has left.
    pub fn delete(&self, alias: &Alias, with_keys: bool) -> Result<(), Error> {
        let _changes = self.begin_change();
        let identity = self.get(alias.as_str())?;
        let record = identity.record();
        if !record.is_closed() {
            return Err(Error::NotClosed(alias.clone()));
        }
        if let Err(error) = self.store.change(alias, &Change::Delete) {
            return Err(self.failed(alias, error));
        }
        self.forget(alias);
        for key in record.keys.iter().filter(|_| with_keys) {
            let name = IdentityRecord::key_name(alias, key.number);
            self.store.note_key_event(KeyEvent::Deleted, &name)?;
            self.keystore.remove(&name)?;
            tracing::info!(target: "bsv_audit", subject = name, "{}", KeyEvent::Deleted.name());
        }
        Ok(())
    }

    fn forget(&self, alias: &Alias) {
        self.identities.write().unwrap_or_else(PoisonError::into_inner).remove(alias);
    }

    /// Notes durably that somebody was shown a document of an identity. Before that, a rotation replaces its key instead
    /// of announcing a new one; so a service notes it before it answers the first document.
    pub fn note_shown(&self, alias: &Alias) -> Result<(), Error> {
        self.change(alias, &Change::NoteShown)
    }

    /// Sets keys of what the identity tells about its miner.
    pub fn set_contact(
        &self,
        alias: &Alias,
        changes: &MinerContact,
    ) -> Result<MinerContact, Error> {
        let mut contact = MinerContact::default();
        self.change_operator(alias, |record, operator| {
            contact = record.contact();
            contact.merge(changes);
            if contact.is_empty() {
                return Ok(());
            }
            let json = CanonicalJson::from_text(&contact.to_json());
            Ok(operator.set(CONTACT, json.map_err(OperatorMembersError::Json)?)?)
        })?;
        Ok(contact)
    }

    /// Takes keys away from what the identity tells about its miner.
    pub fn remove_contact_keys(
        &self,
        alias: &Alias,
        keys: &[String],
    ) -> Result<MinerContact, Error> {
        let mut contact = MinerContact::default();
        self.change_operator(alias, |record, operator| {
            contact = record.contact();
            for key in keys {
                if contact.get(key).is_none() {
                    return Err(OperatorMembersError::NoContactKey(key.clone()).into());
                }
                contact.remove(key);
            }
            if contact.is_empty() {
                operator.remove(CONTACT);
                return Ok(());
            }
            let json = CanonicalJson::from_text(&contact.to_json());
            Ok(operator.set(CONTACT, json.map_err(OperatorMembersError::Json)?)?)
        })?;
        Ok(contact)
    }

    /// Switches on or off that an identity signs any digest. It signs documents in any case.
    pub fn set_blind_signing(&self, alias: &Alias, is_on: bool) -> Result<(), Error> {
        self.change(alias, &Change::SetBlindSigning(is_on))
    }

    /// Sets the extensions of documents of generation 1.0, a JSON object.
    pub fn set_extensions(&self, alias: &Alias, extensions: CanonicalJson) -> Result<(), Error> {
        self.change_operator(alias, |record, operator| {
            // Those of generation 0.2 come with each job.
            if let Protocol::Vctx(_) = record.protocol {
                return Err(Error::OtherProtocol { alias: alias.clone(), protocol: "0.2" });
            }
            Ok(operator.set(EXTENSIONS, extensions)?)
        })
    }

    fn change_operator(
        &self,
        alias: &Alias,
        change: impl FnOnce(&IdentityRecord, &mut OperatorMembers) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let _changes = self.begin_change();
        let identity = self.get(alias.as_str())?;
        let record = identity.record();
        let mut operator = record.operator.clone();
        change(&record, &mut operator)?;
        self.follow(&identity, self.store.change(alias, &Change::SetOperator(operator)))
    }

    /// Takes over the identities of an older generator's home directory whose aliases are not there yet, all of them
    /// or none, and tells of each alias what became of it. Identities of generation 1.0 have revocation keys, which go
    /// into a keystore of their own. [`import_miner_ids`](crate::import_miner_ids) asks a node about the others'
    /// validity check outputs first.
    pub fn import(
        &self,
        home: &Path,
        revocation_keys: Option<&Keystore>,
    ) -> Result<Vec<(Alias, Import)>, Error> {
        self.take_over(OlderHome::parse(&HomeFiles::read(home)?)?, revocation_keys)
    }

    pub(crate) fn take_over(
        &self,
        home: OlderHome,
        revocation_keys: Option<&Keystore>,
    ) -> Result<Vec<(Alias, Import)>, Error> {
        let _changes = self.begin_change();
        let (mut outcomes, mut new) = (Vec::new(), Vec::new());
        for older in home.identities {
            let outcome = match self.check_new(&older.alias) {
                Ok(()) => older.as_taken_over(),
                Err(Error::AliasDeleted(_)) => Import::Deleted,
                Err(_) => older.as_known(self.store.identity(&older.alias).ok().as_ref()),
            };
            outcomes.push((older.alias.clone(), outcome));
            new.extend(matches!(outcome, Import::TakenOver(_)).then_some(older));
        }
        let mut secrets = Vec::new();
        for older in &new {
            let keys = older.secrets(self.network);
            secrets.extend(keys.into_iter().map(|(name, secret)| (&*self.keystore, name, secret)));
            let keys = older.revocation_secrets();
            if keys.is_empty() {
                continue;
            }
            let keystore = revocation_keys.ok_or(Error::NoRevocationKeystore)?;
            secrets.extend(keys.into_iter().map(|(name, secret)| (keystore, name, secret)));
        }
        // First all are looked at, so that a refusal leaves no key behind.
        for (keystore, name, secret) in &secrets {
            holds_secret(keystore, name, secret)?;
        }
        for (keystore, name, secret) in &secrets {
            take_over_secret(keystore, name, secret)?;
        }
        let records: Vec<_> =
            new.iter().map(|older| (older.alias.clone(), older.to_record())).collect();
        let states: Vec<_> = records
            .iter()
            .map(|(alias, record)| self.load_state(alias, record.clone()))
            .collect::<Result<_, _>>()?;
        if let Err(error) = self.store.create(&records, KeyEvent::Imported) {
            let aliases: Vec<_> = records.iter().map(|(alias, _)| alias).collect();
            return Err(self.all_failed(&aliases, error));
        }
        let aliases = records.into_iter().map(|(alias, _)| alias);
        for (alias, state) in aliases.zip(states) {
            self.add(alias, state);
        }
        Ok(outcomes)
    }

    /// Gives an identity a validity check output that was made elsewhere, with the key that can
    /// spend it. Which output it is enters every document.
    pub fn adopt_vctx(
        &self,
        alias: &Alias,
        outpoint: OutPoint,
        key: &PrivateKey,
    ) -> Result<(), Error> {
        let _changes = self.begin_change();
        let identity = self.get(alias.as_str())?;
        let name = IdentityRecord::vctx_key_name(alias);
        take_over_secret(&self.keystore, &name, key.to_wif(self.network).as_bytes())?;
        self.follow(&identity, self.store.change(alias, &Change::RecordVctx(outpoint)))
    }

    /// Notes durably which identities have handed out a document since their last rotation. A
    /// service calls it now and then, as `run` does, so that handing out itself does no I/O; what was not noted
    /// before a crash makes [`Identity::is_valid`] answer false until the next document.
    pub fn record_hand_outs(&self) -> Result<(), Error> {
        let _changes = self.begin_change();
        self.record_hand_outs_of(self.all())
    }

    /// The same for some identities, before what tells of it is replaced.
    fn record_hand_outs_of(
        &self,
        identities: impl IntoIterator<Item = Arc<Identity>>,
    ) -> Result<(), Error> {
        let unrecorded: Vec<_> = identities
            .into_iter()
            .filter_map(|identity| Some((identity.unrecorded_hand_out()?, identity)))
            .collect();
        if unrecorded.is_empty() {
            return Ok(());
        }
        let changes: Vec<_> = unrecorded
            .iter()
            .map(|(number, identity)| (identity.alias().clone(), Change::NoteHandedOut(*number)))
            .collect();
        self.store.change_all(&changes)?;
        for (number, identity) in unrecorded {
            identity.mark_hand_out_recorded(number);
        }
        Ok(())
    }

    /// Makes a change that leaves the keys as they are.
    pub(crate) fn change(&self, alias: &Alias, change: &Change) -> Result<(), Error> {
        let _changes = self.begin_change();
        let identity = self.get(alias.as_str())?;
        self.follow(&identity, self.store.change(alias, change))
    }

    fn begin_change(&self) -> MutexGuard<'_, ()> {
        let changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        self.unsettled().retain(|alias| !self.settle(alias));
        changes
    }

    fn check_new(&self, alias: &Alias) -> Result<(), Error> {
        match self.get(alias.as_str()) {
            Err(Error::UnknownAlias(_)) => {}
            Err(broken) => return Err(broken),
            Ok(_) => return Err(Error::AliasExists(alias.clone())),
        }
        match self.store.identity(alias) {
            Ok(record) if record.is_deleted => Err(Error::AliasDeleted(alias.clone())),
            _ => Ok(()),
        }
    }

    fn create(
        &self,
        alias: &Alias,
        record: IdentityRecord,
        key: Arc<dyn Signer>,
    ) -> Result<(), Error> {
        if let Err(error) = self.store.create(&[(alias.clone(), record.clone())], KeyEvent::Made) {
            return Err(self.failed(alias, error));
        }
        self.add(alias.clone(), State::new(record, Arc::clone(&key), key));
        Ok(())
    }

    fn add(&self, alias: Alias, state: State) {
        let identity =
            Arc::new(Identity::new(alias.clone(), state, Arc::clone(&self.refuses_if_stale)));
        let mut identities = self.identities.write().unwrap_or_else(PoisonError::into_inner);
        identities.insert(alias, identity);
    }

    /// Makes an identity follow a change of its record.
    fn follow(
        &self,
        identity: &Identity,
        changed: Result<IdentityRecord, IdentityStoreError>,
    ) -> Result<(), Error> {
        match changed {
            Ok(record) => identity.replace_record(record),
            Err(error) => return Err(self.failed(identity.alias(), error)),
        }
        Ok(())
    }

    /// Makes an identity follow a change of its keys, after which no document was handed out yet.
    fn follow_to_new_keys(
        &self,
        identity: &Identity,
        changed: Result<IdentityRecord, IdentityStoreError>,
    ) -> Result<(), Error> {
        self.follow_with(identity, changed, Identity::replace_state)
    }

    fn follow_with(
        &self,
        identity: &Identity,
        changed: Result<IdentityRecord, IdentityStoreError>,
        follow: impl FnOnce(&Identity, State),
    ) -> Result<(), Error> {
        let alias = identity.alias();
        let record = changed.map_err(|error| self.failed(alias, error))?;
        match self.load_state(alias, record) {
            Ok(state) => follow(identity, state),
            Err(error) => {
                // It goes on as it is until the next change finds its keys.
                self.unsettled().insert(alias.clone());
                return Err(error);
            }
        }
        Ok(())
    }

    fn failed(&self, alias: &Alias, error: IdentityStoreError) -> Error {
        self.all_failed(&[alias], error)
    }

    /// Follows what a change that failed has left, and tells what the caller is to know.
    fn all_failed(&self, aliases: &[&Alias], error: IdentityStoreError) -> Error {
        let records = || aliases.iter().map(|alias| self.record_of(alias)).collect::<Vec<_>>();
        let before = records();
        let unread: Vec<_> = aliases.iter().filter(|alias| !self.settle(alias)).collect();
        let is_as_before = unread.is_empty() && records() == before;
        self.unsettled().extend(unread.into_iter().map(|alias| (*alias).clone()));
        match error {
            IdentityStoreError::Store(error) if !is_as_before => Error::Unsettled(error),
            error => error.into(),
        }
    }

    /// Makes an identity what the store says it is: a commit that failed may have reached the disk
    /// all the same, with other keys than the ones that this attempt has made. Answers false where
    /// that cannot be read; the identity then stays as it is, goes on signing with the key it has,
    /// and the next change looks again.
    fn settle(&self, alias: &Alias) -> bool {
        let record = match self.store.identity(alias) {
            Ok(record) => record,
            Err(IdentityStoreError::Unknown(_)) => return true,
            Err(_) => return false,
        };
        if record.is_deleted {
            self.forget(alias);
            return true;
        }
        let identity = self.get(alias.as_str()).ok();
        if let Some(identity) = &identity
            && identity.record().keys == record.keys
            && identity.record().previous_key() == record.previous_key()
        {
            identity.replace_record(record);
            return true;
        }
        let Ok(state) = self.load_state(alias, record) else { return false };
        match identity {
            Some(identity) => identity.replace_state(state),
            None => self.add(alias.clone(), state),
        }
        true
    }

    fn record_of(&self, alias: &Alias) -> Option<IdentityRecord> {
        Some(self.get(alias.as_str()).ok()?.record())
    }

    fn unsettled(&self) -> MutexGuard<'_, BTreeSet<Alias>> {
        self.unsettled.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn load_state(&self, alias: &Alias, record: IdentityRecord) -> Result<State, Error> {
        let current_key = self.load_key(alias, record.current_key())?;
        let previous_key = self.load_key(alias, record.previous_key())?;
        let earlier_keys = self.load_earlier_keys(alias, &record);
        Ok(State::new(record, current_key, previous_key).with_earlier_keys(earlier_keys))
    }

    /// The keys that may still sign references. Without one the current key signs.
    fn load_earlier_keys(
        &self,
        alias: &Alias,
        record: &IdentityRecord,
    ) -> BTreeMap<u32, Arc<dyn Signer>> {
        let Some(own) = record.miner_info() else { return BTreeMap::new() };
        let may_sign = |number| {
            own.document_key == Some(number)
                || own.references.iter().any(|noted| noted.key == number)
        };
        let keys = record.keys.iter().filter(|key| may_sign(key.number));
        keys.filter_map(|key| Some((key.number, self.load_key(alias, key).ok()?))).collect()
    }

    fn load_key(&self, alias: &Alias, key: &KeyRecord) -> Result<Arc<dyn Signer>, Error> {
        let name = IdentityRecord::key_name(alias, key.number);
        Ok(Arc::new(open_key(&self.keystore, name, &key.public_key)?))
    }

    fn make_key(&self, alias: &Alias, number: u32) -> Result<(KeyRecord, Arc<dyn Signer>), Error> {
        let name = IdentityRecord::key_name(alias, number);
        let made = make_key(&self.keystore, &name, self.network)?;
        let key = KeyRecord { number, public_key: made.public_key() };
        Ok((key, Arc::new(made)))
    }
}

fn take_over_secret(keystore: &Keystore, name: &str, secret: &[u8]) -> Result<(), Error> {
    if !holds_secret(keystore, name, secret)? {
        keystore.insert(name, secret)?;
    }
    Ok(())
}

/// Whether the keystore holds this very secret; an error if it holds another of that name.
fn holds_secret(keystore: &Keystore, name: &str, secret: &[u8]) -> Result<bool, Error> {
    match keystore.get(name) {
        Ok(present) if *present == secret => Ok(true),
        Ok(_) => Err(Error::KeyTaken(name.to_owned())),
        Err(KeystoreError::Missing(_)) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn check_open(alias: &Alias, record: &IdentityRecord) -> Result<(), Error> {
    match record.miner_info() {
        Some(miner_info) if miner_info.is_closed => Err(Error::Closed(alias.clone())),
        _ => Ok(()),
    }
}

/// Refuses what an older copy of an identity would do wrong.
pub(crate) fn check_newest(identity: &Identity) -> Result<(), Error> {
    match identity.is_stale() {
        true => Err(Error::StaleCopy(identity.alias().clone())),
        false => Ok(()),
    }
}

/// Refuses while any of these is announced and not seen in a block.
fn check_seen(
    alias: &Alias,
    record: &IdentityRecord,
    announcements: &[Announcement],
) -> Result<(), Error> {
    let unseen = record.announcements().into_iter().find(|unseen| announcements.contains(unseen));
    match unseen {
        Some(announcement) => Err(Error::Unseen { alias: alias.clone(), announcement }),
        None => Ok(()),
    }
}

impl<S> fmt::Debug for MinerIds<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MinerIds").field("network", &self.network).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
