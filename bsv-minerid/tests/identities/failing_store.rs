use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use bsv_minerid::formats::BlockBindJob;
use bsv_minerid::import::{Import, VctxFinding};
use bsv_minerid::store::{
    Change, FoundIdentity, IdentityRecord, IdentityStore, IdentityStoreError, RedbIdentityStore,
    Vctx, VctxView,
};
use bsv_minerid::{Alias, CanonicalJson, Error, MinerContact, MinerIds, Network};
use bsv_store::{AuditCheck, AuditEntry, AuditPage, KeyEvent, StoreError};
use bsv_tx::{BlockHash, PrivateKey, Txid};

use crate::import::write_home;
use crate::support::{COINBASE2, Place, alias, begin, named_keys, vctx, verified};

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
    /// A change waits until another fault is set.
    Hang,
}

/// The fault, and the number of changes since it was set.
#[derive(Clone)]
struct Switch(Arc<(Mutex<(Fault, usize)>, Condvar)>);

impl Switch {
    fn new() -> Self {
        Self(Arc::new((Mutex::new((Fault::None, 0)), Condvar::new())))
    }

    fn set(&self, fault: Fault) {
        *self.0.0.lock().unwrap() = (fault, 0);
        self.0.1.notify_all();
    }

    fn is(&self, fault: Fault) -> bool {
        self.0.0.lock().unwrap().0 == fault
    }

    fn changes(&self) -> usize {
        self.0.0.lock().unwrap().1
    }

    /// Counts a change, and lets it hang.
    fn begin_change(&self) {
        let mut state = self.0.0.lock().unwrap();
        state.1 += 1;
        drop(self.0.1.wait_while(state, |state| state.0 == Fault::Hang).unwrap());
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
        self.fault.begin_change();
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

    fn audit_log(
        &self,
        page: AuditPage,
        limit: usize,
    ) -> Result<Vec<AuditEntry>, IdentityStoreError> {
        self.store.audit_log(page, limit)
    }

    fn verify_audit_log(&self) -> Result<AuditCheck, IdentityStoreError> {
        self.store.verify_audit_log()
    }
}

fn open(place: &Place) -> (MinerIds<FailingStore>, Switch) {
    let fault = Switch::new();
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
        let error = ids.rotate_without_node(&alias("pool"), false).unwrap_err();
        assert!(error.is_out_of_space(), "{error}");
        assert_eq!(matches!(error, Error::Unsettled(_)), fault != Fault::Before);
        let [previous, current] = named_keys(&ids, "pool");
        assert_eq!(previous, first);
        assert_eq!(current != first, fault == Fault::After);
        switch.set(Fault::None);
        let again = ids.rotate_without_node(&alias("pool"), false);
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

/// Whether the key that the identity names is the one that signs.
fn signs_as_it_says(ids: &MinerIds<FailingStore>) -> bool {
    let (key, signature) = ids.get("pool").unwrap().sign_and_name_key(&[1; 32]).unwrap();
    key == ids.get("pool").unwrap().public_key() && key.verify(&[1; 32], &signature)
}

#[test]
fn a_reference_after_a_rotation_that_failed_leaves_the_keys_that_sign() {
    let place = Place::new();
    let (ids, switch) = open(&place);
    let pool = alias("pool");
    let first = ids.generate_miner_info(&pool, &place.keystore_named("revocation")).unwrap();
    ids.get("pool").unwrap().output_script(1).unwrap();
    ids.confirm(&pool).unwrap();
    switch.set(Fault::AfterAndBlind);
    assert!(ids.rotate_without_node(&pool, false).is_err());
    switch.set(Fault::None);
    let coinbase2 = hex::decode(COINBASE2).unwrap();
    let previous_block = BlockHash::from_bytes([1; 32]);
    let job = BlockBindJob { previous_block, merkle_branch: Vec::new() };
    let txid = Txid::from_bytes([2; 32]);
    ids.coinbase2_with_reference("pool", txid, &coinbase2, &job).unwrap();
    assert!(signs_as_it_says(&ids));
    assert_eq!(ids.get("pool").unwrap().public_key(), first);
    // The next change finds the new key.
    ids.record_hand_outs().unwrap();
    assert!(signs_as_it_says(&ids));
    let record = ids.get("pool").unwrap().record();
    assert_eq!(record.current_key().number, 2);
    assert_eq!(record, ids.store().identity(&pool).unwrap());
    let references = &record.miner_info().unwrap().references;
    assert!(references.iter().any(|noted| noted.miner_info == txid && noted.key == 1));
}

#[test]
fn a_change_after_a_rotation_whose_key_cannot_be_read_leaves_the_keys_that_sign() {
    let place = Place::new();
    let (ids, switch) = open(&place);
    let pool = alias("pool");
    let first = begin(&ids, "pool");
    switch.set(Fault::AfterAndBlind);
    assert!(ids.rotate_without_node(&pool, false).is_err());
    switch.set(Fault::None);
    let (key_file, elsewhere) = (place.key_file("pool_2"), place.path("elsewhere"));
    fs::rename(&key_file, &elsewhere).unwrap();
    let mut contact = MinerContact::default();
    contact.set("name", CanonicalJson::string("pool"));
    ids.set_contact(&pool, &contact).unwrap();
    assert!(signs_as_it_says(&ids));
    let document = verified(&ids.get("pool").unwrap().output_script(1).unwrap());
    assert_eq!((document.miner_id, document.miner_contact), (first, contact.clone()));
    fs::rename(&elsewhere, &key_file).unwrap();
    ids.record_hand_outs().unwrap();
    let document = verified(&ids.get("pool").unwrap().output_script(1).unwrap());
    assert_eq!((document.previous_miner_id, document.miner_contact), (first, contact));
    assert_ne!(document.miner_id, first);
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
        ids.rotate_without_node(&alias("pool"), false).unwrap();
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

/// Waits until the store says that a document by the current key was handed out.
fn await_note(ids: &MinerIds<FailingStore>, name: &str) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !ids.store().identity(&alias(name)).unwrap().is_handed_out() {
        assert!(Instant::now() < deadline);
        thread::sleep(Duration::from_millis(5));
    }
}

/// The answers of 20 threads, while the store hangs.
fn answers<T: Send + 'static>(ask: impl Fn() -> T + Send + Sync + 'static) -> Vec<T> {
    let ask = Arc::new(ask);
    let (sender, receiver) = mpsc::channel();
    for _ in 0..20 {
        let (ask, sender) = (Arc::clone(&ask), sender.clone());
        thread::spawn(move || sender.send(ask()));
    }
    (0..20).map(|_| receiver.recv_timeout(Duration::from_secs(30)).unwrap()).collect()
}

#[test]
fn a_disk_that_hangs_withholds_no_document() {
    let place = Place::new();
    let (ids, switch) = open(&place);
    begin(&ids, "pool");
    ids.rotate_without_node(&alias("pool"), false).unwrap();
    switch.set(Fault::Hang);
    let pool = ids.get("pool").unwrap();
    let asked = Arc::clone(&pool);
    let scripts = answers(move || asked.output_script(1).unwrap());
    assert_eq!(pool.output_script_if_noted(1).unwrap().as_ref(), scripts.first());
    assert_eq!(switch.changes(), 1, "notes under way");
    switch.set(Fault::None);
    await_note(&ids, "pool");
    drop((pool, ids));
    assert!(place.open().get("pool").unwrap().is_valid());
}

#[test]
fn a_disk_that_hangs_withholds_no_reference() {
    let place = Place::new();
    let (ids, switch) = open(&place);
    ids.generate_miner_info(&alias("pool"), &place.keystore_named("revocation")).unwrap();
    let pool = ids.get("pool").unwrap();
    pool.output_script(1).unwrap();
    switch.set(Fault::Hang);
    let coinbase2 = hex::decode(COINBASE2).unwrap();
    let previous_block = BlockHash::from_bytes([1; 32]);
    let job = BlockBindJob { previous_block, merkle_branch: Vec::new() };
    let txid = Txid::from_bytes([2; 32]);
    let expected = pool.preview_coinbase2_with_reference(txid, &coinbase2, &job).unwrap();
    let ids = Arc::new(ids);
    let asked = Arc::clone(&ids);
    let ask = move || asked.coinbase2_with_reference("pool", txid, &coinbase2, &job).unwrap();
    assert!(answers(ask).iter().all(|answer| *answer == expected));
    assert_eq!(switch.changes(), 1, "notes under way");
    switch.set(Fault::None);
    let references =
        || ids.store().identity(&alias("pool")).unwrap().miner_info().unwrap().references.len();
    let deadline = Instant::now() + Duration::from_secs(30);
    while references() == 0 {
        assert!(Instant::now() < deadline);
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_note_that_failed_is_not_tried_again_by_each_request() {
    let place = Place::new();
    let (ids, switch) = open(&place);
    begin(&ids, "pool");
    ids.rotate_without_node(&alias("pool"), false).unwrap();
    switch.set(Fault::Before);
    let pool = ids.get("pool").unwrap();
    for _ in 0..100 {
        pool.output_script(1).unwrap();
    }
    assert!(switch.changes() < 10, "{} attempts", switch.changes());
    switch.set(Fault::None);
    let deadline = Instant::now() + Duration::from_secs(30);
    while !ids.store().identity(&alias("pool")).unwrap().is_handed_out() {
        assert!(Instant::now() < deadline);
        pool.output_script(1).unwrap();
        thread::sleep(Duration::from_millis(5));
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
        assert!(ids.import_without_node(&home, None).unwrap_err().is_out_of_space());
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
            let outcomes = ids.import_without_node(&home, None).unwrap();
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
