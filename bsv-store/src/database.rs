mod copy;
mod engine;
mod integrity;
mod options;
mod pace;
mod schema;
mod tracked_file;

use std::fmt;
use std::fs::{self, Metadata, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::time::Instant;

use redb::{ReadTransaction, ReadableDatabase, WriteTransaction};

pub use self::copy::DatabaseCopy;
pub use self::engine::View;
pub use self::options::{DatabaseOptions, check_writable};
pub use self::schema::{Migration, Schema};

use self::copy::Copying;
use self::engine::{Engine, commit, open_engine};
use self::integrity::{Checks, open_checked};
use self::options::check_free_space;
use self::pace::Pace;
use self::schema::migrate;
use self::tracked_file::Changes;
use crate::durations::Durations;
use crate::error::StoreError;
use crate::files::{self, FileError};
use crate::overlay::Overlay;

/// A redb file with a schema version.
///
/// After a failed write, redb refuses all further operations on the same handle. This type then
/// reopens the file, so that writes work again as soon as the cause (a full disk) is gone. Until
/// then, the file is open for reading only.
///
/// Once the file is found to be damaged, all reads and writes fail.
pub struct Database {
    path: PathBuf,
    options: DatabaseOptions,
    /// `None` between a failed write and a successful reopening.
    engine: RwLock<Option<Engine>>,
    /// The damage, once it is found.
    damage: OnceLock<StoreError>,
    /// Held during a copy, so that only one copy takes room on the disk.
    copying: Mutex<()>,
    /// The blocks that are written to during a copy.
    changes: Arc<Changes>,
    counts: StoreCounts,
}

/// Counts of what a store has done since it was opened.
#[derive(Debug, Default)]
pub struct StoreCounts {
    commands: AtomicU64,
    /// How long commits took, successful or not, from their beginning until they were durable or
    /// failed.
    pub commits: Durations,
}

impl StoreCounts {
    /// The number of commands that have run, including those that changed nothing. Several commands
    /// share a commit.
    pub fn commands(&self) -> u64 {
        self.commands.load(Ordering::Relaxed)
    }

    /// Counts commands that run.
    pub fn note_commands(&self, count: usize) {
        self.commands.fetch_add(count as u64, Ordering::Relaxed);
    }
}

/// How often a copy catches up with new writes before it makes writers wait.
const CATCHING_UP: usize = 3;
/// Only the owner may read and write the files.
const OWNER_ONLY: u32 = 0o600;
/// The cache of a check, in bytes. A small cache is enough, because a check reads each page once.
const CHECK_CACHE_BYTES: usize = 4 << 20;

impl Database {
    /// Opens the file at `path`, or creates it if it is missing, and migrates it to the newest
    /// version of `schema`. The caller holds a [`DirLock`](crate::DirLock) on its directory.
    pub fn open(
        path: &Path,
        schema: &Schema,
        options: DatabaseOptions,
    ) -> Result<Self, StoreError> {
        if !path.try_exists().map_err(FileError::new("look for", path))? {
            create(path, schema, options)?;
        }
        // Best effort: on a read-only disk the mode stays as it is.
        let _ = fs::set_permissions(path, Permissions::from_mode(OWNER_ONLY));
        let changes = Arc::default();
        let engine = open_engine(path, options, &changes)?;
        migrate(&engine, path, schema)?;
        Ok(Self {
            path: path.to_owned(),
            options,
            engine: RwLock::new(Some(engine)),
            damage: OnceLock::new(),
            copying: Mutex::default(),
            changes,
            counts: StoreCounts::default(),
        })
    }

    /// Runs `query` on a file of any version, and leaves the file as it is. Nothing else may have the file open: the
    /// caller holds a [`DirLock`](crate::DirLock) on its directory.
    pub fn peek<T>(
        path: &Path,
        query: impl FnOnce(&Arc<ReadTransaction>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let overlay = Overlay::open(path).map_err(FileError::new("read", path))?;
        let open = || DatabaseOptions::default().builder().create_with_backend(overlay);
        let database = open_checked(path, Checks::None, open)?;
        // The engine may panic on a damaged page, also when it closes the file.
        let read = move || query(&Arc::new(database.begin_read()?));
        catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(|_| {
            let reason = "a page cannot be read".to_owned();
            Err(StoreError::DamagedFile { path: path.to_owned(), reason })
        })
    }

    /// Runs `query` on a consistent view, without waiting for writers.
    pub fn read<T>(
        &self,
        query: impl FnOnce(&Arc<ReadTransaction>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.with_engine(|engine| query(&engine.snapshot()?.transaction))
    }

    /// Runs `query` on tables as of the last commit, to read a few rows.
    pub fn view<V: View, T>(
        &self,
        query: impl FnOnce(&V) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.with_engine(|engine| query(engine.snapshot()?.view()?))
    }

    /// Runs `command` in a write transaction and commits it durably. A command that refuses (inner
    /// error) or fails changes nothing.
    pub fn write<T, R>(
        &self,
        command: impl FnOnce(&WriteTransaction) -> Result<Result<T, R>, StoreError>,
    ) -> Result<Result<T, R>, StoreError> {
        self.counts.note_commands(1);
        self.write_batch(command)
    }

    /// Like [`write`](Self::write), for several commands at once. The caller counts them.
    pub(crate) fn write_batch<T, R>(
        &self,
        command: impl FnOnce(&WriteTransaction) -> Result<Result<T, R>, StoreError>,
    ) -> Result<Result<T, R>, StoreError> {
        check_free_space(self.dir(), self.options.free_space_reserve)?;
        self.leave_read_only();
        let write = || {
            self.with_engine(|engine| {
                let transaction = engine.begin_write()?;
                match command(&transaction)? {
                    Ok(value) => {
                        let begun = Instant::now();
                        let committed = commit(transaction);
                        self.counts.commits.note(begun.elapsed());
                        committed?;
                        engine.forget_snapshot();
                        Ok(Ok(value))
                    }
                    Err(refusal) => {
                        transaction.abort()?;
                        Ok(Err(refusal))
                    }
                }
            })
        };
        // The engine may panic on a damaged page. How much it wrote before is unknown.
        let outcome = catch_unwind(AssertUnwindSafe(write)).unwrap_or_else(|_| {
            let reason = "it panicked, probably on a damaged page".to_owned();
            Err(StoreError::Commit(Arc::new(redb::Error::Corrupted(reason))))
        });
        if let Err(StoreError::Engine(_) | StoreError::Commit(_)) = outcome {
            *self.engine.write().unwrap_or_else(PoisonError::into_inner) = None;
        }
        outcome
    }

    /// Copies the file as of the last commit, and compares the whole copy with its checksums.
    /// Readers do not wait. Writers wait only at the end, while the last changes are copied. The
    /// copy takes as much room on the disk as the file until it is dropped.
    pub fn copy(&self) -> Result<DatabaseCopy, StoreError> {
        self.copy_with(self.options, Pace::Hurried)
    }

    /// Compares a file with its checksums that is too long for the check at opening. The check
    /// makes and reads a [copy](Self::copy) with low priority. Answers the file's length in bytes,
    /// or `None` if the file is checked at opening.
    pub fn check(&self) -> Result<Option<u64>, StoreError> {
        let len = self.file_len()?;
        if len <= self.options.checked_len {
            return Ok(None);
        }
        let options = DatabaseOptions { cache_bytes: CHECK_CACHE_BYTES, ..self.options };
        self.copy_with(options, Pace::Unhurried)?;
        Ok(Some(len))
    }

    /// The damage, if any was found since the file was opened.
    pub fn damage(&self) -> Option<&StoreError> {
        self.damage.get()
    }

    fn copy_with(&self, options: DatabaseOptions, pace: Pace) -> Result<DatabaseCopy, StoreError> {
        let _copying = self.copying.lock().unwrap_or_else(PoisonError::into_inner);
        let copy = || {
            let copying = self.copy_file(pace)?;
            pace.run(&self.path, || copying.open(options))
        };
        match copy() {
            // The copy may be damaged instead of the file: try again.
            Err(error) if error.is_damage() => copy().inspect_err(|error| self.note_damage(error)),
            copied => copied,
        }
    }

    fn copy_file(&self, pace: Pace) -> Result<Copying<'_>, StoreError> {
        let reserve = self.options.free_space_reserve;
        check_free_space(self.dir(), reserve.saturating_add(self.room_taken()?))?;
        let copying = Copying::begin(&self.path)?;
        let tracking = self.changes.track();
        pace.run(&self.path, || copying.copy_all(|| check_free_space(self.dir(), reserve)))?;
        for _ in 0..CATCHING_UP {
            copying.copy_again(&tracking.take())?;
        }
        self.with_engine(|engine| {
            // An open write transaction keeps others from writing. Nobody writes to a file that is
            // open for reading only.
            let transaction =
                if engine.is_read_only() { None } else { Some(engine.begin_write()?) };
            copying.copy_again(&tracking.take())?;
            copying.cut()?;
            Ok(transaction.map_or(Ok(()), WriteTransaction::abort)?)
        })?;
        Ok(copying)
    }

    /// Counts of what the store has done since it was opened.
    pub fn counts(&self) -> &StoreCounts {
        &self.counts
    }

    /// The length of the file, in bytes.
    pub fn file_len(&self) -> Result<u64, FileError> {
        Ok(self.metadata()?.len())
    }

    /// The room that the file takes on the disk, in bytes. Holes make it less than the file's
    /// length.
    fn room_taken(&self) -> Result<u64, FileError> {
        Ok(self.metadata()?.blocks().saturating_mul(512))
    }

    fn metadata(&self) -> Result<Metadata, FileError> {
        fs::metadata(&self.path).map_err(FileError::new("look at", &self.path))
    }

    fn note_damage(&self, error: &StoreError) {
        if error.is_damage() {
            // Another thread may have noted the same damage first.
            let _ = self.damage.set(error.clone());
        }
    }

    /// The directory of the file.
    pub fn dir(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("."))
    }

    fn with_engine<T>(
        &self,
        operation: impl FnOnce(&Engine) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        loop {
            if let Some(damage) = self.damage.get() {
                return Err(damage.clone());
            }
            let engine = self.engine.read().unwrap_or_else(PoisonError::into_inner);
            if let Some(engine) = engine.as_ref() {
                return operation(engine);
            }
            drop(engine);
            let mut engine = self.engine.write().unwrap_or_else(PoisonError::into_inner);
            if engine.is_none() {
                let opened = open_engine(&self.path, self.options, &self.changes);
                *engine = Some(opened.inspect_err(|error| self.note_damage(error))?);
            }
        }
    }

    /// Closes a file that is open for reading only. The next operation opens it again.
    fn leave_read_only(&self) {
        let is_read_only =
            |engine: &Option<Engine>| engine.as_ref().is_some_and(Engine::is_read_only);
        if is_read_only(&self.engine.read().unwrap_or_else(PoisonError::into_inner)) {
            let mut engine = self.engine.write().unwrap_or_else(PoisonError::into_inner);
            if is_read_only(&engine) {
                *engine = None;
            }
        }
    }
}

impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Database").field("path", &self.path).finish_non_exhaustive()
    }
}

/// Creates the file under a temporary name: redb cannot open a file whose creation was interrupted.
fn create(path: &Path, schema: &Schema, options: DatabaseOptions) -> Result<(), StoreError> {
    let dir = path.parent().unwrap_or(Path::new("."));
    let temporary = path.with_extension("redb.new");
    match fs::remove_file(&temporary) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(FileError::new("remove", &temporary)(error).into());
        }
        _ => {}
    }
    let engine = Engine::writable(options.builder().create(&temporary)?);
    fs::set_permissions(&temporary, Permissions::from_mode(OWNER_ONLY))
        .map_err(FileError::new("set the mode of", &temporary))?;
    migrate(&engine, path, schema)?;
    drop(engine);
    fs::rename(&temporary, path).map_err(FileError::new("create", path))?;
    Ok(files::sync_dir(dir)?)
}

#[cfg(test)]
mod tests;
