use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use thiserror::Error;

use crate::files::{self, FileError};

/// Why a database could not be opened, read or written. A failed write changes nothing. The
/// exception is a failed [`Commit`](Self::Commit): read to find out what is there.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum StoreError {
    /// A newer version of this software wrote the file.
    #[error(
        "{} has schema version {found}, but this program knows versions up to {known}: \
         a newer version of this software wrote it", path.display()
    )]
    NewerSchema {
        /// The file.
        path: PathBuf,
        /// The version of the file.
        found: u64,
        /// The newest version this program knows.
        known: u64,
    },
    /// A build before the first release wrote the file.
    #[error("{} was made by an unreleased build; make a new one", path.display())]
    Unreleased {
        /// The file.
        path: PathBuf,
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
    #[error("{} has {free} bytes of free space left, but a write needs {reserve}", dir.display())]
    NoSpace {
        /// The directory of the file.
        dir: PathBuf,
        /// The free space, in bytes.
        free: u64,
        /// The free space that a write needs, in bytes.
        reserve: u64,
    },
    /// The file is damaged.
    #[error("{} is damaged ({reason}): restore it from a backup", path.display())]
    DamagedFile {
        /// The file.
        path: PathBuf,
        /// What is wrong with the file.
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
        /// Why it cannot be opened.
        #[source]
        source: EngineError,
    },
    /// The storage engine failed.
    #[error("the store failed: {0}")]
    Engine(EngineError),
    /// The storage engine failed to commit a change. The change may be on the disk all the same.
    #[error("the store failed to commit: {0}")]
    Commit(EngineError),
    /// A command panicked, and wrote nothing.
    #[error("the write was abandoned because of a fault in the software")]
    Panicked,
}

/// The error of the storage engine, whichever engine it is.
pub type EngineError = Arc<dyn std::error::Error + Send + Sync>;

/// A database server fails, refuses, or cannot be reached: the cause of [`StoreError::Engine`] and
/// [`StoreError::Commit`] of a store that is no file.
#[derive(Debug, Error)]
#[error("{text}")]
pub struct ServerError {
    /// The server's words, or why it cannot be used.
    pub text: String,
    /// Whether the server is away or busy, and may do the same later.
    pub is_away: bool,
}

impl StoreError {
    /// Reports a stored record that does not decode. `reason` says why.
    pub fn damaged(reason: impl fmt::Display) -> Self {
        Self::Damaged(reason.to_string())
    }

    /// Whether the cause is a lack of room on the disk.
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

    /// The cause, if it is a database server and no file.
    pub fn of_server(&self) -> Option<&ServerError> {
        match self {
            Self::Engine(error) | Self::Commit(error) => error.downcast_ref(),
            _ => None,
        }
    }

    /// Whether the cause is a damaged file.
    pub fn is_damage(&self) -> bool {
        matches!(self, Self::DamagedFile { .. })
    }
}

/// The operating system's error behind an engine's error, if there is one.
fn io_error(error: &EngineError) -> Option<&io::Error> {
    #[cfg(feature = "database")]
    if let Some(redb::Error::Io(error)) = error.downcast_ref() {
        return Some(error);
    }
    error.downcast_ref()
}
