use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use bsv_minerid::{
    Alias, CanonicalJson, Change, Error, FoundIdentity, IdentityRecord, IdentityStore,
    IdentityStoreError, Import, MinerContact, MinerIds, Network, RedbIdentityStore, Vctx,
    VctxFinding, VctxView,
};
use bsv_store::{AuditCheck, AuditEntry, KeyEvent, StoreError};
use bsv_tx::PrivateKey;

use crate::import::write_home;
use crate::support::{Place, alias, begin, named_keys, vctx, verified};

/// The outcome of the next operations of a [`FailingStore`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    /// A change is refused, and nothing of it is stored.
    Before,
    /// A change is stored, but reported as failed.
    After,
    /// A change is stored, but reported as failed, and nothing can be read.
    AfterAndBlind,
}

#[derive(Clone)]
struct Switch(Arc<AtomicU8>);

impl Switch {
    fn set(&self, fault: Fault) {
        self.0.store(fault as u8, Ordering::Relaxed);
    }

    fn is(&self, fault: Fault) -> bool {
        self.0.load(Ordering::Relaxed) == fault as u8
    }
}

/// A store on a disk that fills up.
struct FailingStore {
    store: RedbIdentityStore,
    fault: Switch,
}

fn no_space() -> IdentityStoreError {
    StoreError::NoSpace { dir: PathBuf::from("here"), free: 0, reserve: 1 }.into()
}

impl FailingStore {
    fn read<T>(
        &self,
        read: impl FnOnce(&RedbIdentityStore) -> Result<T, IdentityStoreError>,
    ) -> Result<T, IdentityStoreError> {
        if self.fault.is(Fault::AfterAndBlind) { Err(no_space()) } else { read(&self.store) }
    }

    fn write<T>(
        &self,
        change: impl FnOnce(&RedbIdentityStore) -> Result<T, IdentityStoreError>,
    ) -> Result<T, IdentityStoreError> {
        if self.fault.is(Fault::Before) {
            return Err(no_space());
        }
        let changed = change(&self.store)?;
        if self.fault.is(Fault::None) { Ok(changed) } else { Err(no_space()) }
    }
}

impl IdentityStore for FailingStore {
    fn identities(&self) -> Result<Vec<FoundIdentity>, IdentityStoreError> {
        self.read(IdentityStore::identities)
    }

    fn identity(&self, alias: &Alias) -> Result<IdentityRecord, IdentityStoreError> {
        self.read(|store| store.identity(alias))
    }

    fn create(
        &self,
        identities: &[(Alias, IdentityRecord)],
        origin: KeyEvent,
    ) -> Result<(), IdentityStoreError> {
        self.write(|store| store.create(identities, origin))
    }

    fn change(&self, alias: &Alias, change: &Change) -> Result<IdentityRecord, IdentityStoreError> {
        self.write(|store| store.change(alias, change))
    }

    fn change_all(&self, changes: &[(Alias, Change)]) -> Result<(), IdentityStoreError> {
        self.write(|store| store.change_all(changes))
    }

    fn note_key_event(&self, event: KeyEvent, subject: &str) -> Result<(), IdentityStoreError> {
        self.write(|store| store.note_key_event(event, subject))
    }

    fn audit_log(&self, after: u64, limit: usize) -> Result<Vec<AuditEntry>, IdentityStoreError> {
        self.store.audit_log(after, limit)
    }

    fn verify_audit_log(&self) -> Result<AuditCheck, IdentityStoreError> {
        self.store.verify_audit_log()
    }
}

fn open(place: &Place) -> (MinerIds<FailingStore>, Switch) {
    let fault = Switch(Arc::new(AtomicU8::new(Fault::None as u8)));
    let store = FailingStore { store: place.store(), fault: fault.clone() };
    (MinerIds::open(store, place.keystore(), Network::Regtest).unwrap(), fault)
}

#[test]
fn an_identity_whose_making_failed_is_there_if_the_disk_has_it() {
    for fault in [Fault::Before, Fault::After, Fault::AfterAndBlind] {
        let place = Place::new();
        let (ids, switch) = open(&place);
        switch.set(fault);
        let error = ids.generate(&alias("pool")).unwrap_err();
        assert!(error.is_out_of_space(), "{error}");
        assert_eq!(ids.get("pool").is_ok(), fault == Fault::After);
        switch.set(Fault::None);
        let again = ids.generate(&alias("pool"));
        assert_eq!(again.is_ok(), fault == Fault::Before);
        let key = ids.get("pool").unwrap().public_key();
        drop(ids);
        assert_eq!(place.open().get("pool").unwrap().public_key(), key);
        assert!(!place.key_file("pool_2").exists());
    }
}

#[test]
fn after_a_rotation_that_failed_documents_are_signed_by_the_key_that_the_disk_has() {
    for fault in [Fault::Before, Fault::After, Fault::AfterAndBlind] {
        let place = Place::new();
        let (ids, switch) = open(&place);
        let first = begin(&ids, "pool");
        switch.set(fault);
        let error = ids.rotate(&alias("pool")).unwrap_err();
        assert!(error.is_out_of_space(), "{error}");
        assert_eq!(matches!(error, Error::Unsettled(_)), fault != Fault::Before);
        let [previous, current] = named_keys(&ids, "pool");
        assert_eq!(previous, first);
        assert_eq!(current != first, fault == Fault::After);
        switch.set(Fault::None);
        let again = ids.rotate(&alias("pool"));
        assert!(again.is_ok(), "{fault:?}: {again:?}");
        let number = if fault == Fault::Before { 2 } else { 3 };
        let record = ids.get("pool").unwrap().record();
        assert_eq!(record.current_key().number, number);
        let named = named_keys(&ids, "pool");
        assert_eq!(named, [record.previous_key(), record.current_key()].map(|key| key.public_key));
        drop(ids);
        assert_eq!(named_keys(&place.open(), "pool"), named);
    }
}

#[test]
fn documents_tell_what_the_disk_has() {
    for fault in [Fault::Before, Fault::After] {
        let place = Place::new();
        let (ids, switch) = open(&place);
        begin(&ids, "pool");
        let mut contact = MinerContact::default();
        contact.set("name", CanonicalJson::string("pool"));
        switch.set(fault);
        assert!(ids.set_contact(&alias("pool"), &contact).is_err());
        let document = verified(&ids.get("pool").unwrap().output_script(1).unwrap());
        assert_eq!(document.miner_contact == contact, fault == Fault::After);
        drop(ids);
        let document = verified(&place.open().get("pool").unwrap().output_script(1).unwrap());
        assert_eq!(document.miner_contact == contact, fault == Fault::After);
    }
}

#[test]
fn hand_outs_that_could_not_be_recorded_are_recorded_later() {
    for fault in [Fault::Before, Fault::After] {
        let place = Place::new();
        let (ids, switch) = open(&place);
        begin(&ids, "pool");
        ids.rotate(&alias("pool")).unwrap();
        switch.set(fault);
        // The document may be worth a block.
        ids.get("pool").unwrap().output_script(1).unwrap();
        assert!(ids.record_hand_outs().unwrap_err().is_out_of_space());
        assert!(ids.get("pool").unwrap().is_valid());
        switch.set(Fault::None);
        ids.record_hand_outs().unwrap();
        drop(ids);
        assert!(place.open().get("pool").unwrap().is_valid());
    }
}

#[test]
fn a_vctx_that_could_not_be_noted_is_noted_later() {
    for fault in [Fault::Before, Fault::After, Fault::AfterAndBlind] {
        let place = Place::new();
        let (ids, switch) = open(&place);
        let pool = alias("pool");
        ids.generate(&pool).unwrap();
        let key = PrivateKey::generate().unwrap();
        switch.set(fault);
        assert!(ids.adopt_vctx(&pool, vctx(), &key).is_err());
        assert_eq!(ids.get("pool").unwrap().output_script(1).is_ok(), fault == Fault::After);
        switch.set(Fault::None);
        ids.adopt_vctx(&pool, vctx(), &key).unwrap();
        assert!(matches!(ids.get("pool").unwrap().record().vctx(), Some(Vctx::Recorded(..))));
        named_keys(&ids, "pool");
    }
}

#[test]
fn an_import_that_failed_is_there_if_the_disk_has_it() {
    for fault in [Fault::Before, Fault::After, Fault::AfterAndBlind] {
        let place = Place::new();
        let home = place.path("home");
        let keys = write_home(&home).map(|key| key.private_key().public_key());
        let (ids, switch) = open(&place);
        switch.set(fault);
        assert!(ids.import(&home, None).unwrap_err().is_out_of_space());
        assert_eq!(ids.all().len(), if fault == Fault::After { 2 } else { 0 });
        switch.set(Fault::None);
        if fault == Fault::AfterAndBlind {
            // The stored identity, with the keys that it has.
            assert!(matches!(ids.generate(&alias("b")), Err(Error::AliasExists(_))));
        } else {
            let outcome = match fault {
                Fault::Before => Import::TakenOver(VctxFinding::NotAsked),
                _ => Import::Known { has_keys: true },
            };
            let outcomes = ids.import(&home, None).unwrap();
            assert_eq!(outcomes, [(alias("a"), outcome), (alias("b"), outcome)]);
        }
        assert_eq!(named_keys(&ids, "b"), [keys[1], keys[2]]);
        drop(ids);
        assert_eq!(named_keys(&place.open(), "a"), [keys[0], keys[0]]);
    }
}

#[test]
fn an_identity_whose_deletion_failed_is_there_unless_the_disk_says_otherwise() {
    for fault in [Fault::Before, Fault::After, Fault::AfterAndBlind] {
        let place = Place::new();
        let pool = alias("pool");
        begin(&place.open(), "pool");
        let spent = VctxView { is_spent: true, ..VctxView::default() };
        place.store().change(&pool, &Change::NoteVctxView(vctx(), spent)).unwrap();
        let (ids, switch) = open(&place);
        switch.set(fault);
        let error = ids.delete(&pool, true).unwrap_err();
        assert_eq!(matches!(error, Error::Unsettled(_)), fault != Fault::Before, "{error}");
        // No key is lost that may still be needed.
        assert!(place.key_file("pool_1").exists());
        switch.set(Fault::None);
        ids.record_hand_outs().unwrap();
        let left = usize::from(fault == Fault::Before);
        assert_eq!(ids.all().len(), left);
        drop(ids);
        let ids = place.open();
        assert_eq!(ids.all().len(), left);
        let again = ids.generate(&pool).unwrap_err();
        assert_eq!(matches!(again, Error::AliasDeleted(_)), left == 0, "{again}");
    }
}
