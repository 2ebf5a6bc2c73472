use std::path::Path;

use super::options::DatabaseOptions;
use crate::error::StoreError;
use crate::files::{self, FileError};

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
