//! What every back end of [`IdentityStore`] must do: a back end runs this against itself.

#![allow(clippy::unwrap_used, reason = "helpers of tests may panic as tests do")]

use std::fmt::Debug;

use bsv_minerid::{
    Alias, CanonicalJson, IdentityRecord, IdentityStore, IdentityStoreError, KeyRecord,
    MinerContact, Vctx, VctxView,
};
use bsv_tx::{OutPoint, PrivateKey, Script, Transaction, TxIn, TxOut, Txid};

/// Where a store lies that can be closed and opened again.
pub(crate) trait Place {
    /// The back end.
    type Store: IdentityStore;

    /// A place with nothing in it.
    fn fresh() -> Self;

    /// Opens the store that lies here.
    fn open(&self) -> Self::Store;
}

type Scenario<S> = (&'static str, fn(&S));

/// Runs all scenarios, each in a fresh place, and compares what the store holds after each with
/// what it holds when it is opened again.
pub(crate) fn run<P: Place>() {
    let scenarios: [Scenario<P::Store>; 9] = [
        ("nothing is known of an alias before it is created", unknown),
        ("a created identity is there, and cannot be created again", create),
        ("a rotation adds the current key, and a stale one is a conflict", rotate),
        ("the contact is replaced as a whole", contact),
        ("the VCTx goes through its states, and every other change is refused", vctx_states),
        ("what the chain shows is noted for the recorded VCTx alone", vctx_views),
        ("an import takes over all or none", import),
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

/// All identities, ordered by alias, which a store need not do.
fn identities(store: &impl IdentityStore) -> Vec<(Alias, IdentityRecord)> {
    let mut identities = store.identities().unwrap();
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

fn contact_of(json: &str) -> MinerContact {
    MinerContact::from_json(json).unwrap()
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
    assert_unknown(store.rotate(&a, 1, key(2)));
    assert_unknown(store.set_contact(&a, &MinerContact::default()));
    assert_unknown(store.await_vctx_funding(&a));
    assert_unknown(store.begin_vctx(&a, &transaction()));
    assert_unknown(store.abandon_vctx(&a));
    assert_unknown(store.record_vctx(&a, outpoint(1)));
    store.note_vctx_views(&[(a.clone(), outpoint(1), VctxView::default())]).unwrap();
    store.note_handed_out(&[(a, 1)]).unwrap();
    assert_eq!(identities(store), []);
}

fn create(store: &impl IdentityStore) {
    let (first, second) = (key(1), key(1));
    let record = store.create(&alias("b"), first).unwrap();
    assert_eq!(record, IdentityRecord::new(first));
    store.create(&alias("a"), second).unwrap();
    for taken in [alias("a"), alias("b")] {
        let error = store.create(&taken, key(1)).unwrap_err();
        assert!(matches!(&error, IdentityStoreError::Exists(name) if *name == taken), "{error}");
    }
    let expected =
        [(alias("a"), IdentityRecord::new(second)), (alias("b"), IdentityRecord::new(first))];
    assert_eq!(identities(store), expected);
}

fn rotate(store: &impl IdentityStore) {
    let (a, first, second, third) = (alias("a"), key(1), key(2), key(3));
    store.create(&a, first).unwrap();
    store.create(&alias("b"), key(1)).unwrap();
    let other = store.identity(&alias("b")).unwrap();
    assert_conflict(&a, store.rotate(&a, 2, second));
    let record = store.rotate(&a, 1, second).unwrap();
    assert_eq!(record.keys, [first, second]);
    assert_eq!((record.previous_key(), record.current_key()), (&first, &second));
    assert!(!record.handed_out);
    assert_conflict(&a, store.rotate(&a, 1, third));
    assert_eq!(store.identity(&a).unwrap(), record);
    assert_eq!(store.rotate(&a, 2, third).unwrap().keys, [first, second, third]);
    assert_eq!(store.identity(&alias("b")).unwrap(), other);
}

fn contact(store: &impl IdentityStore) {
    let (a, first) = (alias("a"), key(1));
    store.create(&a, first).unwrap();
    let full = contact_of(r#"{"z":"\u0000\"😀","a":{"deep":[1.0,{}]},"":null}"#);
    let record = store.set_contact(&a, &full).unwrap();
    assert_eq!(record, IdentityRecord { contact: full, ..IdentityRecord::new(first) });
    let mut less = MinerContact::default();
    less.set("only", CanonicalJson::string("this"));
    assert_eq!(store.set_contact(&a, &less).unwrap().contact, less);
}

type Change<'a> = &'a dyn Fn(&Alias) -> Result<IdentityRecord, IdentityStoreError>;

fn vctx_states(store: &impl IdentityStore) {
    let (transaction, made, other) = (transaction(), outpoint(1), outpoint(2));
    let seen = VctxView { last_seen: Some(9), ..VctxView::default() };
    let (none, awaiting) = (&Vctx::None, &Vctx::AwaitingFunds);
    let broadcasting = &Vctx::Broadcasting(transaction.clone());
    let recorded = &Vctx::Recorded(made, seen);
    let made_now = Some(&Vctx::Recorded(made, VctxView::default()));
    let other_now = Some(&Vctx::Recorded(other, VctxView::default()));
    let changes: [Change<'_>; 5] = [
        &|alias| store.await_vctx_funding(alias),
        &|alias| store.begin_vctx(alias, &transaction),
        &|alias| store.abandon_vctx(alias),
        &|alias| store.record_vctx(alias, made),
        &|alias| store.record_vctx(alias, other),
    ];
    // What each change leads to, if it is not refused.
    for (row, (state, outcomes)) in [
        (none, [Some(awaiting), None, None, made_now, other_now]),
        (awaiting, [Some(awaiting), Some(broadcasting), None, made_now, other_now]),
        (broadcasting, [None, None, Some(awaiting), made_now, other_now]),
        (recorded, [None, None, None, Some(recorded), None]),
    ]
    .into_iter()
    .enumerate()
    {
        for (column, (change, outcome)) in changes.iter().zip(outcomes).enumerate() {
            let alias = alias(&format!("a{row}{column}"));
            let before = IdentityRecord { vctx: state.clone(), ..IdentityRecord::new(key(1)) };
            store.import(&[(alias.clone(), before.clone())]).unwrap();
            let vctx = outcome.unwrap_or(state).clone();
            match outcome {
                None => assert_conflict(&alias, change(&alias)),
                Some(_) => assert_eq!(change(&alias).unwrap().vctx, vctx),
            }
            assert_eq!(store.identity(&alias).unwrap(), IdentityRecord { vctx, ..before });
        }
    }
}

fn vctx_views(store: &impl IdentityStore) {
    let view = |height| VctxView { last_seen: Some(height), ..VctxView::default() };
    let (a, b) = (alias("a"), alias("b"));
    store.create(&a, key(1)).unwrap();
    store.create(&b, key(1)).unwrap();
    store.record_vctx(&a, outpoint(1)).unwrap();
    store.await_vctx_funding(&b).unwrap();
    let before = store.identity(&b).unwrap();
    let views = [
        (alias("unknown"), outpoint(1), view(4)),
        (b.clone(), outpoint(1), view(5)),
        (a.clone(), outpoint(1), view(6)),
        (a.clone(), outpoint(2), view(7)),
    ];
    store.note_vctx_views(&views).unwrap();
    assert_eq!(store.identity(&a).unwrap().vctx, Vctx::Recorded(outpoint(1), view(6)));
    assert_eq!(store.identity(&b).unwrap(), before);
}

fn import(store: &impl IdentityStore) {
    let record = |name: &str| (alias(name), IdentityRecord::new(key(1)));
    let (first, second, third) = (record("a"), record("b"), record("c"));
    store.import(&[]).unwrap();
    store.import(std::slice::from_ref(&second)).unwrap();
    let error = store.import(&[first.clone(), second.clone(), third.clone()]).unwrap_err();
    assert!(matches!(&error, IdentityStoreError::Exists(name) if *name == alias("b")), "{error}");
    assert_eq!(identities(store), std::slice::from_ref(&second));
    store.import(&[third.clone(), first.clone()]).unwrap();
    assert_eq!(identities(store), [first, second, third]);
}

fn hand_outs(store: &impl IdentityStore) {
    let (a, b) = (alias("a"), alias("b"));
    for alias in [&a, &b] {
        store.create(alias, key(1)).unwrap();
        store.rotate(alias, 1, key(2)).unwrap();
    }
    let is_handed_out = |alias| store.identity(alias).unwrap().handed_out;
    store.note_handed_out(&[(alias("unknown"), 1), (a.clone(), 1), (b.clone(), 3)]).unwrap();
    assert!(!is_handed_out(&a) && !is_handed_out(&b));
    store.note_handed_out(&[(a.clone(), 1), (b.clone(), 2)]).unwrap();
    assert!(!is_handed_out(&a) && is_handed_out(&b));
    store.rotate(&b, 2, key(3)).unwrap();
    assert!(!is_handed_out(&b));
    store.note_handed_out(&[(a.clone(), 2), (b.clone(), 2)]).unwrap();
    assert!(is_handed_out(&a) && !is_handed_out(&b));
}

fn every_form(store: &impl IdentityStore) {
    let views = [
        VctxView::default(),
        VctxView { last_seen: Some(0), gone_since: Some(u32::MAX), is_spent: true },
    ];
    let vctxs = [Vctx::None, Vctx::AwaitingFunds, Vctx::Broadcasting(transaction())];
    let vctxs = vctxs.into_iter().chain(views.map(|view| Vctx::Recorded(outpoint(255), view)));
    let records: Vec<_> = vctxs
        .enumerate()
        .map(|(place, vctx)| {
            let contact = contact_of(r#"{"name":"\u007f","large":123456789012345678901234567890}"#);
            let keys = vec![key(1), key(7), key(u32::MAX)];
            let handed_out = place % 2 == 0;
            (alias(&format!("a{place}")), IdentityRecord { keys, handed_out, contact, vctx })
        })
        .collect();
    store.import(&records).unwrap();
    assert_eq!(identities(store), records);
}
