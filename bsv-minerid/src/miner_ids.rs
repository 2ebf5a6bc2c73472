use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use bsv_store::{AuditCheck, AuditEntry, AuditPage, KeyEvent, Keystore, KeystoreError};
use bsv_tx::{Network, OutPoint, PrivateKey, PublicKey};

use crate::alias::Alias;
use crate::error::Error;
use crate::hand_out_notes::HandOutNotes;
use crate::identity::{Identity, State};
use crate::import::{HomeFiles, Import, OlderHome};
use crate::json::CanonicalJson;
use crate::json_object::MinerContact;
#[cfg(feature = "node")]
use crate::node::ChainWatch;
use crate::operator_members::{CONTACT, EXTENSIONS, OperatorMembers, OperatorMembersError};
use crate::signer::Signer;
use crate::state::{
    Announcement, Change, Exposure, IdentityRecord, KeyRecord, Protocol, Rotation, Vctx,
};
use crate::store::{IdentityStore, IdentityStoreError};
use crate::stored_keys::{make_key, open_key};

mod announcing;
#[cfg(feature = "node")]
mod on_chain;

pub use announcing::RevokedMinerIds;
#[cfg(feature = "node")]
pub(crate) use announcing::{begun_revocation, check_revocable};

/// All miner identities of a service, with their store and their keys.
///
/// Reading and signing continue while a change waits for the disk. A private key is durable, and
/// was read back from the disk, before the store refers to it.
pub struct MinerIds<S> {
    store: Arc<S>,
    keystore: Arc<Keystore>,
    network: Network,
    identities: RwLock<BTreeMap<Alias, Arc<Identity>>>,
    /// Held during a change.
    changes: Arc<Mutex<()>>,
    /// The identities whose state is unknown after a failed change.
    unsettled: Mutex<BTreeSet<Alias>>,
    refuses_if_stale: Arc<AtomicBool>,
    /// The identities that could not be opened, and why.
    broken: BTreeMap<Alias, BrokenIdentity>,
    /// The state of the chain.
    #[cfg(feature = "node")]
    pub(crate) chain: ChainWatch,
    /// Held while a thread runs what waits for the disk.
    #[cfg(feature = "node")]
    turn: Arc<tokio::sync::Mutex<()>>,
}

/// An identity that could not be opened.
struct BrokenIdentity {
    reason: String,
    /// The names of its keys, if its record is readable.
    key_names: Vec<String>,
}

impl<S: IdentityStore> MinerIds<S> {
    /// Opens all identities in `store`, with their keys in `keystore`. An identity with an
    /// unreadable record, or with a key that is missing, damaged or not the recorded one, is
    /// answered with [`Error::Broken`]. The others work.
    pub fn open(
        store: S,
        keystore: impl Into<Arc<Keystore>>,
        network: Network,
    ) -> Result<Self, Error> {
        let mut ids = Self {
            store: Arc::new(store),
            keystore: keystore.into(),
            network,
            identities: RwLock::default(),
            changes: Arc::default(),
            unsettled: Mutex::default(),
            refuses_if_stale: Arc::default(),
            broken: BTreeMap::new(),
            #[cfg(feature = "node")]
            chain: ChainWatch::default(),
            #[cfg(feature = "node")]
            turn: Arc::default(),
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

    /// The store of the identities.
    pub fn store(&self) -> &S {
        &self.store
    }

    /// Adds an event of keys to the audit log.
    pub fn note_key_event(&self, event: KeyEvent, subject: &str) -> Result<(), Error> {
        Ok(self.store.note_key_event(event, subject)?)
    }

    /// Up to `limit` entries of a page of the audit log, in order.
    pub fn audit_log(&self, page: AuditPage, limit: usize) -> Result<Vec<AuditEntry>, Error> {
        Ok(self.store.audit_log(page, limit)?)
    }

    /// Reads the audit log from the disk, from its beginning, and checks it.
    pub fn verify_audit_log(&self) -> Result<AuditCheck, Error> {
        Ok(self.store.verify_audit_log()?)
    }

    /// Sets whether older copies of identities refuse documents. By default they answer them: a
    /// document that nodes ignore costs nothing, but a refusal may cost a caller its job.
    pub fn refuse_if_stale(&self, refuses: bool) {
        self.refuses_if_stale.store(refuses, Ordering::Relaxed);
    }

    /// The names of the keys that the keystore must hold.
    pub fn key_names(&self) -> Vec<String> {
        let names_of = |identity: Arc<Identity>| identity.record().key_names(identity.alias());
        let names = self.all().into_iter().flat_map(names_of);
        names.chain(self.broken.values().flat_map(|broken| broken.key_names.clone())).collect()
    }

    /// The network that determines the format of keys and addresses.
    pub fn network(&self) -> Network {
        self.network
    }

    /// The identity that `alias` selects. `alias` may be any text. The store stays open as long as
    /// the identity is kept, because the identity notes in it what it hands out.
    pub fn get(&self, alias: &str) -> Result<Arc<Identity>, Error> {
        let identities = self.identities.read().unwrap_or_else(PoisonError::into_inner);
        identities.get(alias).cloned().ok_or_else(|| match self.broken.get_key_value(alias) {
            Some((alias, broken)) => {
                Error::Broken { alias: alias.clone(), reason: broken.reason.clone() }
            }
            None => Error::UnknownAlias(alias.to_owned()),
        })
    }

    /// The identities that could not be opened, and why, ordered by alias.
    pub fn broken(&self) -> impl Iterator<Item = (&Alias, &str)> {
        self.broken.iter().map(|(alias, broken)| (alias, broken.reason.as_str()))
    }

    /// All identities, ordered by alias.
    pub fn all(&self) -> Vec<Arc<Identity>> {
        let identities = self.identities.read().unwrap_or_else(PoisonError::into_inner);
        identities.values().cloned().collect()
    }

    /// The number of announcements of all identities that no block has shown.
    pub fn announced(&self) -> usize {
        let identities = self.identities.read().unwrap_or_else(PoisonError::into_inner);
        identities.values().map(|identity| identity.announced()).sum()
    }

    /// Whether some revocation is recorded that the node has not received.
    pub fn has_untold(&self) -> bool {
        let identities = self.identities.read().unwrap_or_else(PoisonError::into_inner);
        identities.values().any(|identity| identity.has_untold())
    }

    /// Creates an identity of generation 0.2 with a new key, and answers the key.
    pub fn generate(&self, alias: &Alias) -> Result<PublicKey, Error> {
        let _changes = self.begin_change();
        self.check_new(alias)?;
        let (key, private_key) = self.make_key(alias, 1)?;
        let record = IdentityRecord::new(key, Protocol::Vctx(Vctx::None));
        self.create(alias, record, private_key)?;
        Ok(key.public_key)
    }

    /// Gives an identity a new key, which the current key vouches for, without asking a node. Answers
    /// the new key. [`rotate`](Self::rotate) asks a node first, and is the better choice wherever
    /// there is one.
    ///
    /// If no document of the identity was handed out, the new key becomes the first: nobody knows
    /// the current key. An identity of generation 1.0 announces one new key at a time. The next
    /// rotation fails with [`Error::Unseen`] until a block shows that key. In generation 0.2 nothing
    /// tells whether a block has shown the current key: nodes ignore the identity for ever if none
    /// has.
    ///
    /// A forced rotation does not wait for a block to show the last key. Documents of generation 1.0
    /// then skip that key: the last key that a block has shown vouches for the new one. If a block
    /// shows the skipped key later, documents continue from it.
    pub fn rotate_without_node(&self, alias: &Alias, is_forced: bool) -> Result<PublicKey, Error> {
        self.rotate_by(alias, is_forced, |_| Ok(Rotation::Succeed))
    }

    /// Rotates as `decide` says of the record, which nothing else changes meanwhile.
    pub(crate) fn rotate_by(
        &self,
        alias: &Alias,
        is_forced: bool,
        decide: impl FnOnce(&IdentityRecord) -> Result<Rotation, Error>,
    ) -> Result<PublicKey, Error> {
        let _changes = self.begin_change();
        let identity = self.get(alias.as_str())?;
        self.record_hand_outs_of([Arc::clone(&identity)])?;
        let record = identity.record();
        let revocations = [Announcement::PartialRevocation, Announcement::CompleteRevocation];
        check_open(alias, &record)?;
        check_newest(&identity)?;
        check_seen(alias, &record, &revocations)?;
        let rotation = match record.exposure() {
            Exposure::Kept => Rotation::Replace,
            _ => decide(&record)?,
        };
        // The older generator rotates identities of generation 0.2 without regard to blocks.
        if rotation == Rotation::Succeed && !is_forced && record.miner_info().is_some() {
            check_seen(alias, &record, &[Announcement::Rotation])?;
        }
        let (key, _) = self.make_key(alias, record.last_key_number() + 1)?;
        let from = record.current_key().number;
        let change = Change::Rotate { rotation, from, key };
        self.follow_to_new_keys(&identity, self.store.change(alias, &change))?;
        Ok(key.public_key)
    }

    /// Deletes an identity that is revoked for good. Its alias cannot be used again. Its keys stay
    /// in the keystore unless `with_keys` is set. The key of its validity check output always
    /// stays, because that key may own coins.
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
        for key in record.keys().into_iter().filter(|_| with_keys) {
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

    /// Notes durably that somebody received a document of an identity that was only previewed.
    /// Before this note, a rotation replaces the key without announcing it. Documents that are not
    /// previews make the note by themselves.
    pub fn note_shown(&self, alias: &Alias) -> Result<(), Error> {
        self.change(alias, &Change::NoteShown)
    }

    /// Sets keys of `minerContact`.
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

    /// Removes keys of `minerContact`.
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

    /// Sets whether an identity signs any digest, besides documents.
    pub fn set_blind_signing(&self, alias: &Alias, is_on: bool) -> Result<(), Error> {
        self.change(alias, &Change::SetBlindSigning(is_on))
    }

    /// Sets the extensions of documents of generation 1.0, a JSON object.
    pub fn set_extensions(&self, alias: &Alias, extensions: CanonicalJson) -> Result<(), Error> {
        self.change_operator(alias, |record, operator| {
            // In generation 0.2, the extensions come with each job.
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
        self.make(&identity, &Change::SetOperator(operator))
    }

    /// Imports the identities of an older generator's home directory whose aliases do not exist
    /// yet: all of them or none. Answers the outcome for each alias. The revocation keys of
    /// generation 1.0 go into their own keystore. [`import`](Self::import)
    /// first asks a node about the validity check outputs.
    pub fn import_without_node(
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
        // All keys are checked first, so that a refusal leaves no key behind.
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

    /// Gives an identity a validity check output that was made elsewhere, and the key that can
    /// spend it. All documents name this output.
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
        self.make(&identity, &Change::RecordVctx(outpoint))
    }

    /// Notes durably which identities have handed out a document since their last rotation, if that
    /// could not be written when the document was made. A service calls this now and then, as `run`
    /// does.
    pub fn record_hand_outs(&self) -> Result<(), Error> {
        let _changes = self.begin_change();
        self.record_hand_outs_of(self.all())
    }

    /// Does so for some identities, before their state is replaced.
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

    /// Makes a change that keeps the keys.
    pub(crate) fn change(&self, alias: &Alias, change: &Change) -> Result<(), Error> {
        let _changes = self.begin_change();
        let identity = self.get(alias.as_str())?;
        self.make(&identity, change)
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
        let store = Arc::<S>::clone(&self.store);
        let notes = HandOutNotes::new(store, Arc::clone(&self.changes));
        let refuses_if_stale = Arc::clone(&self.refuses_if_stale);
        let identity = Arc::new(Identity::new(alias.clone(), state, notes, refuses_if_stale));
        let mut identities = self.identities.write().unwrap_or_else(PoisonError::into_inner);
        identities.insert(alias, identity);
    }

    /// Makes a change that keeps the keys.
    fn make(&self, identity: &Identity, change: &Change) -> Result<(), Error> {
        let alias = identity.alias();
        let changed = self.store.change(alias, change);
        let record = changed.map_err(|error| self.failed(alias, error))?;
        if !identity.replace_record(&record) {
            // The store has newer keys, which could not be loaded yet.
            identity.apply(change);
            self.unsettled().insert(alias.clone());
        }
        Ok(())
    }

    /// Updates an identity after a change of its keys. No document was handed out with the new keys
    /// yet.
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
                // The identity stays unchanged until a later change finds its keys.
                self.unsettled().insert(alias.clone());
                return Err(error);
            }
        }
        Ok(())
    }

    fn failed(&self, alias: &Alias, error: IdentityStoreError) -> Error {
        self.all_failed(&[alias], error)
    }

    /// Updates identities after a failed change. Answers the error for the caller.
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

    /// Updates an identity from the store. A failed commit may have reached the disk nevertheless,
    /// with other keys than this attempt made. Answers false if the store or a key cannot be read.
    /// The identity then keeps signing with its current key, and the next change tries again.
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
        if identity.as_ref().is_some_and(|identity| identity.replace_record(&record)) {
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

    /// The keys that may still sign references. The current key replaces one that cannot be read.
    fn load_earlier_keys(
        &self,
        alias: &Alias,
        record: &IdentityRecord,
    ) -> BTreeMap<u32, Arc<dyn Signer>> {
        let Some(own) = record.miner_info() else { return BTreeMap::new() };
        let may_sign = |number| {
            record.document_key().is_some_and(|key| key.number == number)
                || own.references.iter().any(|noted| noted.key == number)
        };
        let current = record.current_key().number;
        let keys = record.keys().into_iter();
        let keys = keys.filter(|key| key.number != current && may_sign(key.number));
        keys.filter_map(|key| Some((key.number, self.load_key(alias, &key).ok()?))).collect()
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

/// Whether the keystore holds this secret under this name. Fails if it holds another one.
fn holds_secret(keystore: &Keystore, name: &str, secret: &[u8]) -> Result<bool, Error> {
    match keystore.get(name) {
        Ok(present) if *present == secret => Ok(true),
        Ok(_) => Err(Error::KeyTaken(name.to_owned())),
        Err(KeystoreError::Missing(_)) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn check_open(alias: &Alias, record: &IdentityRecord) -> Result<(), Error> {
    match record.miner_info().is_some() && record.is_closed() {
        true => Err(Error::Closed(alias.clone())),
        false => Ok(()),
    }
}

/// Refuses to change an older copy of an identity.
pub(crate) fn check_newest(identity: &Identity) -> Result<(), Error> {
    match identity.is_stale() {
        true => Err(Error::StaleCopy(identity.alias().clone())),
        false => Ok(()),
    }
}

/// Refuses while one of these announcements has not been seen in a block.
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
