//! The rules for every back end of [`IdentityStore`]. A back end runs these tests against itself.

#![allow(clippy::unwrap_used, reason = "helpers of tests may panic as tests do")]

use std::fmt::Debug;

use bsv_minerid::formats::{OperatorDataRefs, OperatorMembers, Revocation, Succession};
use bsv_minerid::store::{
    Announcement, BlockRef, Change, Deed, IdentityRecord, IdentityStore, IdentityStoreError,
    KeyRecord, LeftVctx, MinerInfoRecord, Protocol, Reference, RevocationKeyRecord,
    RevocationRecord, Rotation, Seen, Step, Unseen, Vctx, VctxView,
};
use bsv_minerid::{Alias, CanonicalJson};
use bsv_store::KeyEvent;
use bsv_tx::{BlockHash, OutPoint, PrivateKey, Script, Transaction, TxIn, TxOut, Txid};

/// The place of a store, which can be closed and opened again.
pub(crate) trait Place {
    /// The back end.
    type Store: IdentityStore;

    /// Makes an empty place.
    fn fresh() -> Self;

    /// Opens the store in this place.
    fn open(&self) -> Self::Store;
}

type Scenario<S> = (&'static str, fn(&S));

/// Runs all scenarios, each in a new place. After each, compares the contents of the store with its
/// contents after it is opened again.
pub(crate) fn run<P: Place>() {
    let scenarios: [Scenario<P::Store>; 11] = [
        ("nothing is known of an alias before it is created", unknown),
        ("a rotation adds the current key, and a stale one is a conflict", rotate),
        ("what the operator adds is replaced as a whole", operator),
        ("blind signing is switched, and nothing else with it", blind_signing),
        ("the VCTx goes through its states, and every other change is refused", vctx_states),
        ("what is revoked for good can be deleted, and its alias is taken", delete),
        ("what the chain shows is noted for the recorded VCTx alone", vctx_views),
        ("identities are begun all or none, and once", create),
        ("identities of generation 1.0 change in one step each", miner_info),
        ("a hand-out is noted for the current key alone", hand_outs),
        ("records of every form are kept as they are", every_form),
    ];
    for (name, scenario) in scenarios {
        eprintln!("{name}");
        let place = P::fresh();
        let store = place.open();
        scenario(&store);
        let held = identities(&store);
        for (alias, record) in &held {
            assert_eq!(store.identity(alias).unwrap(), *record);
        }
        drop(store);
        assert_eq!(identities(&place.open()), held);
    }
}

/// All identities, ordered by alias. A store need not order them.
fn identities(store: &impl IdentityStore) -> Vec<(Alias, IdentityRecord)> {
    let identities = store.identities().unwrap().into_iter();
    let mut identities: Vec<_> =
        identities.map(|(alias, record)| (alias, record.unwrap())).collect();
    identities.sort_by(|(a, _), (b, _)| a.cmp(b));
    identities
}

fn alias(text: &str) -> Alias {
    text.parse().unwrap()
}

fn key(number: u32) -> KeyRecord {
    KeyRecord { number, public_key: PrivateKey::generate().unwrap().public_key() }
}

fn outpoint(byte: u8) -> OutPoint {
    OutPoint { txid: Txid::from_bytes([byte; 32]), vout: byte.into() }
}

fn transaction() -> Transaction {
    Transaction {
        version: 1,
        inputs: vec![TxIn {
            previous_output: outpoint(1),
            unlocking_script: Script::from_bytes([0x51]),
            sequence: u32::MAX,
        }],
        outputs: vec![TxOut { satoshis: 1000, locking_script: Script::p2pkh(&[7; 20]) }],
        lock_time: 0,
    }
}

fn operator_of(contact: &str) -> OperatorMembers {
    OperatorMembers::from_json(&format!(r#"{{"minerContact":{contact},"x":1.0}}"#)).unwrap()
}

/// An identity of generation 0.2.
fn identity(vctx: Vctx) -> IdentityRecord {
    IdentityRecord::new(key(1), Protocol::Vctx(vctx))
}

/// Creates an identity of generation 0.2 with this key.
fn begin(store: &impl IdentityStore, alias: &Alias, key: KeyRecord) -> IdentityRecord {
    let record = IdentityRecord::new(key, Protocol::Vctx(Vctx::None));
    store.create(&[(alias.clone(), record.clone())], KeyEvent::Made).unwrap();
    record
}

/// Rotates an identity away from the key with this number.
fn rotate_key(
    store: &impl IdentityStore,
    alias: &Alias,
    from: u32,
    key: KeyRecord,
) -> Result<IdentityRecord, IdentityStoreError> {
    store.change(alias, &Change::Rotate { rotation: Rotation::Succeed, from, key })
}

#[track_caller]
fn assert_unknown<T: Debug>(result: Result<T, IdentityStoreError>) {
    let error = result.unwrap_err();
    assert!(matches!(&error, IdentityStoreError::Unknown(name) if *name == alias("a")), "{error}");
}

#[track_caller]
fn assert_conflict<T: Debug>(alias: &Alias, result: Result<T, IdentityStoreError>) {
    let error = result.unwrap_err();
    let is_conflict =
        matches!(&error, IdentityStoreError::Conflict { alias: named, .. } if named == alias);
    assert!(is_conflict, "{error}");
}

fn unknown(store: &impl IdentityStore) {
    let a = alias("a");
    assert_eq!(identities(store), []);
    assert_unknown(store.identity(&a));
    assert_unknown(rotate_key(store, &a, 1, key(2)));
    assert_unknown(store.change(&a, &Change::SetBlindSigning(false)));
    assert_unknown(store.change(&a, &Change::Confirm));
    assert_unknown(store.change(&a, &Change::Delete));
    let view = Change::NoteVctxView(outpoint(1), VctxView::default());
    store.change_all(&[(a.clone(), view), (a, Change::NoteHandedOut(1))]).unwrap();
    assert_eq!(identities(store), []);
}

fn rotate(store: &impl IdentityStore) {
    let (a, first, second, third) = (alias("a"), key(1), key(2), key(3));
    begin(store, &a, first);
    begin(store, &alias("b"), key(1));
    let other = store.identity(&alias("b")).unwrap();
    assert_conflict(&a, rotate_key(store, &a, 2, second));
    let record = rotate_key(store, &a, 1, second).unwrap();
    assert_eq!(record.keys(), [first, second]);
    assert_eq!((record.previous_key(), record.current_key()), (&first, &second));
    assert!(!record.is_handed_out());
    assert_conflict(&a, rotate_key(store, &a, 1, third));
    assert_eq!(store.identity(&a).unwrap(), record);
    assert_eq!(rotate_key(store, &a, 2, third).unwrap().keys(), [first, second, third]);
    assert_eq!(store.identity(&alias("b")).unwrap(), other);
}

fn operator(store: &impl IdentityStore) {
    let a = alias("a");
    let before = begin(store, &a, key(1));
    let full = operator_of(r#"{"z":"\u0000\"😀","a":{"deep":[1.0,{}]},"":null}"#);
    let record = store.change(&a, &Change::SetOperator(full.clone())).unwrap();
    assert_eq!(record, IdentityRecord { operator: full, ..before });
    let mut less = OperatorMembers::default();
    less.set("only", CanonicalJson::string("this")).unwrap();
    assert_eq!(store.change(&a, &Change::SetOperator(less.clone())).unwrap().operator, less);
}

fn blind_signing(store: &impl IdentityStore) {
    let a = alias("a");
    let before = begin(store, &a, key(1));
    assert!(before.blind_signing);
    let off = store.change(&a, &Change::SetBlindSigning(false)).unwrap();
    assert_eq!(off, IdentityRecord { blind_signing: false, ..before.clone() });
    assert!(!rotate_key(store, &a, 1, key(2)).unwrap().blind_signing);
    assert!(store.change(&a, &Change::SetBlindSigning(true)).unwrap().blind_signing);
}

fn vctx_states(store: &impl IdentityStore) {
    let (transaction, made, other) = (transaction(), outpoint(1), outpoint(2));
    let seen = VctxView { last_seen: Some(9), ..VctxView::default() };
    let (none, awaiting) = (&Vctx::None, &Vctx::AwaitingFunds);
    let broadcasting = &Vctx::Broadcasting(transaction.clone());
    let recorded = &Vctx::Recorded(made, seen);
    let made_now = Some(&Vctx::Recorded(made, VctxView::default()));
    let other_now = Some(&Vctx::Recorded(other, VctxView::default()));
    let to_be_spent = &Vctx::Revoking(made, None);
    let revoking = &Vctx::Revoking(made, Some(transaction.clone()));
    let changes = [
        Change::AwaitVctxFunding,
        Change::BeginVctx(transaction.clone()),
        Change::AbandonVctx,
        Change::RecordVctx(made),
        Change::RecordVctx(other),
        Change::RevokeVctx(None),
        Change::RevokeVctx(Some(transaction)),
    ];
    // The result of each change, or its refusal.
    for (row, (state, outcomes)) in [
        (none, [Some(awaiting), None, None, made_now, other_now, None, None]),
        (awaiting, [Some(awaiting), Some(broadcasting), None, made_now, other_now, None, None]),
        (broadcasting, [None, None, Some(awaiting), made_now, other_now, None, None]),
        (recorded, [None, None, None, Some(recorded), None, Some(to_be_spent), Some(revoking)]),
        (to_be_spent, [None, None, None, None, None, Some(to_be_spent), Some(revoking)]),
        (revoking, [None, None, None, None, None, None, Some(revoking)]),
    ]
    .into_iter()
    .enumerate()
    {
        for (column, (change, outcome)) in changes.iter().zip(outcomes).enumerate() {
            let alias = alias(&format!("a{row}{column}"));
            let before = identity(state.clone());
            store.create(&[(alias.clone(), before.clone())], KeyEvent::Made).unwrap();
            let vctx = outcome.unwrap_or(state).clone();
            match outcome {
                None => assert_conflict(&alias, store.change(&alias, change)),
                Some(_) => assert_eq!(store.change(&alias, change).unwrap().vctx(), Some(&vctx)),
            }
            let after = IdentityRecord { protocol: Protocol::Vctx(vctx), ..before };
            assert_eq!(store.identity(&alias).unwrap(), after);
        }
    }
}

fn delete(store: &impl IdentityStore) {
    let pool = alias("pool");
    let begun = begin(store, &pool, key(1));
    let refused = store.change(&pool, &Change::Delete);
    assert!(matches!(refused, Err(IdentityStoreError::Conflict { .. })), "{refused:?}");
    assert_eq!(store.identity(&pool).unwrap(), begun);
    let revoked = IdentityRecord {
        steps: vec![begun.steps[0], Step { deed: Deed::Closed, ..begun.steps[0] }],
        protocol: Protocol::MinerInfo(Box::new(miner_info_of_every_form())),
        ..begun
    };
    let closed = alias("closed");
    store.create(&[(closed.clone(), revoked.clone())], KeyEvent::Made).unwrap();
    let deleted = store.change(&closed, &Change::Delete).unwrap();
    assert_eq!(deleted, IdentityRecord { is_deleted: true, ..revoked.clone() });
    assert_eq!(store.identity(&closed).unwrap(), deleted);
    let again = store.create(&[(closed.clone(), revoked)], KeyEvent::Made);
    assert!(matches!(again, Err(IdentityStoreError::Exists(alias)) if alias == closed));
}

fn vctx_views(store: &impl IdentityStore) {
    let view = |height| VctxView { last_seen: Some(height), ..VctxView::default() };
    let (a, b) = (alias("a"), alias("b"));
    begin(store, &a, key(1));
    begin(store, &b, key(1));
    store.change(&a, &Change::RecordVctx(outpoint(1))).unwrap();
    store.change(&b, &Change::AwaitVctxFunding).unwrap();
    let before = store.identity(&b).unwrap();
    let views = [
        (alias("unknown"), outpoint(1), view(4)),
        (b.clone(), outpoint(1), view(5)),
        (a.clone(), outpoint(1), view(6)),
        (a.clone(), outpoint(2), view(7)),
    ];
    let views = views.map(|(alias, outpoint, view)| (alias, Change::NoteVctxView(outpoint, view)));
    store.change_all(&views).unwrap();
    let seen = Vctx::Recorded(outpoint(1), view(6));
    assert_eq!(store.identity(&a).unwrap().vctx(), Some(&seen));
    assert_eq!(store.identity(&b).unwrap(), before);
}

fn create(store: &impl IdentityStore) {
    let record = |name: &str| (alias(name), identity(Vctx::None));
    let (first, second, third) = (record("a"), record("b"), record("c"));
    store.create(&[], KeyEvent::Made).unwrap();
    store.create(std::slice::from_ref(&second), KeyEvent::Made).unwrap();
    let error =
        store.create(&[first.clone(), second.clone(), third.clone()], KeyEvent::Made).unwrap_err();
    assert!(matches!(&error, IdentityStoreError::Exists(name) if *name == alias("b")), "{error}");
    assert_eq!(identities(store), std::slice::from_ref(&second));
    store.create(&[third.clone(), first.clone()], KeyEvent::Made).unwrap();
    assert_eq!(identities(store), [first, second, third]);
}

fn succession() -> Succession {
    Succession::sign(&PrivateKey::generate().unwrap(), key(1).public_key).unwrap()
}

/// A key without a predecessor.
fn no_succession() -> Succession {
    let key = PrivateKey::generate().unwrap();
    Succession::sign(&key, key.public_key()).unwrap()
}

fn message() -> Revocation {
    let [revocation_key, miner_id] = [(); 2].map(|()| PrivateKey::generate().unwrap());
    Revocation::sign(key(1).public_key, &revocation_key, &miner_id).unwrap()
}

fn data() -> OperatorDataRefs {
    OperatorDataRefs::from_json(
        r#"{"dataRefs":{"refs":[{"brfcIds":["62b21572ca46"],"data":{"62b21572ca46":{"n":1.0}},"vout":3,"compress":"é"}]}}"#,
    )
    .unwrap()
}

fn miner_info(store: &impl IdentityStore) {
    let (a, first, second) = (alias("a"), key(1), key(2));
    begin(store, &a, first);
    rotate_key(store, &a, 1, second).unwrap();
    let change = |change: Change| store.change(&a, &change);
    assert_conflict(&a, change(Change::Confirm));
    let upgraded = MinerInfoRecord::new(&first, 1, no_succession());
    let upgrade = || Change::Upgrade(Box::new(upgraded.clone()));
    let record = change(upgrade()).unwrap();
    assert_eq!(record.miner_info(), Some(&upgraded));
    assert!(record.is_handed_out());
    assert_eq!((record.previous_key(), record.current_key()), (&first, &second));
    assert_eq!(record.announcements(), [Announcement::Rotation]);
    assert_conflict(&a, change(upgrade()));
    assert_conflict(&a, store.change(&a, &Change::AwaitVctxFunding));

    let record = change(Change::Confirm).unwrap();
    assert_eq!(record.previous_key(), &second);
    assert_eq!(record.announcements(), []);

    change(Change::SetData(data())).unwrap();
    let txid = Txid::from_bytes([9; 32]);
    let record = change(Change::ReferToData(txid)).unwrap();
    assert_eq!(record.miner_info().unwrap().data_refs, data().references(txid));
    let record = change(Change::SetData(OperatorDataRefs::default())).unwrap();
    assert_eq!(record.miner_info().unwrap().data_refs, []);

    let (announced, acknowledged) = (succession(), no_succession());
    let roll = |from| Change::RollRevocationKey { from, number: 2, announced, acknowledged };
    assert_conflict(&a, change(roll(2)));
    let record = change(roll(1)).unwrap();
    assert_eq!(record.revocation_key(), Some(announced));
    assert_eq!(record.announcements(), [Announcement::RevocationKey]);
    assert!(!record.is_handed_out());
    let record = change(Change::Confirm).unwrap();
    assert_eq!(record.revocation_key(), Some(acknowledged));

    let (third, message) = (key(3), message());
    let revoke = |from, key| Change::BeginRevocation { from, key, message };
    assert_conflict(&a, change(revoke(1, Some(third))));
    let record = change(revoke(2, Some(third))).unwrap();
    assert_eq!((record.previous_key(), record.current_key()), (&second, &third));
    assert_eq!(record.announcements(), [Announcement::PartialRevocation]);
    let is_told = |record: &IdentityRecord| record.revocation().unwrap().is_told;
    assert!(!is_told(&record));
    let record = change(Change::NoteRevocationTold(message)).unwrap();
    assert!(is_told(&record));
    let record = change(Change::Confirm).unwrap();
    assert_eq!((record.revocation(), record.previous_key()), (None, &third));

    let record = change(revoke(3, None)).unwrap();
    assert_eq!(record.keys(), [first, second, third]);
    assert_eq!(record.announcements(), [Announcement::CompleteRevocation]);
    let record = change(Change::Confirm).unwrap();
    assert!(record.is_closed());
    assert_eq!(record.announcements(), []);
}

fn hand_outs(store: &impl IdentityStore) {
    let (a, b) = (alias("a"), alias("b"));
    for alias in [&a, &b] {
        begin(store, alias, key(1));
        rotate_key(store, alias, 1, key(2)).unwrap();
    }
    let hand_out = |keys: &[(Alias, u32)]| {
        let change = |(alias, key): &(Alias, u32)| (alias.clone(), Change::NoteHandedOut(*key));
        store.change_all(&keys.iter().map(change).collect::<Vec<_>>()).unwrap();
    };
    let is_handed_out = |alias| store.identity(alias).unwrap().is_handed_out();
    hand_out(&[(alias("unknown"), 1), (a.clone(), 1), (b.clone(), 3)]);
    assert!(!is_handed_out(&a) && !is_handed_out(&b));
    hand_out(&[(a.clone(), 1), (b.clone(), 2)]);
    assert!(!is_handed_out(&a) && is_handed_out(&b));
    rotate_key(store, &b, 2, key(3)).unwrap();
    assert!(!is_handed_out(&b));
    hand_out(&[(a.clone(), 2), (b.clone(), 2)]);
    assert!(is_handed_out(&a) && !is_handed_out(&b));
}

fn every_form(store: &impl IdentityStore) {
    let views = [
        VctxView::default(),
        VctxView { last_seen: Some(0), gone_since: Some(u32::MAX), is_spent: true },
    ];
    let revoking = Vctx::Revoking(outpoint(3), Some(transaction()));
    let vctxs = [
        Vctx::None,
        Vctx::Revoking(outpoint(4), None),
        Vctx::AwaitingFunds,
        Vctx::Broadcasting(transaction()),
        revoking,
    ];
    let vctxs = vctxs.into_iter().chain(views.map(|view| Vctx::Recorded(outpoint(255), view)));
    let records: Vec<_> = vctxs
        .enumerate()
        .map(|(place, vctx)| {
            let operator =
                operator_of(r#"{"name":"\u007f","large":123456789012345678901234567890}"#);
            let is_even = place % 2 == 0;
            let protocol = match place {
                0 => Protocol::MinerInfo(Box::new(miner_info_of_every_form())),
                _ => Protocol::Vctx(vctx),
            };
            (
                alias(&format!("a{place}")),
                IdentityRecord {
                    read_to: is_even.then_some(BLOCK),
                    unseen: is_even.then(|| Unseen { since: 8, blocks: 1, own_blocks: vec![9] }),
                    blind_signing: is_even,
                    is_deleted: is_even,
                    operator,
                    ..IdentityRecord::of_steps(steps_of_every_form(), 7, protocol)
                },
            )
        })
        .collect();
    store.create(&records, KeyEvent::Made).unwrap();
    assert_eq!(identities(store), records);
}

fn miner_info_of_every_form() -> MinerInfoRecord {
    MinerInfoRecord {
        references: vec![Reference { miner_info: Txid::from_bytes([6; 32]), key: 2 }],
        data: data(),
        data_refs: data().references(Txid::from_bytes([8; 32])),
        left_vctx: LeftVctx { outpoint: Some(outpoint(1)), sweep: Some(transaction()) },
        ..MinerInfoRecord::new(&key(1), u32::MAX, succession())
    }
}

const BLOCK: BlockRef = BlockRef { height: u32::MAX, hash: BlockHash::from_bytes([7; 32]) };

fn steps_of_every_form() -> Vec<Step> {
    let key_record = RevocationKeyRecord { number: u32::MAX, itself: no_succession() };
    let revocation = |is_complete| RevocationRecord {
        message: message(),
        is_complete,
        is_told: is_complete,
        miner_id: 7,
        revocation_key: u32::MAX,
    };
    let steps = [
        (Deed::Key { after: 1 }, Seen::Final),
        (Deed::Upgraded, Seen::In(BLOCK)),
        (Deed::RevocationKey { announced: succession(), key: key_record }, Seen::Again(BLOCK)),
        (Deed::Revoked(revocation(false)), Seen::Lost),
        (Deed::Revoked(revocation(true)), Seen::HandedOut),
        (Deed::Closed, Seen::Never),
    ];
    let numbers = [1, 1, 1, 7, u32::MAX, u32::MAX];
    let steps = steps.into_iter().zip(numbers).map(|((deed, seen), number)| Step {
        deed,
        key: key(number),
        seen,
        is_handed_out: number == 7,
    });
    steps.collect()
}
