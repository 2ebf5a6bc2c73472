//! Detection of damaged files.

use crate::error::StoreError;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

/// How much of a file is compared with its checksums when the file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Checks {
    /// Only the beginning.
    None,
    /// Everything.
    All,
}

/// Opens the database file at `path`, or a copy of it, and checks it for damage.
///
/// The engine may panic on a damaged page, because it trusts what it reads.
pub(super) fn open_checked(
    path: &Path,
    checks: Checks,
    open: impl FnOnce() -> Result<redb::Database, redb::DatabaseError>,
) -> Result<redb::Database, StoreError> {
    let damaged =
        |reason: &str| StoreError::DamagedFile { path: path.to_owned(), reason: reason.to_owned() };
    let check = || {
        let mut engine = open()?;
        let is_intact = checks == Checks::None || engine.check_integrity()?;
        Ok((engine, is_intact))
    };
    match catch_unwind(AssertUnwindSafe(check)) {
        Ok(Ok((engine, true))) => Ok(engine),
        Ok(Ok((_, false))) => Err(damaged("the last commit does not match its checksums")),
        Ok(Err(redb::DatabaseError::Storage(redb::StorageError::Corrupted(reason)))) => {
            Err(damaged(&reason))
        }
        Ok(Err(error)) => {
            let source = Arc::new(redb::Error::from(error));
            Err(StoreError::Open { path: path.to_owned(), source })
        }
        Err(_) => Err(damaged("it cannot be read")),
    }
}
