//! The durable ground that both services stand on.
//!
//! - [`DirLock`]: one process at a time in a directory.
//! - [`Database`]: a redb file with a schema version and ordered migrations, that reopens itself
//!   after a failed write.
//! - [`GroupWriter`]: many commands, one commit.
//! - [`Keystore`]: a directory of sealed key files.
//! - [`ArchiveWriter`], [`ArchiveReader`]: a sealed file of any length.
//! - [`AuditEntry`]: a log of what happened to keys, whose entries are chained by hashes.
//!
//! What one of these has acknowledged has reached the disk.

mod archive;
mod audit;
mod database;
mod durations;
mod files;
mod group_writer;
mod keystore;
mod lazy_table;
mod lock;
mod overlay;
mod seal;

pub use archive::{ArchiveError, ArchiveReader, ArchiveWriter};
pub use audit::{
    AuditCheck, AuditEntry, AuditTail, KeyEvent, append_to_audit_log, copy_to_audit_log,
    create_audit_log, read_audit_log, verify_audit_log,
};
pub use database::{
    Database, DatabaseCopy, DatabaseOptions, EngineError, Migration, Schema, StoreCounts,
    StoreError, View, check_writable,
};
pub use durations::{DurationCounts, Durations};
pub use files::{FileError, NewFile, create_private_dir, write_atomically};
pub use group_writer::{Batch, BatchRun, Batches, DatabaseBatches, GroupWriter, Tables};
pub use keystore::{
    Keystore, KeystoreCheck, KeystoreError, KeystoreFile, PlainKeys, StretchedPassphrase,
};
pub use lazy_table::{LazyReadTable, LazyTable};
pub use lock::{DirLock, LockError};
