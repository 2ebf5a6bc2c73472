//! An open database file, for writing or only for reading.

use std::any::Any;
use std::fs;
use std::path::Path;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use redb::{ReadTransaction, ReadableDatabase, WriteTransaction};

use super::integrity::{Checks, open_checked};
use super::options::DatabaseOptions;
use super::tracked_file::{Changes, TrackedFile};
use crate::error::StoreError;
use crate::files::FileError;
use crate::overlay::Overlay;

/// An open file. A snapshot that outlived its handle would keep the file locked, so both stay
/// together.
pub(super) struct Engine {
    /// The last commit, as readers see it; `None` until somebody reads after a commit. All readers
    /// share it, so that a change that one reader has seen stays visible to the next.
    snapshot: RwLock<Option<Arc<Snapshot>>>,
    handle: Handle,
}

pub(super) struct Snapshot {
    /// The [`View`] that all readers of the snapshot share.
    view: OnceLock<Box<dyn Any + Send + Sync>>,
    pub(super) transaction: Arc<ReadTransaction>,
}

enum Handle {
    Writable(redb::Database),
    /// The file could not be opened for writing. The error says why.
    ReadOnly(redb::Database, StoreError),
}

/// Tables opened for reading. Opening a table takes longer than reading a row of it, so readers
/// share the tables until the next commit. Each database has one type of view.
pub trait View: Sized + Send + Sync + 'static {
    /// Opens the tables, or prepares to.
    fn open(transaction: &Arc<ReadTransaction>) -> Result<Self, StoreError>;
}

impl Engine {
    /// Wraps a file that is open for writing.
    pub(super) fn writable(database: redb::Database) -> Self {
        Self { snapshot: RwLock::default(), handle: Handle::Writable(database) }
    }

    /// Wraps a file that could not be opened for writing. `reason` says why.
    pub(super) fn read_only(database: redb::Database, reason: StoreError) -> Self {
        Self { snapshot: RwLock::default(), handle: Handle::ReadOnly(database, reason) }
    }

    pub(super) fn is_read_only(&self) -> bool {
        matches!(self.handle, Handle::ReadOnly(..))
    }

    pub(super) fn snapshot(&self) -> Result<Arc<Snapshot>, StoreError> {
        let shared = self.snapshot.read().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(snapshot) = shared {
            return Ok(snapshot);
        }
        let mut shared = self.snapshot.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(snapshot) = &*shared {
            return Ok(Arc::clone(snapshot));
        }
        // The write guard is held, so that a commit cannot slip in between and leave an old
        // snapshot here.
        let transaction = Arc::new(self.begin_read()?);
        let snapshot = Snapshot { view: OnceLock::new(), transaction };
        Ok(Arc::clone(shared.insert(Arc::new(snapshot))))
    }

    pub(super) fn begin_read(&self) -> Result<ReadTransaction, StoreError> {
        let (Handle::Writable(database) | Handle::ReadOnly(database, _)) = &self.handle;
        Ok(database.begin_read()?)
    }

    /// Begins a write whose commit lets the file open at once after a crash, at any size.
    pub(super) fn begin_write(&self) -> Result<WriteTransaction, StoreError> {
        match &self.handle {
            Handle::Writable(database) => {
                let mut transaction = database.begin_write()?;
                transaction.set_quick_repair(true);
                Ok(transaction)
            }
            Handle::ReadOnly(_, reason) => Err(reason.clone()),
        }
    }

    pub(super) fn forget_snapshot(&self) {
        *self.snapshot.write().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

impl Snapshot {
    /// The shared view. The first call opens it.
    pub(super) fn view<V: View>(&self) -> Result<&V, StoreError> {
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

/// Opens the file for writing, or only for reading if the disk refuses to be written to.
pub(super) fn open_engine(
    path: &Path,
    options: DatabaseOptions,
    changes: &Arc<Changes>,
) -> Result<Engine, StoreError> {
    let len = fs::metadata(path).map_err(FileError::new("look at", path))?.len();
    let checks = if len <= options.checked_len { Checks::All } else { Checks::None };
    let open = || options.builder().create_with_backend(TrackedFile::open(path, changes)?);
    let error = match open_checked(path, checks, open) {
        Ok(database) => return Ok(Engine::writable(database)),
        Err(StoreError::Open { source, .. }) => source,
        Err(error) => return Err(error),
    };
    let overlay = match error.downcast_ref() {
        Some(redb::Error::Io(_)) => Overlay::open(path).ok(),
        _ => None,
    };
    let error = StoreError::Open { path: path.to_owned(), source: error };
    let Some(overlay) = overlay else { return Err(error) };
    let open = || options.builder().create_with_backend(overlay);
    match open_checked(path, checks, open) {
        Ok(database) => Ok(Engine::read_only(database, error)),
        Err(damage) if damage.is_damage() => Err(damage),
        Err(_) => Err(error),
    }
}

pub(super) fn commit(transaction: WriteTransaction) -> Result<(), StoreError> {
    transaction.commit().map_err(|error| StoreError::Commit(Arc::new(redb::Error::from(error))))
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
