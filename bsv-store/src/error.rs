use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use thiserror::Error;

use crate::files::{self, FileError};

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
                io_error(error).is_some_and(files::is_out_of_space)
            }
            _ => false,
        }
    }

    /// Whether the reason is that the file is not as it was written.
    pub fn is_damage(&self) -> bool {
        matches!(self, Self::DamagedFile { .. })
    }
}

/// What the operating system told an engine.
fn io_error(error: &EngineError) -> Option<&io::Error> {
    #[cfg(feature = "database")]
    if let Some(redb::Error::Io(error)) = error.downcast_ref() {
        return Some(error);
    }
    error.downcast_ref()
}
