use std::path::Path;

use crate::error::StoreError;
use crate::files::{self, FileError};

/// How to open a database file.
#[derive(Clone, Copy, Debug)]
pub struct DatabaseOptions {
    /// The most memory that cached pages may take, in bytes.
    pub cache_bytes: usize,
    /// The free space on the disk below which a write is refused, in bytes.
    pub free_space_reserve: u64,
    /// The length, in bytes, up to which a file is compared with its checksums whenever it is
    /// opened. This comparison reads the whole file. A longer file is compared when it is
    /// [checked](crate::Database::check) or [copied](crate::Database::copy).
    pub checked_len: u64,
}

impl Default for DatabaseOptions {
    fn default() -> Self {
        Self { cache_bytes: 48 << 20, free_space_reserve: 4 << 20, checked_len: 4 << 20 }
    }
}

impl DatabaseOptions {
    /// The engine's builder with these options.
    pub(super) fn builder(self) -> redb::Builder {
        let mut builder = redb::Database::builder();
        builder.set_cache_size(self.cache_bytes);
        builder
    }
}

/// Checks that a database with the default options could write in `dir` now.
pub fn check_writable(dir: &Path) -> Result<(), StoreError> {
    check_free_space(dir, DatabaseOptions::default().free_space_reserve)?;
    Ok(files::probe(dir)?)
}

/// Checks that `reserve` bytes are free in `dir`.
pub(super) fn check_free_space(dir: &Path, reserve: u64) -> Result<(), StoreError> {
    let space = rustix::fs::statvfs(dir)
        .map_err(|error| FileError::new("look at the free space of", dir)(error.into()))?;
    let free = space.f_bavail.saturating_mul(space.f_frsize);
    if free < reserve {
        return Err(StoreError::NoSpace { dir: dir.to_owned(), free, reserve });
    }
    Ok(())
}
