#![doc = include_str!("../README.md")]

mod archive;
mod audit;
#[cfg(feature = "database")]
mod database;
mod durations;
mod error;
mod files;
#[cfg(feature = "group-writer")]
mod group_writer;
mod json_format;
mod keystore;
#[cfg(feature = "database")]
mod lazy_table;
mod lock;
#[cfg(feature = "database")]
mod overlay;
mod seal;

pub use secrecy::SecretString;
pub use zeroize::Zeroizing;

/// The database engine.
#[cfg(feature = "database")]
pub use redb;

pub use archive::{ArchiveError, ArchiveReader, ArchiveWriter};
pub use audit::{AuditCheck, AuditEntry, AuditPage, AuditTail, KeyEvent};
#[cfg(feature = "database")]
pub use audit::{
    append_to_audit_log, copy_to_audit_log, create_audit_log, read_audit_log, verify_audit_log,
};
#[cfg(feature = "database")]
pub use database::{
    Database, DatabaseCopy, DatabaseOptions, Migration, Schema, StoreCounts, View, check_writable,
};
pub use durations::{DurationCounts, Durations};
pub use error::{EngineError, ServerError, StoreError};
pub use files::{FileError, NewFile, create_private_dir, write_atomically};
#[cfg(feature = "group-writer")]
pub use group_writer::{Batch, BatchRun, Batches, DatabaseBatches, GroupWriter, Tables};
pub use json_format::{JsonFormat, JsonFormatError};
pub use keystore::{
    HandedFiles, Keystore, KeystoreCheck, KeystoreError, KeystoreFile, PlainKeys,
    StretchedPassphrase,
};
#[cfg(feature = "database")]
pub use lazy_table::{LazyReadTable, LazyTable};
pub use lock::{DirLock, LockError};
