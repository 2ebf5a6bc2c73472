use std::collections::BTreeSet;
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use redb::backends::FileBackend;
use redb::{ReadTransaction, ReadableDatabase};
use rustix::process::setpriority_process;

use super::tracked_file::BLOCK_LEN;
use super::{DatabaseOptions, StoreError, builder};
use crate::files::FileError;

/// A copy of a database file as of one commit, all of whose pages have the checksums that they had when
/// they were written. It has no name on the disk, and is gone with this value.
pub struct DatabaseCopy {
    engine: redb::Database,
    file: File,
    path: PathBuf,
}

/// A copy of a database file that is still to be compared with its checksums.
pub(super) struct Copying<'a> {
    /// Without a name, so that a crash leaves nothing on the disk.
    file: File,
    /// What it is made of.
    source: File,
    /// Its path.
    original: &'a Path,
}

/// How much is read at once, in bytes, and copied before it is looked again whether there is room.
const PART_LEN: u64 = 1 << 20;

impl<'a> Copying<'a> {
    /// Makes a file, still empty, that only its owner could read.
    pub(super) fn begin(original: &'a Path) -> Result<Self, FileError> {
        let path = original.with_extension("redb.copy");
        let source = File::open(original).map_err(FileError::new("read", original))?;
        let create = || {
            let mut options = OpenOptions::new();
            options.read(true).write(true).create(true).truncate(true).mode(0o600);
            let file = options.open(&path)?;
            fs::remove_file(&path)?;
            Ok(file)
        };
        let file = create().map_err(FileError::new("create", &path))?;
        Ok(Self { file, source, original })
    }

    /// Copies all that is there, as long as there is room. Blocks of zeros, which are half of a file that
    /// has just grown, take none.
    pub(super) fn copy_all(
        &self,
        check_room: impl Fn() -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let mut part = Vec::new();
        let mut offset = 0;
        loop {
            check_room()?;
            self.read(offset, PART_LEN, &mut part)?;
            if part.is_empty() {
                return Ok(());
            }
            for block in part.chunks(BLOCK_LEN as usize) {
                if block.iter().any(|byte| *byte != 0) {
                    self.write(offset, block)?;
                }
                offset += block.len() as u64;
            }
        }
    }

    /// Copies some blocks once more.
    pub(super) fn copy_again(&self, blocks: &BTreeSet<u64>) -> Result<(), FileError> {
        let mut bytes = Vec::new();
        for block in blocks {
            let offset = block.saturating_mul(BLOCK_LEN);
            self.read(offset, BLOCK_LEN, &mut bytes)?;
            self.write(offset, &bytes)?;
        }
        Ok(())
    }

    /// Gives the copy the length that the original has.
    pub(super) fn cut(&self) -> Result<(), FileError> {
        let cut = || self.file.set_len(self.source.metadata()?.len());
        cut().map_err(self.failure())
    }

    /// Reads bytes of the original: fewer at its end.
    fn read(&self, offset: u64, len: u64, bytes: &mut Vec<u8>) -> Result<(), FileError> {
        bytes.clear();
        let mut source = &self.source;
        source.seek(SeekFrom::Start(offset)).map_err(self.failure())?;
        source.take(len).read_to_end(bytes).map_err(self.failure())?;
        Ok(())
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), FileError> {
        self.file.write_all_at(bytes, offset).map_err(self.failure())
    }

    fn failure(&self) -> impl FnOnce(io::Error) -> FileError {
        FileError::new("copy", self.original)
    }

    /// Opens and reads it.
    pub(super) fn open(self, options: DatabaseOptions) -> Result<DatabaseCopy, StoreError> {
        let Self { file, original, .. } = self;
        let open = || {
            let backend = FileBackend::new(file.try_clone()?)?;
            builder(options).create_with_backend(backend)
        };
        let engine = open_checked(original, Checks::All, open)?;
        Ok(DatabaseCopy { engine, file, path: original.to_owned() })
    }
}

/// Whether a copy is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pace {
    Hurried,
    /// The processors are left to others.
    Unhurried,
}

impl Pace {
    /// Runs a part of the work on the file at `path` that holds up nobody.
    pub(super) fn run<T: Send>(
        self,
        path: &Path,
        work: impl FnOnce() -> Result<T, StoreError> + Send,
    ) -> Result<T, StoreError> {
        if self == Self::Hurried {
            return work();
        }
        let work = || {
            // Of a thread, on Linux; that it hurries is no reason not to do it.
            let _ = setpriority_process(None, LOWEST_PRIORITY);
            work()
        };
        thread::scope(|scope| {
            let thread = thread::Builder::new().name("store check".to_owned());
            let start_error = FileError::new("start a thread that reads", path);
            let thread = thread.spawn_scoped(scope, work).map_err(start_error)?;
            thread.join().unwrap_or(Err(StoreError::Panicked))
        })
    }
}

const LOWEST_PRIORITY: i32 = 19;

impl DatabaseCopy {
    /// Runs `query` on it.
    pub fn read<T>(
        &self,
        query: impl FnOnce(&Arc<ReadTransaction>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        query(&Arc::new(self.engine.begin_read()?))
    }

    /// The bytes of the file.
    pub fn into_file(self) -> Result<File, StoreError> {
        let Self { engine, mut file, path } = self;
        drop(engine);
        file.rewind().map_err(FileError::new("read", &path))?;
        Ok(file)
    }
}

impl fmt::Debug for DatabaseCopy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DatabaseCopy").field("path", &self.path).finish_non_exhaustive()
    }
}

/// What of a file is compared with its checksums when it is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Checks {
    /// Only its beginning.
    None,
    /// All that it holds.
    All,
}

/// Opens the database file at `path`, or a copy of it, and looks whether it is as it was written.
///
/// The engine trusts what it reads of a page that is damaged, and may panic.
pub(super) fn open_checked(
    path: &Path,
    checks: Checks,
    open: impl FnOnce() -> Result<redb::Database, redb::DatabaseError>,
) -> Result<redb::Database, StoreError> {
    let damaged =
        |reason: &str| StoreError::DamagedFile { path: path.to_owned(), reason: reason.to_owned() };
    let check = || {
        let mut engine = open()?;
        let is_intact = checks == Checks::None || engine.check_integrity()?;
        Ok((engine, is_intact))
    };
    match catch_unwind(AssertUnwindSafe(check)) {
        Ok(Ok((engine, true))) => Ok(engine),
        Ok(Ok((_, false))) => Err(damaged("what was written last does not match its checksums")),
        Ok(Err(redb::DatabaseError::Storage(redb::StorageError::Corrupted(reason)))) => {
            Err(damaged(&reason))
        }
        Ok(Err(error)) => {
            let source = Arc::new(redb::Error::from(error));
            Err(StoreError::Open { path: path.to_owned(), source })
        }
        Err(_) => Err(damaged("it cannot be read")),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use redb::{ReadableTable, TableDefinition, WriteTransaction};
    use rustix::process::getpriority_process;

    use super::*;
    use crate::{Database, Schema};

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
                    if is_over.load(std::sync::atomic::Ordering::Relaxed) {
                        return;
                    }
                    let written = database.write(|transaction| {
                        transaction.open_table(ROWS)?.insert(number, more.as_str())?;
                        Ok(Ok::<_, ()>(()))
                    });
                    assert_eq!(written.unwrap(), Ok(()));
                }
            });
            // At once: a copy that does not hold together is not made a second time.
            let copy =
                |pace| database.copy_file(pace)?.open(DatabaseOptions::default())?.read(rows);
            let paces = [Pace::Hurried, Pace::Unhurried].into_iter().cycle();
            let copies: Vec<_> = paces.take(20).map(copy).collect();
            is_over.store(true, std::sync::atomic::Ordering::Relaxed);
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
        let room = |metadata: fs::Metadata| metadata.blocks() * 512;
        assert!(room(original.clone()) + (4 << 20) < original.len(), "{original:?}");
        let copy = database.copy().unwrap().into_file().unwrap().metadata().unwrap();
        assert_eq!(copy.len(), original.len());
        assert!(room(copy.clone()) < room(original) + (1 << 20), "{copy:?}");
    }

    #[test]
    fn only_what_is_unhurried_has_a_low_priority() {
        let priority = || getpriority_process(None).unwrap();
        let before = priority();
        let run = |pace: Pace| pace.run(Path::new("rows.redb"), || Ok(priority())).unwrap();
        assert_eq!(run(Pace::Unhurried), LOWEST_PRIORITY);
        assert_eq!([run(Pace::Hurried), priority()], [before; 2]);
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

    /// Whatever one byte becomes: the file does not open, or its copy is refused, or all is as it was.
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
                        // What is damaged is not what rows are read from.
                        let found = database.read(rows);
                        assert_eq!(found.unwrap(), expected, "byte {place}");
                    }
                    assert!(matches!(
                        error,
                        StoreError::DamagedFile { .. } | StoreError::Open { .. }
                    ));
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
}
