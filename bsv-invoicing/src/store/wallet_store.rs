use bsv_store::{AuditCheck, AuditEntry, StoreError};
use thiserror::Error;
use tokio::sync::watch;

use crate::ledger::rows::Damaged;
use crate::ledger::{Command, Query, Refusal};

/// Why something was not done. Nothing of it is left behind, unless the store failed to commit
/// ([`StoreError::Commit`]).
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

/// A durable store of one wallet. Reading does not wait for changes.
pub trait WalletStore: Send + Sync + 'static {
    /// Does what a command says, in one atomic step. When it has answered, the change has reached the
    /// disk.
    fn execute<C: Command>(
        &self,
        command: C,
    ) -> impl Future<Output = Result<C::Answer, WalletStoreError>> + Send;

    /// Answers a query that reads a few rows, as they are at one moment.
    fn get<Q: Query + Clone>(
        &self,
        query: Q,
    ) -> impl Future<Output = Result<Q::Answer, WalletStoreError>> + Send;

    /// Answers a query that reads many rows, as they are at one moment.
    fn list<Q: Query + Clone>(
        &self,
        query: Q,
    ) -> impl Future<Output = Result<Q::Answer, WalletStoreError>> + Send;

    /// Answers a query off the disk, as the rows are at one moment, and fails if what is read is not as it
    /// was written.
    fn verify<Q: Query>(
        &self,
        query: Q,
    ) -> impl Future<Output = Result<Q::Answer, WalletStoreError>> + Send;

    /// The number of the last event, which changes after each commit with one. What it shows can be read; it may
    /// be a moment behind what can be read.
    fn last_event(&self) -> watch::Receiver<u64>;

    /// Up to `limit` entries of the audit log after the one of this number, in order.
    fn audit_log(
        &self,
        after: u64,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<AuditEntry>, WalletStoreError>> + Send;

    /// Reads the audit log from its beginning, off the disk.
    fn verify_audit_log(&self)
    -> impl Future<Output = Result<AuditCheck, WalletStoreError>> + Send;
}

/// What the writer is told of a command that was not done: whether the rules refuse it, or the store
/// failed.
pub(super) fn refused<T>(error: WalletStoreError) -> Result<Result<T, Refusal>, StoreError> {
    match error {
        WalletStoreError::Refused(refusal) => Ok(Err(refusal)),
        WalletStoreError::Store(error) => Err(error),
    }
}
