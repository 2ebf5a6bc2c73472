use bsv_store::{AuditCheck, AuditEntry, AuditPage, StoreError};
use thiserror::Error;
use tokio::sync::watch;

use crate::ledger::rows::Damaged;
use crate::ledger::{Command, Query, Refusal};
use crate::model::time::Timestamp;

/// Why a command or query failed. It has changed nothing, except perhaps after
/// [`StoreError::Commit`].
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum WalletStoreError {
    /// The rules refuse it.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Why a wallet store could not be opened.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OpenWalletStoreError {
    /// What the wallet is stored in cannot be opened.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A thread cannot be started.
    #[error("cannot start a thread of the store: {0}")]
    Writer(#[from] std::io::Error),
}

impl From<Damaged> for WalletStoreError {
    fn from(Damaged(reason): Damaged) -> Self {
        StoreError::Damaged(reason).into()
    }
}

/// A durable store of one wallet. Reading never waits for writing.
pub trait WalletStore: Send + Sync + 'static {
    /// Runs a command in one atomic step. The change is durable when the answer arrives.
    fn execute<C: Command>(
        &self,
        command: C,
    ) -> impl Future<Output = Result<C::Answer, WalletStoreError>> + Send;

    /// Answers a query that reads a few rows, as they are at one moment.
    fn get<Q: Query + Clone>(
        &self,
        query: Q,
    ) -> impl Future<Output = Result<Q::Answer, WalletStoreError>> + Send;

    /// Answers a query that reads many rows. All rows are those of one moment.
    fn list<Q: Query + Clone>(
        &self,
        query: Q,
    ) -> impl Future<Output = Result<Q::Answer, WalletStoreError>> + Send;

    /// Answers a query from the disk, with all rows of one moment. Fails if the rows are not as
    /// they were written.
    fn verify<Q: Query>(
        &self,
        query: Q,
    ) -> impl Future<Output = Result<Q::Answer, WalletStoreError>> + Send;

    /// The number of the last event. It changes after each commit with an event. The event with
    /// this number can be read; newer ones may already be readable, too.
    fn last_event(&self) -> watch::Receiver<u64>;

    /// A number that changes whenever another process has changed the store. `None` if no other
    /// process can.
    fn changes_by_others(&self) -> Option<watch::Receiver<i64>> {
        None
    }

    /// What the clock of the store shows, if it has one of its own.
    fn clock(&self) -> Option<Timestamp> {
        None
    }

    /// Up to `limit` entries of a page of the audit log, in order.
    fn audit_log(
        &self,
        page: AuditPage,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<AuditEntry>, WalletStoreError>> + Send;

    /// Reads the whole audit log from the disk and checks it.
    fn verify_audit_log(&self)
    -> impl Future<Output = Result<AuditCheck, WalletStoreError>> + Send;
}

/// The result for the writer of a command that was not done: the rules refused it, or the store
/// failed.
pub(super) fn refused<T>(error: WalletStoreError) -> Result<Result<T, Refusal>, StoreError> {
    match error {
        WalletStoreError::Refused(refusal) => Ok(Err(refusal)),
        WalletStoreError::Store(error) => Err(error),
    }
}
