use crate::lock::LockError;
use crate::seal::{checked_params, seal, stretch};

use super::*;

fn passphrase(text: &str) -> SecretString {
    SecretString::from(text)
}

fn open(dir: &Path, passphrase: Option<&SecretString>) -> Result<Keystore, KeystoreError> {
    let stretch = |passphrase| StretchedPassphrase::for_keystore(dir, passphrase);
    open_stretched(dir, passphrase.map(stretch).transpose()?.as_ref())
}

fn open_stretched(
    dir: &Path,
    passphrase: Option<&StretchedPassphrase>,
) -> Result<Keystore, KeystoreError> {
    Keystore::open(dir, passphrase, PlainKeys::Allowed, "test")
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn secrets_read_back_after_reopening() {
    for passphrase in [None, Some(passphrase("correct horse"))] {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().join("keys");
        let keystore = open(&dir, passphrase.as_ref()).unwrap();
        keystore.insert("pool_1", b"secret text").unwrap();
        drop(keystore);
        let keystore = open(&dir, passphrase.as_ref()).unwrap();
        assert_eq!(keystore.is_plain(), passphrase.is_none());
        assert_eq!(keystore.get("pool_1").unwrap().as_slice(), b"secret text");
        assert!(matches!(keystore.get("pool_2"), Err(KeystoreError::Missing(_))));
        assert!(matches!(keystore.insert("pool_1", b"x"), Err(KeystoreError::Exists(_))));
        assert_eq!(keystore.get("pool_1").unwrap().as_slice(), b"secret text");
    }
}

#[test]
fn nothing_in_the_directory_tells_a_secret_or_can_be_read_by_others() {
    let dir = tempfile::tempdir().unwrap();
    let keystore = open(dir.path(), Some(&passphrase("correct horse"))).unwrap();
    keystore.insert("pool_1", b"secret text").unwrap();
    let data_key = hex::encode(*keystore.data_key);
    assert_eq!(mode(dir.path()), 0o700);
    for entry in fs::read_dir(dir.path()).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(mode(&path), 0o600, "{}", path.display());
        let contents = String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned();
        for secret in ["secret text", "correct horse", &data_key] {
            assert!(!contents.contains(secret), "{}", path.display());
        }
    }
    assert!(!format!("{keystore:?}").contains(&data_key));
}

#[test]
fn the_passphrase_must_be_the_right_one() {
    let dir = tempfile::tempdir().unwrap();
    drop(open(dir.path(), Some(&passphrase("right"))).unwrap());
    let wrong = open(dir.path(), Some(&passphrase("wrong"))).unwrap_err();
    assert!(matches!(wrong, KeystoreError::WrongPassphrase(_)), "{wrong}");
    let none = open(dir.path(), None).unwrap_err();
    assert!(matches!(none, KeystoreError::PassphraseMissing(_)), "{none}");
    open(dir.path(), Some(&passphrase("right"))).unwrap();
}

#[test]
fn keys_in_clear_are_made_only_where_allowed() {
    let dir = tempfile::tempdir().unwrap();
    let refused = Keystore::open(dir.path(), None, PlainKeys::Refused, "test").unwrap_err();
    assert!(matches!(refused, KeystoreError::PlainRefused(_)), "{refused}");
    assert!(!dir.path().join(data_key_file::NAME).exists());
    drop(open(dir.path(), None).unwrap());
    let refused = Keystore::open(dir.path(), None, PlainKeys::Refused, "test").unwrap_err();
    assert!(matches!(refused, KeystoreError::PlainRefused(_)), "{refused}");
    let unsealed = open(dir.path(), Some(&passphrase("later"))).unwrap_err();
    assert!(matches!(unsealed, KeystoreError::NotSealed(_)), "{unsealed}");
}

#[test]
fn a_new_data_key_is_never_made_beside_keys_that_need_the_old_one() {
    let dir = tempfile::tempdir().unwrap();
    open(dir.path(), None).unwrap().insert("pool_1", b"secret").unwrap();
    fs::remove_file(dir.path().join(data_key_file::NAME)).unwrap();
    let error = open(dir.path(), None).unwrap_err();
    assert!(matches!(error, KeystoreError::DataKeyMissing(_)), "{error}");
    assert!(!dir.path().join(data_key_file::NAME).exists());
}

#[test]
fn every_flipped_byte_and_every_truncation_of_a_key_file_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let keystore = open(dir.path(), None).unwrap();
    keystore.insert("pool_1", b"secret").unwrap();
    let path = dir.path().join("pool_1.key");
    let right = fs::read(&path).unwrap();
    let flipped = (0..right.len()).map(|place| {
        let mut contents = right.clone();
        contents[place] ^= 1;
        contents
    });
    let cut = (0..right.len()).map(|len| right[..len].to_vec());
    for contents in flipped.chain(cut) {
        fs::write(&path, contents).unwrap();
        assert!(matches!(keystore.get("pool_1"), Err(KeystoreError::Damaged { .. })));
    }
}

#[test]
fn a_key_file_does_not_open_under_another_name() {
    let dir = tempfile::tempdir().unwrap();
    let keystore = open(dir.path(), None).unwrap();
    keystore.insert("pool_1", b"secret").unwrap();
    fs::copy(dir.path().join("pool_1.key"), dir.path().join("pool_2.key")).unwrap();
    assert!(matches!(keystore.get("pool_2"), Err(KeystoreError::Damaged { .. })));
}

#[test]
fn files_of_builds_before_the_first_release_are_not_taken_for_released_ones() {
    let dir = tempfile::tempdir().unwrap();
    let keystore = open(dir.path(), None).unwrap();
    keystore.insert("pool_1", b"secret").unwrap();
    let path = dir.path().join("pool_1.key");
    let released = fs::read(&path).unwrap();
    fs::write(&path, [b"bsvkey\x00\x01", &released[KEY_FILE_MAGIC.len()..]].concat()).unwrap();
    let error = keystore.get("pool_1").unwrap_err().to_string();
    assert!(
        error.ends_with("pool_1.key was made by an unreleased build; make a new one"),
        "{error}"
    );
    drop(keystore);
    let plain = format!(r#"{{"version":1,"dataKey":{{"plain":"{}"}}}}"#, "11".repeat(32));
    fs::write(dir.path().join(data_key_file::NAME), plain).unwrap();
    let error = open(dir.path(), None).unwrap_err().to_string();
    assert!(
        error.ends_with("keystore.json was made by an unreleased build; make a new one"),
        "{error}"
    );
}

#[test]
fn a_damaged_data_key_file_is_refused_and_kept() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(data_key_file::NAME);
    let plain_key = "11".repeat(32);
    let wrapped = |memory: u64, salt: &str| {
        format!(
            r#"{{"format":"bsv-keystore","version":1,"dataKey":{{"wrapped":{{"memoryKib":{memory},"iterations":2,
            "parallelism":1,"salt":"{salt}","sealed":"00"}}}}}}"#
        )
    };
    for (text, passphrase) in [
        (String::new(), None),
        ("{}".to_owned(), None),
        (
            format!(
                r#"{{"format":"bsv-keystore","version":2,"dataKey":{{"plain":"{plain_key}"}}}}"#
            ),
            None,
        ),
        (r#"{"format":"bsv-keystore","version":1,"dataKey":{"plain":"1111"}}"#.to_owned(), None),
        (r#"{"format":"bsv-keystore","version":1,"dataKey":{"plain":"zz"}}"#.to_owned(), None),
        (wrapped(u64::from(u32::MAX), &"11".repeat(16)), Some(passphrase("x"))),
        (wrapped(19456, "11"), Some(passphrase("x"))),
    ] {
        fs::write(&path, &text).unwrap();
        let error = open(dir.path(), passphrase.as_ref()).unwrap_err();
        assert!(matches!(error, KeystoreError::Damaged { .. }), "{text}: {error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }
}

#[test]
fn a_name_never_leads_out_of_the_directory() {
    let dir = tempfile::tempdir().unwrap();
    let keystore = open(dir.path(), None).unwrap();
    for name in ["", ".", "..", "../x", "a/b", ".hidden", "a\0", "é", "a b"] {
        assert!(matches!(keystore.insert(name, b"x"), Err(KeystoreError::BadName(_))), "{name}");
        assert!(matches!(keystore.get(name), Err(KeystoreError::BadName(_))), "{name}");
    }
}

#[test]
fn one_at_a_time_has_a_keystore() {
    let dir = tempfile::tempdir().unwrap();
    let keystore = open(dir.path(), None).unwrap();
    keystore.insert("pool_1", b"secret").unwrap();
    let second = open(dir.path(), None).unwrap_err();
    assert!(matches!(second, KeystoreError::Lock(LockError::Held { .. })), "{second}");
    assert_eq!(keystore.get("pool_1").unwrap().as_slice(), b"secret");
    drop(keystore);
    // A failed opening releases the lock too.
    assert!(open(dir.path(), Some(&passphrase("x"))).is_err());
    open(dir.path(), None).unwrap();
}

#[test]
fn of_many_who_insert_under_the_same_name_one_does() {
    let dir = tempfile::tempdir().unwrap();
    let keystore = open(dir.path(), None).unwrap();
    for round in 0..20 {
        let name = format!("pool_{round}");
        let inserted: Vec<_> = std::thread::scope(|scope| {
            let insert = |secret: u8| keystore.insert(&name, &[secret]).is_ok().then_some(secret);
            let threads: Vec<_> =
                (0..8).map(|secret| scope.spawn(move || insert(secret))).collect();
            threads.into_iter().filter_map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(inserted, *keystore.get(&name).unwrap());
    }
}

#[test]
fn what_a_write_cut_short_has_left_is_in_nobodys_way() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join(".keystore.json.tmp"), "{").unwrap();
    fs::write(dir.path().join(".pool_1.key.tmp"), "half").unwrap();
    let keystore = open(dir.path(), None).unwrap();
    assert!(matches!(keystore.get("pool_1"), Err(KeystoreError::Missing(_))));
    keystore.insert("pool_1", b"secret").unwrap();
    drop(keystore);
    let keystore = open(dir.path(), None).unwrap();
    assert_eq!(keystore.get("pool_1").unwrap().as_slice(), b"secret");
    assert!(!dir.path().join(".pool_1.key.tmp").exists());
}

#[test]
fn a_directory_that_others_could_enter_is_closed_to_them() {
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let _keystore = open(dir.path(), None).unwrap();
    assert_eq!(mode(dir.path()), 0o700);
}

#[test]
fn the_passphrase_changes_and_the_secrets_stay_as_they_are() {
    for first in [None, Some(passphrase("first"))] {
        let dir = tempfile::tempdir().unwrap();
        let keystore = open(dir.path(), first.as_ref()).unwrap();
        keystore.insert("pool_1", b"secret").unwrap();
        let key_file = fs::read(dir.path().join("pool_1.key")).unwrap();
        let empty = keystore.change_passphrase(&passphrase(""));
        assert!(matches!(empty, Err(KeystoreError::EmptyPassphrase)));
        assert_eq!(keystore.is_plain(), first.is_none());
        keystore.change_passphrase(&passphrase("second")).unwrap();
        assert!(!keystore.is_plain());
        keystore.insert("pool_2", b"later").unwrap();
        assert!(keystore.check().unwrap().faults.is_empty());
        drop(keystore);

        assert!(open(dir.path(), first.as_ref()).is_err());
        let keystore = open(dir.path(), Some(&passphrase("second"))).unwrap();
        assert_eq!(keystore.get("pool_1").unwrap().as_slice(), b"secret");
        assert_eq!(keystore.get("pool_2").unwrap().as_slice(), b"later");
        assert_eq!(fs::read(dir.path().join("pool_1.key")).unwrap(), key_file);
        assert_eq!(mode(&dir.path().join(data_key_file::NAME)), 0o600);
    }
}

#[test]
fn a_check_names_every_file_that_cannot_be_read() {
    let dir = tempfile::tempdir().unwrap();
    let keystore = open(dir.path(), Some(&passphrase("x"))).unwrap();
    for name in ["pool_1", "pool_2", "wallet.seed"] {
        keystore.insert(name, b"secret").unwrap();
    }
    let check = keystore.check().unwrap();
    assert_eq!((check.readable.len(), check.faults.len()), (3, 0));
    fs::write(dir.path().join("pool_2.key"), "damaged").unwrap();
    fs::write(dir.path().join(data_key_file::NAME), "{}").unwrap();
    let check = keystore.check().unwrap();
    assert_eq!(check.readable, ["pool_1", "wallet.seed"]);
    let faults: Vec<_> = check.faults.iter().map(ToString::to_string).collect();
    assert_eq!(faults.len(), 2, "{faults:?}");
    assert!(faults[0].contains("keystore.json"), "{faults:?}");
    assert!(faults[1].contains("pool_2.key"), "{faults:?}");
}

#[test]
fn every_flipped_byte_and_every_truncation_of_the_data_key_file_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let right_passphrase = passphrase("x");
    open(dir.path(), Some(&right_passphrase)).unwrap().insert("pool_1", b"secret").unwrap();
    let path = dir.path().join(data_key_file::NAME);
    let right = fs::read(&path).unwrap();
    // White space between members is insignificant. Each attempt stretches the passphrase.
    let places = (0..right.len()).filter(|place| !right[*place].is_ascii_whitespace());
    for place in places.step_by(29) {
        let mut contents = right.clone();
        contents[place] ^= 1;
        fs::write(&path, &contents).unwrap();
        let opened = open(dir.path(), Some(&right_passphrase));
        assert!(opened.is_err(), "byte {place}: {}", String::from_utf8_lossy(&contents));
        assert_eq!(fs::read(&path).unwrap(), contents);
        fs::write(&path, &right[..place]).unwrap();
        assert!(open(dir.path(), Some(&right_passphrase)).is_err(), "cut at {place}");
    }
}

#[test]
fn what_was_stretched_less_opens_and_is_stretched_as_now_with_the_next_passphrase() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(data_key_file::NAME);
    let (key, salt, first) = ([1; KEY_LEN], [2; 16], passphrase("first"));
    let wrapping_key = stretch(&first, &salt, &checked_params(19456, 2, 1).unwrap());
    let sealed = seal(&wrapping_key, data_key_file::NAME.as_bytes(), &key).unwrap();
    let (salt, sealed) = (hex::encode(salt), hex::encode(sealed));
    let text = format!(
        r#"{{"format":"bsv-keystore","version":1,"dataKey":{{"wrapped":{{"memoryKib":19456,"iterations":2,
        "parallelism":1,"salt":"{salt}","sealed":"{sealed}"}}}}}}"#
    );
    fs::write(&path, text).unwrap();
    let keystore = open(dir.path(), Some(&first)).unwrap();
    assert_eq!(*keystore.data_key, key);
    keystore.change_passphrase(&first).unwrap();
    let text = fs::read_to_string(&path).unwrap();
    assert!(
        text.contains(r#""memoryKib": 65536"#) && text.contains(r#""iterations": 3"#),
        "{text}"
    );
    drop(keystore);
    assert_eq!(*open(dir.path(), Some(&first)).unwrap().data_key, key);
}

/// A passphrase that was stretched and then replaced: what opens now was opened with the stretched
/// key.
fn stretched_before(dir: &Path, text: &str) -> StretchedPassphrase {
    let mut stretched = StretchedPassphrase::for_keystore(dir, &passphrase(text)).unwrap();
    stretched.passphrase = passphrase("forgotten");
    stretched
}

#[test]
fn a_passphrase_is_stretched_before_the_keystore_is_opened_and_made() {
    let dir = tempfile::tempdir().unwrap();
    let make = stretched_before(dir.path(), "x");
    assert!(!dir.path().join(DirLock::FILE_NAME).exists());
    open_stretched(dir.path(), Some(&make)).unwrap().insert("pool_1", b"secret").unwrap();
    let keystore = open(dir.path(), Some(&passphrase("x"))).unwrap();
    assert_eq!(keystore.get("pool_1").unwrap().as_slice(), b"secret");
    // Another process may hold the keystore meanwhile.
    let open = stretched_before(dir.path(), "x");
    let held = open_stretched(dir.path(), Some(&open)).unwrap_err();
    assert!(matches!(held, KeystoreError::Lock(LockError::Held { .. })), "{held}");
    drop(keystore);
    open_stretched(dir.path(), Some(&open)).unwrap();
}

#[test]
fn a_keystore_that_has_changed_since_a_passphrase_was_stretched_still_opens() {
    let (dir, text) = (tempfile::tempdir().unwrap(), passphrase("x"));
    let stretch = || StretchedPassphrase::for_keystore(dir.path(), &text).unwrap();
    let before_it_was_made = stretch();
    drop(open(dir.path(), Some(&text)).unwrap());
    let before_it_was_changed = stretch();
    let keystore = open_stretched(dir.path(), Some(&before_it_was_made)).unwrap();
    keystore.change_passphrase(&text).unwrap();
    let key = keystore.data_key.clone();
    drop(keystore);
    let keystore = open_stretched(dir.path(), Some(&before_it_was_changed)).unwrap();
    assert_eq!(keystore.data_key, key);
    keystore.change_passphrase(&passphrase("y")).unwrap();
    drop(keystore);
    let error = open_stretched(dir.path(), Some(&before_it_was_changed)).unwrap_err();
    assert!(matches!(error, KeystoreError::WrongPassphrase(_)), "{error}");
}

#[test]
fn what_is_stretched_less_is_not_what_a_keystore_is_made_with() {
    let (dir, text) = (tempfile::tempdir().unwrap(), passphrase("x"));
    let salt = "11".repeat(16);
    let less = format!(
        r#"{{"format":"bsv-keystore","version":1,"dataKey":{{"wrapped":{{"memoryKib":19456,"iterations":2,
        "parallelism":1,"salt":"{salt}","sealed":"00"}}}}}}"#
    );
    let path = dir.path().join(data_key_file::NAME);
    fs::write(&path, less).unwrap();
    let stretched = StretchedPassphrase::for_keystore(dir.path(), &text).unwrap();
    fs::remove_file(&path).unwrap();
    open_stretched(dir.path(), Some(&stretched)).unwrap();
    let made = fs::read_to_string(&path).unwrap();
    assert!(made.contains(r#""memoryKib": 65536"#) && !made.contains(&salt), "{made}");
}

#[test]
fn what_is_stored_elsewhere_opens_with_the_same_keystore_in_the_same_context_only() {
    let dirs = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let keystore = open(dirs[0].path(), None).unwrap();
    let sealed = keystore.seal("a b", b"secret text").unwrap();
    assert!(!sealed.windows(6).any(|part| part == b"secret"));
    assert_ne!(keystore.seal("a b", b"secret text").unwrap(), sealed);
    assert_eq!(keystore.open_sealed("a b", &sealed).unwrap().as_slice(), b"secret text");
    drop(keystore);
    let keystore = open(dirs[0].path(), None).unwrap();
    assert_eq!(keystore.open_sealed("a b", &sealed).unwrap().as_slice(), b"secret text");
    for (context, sealed) in [("a c", &sealed[..]), ("a b", &sealed[1..]), ("a b", &[])] {
        assert!(keystore.open_sealed(context, sealed).is_none());
    }
    let other = open(dirs[1].path(), None).unwrap();
    assert!(other.open_sealed("a b", &sealed).is_none());
}

fn handed(files: Vec<KeystoreFile>) -> Arc<HandedFiles> {
    Arc::new(HandedFiles::new("/elsewhere".into(), files).unwrap())
}

#[test]
fn what_is_handed_over_opens_as_it_does_where_it_lies() {
    let dir = tempfile::tempdir().unwrap();
    let passphrase = passphrase("correct horse");
    open(dir.path(), Some(&passphrase)).unwrap().insert("pool_1", b"secret text").unwrap();
    let files = handed(Keystore::files_in(dir.path()).unwrap());
    let open = |passphrase: Option<&SecretString>| {
        let stretch = |passphrase| StretchedPassphrase::for_handed(&files, passphrase);
        let passphrase = passphrase.map(stretch).transpose()?;
        Keystore::open_handed(&files, passphrase.as_ref(), PlainKeys::Allowed)
    };
    let keystore = open(Some(&passphrase)).unwrap();
    assert_eq!(keystore.get("pool_1").unwrap().as_slice(), b"secret text");
    assert!(matches!(keystore.get("pool_2"), Err(KeystoreError::Missing(_))));
    assert!(matches!(keystore.insert("pool_1", b"x"), Err(KeystoreError::Exists(_))));
    assert_eq!(keystore.check().unwrap().readable, ["pool_1"]);
    assert!(matches!(open(None), Err(KeystoreError::PassphraseMissing(_))));
    assert!(files.unwritten().is_empty());
}

#[test]
fn what_is_to_be_written_fails_until_it_was_written_and_handed_over() {
    let mut files = Vec::new();
    let mut rounds = 0;
    let keystore = loop {
        let handed = handed(files.clone());
        let opened = Keystore::open_handed(&handed, None, PlainKeys::Allowed);
        let inserted =
            opened.and_then(|keystore| match keystore.insert("pool_1", b"secret text") {
                Ok(()) | Err(KeystoreError::Exists(_)) => Ok(keystore),
                Err(error) => Err(error),
            });
        match inserted {
            Ok(keystore) => break keystore,
            Err(error) => assert!(matches!(error, KeystoreError::Unwritten(_)), "{error}"),
        }
        assert_eq!(handed.unwritten().len(), 1, "the data key, then the secret");
        files.extend(handed.unwritten());
        rounds += 1;
    };
    assert_eq!(rounds, 2);
    assert_eq!(keystore.get("pool_1").unwrap().as_slice(), b"secret text");
    assert!(matches!(keystore.remove("pool_1"), Err(KeystoreError::Unwritten(_))));
    // Once written to the disk, the files are an ordinary keystore.
    let dir = tempfile::tempdir().unwrap();
    for file in &files {
        fs::write(dir.path().join(&file.name), &file.contents).unwrap();
    }
    assert_eq!(open(dir.path(), None).unwrap().get("pool_1").unwrap().as_slice(), b"secret text");
}

#[test]
fn no_file_of_another_name_is_handed_over() {
    for name in ["", "../x.key", ".key", "notes", "lock"] {
        let file = KeystoreFile { name: name.to_owned(), contents: Zeroizing::new(vec![]) };
        assert!(HandedFiles::new("/elsewhere".into(), [file]).is_err(), "{name}");
    }
}
