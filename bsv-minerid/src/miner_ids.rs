use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use bsv_store::{AuditCheck, AuditEntry, KeyEvent, Keystore, KeystoreError};
use bsv_tx::{
    Address, ExtendedPrivateKey, KeyError, Network, OutPoint, PrivateKey, PublicKey, Transaction,
};

use crate::alias::Alias;
use crate::error::Error;
use crate::identity::{Identity, State};
use crate::import::OlderHome;
use crate::json::CanonicalJson;
use crate::json_object::MinerContact;
use crate::operator_members::{CONTACT, EXTENSIONS, OperatorMembers, OperatorMembersError};
use crate::store::{
    Announcement, IdentityRecord, IdentityStore, IdentityStoreError, KeyRecord, Protocol,
    RedbIdentityStore, Vctx, VctxView,
};

mod miner_info;

pub use miner_info::RevokedMinerIds;
pub(crate) use miner_info::{begun_revocation, check_revocable};

/// All miner identities of a service: their store and their keys.
///
/// Reading and signing go on while a change waits for the disk. A private key is on the disk, and
/// has been read back from there, before the store points to it.
pub struct MinerIds<S = RedbIdentityStore> {
    store: S,
    keystore: Arc<Keystore>,
    network: Network,
    identities: RwLock<BTreeMap<Alias, Arc<Identity>>>,
    /// Held while something is changed.
    changes: Mutex<()>,
    /// Those with a change that failed, and of which it could not be read what it has left.
    unsettled: Mutex<BTreeSet<Alias>>,
}

impl<S: IdentityStore> MinerIds<S> {
    /// Opens all identities in `store`, whose keys lie in `keystore`. Fails if a key that signs is
    /// missing, damaged, or not the one on record.
    pub fn open(
        store: S,
        keystore: impl Into<Arc<Keystore>>,
        network: Network,
    ) -> Result<Self, Error> {
        let ids = Self {
            store,
            keystore: keystore.into(),
            network,
            identities: RwLock::default(),
            changes: Mutex::default(),
            unsettled: Mutex::default(),
        };
        for (alias, record) in ids.store.identities()? {
            let state = ids.load_state(&alias, record)?;
            ids.add(alias, state);
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

    /// The names under which the keystore must hold keys.
    pub fn key_names(&self) -> Vec<String> {
        let names_of = |identity: Arc<Identity>| identity.record().key_names(identity.alias());
        self.all().into_iter().flat_map(names_of).collect()
    }

    /// The network whose forms of keys and addresses are used.
    pub fn network(&self) -> Network {
        self.network
    }

    /// The identity that `alias` selects. Any text may be asked for.
    pub fn get(&self, alias: &str) -> Result<Arc<Identity>, Error> {
        let identities = self.identities.read().unwrap_or_else(PoisonError::into_inner);
        identities.get(alias).cloned().ok_or_else(|| Error::UnknownAlias(alias.to_owned()))
    }

    /// All identities, ordered by alias.
    pub fn all(&self) -> Vec<Arc<Identity>> {
        let identities = self.identities.read().unwrap_or_else(PoisonError::into_inner);
        identities.values().cloned().collect()
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
    /// One of generation 1.0 announces one new key at a time: until a block was seen to show it, the
    /// next is refused with [`Error::Unseen`].
    pub fn rotate(&self, alias: &Alias) -> Result<PublicKey, Error> {
        self.rotate_unless(alias, &[Announcement::Rotation])
    }

    /// Gives an identity a new key even if no block was seen to show the last one. Documents of
    /// generation 1.0 then pass over that one: the last key that was seen vouches for the new one.
    /// If it turns out that a block has shown it, they go on from there.
    pub fn rotate_again(&self, alias: &Alias) -> Result<PublicKey, Error> {
        self.rotate_unless(alias, &[])
    }

    fn rotate_unless(&self, alias: &Alias, unseen: &[Announcement]) -> Result<PublicKey, Error> {
        let _changes = self.begin_change();
        let identity = self.get(alias.as_str())?;
        let record = identity.record();
        let revocations = [Announcement::PartialRevocation, Announcement::CompleteRevocation];
        check_open(alias, &record)?;
        check_seen(alias, &record, &[&revocations, unseen].concat())?;
        let (key, _) = self.make_key(alias, record.last_key_number() + 1)?;
        let from = record.current_key().number;
        self.follow_to_new_keys(&identity, self.store.rotate(alias, from, key))?;
        Ok(key.public_key)
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

    /// Switches on or off that an identity signs any digest. It signs documents in any case.
    pub fn set_blind_signing(&self, alias: &Alias, is_on: bool) -> Result<(), Error> {
        let _changes = self.begin_change();
        let identity = self.get(alias.as_str())?;
        self.follow(&identity, self.store.set_blind_signing(alias, is_on))
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
        self.follow(&identity, self.store.set_operator(alias, &operator))
    }

    /// Takes over all identities of an older generator's home directory, or none of them, and
    /// answers their aliases. Identities of generation 1.0 have revocation keys, which go into a
    /// keystore of their own.
    pub fn import(
        &self,
        home: &Path,
        revocation_keys: Option<&Keystore>,
    ) -> Result<Vec<Alias>, Error> {
        let home = OlderHome::read(home)?;
        let _changes = self.begin_change();
        for older in &home.identities {
            self.check_new(&older.alias)?;
        }
        let mut secrets = Vec::new();
        for older in &home.identities {
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
            home.identities.iter().map(|older| (older.alias.clone(), older.to_record())).collect();
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
        Ok(home.identities.into_iter().map(|older| older.alias).collect())
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
        self.follow(&identity, self.store.record_vctx(alias, outpoint))
    }

    /// Notes durably which identities have handed out a document since their last rotation. A
    /// service calls it now and then, so that handing out itself does no I/O; what was not noted
    /// before a crash makes [`Identity::is_valid`] answer false until the next document.
    pub fn record_hand_outs(&self) -> Result<(), Error> {
        let _changes = self.begin_change();
        let unrecorded: Vec<_> = self
            .all()
            .into_iter()
            .filter_map(|identity| Some((identity.unrecorded_hand_out()?, identity)))
            .collect();
        if unrecorded.is_empty() {
            return Ok(());
        }
        let keys: Vec<_> = unrecorded
            .iter()
            .map(|(number, identity)| (identity.alias().clone(), *number))
            .collect();
        self.store.note_handed_out(&keys)?;
        for (number, identity) in unrecorded {
            identity.mark_hand_out_recorded(number);
        }
        Ok(())
    }

    /// The address that waits for the coins of a validity check transaction; its key is made and
    /// stored first.
    pub(crate) fn await_vctx_funding(&self, alias: &Alias) -> Result<Address, Error> {
        let _changes = self.begin_change();
        let identity = self.get(alias.as_str())?;
        let name = IdentityRecord::vctx_key_name(alias);
        let wif = PrivateKey::generate()?.to_wif(self.network);
        match self.keystore.insert(&name, wif.as_bytes()) {
            // Made by an earlier attempt.
            Ok(()) | Err(KeystoreError::Exists(_)) => {}
            Err(error) => return Err(error.into()),
        }
        let key = self.vctx_key(alias)?;
        self.follow(&identity, self.store.await_vctx_funding(alias))?;
        Ok(Address::p2pkh(&key.public_key(), self.network))
    }

    pub(crate) fn vctx_key(&self, alias: &Alias) -> Result<PrivateKey, Error> {
        let name = IdentityRecord::vctx_key_name(alias);
        read_key(&self.keystore, &name, |text| PrivateKey::from_wif(text, self.network))
    }

    pub(crate) fn begin_vctx(&self, alias: &Alias, transaction: &Transaction) -> Result<(), Error> {
        let _changes = self.begin_change();
        let identity = self.get(alias.as_str())?;
        self.follow(&identity, self.store.begin_vctx(alias, transaction))
    }

    pub(crate) fn abandon_vctx(&self, alias: &Alias) -> Result<(), Error> {
        let _changes = self.begin_change();
        let identity = self.get(alias.as_str())?;
        self.follow(&identity, self.store.abandon_vctx(alias))
    }

    pub(crate) fn record_vctx(&self, alias: &Alias, outpoint: OutPoint) -> Result<(), Error> {
        let _changes = self.begin_change();
        let identity = self.get(alias.as_str())?;
        self.follow(&identity, self.store.record_vctx(alias, outpoint))
    }

    pub(crate) fn revoke_vctx(&self, alias: &Alias, spending: &Transaction) -> Result<(), Error> {
        let _changes = self.begin_change();
        let identity = self.get(alias.as_str())?;
        self.follow(&identity, self.store.revoke_vctx(alias, spending))
    }

    /// Notes what the chain shows of validity check outputs, and stops or resumes documents
    /// accordingly.
    pub(crate) fn note_vctx_views(
        &self,
        views: &[(Alias, OutPoint, VctxView)],
    ) -> Result<(), Error> {
        let _changes = self.begin_change();
        self.store.note_vctx_views(views)?;
        for (alias, outpoint, view) in views {
            let identity = self.get(alias.as_str())?;
            let mut record = identity.record();
            if let Protocol::Vctx(Vctx::Recorded(recorded, known)) = &mut record.protocol
                && recorded == outpoint
            {
                *known = *view;
                identity.replace_record(record);
            }
        }
        Ok(())
    }

    fn begin_change(&self) -> MutexGuard<'_, ()> {
        let changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        self.unsettled().retain(|alias| !self.settle(alias));
        changes
    }

    fn check_new(&self, alias: &Alias) -> Result<(), Error> {
        if self.get(alias.as_str()).is_ok() {
            return Err(Error::AliasExists(alias.clone()));
        }
        Ok(())
    }

    fn create(
        &self,
        alias: &Alias,
        record: IdentityRecord,
        key: Arc<PrivateKey>,
    ) -> Result<(), Error> {
        if let Err(error) = self.store.create(&[(alias.clone(), record.clone())], KeyEvent::Made) {
            return Err(self.failed(alias, error));
        }
        self.add(alias.clone(), State::new(record, Arc::clone(&key), key));
        Ok(())
    }

    fn add(&self, alias: Alias, state: State) {
        let identity = Arc::new(Identity::new(alias.clone(), state));
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
        Ok(State::new(record, current_key, previous_key))
    }

    fn load_key(&self, alias: &Alias, key: &KeyRecord) -> Result<Arc<PrivateKey>, Error> {
        let name = IdentityRecord::key_name(alias, key.number);
        load_key(&self.keystore, name, &key.public_key).map(Arc::new)
    }

    fn make_key(&self, alias: &Alias, number: u32) -> Result<(KeyRecord, Arc<PrivateKey>), Error> {
        let name = IdentityRecord::key_name(alias, number);
        let private_key = make_key(&self.keystore, &name, self.network)?;
        let key = KeyRecord { number, public_key: private_key.public_key() };
        Ok((key, Arc::new(private_key)))
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

fn read_key<K>(
    keystore: &Keystore,
    name: &str,
    parse: impl FnOnce(&str) -> Result<K, KeyError>,
) -> Result<K, Error> {
    let secret = keystore.get(name)?;
    let text = std::str::from_utf8(&secret).unwrap_or_default();
    parse(text).map_err(|source| Error::BadKey { name: name.to_owned(), source })
}

/// The private key of that name, whose public half is on record.
fn load_key(keystore: &Keystore, name: String, on_record: &PublicKey) -> Result<PrivateKey, Error> {
    let key = read_key(keystore, &name, str::parse::<ExtendedPrivateKey>)?.private_key().clone();
    if key.public_key() != *on_record {
        return Err(Error::OtherKey(name));
    }
    Ok(key)
}

/// Makes a key and reads it back from the disk. A key of that name that is there already was made
/// by an attempt that went no further, and is used.
fn make_key(keystore: &Keystore, name: &str, network: Network) -> Result<PrivateKey, Error> {
    let made = ExtendedPrivateKey::generate(network)?;
    match keystore.insert(name, made.as_text().as_bytes()) {
        Ok(()) | Err(KeystoreError::Exists(_)) => {}
        Err(error) => return Err(error.into()),
    }
    Ok(read_key(keystore, name, str::parse::<ExtendedPrivateKey>)?.private_key().clone())
}

fn check_open(alias: &Alias, record: &IdentityRecord) -> Result<(), Error> {
    match record.miner_info() {
        Some(miner_info) if miner_info.is_closed => Err(Error::Closed(alias.clone())),
        _ => Ok(()),
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
