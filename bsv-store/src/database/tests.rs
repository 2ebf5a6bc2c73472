mod copy;

use redb::{ReadableTable, ReadableTableMetadata, TableDefinition};

use super::*;

const NAMES: TableDefinition<'_, u64, &str> = TableDefinition::new("names");

fn one(transaction: &WriteTransaction) -> Result<(), StoreError> {
    transaction.open_table(NAMES)?.insert(1, "one")?;
    Ok(())
}

/// Relies on `one`, which runs before it.
fn two(transaction: &WriteTransaction) -> Result<(), StoreError> {
    let mut names = transaction.open_table(NAMES)?;
    let first = names.get(1)?.map(|name| name.value().to_owned());
    names.insert(2, first.ok_or(StoreError::damaged("one is missing"))?.as_str())?;
    Ok(())
}

fn fails(_: &WriteTransaction) -> Result<(), StoreError> {
    Err(StoreError::damaged("on purpose"))
}

const V1: Schema = Schema { name: "numbers", migrations: &[one] };
const V2: Schema = Schema { name: "numbers", migrations: &[one, two] };
const BROKEN_V3: Schema = Schema { name: "numbers", migrations: &[one, two, fails] };

fn open(path: &Path, schema: &Schema) -> Result<Database, StoreError> {
    Database::open(path, schema, DatabaseOptions::default())
}

fn names(database: &Database) -> Vec<String> {
    database
        .read(|transaction| {
            let names = transaction.open_table(NAMES)?;
            (1..=9)
                .filter_map(|n| names.get(n).transpose())
                .map(|name| Ok(name?.value().to_owned()))
                .collect()
        })
        .unwrap()
}

fn insert_two(database: &Database) -> Result<(), StoreError> {
    let inserted = database.write(|transaction| {
        transaction.open_table(NAMES)?.insert(2, "two")?;
        Ok(Ok::<_, ()>(()))
    });
    inserted.map(|inserted| assert_eq!(inserted, Ok(())))
}

#[test]
fn a_panic_while_writing_is_an_error_and_the_next_write_works() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("numbers.redb");
    let database = open(&path, &V1).unwrap();
    let panicked = database.write(|transaction| -> Result<Result<(), ()>, StoreError> {
        transaction.open_table(NAMES)?.insert(3, "three")?;
        panic!("on purpose")
    });
    let error = panicked.unwrap_err();
    assert!(matches!(error, StoreError::Commit(_)), "{error}");
    assert_eq!(names(&database), ["one"]);
    insert_two(&database).unwrap();
    drop(database);
    assert_eq!(names(&open(&path, &V1).unwrap()), ["one", "two"]);
}

#[test]
fn migrations_run_in_order_and_once() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("numbers.redb");
    assert_eq!(names(&open(&path, &V1).unwrap()), ["one"]);
    assert_eq!(names(&open(&path, &V2).unwrap()), ["one", "one"]);
    let database = open(&path, &V2).unwrap();
    let renamed = database.write(|transaction| {
        transaction.open_table(NAMES)?.insert(1, "uno")?;
        Ok(Ok::<_, ()>(()))
    });
    assert_eq!(renamed.unwrap(), Ok(()));
    drop(database);
    assert_eq!(names(&open(&path, &V2).unwrap()), ["uno", "one"]);
    assert_eq!(names(&open(&dir.path().join("new.redb"), &V2).unwrap()), ["one", "one"]);
}

#[test]
fn a_migration_that_fails_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("numbers.redb");
    drop(open(&path, &V1).unwrap());
    assert!(matches!(open(&path, &BROKEN_V3), Err(StoreError::Damaged(_))));
    assert_eq!(names(&open(&path, &V1).unwrap()), ["one"]);
}

#[test]
fn files_of_newer_versions_and_of_others_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("numbers.redb");
    drop(open(&path, &V2).unwrap());
    let newer = open(&path, &V1).unwrap_err();
    assert!(matches!(newer, StoreError::NewerSchema { found: 2, known: 1, .. }), "{newer}");
    let released = Schema { name: "bsv-numbers", migrations: &[one] };
    let unreleased = open(&path, &released).unwrap_err().to_string();
    assert!(unreleased.contains("made by an unreleased build; make a new one"), "{unreleased}");
    let other = Schema { name: "letters", migrations: &[one] };
    assert!(matches!(open(&path, &other), Err(StoreError::OtherSchema { .. })));
    fs::write(dir.path().join("text.redb"), "not a database at all").unwrap();
    assert!(matches!(open(&dir.path().join("text.redb"), &V1), Err(StoreError::Open { .. })));
}

#[test]
fn a_file_whose_making_was_cut_short_is_made_anew() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("numbers.redb");
    fs::write(dir.path().join("numbers.redb.new"), [0; 100]).unwrap();
    assert_eq!(names(&open(&path, &V1).unwrap()), ["one"]);
}

#[test]
fn a_refused_or_failed_command_leaves_nothing_behind() {
    let dir = tempfile::tempdir().unwrap();
    let database = open(&dir.path().join("numbers.redb"), &V1).unwrap();
    let refused = database.write(|transaction| {
        transaction.open_table(NAMES)?.insert(2, "two")?;
        Ok(Err::<(), _>("refused"))
    });
    assert_eq!(refused.unwrap(), Err("refused"));
    let failed = database.write(|transaction| {
        transaction.open_table(NAMES)?.insert(2, "two")?;
        Err::<Result<(), ()>, _>(StoreError::damaged("on purpose"))
    });
    assert!(failed.is_err());
    assert_eq!(names(&database), ["one"]);
}

#[test]
fn after_an_engine_failure_the_file_is_opened_again() {
    let dir = tempfile::tempdir().unwrap();
    let database = open(&dir.path().join("numbers.redb"), &V1).unwrap();
    let failed = database.write(|_| {
        let error = std::io::Error::from(std::io::ErrorKind::StorageFull);
        Err::<Result<(), ()>, _>(redb::StorageError::Io(error).into())
    });
    assert!(failed.unwrap_err().is_out_of_space());
    assert!(database.engine.read().unwrap().is_none());
    assert_eq!(names(&database), ["one"]);
    insert_two(&database).unwrap();
    assert_eq!(names(&database), ["one", "two"]);
}

#[test]
fn a_file_that_cannot_be_opened_again_is_tried_at_each_use() {
    let dir = tempfile::tempdir().unwrap();
    let (path, away) = (dir.path().join("numbers.redb"), dir.path().join("away"));
    let database = open(&path, &V1).unwrap();
    let failed = database.write(|_| {
        let error = std::io::Error::from(std::io::ErrorKind::Other);
        Err::<Result<(), ()>, _>(redb::StorageError::Io(error).into())
    });
    assert!(!failed.unwrap_err().is_out_of_space());
    fs::rename(&path, &away).unwrap();
    assert!(database.read(|_| Ok(())).is_err());
    assert!(insert_two(&database).is_err());
    fs::rename(&away, &path).unwrap();
    insert_two(&database).unwrap();
    assert_eq!(names(&database), ["one", "two"]);
}

#[test]
fn a_reader_sees_what_was_there_when_it_began() {
    let dir = tempfile::tempdir().unwrap();
    let database = open(&dir.path().join("numbers.redb"), &V1).unwrap();
    let seen = database.read(|transaction| {
        insert_two(&database)?;
        Ok(transaction.open_table(NAMES)?.get(2)?.is_some())
    });
    assert!(!seen.unwrap());
    assert_eq!(names(&database), ["one", "two"]);
}

/// The table that the other tests write to.
struct Names(redb::ReadOnlyTable<u64, &'static str>);

impl View for Names {
    fn open(transaction: &Arc<ReadTransaction>) -> Result<Self, StoreError> {
        Ok(Self(transaction.open_table(NAMES)?))
    }
}

#[test]
fn a_view_shows_every_commit_and_outlives_failures() {
    let dir = tempfile::tempdir().unwrap();
    let database = open(&dir.path().join("numbers.redb"), &V1).unwrap();
    let len = || database.view(|Names(names)| Ok(names.len()?)).unwrap();
    assert_eq!((len(), len()), (1, 1));
    insert_two(&database).unwrap();
    assert_eq!(len(), 2);
    let failed = database.write(|_| {
        let error = std::io::Error::from(std::io::ErrorKind::StorageFull);
        Err::<Result<(), ()>, _>(redb::StorageError::Io(error).into())
    });
    assert!(failed.is_err());
    assert_eq!(len(), 2);
}

#[test]
fn what_has_been_seen_stays_seen() {
    let dir = tempfile::tempdir().unwrap();
    let database = open(&dir.path().join("numbers.redb"), &V1).unwrap();
    let in_view = || database.view(|Names(names)| Ok(names.len()?)).unwrap();
    let in_table = || database.read(|tx| Ok(tx.open_table(NAMES)?.len()?)).unwrap();
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for number in 2..200 {
                let inserted = database.write(|transaction| {
                    transaction.open_table(NAMES)?.insert(number, "more")?;
                    Ok(Ok::<_, ()>(()))
                });
                assert_eq!(inserted.unwrap(), Ok(()));
            }
        });
        while !writer.is_finished() {
            let looks = [in_table(), in_view(), in_table(), in_view()];
            assert!(looks.is_sorted(), "{looks:?}");
        }
    });
}

#[test]
fn readers_of_views_and_a_failing_writer_do_not_disturb_each_other() {
    let dir = tempfile::tempdir().unwrap();
    let database = open(&dir.path().join("numbers.redb"), &V1).unwrap();
    let is_over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    assert_eq!(database.view(|Names(names)| Ok(names.len()?)).unwrap(), 1);
                }
            });
        }
        for _ in 0..100 {
            let failed = database.write(|_| {
                let error = std::io::Error::from(std::io::ErrorKind::Other);
                Err::<Result<(), ()>, _>(redb::StorageError::Io(error).into())
            });
            assert!(failed.is_err());
        }
        is_over.store(true, Ordering::Relaxed);
    });
}

#[test]
fn no_write_begins_without_the_reserve() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("numbers.redb");
    drop(open(&path, &V1).unwrap());
    let options = DatabaseOptions { free_space_reserve: u64::MAX, ..Default::default() };
    let database = Database::open(&path, &V1, options).unwrap();
    let error = database.write(|_| Ok(Ok::<_, ()>(()))).unwrap_err();
    assert!(matches!(error, StoreError::NoSpace { .. }) && error.is_out_of_space());
    assert_eq!(names(&database), ["one"]);
}

#[test]
fn only_its_owner_reads_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("test.redb");
    let schema = Schema { name: "test", migrations: &[one] };
    let mode = || fs::metadata(&path).unwrap().mode() & 0o777;
    drop(open(&path, &schema).unwrap());
    assert_eq!(mode(), 0o600);
    // Older versions created files with this mode.
    fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
    drop(open(&path, &schema).unwrap());
    assert_eq!(mode(), 0o600);
}
