use std::fs;

use bsv_minerid::store::RedbIdentityStore;
use bsv_minerid::{Error, Keystore, PlainKeys};

use crate::support::{Place, alias, begin, extended_key, named_keys};

#[test]
fn a_key_left_by_an_attempt_cut_short_is_adopted_and_never_overwritten() {
    let place = Place::new();
    let left = [extended_key(), extended_key()];
    let keystore = place.keystore();
    for (name, key) in ["pool_1", "pool_2"].iter().zip(&left) {
        keystore.insert(name, key.as_text().as_bytes()).unwrap();
    }
    drop(keystore);
    let files = || ["pool_1", "pool_2"].map(|name| fs::read(place.key_file(name)).unwrap());
    let before = files();
    let ids = place.open();
    let expected = left.map(|key| key.private_key().public_key());
    assert_eq!(begin(&ids, "pool"), expected[0]);
    assert_eq!(ids.rotate_without_node(&alias("pool"), false).unwrap(), expected[1]);
    assert_eq!(named_keys(&ids, "pool"), expected);
    assert_eq!(files(), before);
    ids.rotate_without_node(&alias("pool"), false).unwrap();
    drop(ids);
    place.open();
}

#[test]
fn a_left_key_that_cannot_be_read_stops_the_attempt_and_is_kept() {
    let place = Place::new();
    place.keystore().insert("pool_1", b"not a key").unwrap();
    fs::write(place.key_file("other_1"), b"not even sealed").unwrap();
    let ids = place.open();
    for name in ["pool", "other"] {
        let file = place.key_file(&format!("{name}_1"));
        let before = fs::read(&file).unwrap();
        let error = ids.generate(&alias(name)).unwrap_err().to_string();
        assert!(error.contains(&format!("{name}_1")), "{error}");
        assert_eq!(fs::read(&file).unwrap(), before);
        assert!(ids.get(name).is_err());
    }
    drop(ids);
    assert!(place.open().all().is_empty());
}

#[test]
fn an_identity_is_broken_if_a_key_that_signs_is_missing_damaged_or_another_and_others_are_not() {
    let place = Place::new();
    let ids = place.open();
    let other = begin(&ids, "other");
    begin(&ids, "pool");
    ids.rotate_without_node(&alias("pool"), false).unwrap();
    ids.rotate_without_node(&alias("pool"), false).unwrap();
    drop(ids);
    for name in ["pool_2", "pool_3"] {
        let file = place.key_file(name);
        let right = fs::read(&file).unwrap();
        let check_fault = |fault: &str| {
            let ids = place.open();
            assert_eq!(named_keys(&ids, "other"), [other, other]);
            let Err(Error::Broken { alias, reason }) = ids.get("pool") else { panic!("{fault}") };
            assert_eq!(alias.as_str(), "pool");
            assert!(reason.contains(name) && reason.contains(fault), "{reason}");
            let broken: Vec<_> = ids.broken().collect();
            assert_eq!(broken, [(&alias, reason.as_str())]);
            for error in
                [ids.generate(&alias).map(drop), ids.rotate_without_node(&alias, false).map(drop)]
            {
                assert!(matches!(error, Err(Error::Broken { .. })), "{error:?}");
            }
        };
        fs::remove_file(&file).unwrap();
        check_fault("");
        place.keystore().insert(name, extended_key().as_text().as_bytes()).unwrap();
        check_fault("is not the one on record");
        fs::remove_file(&file).unwrap();
        place.keystore().insert(name, &[0xff; 111]).unwrap();
        check_fault("in the keystore: ");
        let mut damaged = right.clone();
        *damaged.last_mut().unwrap() ^= 1;
        fs::write(&file, damaged).unwrap();
        check_fault("");
        fs::write(&file, right).unwrap();
    }
    // Keys that no longer sign are not needed.
    fs::remove_file(place.key_file("pool_1")).unwrap();
    assert_eq!(place.open().broken().count(), 0);
}

#[test]
fn an_alias_is_made_once() {
    let place = Place::new();
    let ids = place.open();
    let key = ids.generate(&alias("pool")).unwrap();
    let error = ids.generate(&alias("pool")).unwrap_err();
    assert!(matches!(error, Error::AliasExists(_)), "{error}");
    assert_eq!(ids.get("pool").unwrap().public_key(), key);
    assert!(!place.key_file("pool_2").exists());
    for unknown in ["", "Pool", "pool ", "../pool", "pool_1"] {
        let error = ids.get(unknown).unwrap_err();
        assert_eq!(error.to_string(), format!("alias \"{unknown}\" does not exist"));
    }
    let unknown = ids.rotate_without_node(&alias("other"), false).unwrap_err();
    assert!(matches!(unknown, Error::UnknownAlias(_)), "{unknown}");
    assert!(!place.key_file("other_1").exists());
}

#[test]
fn who_comes_second_is_told_who_holds_the_directories() {
    let place = Place::new();
    let ids = place.open();
    let holder = format!("is in use by the holder (process {})", std::process::id());
    let store = RedbIdentityStore::open(&place.path("minerid"), "second").unwrap_err();
    assert!(store.to_string().ends_with(&holder), "{store}");
    let keystore =
        Keystore::open(&place.path("keystore"), None, PlainKeys::Allowed, "second").unwrap_err();
    assert!(keystore.to_string().ends_with(&holder), "{keystore}");
    drop(ids);
    place.open();
}
