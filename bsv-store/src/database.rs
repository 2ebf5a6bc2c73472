mod copy;
mod tracked_file;

use std::any::Any;
use std::fmt;
use std::fs::{self, Metadata, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};

use redb::{ReadTransaction, ReadableDatabase, TableDefinition, WriteTransaction};
use thiserror::Error;

use crate::files::{self, FileError};
use crate::overlay::Overlay;

pub use self::copy::DatabaseCopy;
use self::copy::{Checks, Copying, Pace};
use self::tracked_file::{Changes, TrackedFile};

/// One step of a schema: makes or changes tables. It runs in the transaction that raises the
/// version.
pub type Migration = fn(&WriteTransaction) -> Result<(), StoreError>;

/// What a database file holds: a name, and the migrations that lead to each version in turn. The
/// newest version is their number; an empty file has version 0.
#[derive(Clone, Copy, Debug)]
pub struct Schema {
    /// Tells files of different services apart.
    pub name: &'static str,
    /// The first makes version 1 out of an empty file.
    pub migrations: &'static [Migration],
}

/// How a database file is opened.
#[derive(Clone, Copy, Debug)]
pub struct DatabaseOptions {
    /// The most memory that cached pages may take, in bytes.
    pub cache_bytes: usize,
    /// The room that must be left on the disk for a write to be tried, in bytes.
    pub free_space_reserve: u64,
    /// Up to which length, in bytes, a file is compared with its checksums whenever it is opened. That
    /// reads all of it; a longer one is when it is [checked](Database::check) or
    /// [copied](Database::copy).
    pub checked_len: u64,
}

impl Default for DatabaseOptions {
    fn default() -> Self {
        Self { cache_bytes: 48 << 20, free_space_reserve: 4 << 20, checked_len: 4 << 20 }
    }
}

/// Why a database could not be opened, read or written. Nothing of a failed write is kept, unless it
/// is [`Commit`](Self::Commit) that failed: then reading tells.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The file was written by a newer version of this software.
    #[error(
        "{} has schema version {found}, this program knows versions up to {known}: \
         it was written by a newer version of this software", path.display()
    )]
    NewerSchema {
        /// The file.
        path: PathBuf,
        /// The version it has.
        found: u64,
        /// The newest version this program knows.
        known: u64,
    },
    /// The file belongs to another service.
    #[error("{} is not a {expected} store", path.display())]
    OtherSchema {
        /// The file.
        path: PathBuf,
        /// The name of the schema that was expected.
        expected: &'static str,
    },
    /// Too little room is left on the disk to begin a write.
    #[error("{} has {free} bytes of free space left, and needs {reserve} for a write", dir.display())]
    NoSpace {
        /// The directory of the file.
        dir: PathBuf,
        /// What is left.
        free: u64,
        /// What must be left.
        reserve: u64,
    },
    /// The file is not as it was written.
    #[error("{} is damaged ({reason}): restore it from a backup", path.display())]
    DamagedFile {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A stored record does not decode.
    #[error("a stored record is damaged: {0}")]
    Damaged(String),
    /// The file cannot be created or synced.
    #[error(transparent)]
    File(#[from] FileError),
    /// The file cannot be opened by the storage engine.
    #[error("cannot open {}: {source}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: EngineError,
    },
    /// The storage engine failed.
    #[error("the store failed: {0}")]
    Engine(EngineError),
    /// The storage engine failed to commit a change, which may have reached the disk all the same.
    #[error("the store failed to commit: {0}")]
    Commit(EngineError),
    /// A command panicked. Nothing of it was written.
    #[error("the write was given up, because of a fault in the software")]
    Panicked,
}

/// What the storage engine says, whichever it is.
pub type EngineError = Arc<dyn std::error::Error + Send + Sync>;

impl StoreError {
    /// A stored record that does not decode, and why.
    pub fn damaged(reason: impl fmt::Display) -> Self {
        Self::Damaged(reason.to_string())
    }

    /// Whether the reason is that there is no room left.
    pub fn is_out_of_space(&self) -> bool {
        match self {
            Self::NoSpace { .. } => true,
            Self::File(error) => error.is_out_of_space(),
            Self::Engine(error) | Self::Commit(error) | Self::Open { source: error, .. } => {
                let error = error.downcast_ref::<redb::Error>();
                matches!(error, Some(redb::Error::Io(error)) if files::is_out_of_space(error))
            }
            _ => false,
        }
    }

    /// Whether the reason is that the file is not as it was written.
    pub fn is_damage(&self) -> bool {
        matches!(self, Self::DamagedFile { .. })
    }
}

macro_rules! from_engine_errors {
    ($($error:ident),*) => {
        $(impl From<redb::$error> for StoreError {
            fn from(error: redb::$error) -> Self {
                Self::Engine(Arc::new(redb::Error::from(error)))
            }
        })*
    };
}
from_engine_errors!(StorageError, TableError, TransactionError, DatabaseError);

/// A redb file with a schema version.
///
/// After a failed write, redb refuses all that follows on the same handle; this type then reopens
/// the file, so that writing works again as soon as its cause (a full disk) is gone. Until then the
/// file is open for reading only.
///
/// Once a file is found to be damaged, nothing is read from it or written to it any more.
pub struct Database {
    path: PathBuf,
    options: DatabaseOptions,
    /// `None` between a failed write and a successful reopening.
    engine: RwLock<Option<Engine>>,
    /// What is wrong with the file, if that was found.
    damage: OnceLock<StoreError>,
    /// Held while the file is copied: each copy takes room on the disk.
    copying: Mutex<()>,
    /// Where the file is written to while it is copied.
    changes: Arc<Changes>,
}

/// An open file. Both parts go together: what is left of a snapshot would keep the file locked.
struct Engine {
    /// What readers see, as of the last commit, if anybody has asked for it since. All share one, so
    /// that nobody who has seen a change finds it undone by the next look.
    snapshot: RwLock<Option<Arc<Snapshot>>>,
    handle: Handle,
}

struct Snapshot {
    /// A [`View`].
    view: OnceLock<Box<dyn Any + Send + Sync>>,
    transaction: Arc<ReadTransaction>,
}

enum Handle {
    Writable(redb::Database),
    /// The file could not be opened for writing, and why.
    ReadOnly(redb::Database, StoreError),
}

/// Tables opened for reading. To open one takes longer than to read a row of it, so that readers
/// share them until the next commit. A database is asked for one type of them only.
pub trait View: Sized + Send + Sync + 'static {
    /// Opens them, or gets ready to.
    fn open(transaction: &Arc<ReadTransaction>) -> Result<Self, StoreError>;
}

/// How often a copy follows what is written, before writers wait for it.
const CATCHING_UP: usize = 3;
/// The mode of files: only their owner reads and writes them.
const OWNER_ONLY: u32 = 0o600;
/// Each page is read once.
const CHECK_CACHE_BYTES: usize = 4 << 20;

const SCHEMA_VERSIONS: TableDefinition<'_, &str, u64> = TableDefinition::new("schema_version");

impl Database {
    /// Opens the file at `path`, which is created where it is missing, and brings it to the newest
    /// version of `schema`. The caller holds a [`DirLock`](crate::DirLock) on its directory.
    pub fn open(
        path: &Path,
        schema: &Schema,
        options: DatabaseOptions,
    ) -> Result<Self, StoreError> {
        if !path.try_exists().map_err(FileError::new("look for", path))? {
            create(path, schema, options)?;
        }
        // On a disk that cannot be written it stays as it is.
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
        })
    }

    /// Runs `query` on a consistent view, which does not wait for writers.
    pub fn read<T>(
        &self,
        query: impl FnOnce(&Arc<ReadTransaction>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.with_engine(|engine| query(&engine.snapshot()?.transaction))
    }

    /// Runs `query` on tables as of the last commit, for reading a few rows.
    pub fn view<V: View, T>(
        &self,
        query: impl FnOnce(&V) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.with_engine(|engine| query(engine.snapshot()?.view()?))
    }

    /// Runs `command` in a write transaction and commits it durably. A command that refuses (inner
    /// error) leaves nothing behind, and neither does one that fails.
    pub fn write<T, R>(
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
                        commit(transaction)?;
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
        // The engine may panic over a page that is damaged, and how far it had come is not known.
        let outcome = catch_unwind(AssertUnwindSafe(write)).unwrap_or_else(|_| {
            let reason = "it panicked, as over a damaged page".to_owned();
            Err(StoreError::Commit(Arc::new(redb::Error::Corrupted(reason))))
        });
        if let Err(StoreError::Engine(_) | StoreError::Commit(_)) = outcome {
            *self.engine.write().unwrap_or_else(PoisonError::into_inner) = None;
        }
        outcome
    }

    /// Copies the file as of the last commit, and reads all of the copy, whose pages carry checksums.
    /// Writers wait only while what they have just written is copied once more, readers do not. Takes
    /// as much room on the disk as the file, for as long as the copy is there.
    pub fn copy(&self) -> Result<DatabaseCopy, StoreError> {
        self.copy_with(self.options, Pace::Hurried)
    }

    /// Compares a file that is too long for that when it is opened with its checksums, in a
    /// [copy](Self::copy) that is made and read with low priority. Answers its length in bytes, or
    /// `None` if it is not so long.
    pub fn check(&self) -> Result<Option<u64>, StoreError> {
        let len = self.file_len()?;
        if len <= self.options.checked_len {
            return Ok(None);
        }
        let options = DatabaseOptions { cache_bytes: CHECK_CACHE_BYTES, ..self.options };
        self.copy_with(options, Pace::Unhurried)?;
        Ok(Some(len))
    }

    /// What is wrong with the file, if that was found since it was opened.
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
            // It may be the copy that is.
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
            // Nothing is written as long as this one is not ended.
            let transaction = engine.begin_write()?;
            copying.copy_again(&tracking.take())?;
            copying.cut()?;
            Ok(transaction.abort()?)
        })?;
        Ok(copying)
    }

    fn file_len(&self) -> Result<u64, FileError> {
        Ok(self.metadata()?.len())
    }

    /// The room that the file takes on the disk, in bytes: less than its length if there are holes in it.
    fn room_taken(&self) -> Result<u64, FileError> {
        Ok(self.metadata()?.blocks().saturating_mul(512))
    }

    fn metadata(&self) -> Result<Metadata, FileError> {
        fs::metadata(&self.path).map_err(FileError::new("look at", &self.path))
    }

    fn note_damage(&self, error: &StoreError) {
        if error.is_damage() {
            // Who comes second has found the same.
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

    /// Closes a file that is open for reading only, so that it is opened anew.
    fn leave_read_only(&self) {
        let is_read_only = |engine: &Option<Engine>| {
            matches!(engine, Some(Engine { handle: Handle::ReadOnly(..), .. }))
        };
        if is_read_only(&self.engine.read().unwrap_or_else(PoisonError::into_inner)) {
            let mut engine = self.engine.write().unwrap_or_else(PoisonError::into_inner);
            if is_read_only(&engine) {
                *engine = None;
            }
        }
    }
}

/// Checks that a database in `dir`, of the usual options, could be written to now.
pub fn check_writable(dir: &Path) -> Result<(), StoreError> {
    check_free_space(dir, DatabaseOptions::default().free_space_reserve)?;
    Ok(files::probe(dir)?)
}

fn check_free_space(dir: &Path, reserve: u64) -> Result<(), StoreError> {
    let space = rustix::fs::statvfs(dir)
        .map_err(|error| FileError::new("look at the free space of", dir)(error.into()))?;
    let free = space.f_bavail.saturating_mul(space.f_frsize);
    if free < reserve {
        return Err(StoreError::NoSpace { dir: dir.to_owned(), free, reserve });
    }
    Ok(())
}

impl Engine {
    fn new(handle: Handle) -> Self {
        Self { snapshot: RwLock::default(), handle }
    }

    fn snapshot(&self) -> Result<Arc<Snapshot>, StoreError> {
        let shared = self.snapshot.read().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(snapshot) = shared {
            return Ok(snapshot);
        }
        let mut shared = self.snapshot.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(snapshot) = &*shared {
            return Ok(Arc::clone(snapshot));
        }
        // Made while it cannot be forgotten, so that none from before a commit stays behind it.
        let transaction = Arc::new(self.begin_read()?);
        let snapshot = Snapshot { view: OnceLock::new(), transaction };
        Ok(Arc::clone(shared.insert(Arc::new(snapshot))))
    }

    fn begin_read(&self) -> Result<ReadTransaction, StoreError> {
        let (Handle::Writable(database) | Handle::ReadOnly(database, _)) = &self.handle;
        Ok(database.begin_read()?)
    }

    /// Every commit leaves the file so that it opens at once after a crash, at any size.
    fn begin_write(&self) -> Result<WriteTransaction, StoreError> {
        match &self.handle {
            Handle::Writable(database) => {
                let mut transaction = database.begin_write()?;
                transaction.set_quick_repair(true);
                Ok(transaction)
            }
            Handle::ReadOnly(_, reason) => Err(reason.clone()),
        }
    }

    fn forget_snapshot(&self) {
        *self.snapshot.write().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

impl Snapshot {
    /// The tables that it was asked for first are kept.
    fn view<V: View>(&self) -> Result<&V, StoreError> {
        let view = match self.view.get() {
            Some(view) => view,
            None => {
                let opened = V::open(&self.transaction)?;
                self.view.get_or_init(|| Box::new(opened))
            }
        };
        Ok(view.downcast_ref().expect("a database has one type of view"))
    }
}

impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Database").field("path", &self.path).finish_non_exhaustive()
    }
}

/// Makes the file under a temporary name: redb cannot open one whose making was cut short.
fn create(path: &Path, schema: &Schema, options: DatabaseOptions) -> Result<(), StoreError> {
    let dir = path.parent().unwrap_or(Path::new("."));
    let temporary = path.with_extension("redb.new");
    match fs::remove_file(&temporary) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(FileError::new("remove", &temporary)(error).into());
        }
        _ => {}
    }
    let engine = Engine::new(Handle::Writable(builder(options).create(&temporary)?));
    fs::set_permissions(&temporary, Permissions::from_mode(OWNER_ONLY))
        .map_err(FileError::new("set the mode of", &temporary))?;
    migrate(&engine, path, schema)?;
    drop(engine);
    fs::rename(&temporary, path).map_err(FileError::new("create", path))?;
    Ok(files::sync_dir(dir)?)
}

fn builder(options: DatabaseOptions) -> redb::Builder {
    let mut builder = redb::Database::builder();
    builder.set_cache_size(options.cache_bytes);
    builder
}

/// Opens the file for writing or, on a disk that does not take what that writes, for reading.
fn open_engine(
    path: &Path,
    options: DatabaseOptions,
    changes: &Arc<Changes>,
) -> Result<Engine, StoreError> {
    let len = fs::metadata(path).map_err(FileError::new("look at", path))?.len();
    let checks = if len <= options.checked_len { Checks::All } else { Checks::None };
    let open = || builder(options).create_with_backend(TrackedFile::open(path, changes)?);
    let error = match copy::open_checked(path, checks, open) {
        Ok(database) => return Ok(Engine::new(Handle::Writable(database))),
        Err(StoreError::Open { source, .. }) => source,
        Err(error) => return Err(error),
    };
    let overlay = match error.downcast_ref() {
        Some(redb::Error::Io(_)) => Overlay::open(path).ok(),
        _ => None,
    };
    let error = StoreError::Open { path: path.to_owned(), source: error };
    let Some(overlay) = overlay else { return Err(error) };
    let open = || builder(options).create_with_backend(overlay);
    match copy::open_checked(path, checks, open) {
        Ok(database) => Ok(Engine::new(Handle::ReadOnly(database, error))),
        Err(damage) if damage.is_damage() => Err(damage),
        Err(_) => Err(error),
    }
}

fn migrate(engine: &Engine, path: &Path, schema: &Schema) -> Result<(), StoreError> {
    let known = schema.migrations.len() as u64;
    let found = schema_version(engine, schema)?
        .ok_or_else(|| StoreError::OtherSchema { path: path.to_owned(), expected: schema.name })?;
    if found > known {
        return Err(StoreError::NewerSchema { path: path.to_owned(), found, known });
    }
    if found == known {
        return Ok(());
    }
    let transaction = engine.begin_write()?;
    for migration in &schema.migrations[found as usize..] {
        migration(&transaction)?;
    }
    transaction.open_table(SCHEMA_VERSIONS)?.insert(schema.name, known)?;
    commit(transaction)
}

fn commit(transaction: WriteTransaction) -> Result<(), StoreError> {
    transaction.commit().map_err(|error| StoreError::Commit(Arc::new(redb::Error::from(error))))
}

/// The version of the file, 0 if it is empty; `None` if it belongs to another schema.
fn schema_version(engine: &Engine, schema: &Schema) -> Result<Option<u64>, StoreError> {
    let transaction = engine.begin_read()?;
    if transaction.list_tables()?.next().is_none() {
        return Ok(Some(0));
    }
    match transaction.open_table(SCHEMA_VERSIONS) {
        Ok(versions) => Ok(versions.get(schema.name)?.map(|version| version.value())),
        Err(redb::TableError::TableDoesNotExist(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests;
