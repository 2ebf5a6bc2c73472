//! What a copy holds, and which damage of it is noticed.

use std::io::Read;
use std::thread;

use redb::{ReadableTable, TableDefinition};

use super::super::*;

const ROWS: TableDefinition<'_, u64, &str> = TableDefinition::new("rows");
const SCHEMA: Schema = Schema { name: "rows", migrations: &[fill] };
const COUNT: u64 = 3_000;

fn fill(transaction: &WriteTransaction) -> Result<(), StoreError> {
    let mut rows = transaction.open_table(ROWS)?;
    for number in 0..COUNT {
        rows.insert(number, format!("the value of row {number}").as_str())?;
    }
    Ok(())
}

fn open(path: &Path) -> Result<Database, StoreError> {
    Database::open(path, &SCHEMA, DatabaseOptions::default())
}

fn rows(transaction: &Arc<ReadTransaction>) -> Result<Vec<(u64, String)>, StoreError> {
    let rows = transaction.open_table(ROWS)?;
    rows.iter()?
        .map(|row| {
            let (number, value) = row?;
            Ok((number.value(), value.value().to_owned()))
        })
        .collect()
}

#[test]
fn a_copy_holds_what_was_committed_and_leaves_nothing_behind() {
    let dir = tempfile::tempdir().unwrap();
    let database = open(&dir.path().join("rows.redb")).unwrap();
    let expected = database.read(rows).unwrap();
    let more = "more".repeat(2_000);
    let is_over = std::sync::atomic::AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            for number in COUNT.. {
                if is_over.load(Ordering::Relaxed) {
                    return;
                }
                let written = database.write(|transaction| {
                    transaction.open_table(ROWS)?.insert(number, more.as_str())?;
                    Ok(Ok::<_, ()>(()))
                });
                assert_eq!(written.unwrap(), Ok(()));
            }
        });
        // Without a second attempt, which would hide an inconsistent copy.
        let copy = |pace| database.copy_file(pace)?.open(DatabaseOptions::default())?.read(rows);
        let paces = [Pace::Hurried, Pace::Unhurried].into_iter().cycle();
        let copies: Vec<_> = paces.take(20).map(copy).collect();
        is_over.store(true, Ordering::Relaxed);
        for copy in copies {
            let copy = copy.unwrap();
            assert_eq!(copy[..expected.len()], expected);
            let numbers: Vec<_> = copy.iter().map(|(number, _)| *number).collect();
            assert_eq!(numbers, (0..copy.len() as u64).collect::<Vec<_>>());
        }
    });
    let mut bytes = Vec::new();
    database.copy().unwrap().into_file().unwrap().read_to_end(&mut bytes).unwrap();
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    fs::write(dir.path().join("restored.redb"), bytes).unwrap();
    let restored = open(&dir.path().join("restored.redb")).unwrap();
    assert_eq!(restored.read(rows).unwrap(), database.read(rows).unwrap());
}

#[test]
fn a_file_that_is_open_for_reading_only_is_copied() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("rows.redb");
    let database = open(&path).unwrap();
    let expected = database.read(rows).unwrap();
    // As after a write that failed, while the disk does not take another one.
    *database.engine.write().unwrap() = None;
    let overlay = Overlay::open(&path).unwrap();
    let opened = DatabaseOptions::default().builder().create_with_backend(overlay).unwrap();
    let reason = StoreError::damaged("the disk is full");
    *database.engine.write().unwrap() = Some(Engine::read_only(opened, reason));
    assert_eq!(database.copy().unwrap().read(rows).unwrap(), expected);
    assert!(database.engine.read().unwrap().as_ref().unwrap().is_read_only());
}

#[test]
fn a_copy_takes_no_room_for_what_is_empty() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("rows.redb");
    let database = open(&path).unwrap();
    let more = "more".repeat(2_000_000);
    let grow = |transaction: &WriteTransaction| {
        transaction.open_table(ROWS)?.insert(COUNT, more.as_str())?;
        Ok(Ok::<_, ()>(()))
    };
    database.write(grow).unwrap().unwrap();
    let original = fs::metadata(&path).unwrap();
    let room = |metadata: Metadata| metadata.blocks() * 512;
    assert!(room(original.clone()) + (4 << 20) < original.len(), "{original:?}");
    let copy = database.copy().unwrap().into_file().unwrap().metadata().unwrap();
    assert_eq!(copy.len(), original.len());
    assert!(room(copy.clone()) < room(original) + (1 << 20), "{copy:?}");
}

/// Flips a bit of the last value that is stored, which the engine does not notice.
fn flip_a_value(path: &Path) {
    let mut bytes = fs::read(path).unwrap();
    let text = format!("the value of row {}", COUNT - 1);
    let places = bytes.windows(text.len()).enumerate();
    let places: Vec<_> =
        places.filter(|(_, part)| *part == text.as_bytes()).map(|(at, _)| at).collect();
    assert!(!places.is_empty());
    for place in places {
        bytes[place] ^= 1;
    }
    fs::write(path, bytes).unwrap();
}

#[test]
fn a_file_that_is_found_damaged_is_used_no_more() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("rows.redb");
    drop(open(&path).unwrap());
    let options = DatabaseOptions { checked_len: 1000, ..DatabaseOptions::default() };
    let long = || Database::open(&path, &SCHEMA, options).unwrap();
    assert_eq!(long().check().unwrap(), Some(fs::metadata(&path).unwrap().len()));
    assert_eq!(open(&path).unwrap().check().unwrap(), None);
    flip_a_value(&path);
    let database = long();
    let last = |database: &Database| database.read(|tx| Ok(rows(tx)?.pop().unwrap().1));
    assert_eq!(last(&database).unwrap(), format!("uhe value of row {}", COUNT - 1));
    assert!(database.damage().is_none());
    let found = database.check().unwrap_err();
    assert!(found.is_damage() && found.to_string().contains("rows.redb is damaged"), "{found}");
    let written = database.write(|_| Ok(Ok::<_, ()>(()))).unwrap_err();
    let refusals = [last(&database).unwrap_err(), written, database.copy().unwrap_err()];
    for refusal in refusals.iter().chain(database.damage()) {
        assert_eq!(refusal.to_string(), found.to_string());
    }
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
}

#[test]
fn a_disk_without_room_for_a_copy_is_no_damage() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("rows.redb");
    drop(open(&path).unwrap());
    let options = DatabaseOptions {
        free_space_reserve: u64::MAX,
        checked_len: 0,
        ..DatabaseOptions::default()
    };
    let database = Database::open(&path, &SCHEMA, options).unwrap();
    let error = database.check().unwrap_err();
    assert!(error.is_out_of_space() && !error.is_damage(), "{error}");
    assert!(database.damage().is_none());
    assert!(database.read(rows).is_ok());
}

/// Whatever one byte changes to, the file does not open, its copy is refused, or all rows are
/// right.
#[test]
fn a_copy_of_a_damaged_file_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("rows.redb");
    let expected = open(&path).unwrap().read(rows).unwrap();
    let right = fs::read(&path).unwrap();
    let (mut unopened, mut refused, mut unharmed) = (0, 0, 0);
    for step in 0..300 {
        let place = step * (right.len() - 1) / 299;
        let mut damaged = right.clone();
        damaged[place] ^= 0x10;
        fs::write(&path, &damaged).unwrap();
        let options = DatabaseOptions { checked_len: 0, ..DatabaseOptions::default() };
        let opened = catch_unwind(|| Database::open(&path, &SCHEMA, options));
        match opened.ok().and_then(Result::ok).map(|database| database.copy()) {
            None => unopened += 1,
            Some(Err(error)) => {
                fs::write(&path, &damaged).unwrap();
                if let Ok(database) = open(&path) {
                    // The damage is in a part that reading rows does not touch.
                    let found = database.read(rows);
                    assert_eq!(found.unwrap(), expected, "byte {place}");
                }
                assert!(matches!(error, StoreError::DamagedFile { .. } | StoreError::Open { .. }));
                refused += 1;
            }
            Some(Ok(copy)) => {
                assert_eq!(copy.read(rows).unwrap(), expected, "byte {place}");
                unharmed += 1;
            }
        }
    }
    println!("{unopened} do not open, {refused} are refused, {unharmed} are unharmed");
    assert!(refused > 10);
}
