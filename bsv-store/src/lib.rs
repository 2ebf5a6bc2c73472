//! The durable ground that both services stand on.
//!
//! - [`DirLock`]: one process at a time in a directory.
//! - [`Database`]: a redb file with a schema version and ordered migrations, that reopens itself
//!   after a failed write.
//! - [`GroupWriter`]: many commands, one commit.
//! - [`Keystore`]: a directory of sealed key files.
//!
//! What one of these has acknowledged has reached the disk.

mod database;
mod files;
mod group_writer;
mod keystore;
mod lazy_table;
mod lock;
mod overlay;

pub use database::{
    Database, DatabaseOptions, Migration, Schema, StoreError, View, check_writable,
};
pub use files::{FileError, create_private_dir, write_atomically};
pub use group_writer::{GroupWriter, Tables};
pub use keystore::{Keystore, KeystoreError, PlainKeys};
pub use lazy_table::{LazyReadTable, LazyTable};
pub use lock::{DirLock, LockError};
