use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek};
use std::os::unix::fs::OpenOptionsExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use redb::{ReadTransaction, ReadableDatabase};

use super::{DatabaseOptions, StoreError, builder};
use crate::files::FileError;

/// A copy of a database file as of one commit, all of whose pages have the checksums that they had when
/// they were written. It has no name on the disk, and is gone with this value.
pub struct DatabaseCopy {
    engine: redb::Database,
    file: File,
    path: PathBuf,
}

impl DatabaseCopy {
    /// Opens and reads the file at `path`, whose name is removed.
    pub(super) fn open(path: PathBuf, options: DatabaseOptions) -> Result<Self, StoreError> {
        let opened = File::open(&path).map_err(FileError::new("open", &path));
        let opened = opened.map(|file| (open_checked(&path, options, Checks::All), file));
        fs::remove_file(&path).map_err(FileError::new("remove", &path))?;
        let (engine, file) = opened?;
        Ok(Self { engine: engine?, file, path })
    }

    /// Runs `query` on it.
    pub fn read<T>(
        &self,
        query: impl FnOnce(&ReadTransaction) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        query(&self.engine.begin_read()?)
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

/// Copies a file to one that only its owner can read.
pub(super) fn copy_file(from: &Path, to: &Path) -> Result<(), FileError> {
    let copy = || {
        let mut source = File::open(from)?;
        let mut target =
            OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(to)?;
        io::copy(&mut source, &mut target)
    };
    let copied = copy().map_err(FileError::new("write", to));
    if copied.is_err() {
        // Best effort: it takes room on a disk that may be full.
        let _ = fs::remove_file(to);
    }
    copied.map(drop)
}

/// What of a file is compared with its checksums when it is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Checks {
    /// Only its beginning.
    None,
    /// All that it holds.
    All,
}

/// Opens a database file.
///
/// The engine trusts what it reads of a page that is damaged, and may panic.
pub(super) fn open_checked(
    path: &Path,
    options: DatabaseOptions,
    checks: Checks,
) -> Result<redb::Database, StoreError> {
    let damaged =
        |reason: &str| StoreError::DamagedFile { path: path.to_owned(), reason: reason.to_owned() };
    let check = || {
        let mut engine = builder(options).open(path)?;
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
    use std::io::Read;

    use redb::{ReadableTable, TableDefinition, WriteTransaction};

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

    fn rows(transaction: &ReadTransaction) -> Result<Vec<(u64, String)>, StoreError> {
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
        let expected = database.read(|transaction| rows(transaction)).unwrap();
        let is_over = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for number in COUNT.. {
                    if is_over.load(std::sync::atomic::Ordering::Relaxed) {
                        return;
                    }
                    let written = database.write(|transaction| {
                        transaction.open_table(ROWS)?.insert(number, "more")?;
                        Ok(Ok::<_, ()>(()))
                    });
                    assert_eq!(written.unwrap(), Ok(()));
                }
            });
            for _ in 0..20 {
                let copy = database.copy().unwrap().read(rows).unwrap();
                assert_eq!(copy[..expected.len()], expected);
                let numbers: Vec<_> = copy.iter().map(|(number, _)| *number).collect();
                assert_eq!(numbers, (0..copy.len() as u64).collect::<Vec<_>>());
            }
            is_over.store(true, std::sync::atomic::Ordering::Relaxed);
        });
        let mut bytes = Vec::new();
        database.copy().unwrap().into_file().unwrap().read_to_end(&mut bytes).unwrap();
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
        fs::write(dir.path().join("restored.redb"), bytes).unwrap();
        let restored = open(&dir.path().join("restored.redb")).unwrap();
        assert_eq!(
            restored.read(|transaction| rows(transaction)).unwrap(),
            database.read(|transaction| rows(transaction)).unwrap()
        );
    }

    /// Whatever one byte becomes: the file does not open, or its copy is refused, or all is as it was.
    #[test]
    fn a_copy_of_a_damaged_file_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("rows.redb");
        let expected = open(&path).unwrap().read(|transaction| rows(transaction)).unwrap();
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
                        let found = database.read(|transaction| rows(transaction));
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
