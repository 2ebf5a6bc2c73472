use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use bsv_minerid::JobData;
use bsv_tx::{PublicKey, Script};

use crate::support::{COINBASE2, Place, alias, begin, named_keys, verified};

/// The locking script of the last output of a coinbase2 that was made from [`COINBASE2`].
fn last_script(coinbase2: &[u8]) -> &[u8] {
    let start = COINBASE2.len() / 2 - 4 + 8;
    let end = coinbase2.len() - 4;
    match coinbase2[start] {
        0xfd => &coinbase2[start + 3..end],
        _ => &coinbase2[start + 1..end],
    }
}

#[test]
fn documents_built_during_rotations_name_exactly_the_key_that_signed_them() {
    const ROTATIONS: usize = 50;
    let place = Place::new();
    let ids = place.open();
    begin(&ids, "pool");
    let coinbase2 = Script::from_hex(COINBASE2).unwrap().into_bytes();
    let is_over = AtomicBool::new(false);
    let mut seen: Vec<[PublicKey; 2]> = thread::scope(|scope| {
        let builders: Vec<_> = (0..8_u32)
            .map(|builder| {
                let (ids, coinbase2, is_over) = (&ids, &coinbase2, &is_over);
                scope.spawn(move || {
                    let mut seen = Vec::new();
                    for height in (builder + 1..).step_by(8) {
                        let identity = ids.get("pool").unwrap();
                        let document = if height % 2 == 0 {
                            verified(&identity.output_script(height).unwrap())
                        } else {
                            let job = JobData::default();
                            let answer = identity.coinbase2(height, coinbase2, &job).unwrap();
                            verified(last_script(&answer))
                        };
                        assert_eq!(document.height, height);
                        let keys = [document.previous_miner_id, document.miner_id];
                        if seen.last() != Some(&keys) {
                            seen.push(keys);
                        }
                        let (key, signature) = identity.sign_and_name_key(&[1; 32]).unwrap();
                        assert!(key.verify(&[1; 32], &signature));
                        if is_over.load(Ordering::Relaxed) {
                            return seen;
                        }
                    }
                    seen
                })
            })
            .collect();
        for _ in 0..ROTATIONS {
            ids.rotate_without_node(&alias("pool"), false).unwrap();
            // The first document by a key waits for changes, which otherwise leave it no gap.
            while !ids.get("pool").unwrap().record().is_handed_out() {
                thread::yield_now();
            }
        }
        is_over.store(true, Ordering::Relaxed);
        builders.into_iter().flat_map(|builder| builder.join().unwrap()).collect()
    });
    let keys: Vec<_> =
        ids.get("pool").unwrap().record().keys().iter().map(|key| key.public_key).collect();
    assert_eq!(keys.len(), 1 + ROTATIONS);
    let place_of = |key| keys.iter().position(|other| *other == key).unwrap();
    for [previous, current] in &seen {
        assert_eq!(place_of(*previous), place_of(*current).saturating_sub(1));
    }
    seen.sort_by_key(|[_, current]| place_of(*current));
    seen.dedup();
    assert!(seen.len() > 5, "the threads hardly met: {} keys seen", seen.len());
}

#[test]
fn rotations_at_once_all_count() {
    const EACH: u32 = 10;
    let place = Place::new();
    let ids = place.open();
    let first = begin(&ids, "pool");
    let answered: Vec<_> = thread::scope(|scope| {
        let rotate = || {
            (0..EACH)
                .map(|_| ids.rotate_without_node(&alias("pool"), false).unwrap())
                .collect::<Vec<_>>()
        };
        let threads = [scope.spawn(rotate), scope.spawn(rotate)];
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    let record = ids.get("pool").unwrap().record();
    let numbers: Vec<_> = record.keys().iter().map(|key| key.number).collect();
    assert_eq!(numbers, (1..=1 + 2 * EACH).collect::<Vec<_>>());
    let keys: Vec<_> = record.keys().iter().map(|key| key.public_key).collect();
    assert!(answered.iter().all(|key| keys[1..].contains(key)));
    assert_eq!(keys[0], first);
    drop(ids);
    let ids = place.open();
    assert_eq!(ids.get("pool").unwrap().record(), record);
    assert_eq!(named_keys(&ids, "pool"), [keys[keys.len() - 2], keys[keys.len() - 1]]);
}

#[test]
fn of_many_who_make_the_same_alias_one_does() {
    let place = Place::new();
    let ids = place.open();
    let pool = alias("pool");
    let made: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| ids.generate(&pool).ok())).collect();
        threads.into_iter().filter_map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(made, [ids.get("pool").unwrap().public_key()]);
}
