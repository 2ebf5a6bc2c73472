use std::any::Any;
use std::sync::Arc;

use bsv_store::{AuditCheck, AuditEntry, AuditPage, StoreCounts, StoreError};
use futures_util::future::BoxFuture;
use thiserror::Error;
use tokio::sync::watch;

use crate::ledger::rows::{Engine, WalletStoreError};
use crate::ledger::{Books, Command, Query, Refusal};
use crate::model::time::Timestamp;
use crate::store::EventCounts;

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

/// The answer to a command or a query, of a type that its caller knows.
pub type BoxedAnswer = Box<dyn Any + Send>;
/// The work of a command in one step. It may run several times; all but the last run are undone.
pub type BoxedCommand =
    Arc<dyn Fn(&mut Books<'_>) -> Result<BoxedAnswer, WalletStoreError> + Send + Sync>;
/// The work of a query. It may run several times.
pub type BoxedQuery = Box<dyn Fn(&dyn Engine) -> Result<BoxedAnswer, WalletStoreError> + Send>;
/// The work of a query that runs once.
pub type BoxedOnce = Box<dyn FnOnce(&dyn Engine) -> Result<BoxedAnswer, WalletStoreError> + Send>;
/// An answer of a store, once it is known or durable.
pub type Answering<'s, T> = BoxFuture<'s, Result<T, WalletStoreError>>;

/// A durable store of one wallet, behind which an [`Engine`] keeps the rows. Reading never waits
/// for writing. [`WalletStore`] has the methods to call.
pub trait Store: Any + Send + Sync {
    /// Runs a command in one atomic step. The change is durable when the answer arrives. `weight` is
    /// that of the [command](Command::weight).
    fn run_command(&self, weight: usize, command: BoxedCommand) -> Answering<'_, BoxedAnswer>;

    /// Answers a query that reads a few rows, as they are at one moment.
    fn run_short(&self, query: BoxedQuery) -> Answering<'_, BoxedAnswer>;

    /// Answers a query that reads many rows. All rows are those of one moment.
    fn run_long(&self, query: BoxedQuery) -> Answering<'_, BoxedAnswer>;

    /// Answers a query from the disk, with all rows of one moment. Fails if the rows are not as
    /// they were written.
    fn run_on_disk(&self, query: BoxedOnce) -> Answering<'_, BoxedAnswer>;

    /// The number of the last event. It changes after each commit with an event. The event with
    /// this number can be read; newer ones may already be readable, too.
    fn last_event(&self) -> watch::Receiver<u64>;

    /// Up to `limit` entries of a page of the audit log, in order.
    fn audit_log(&self, page: AuditPage, limit: usize) -> Answering<'_, Vec<AuditEntry>>;

    /// Reads the whole audit log from the disk and checks it.
    fn verify_audit_log(&self) -> Answering<'_, AuditCheck>;

    /// Counts of what the store has done since it was opened.
    fn counts(&self) -> &StoreCounts;

    /// Counts of the events that this process has written since the store was opened.
    fn event_counts(&self) -> &EventCounts;

    /// A number that changes whenever another process has changed the store. `None` if no other
    /// process can.
    fn changes_by_others(&self) -> Option<watch::Receiver<i64>> {
        None
    }

    /// The time that the clock of the store shows, if it has one of its own.
    fn clock(&self) -> Option<Timestamp> {
        None
    }

    /// Fails if nothing could be changed now, as far as that can be told without a change.
    fn probe(&self) -> Answering<'_, ()> {
        Box::pin(async { Ok(()) })
    }

    /// Completes when other processes take this one for dead: it can change nothing any more.
    fn overtaken(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::pending())
    }

    /// Compares what is stored with its checksums, if that was too long when it was opened. Answers
    /// its length, in bytes, if there is something to compare.
    fn check(&self) -> Result<Option<u64>, StoreError> {
        Ok(None)
    }

    /// The damage that was found, if any.
    fn damage(&self) -> Option<&StoreError> {
        None
    }

    /// The length of the file, in bytes, if it is one.
    fn file_len(&self) -> Option<u64> {
        None
    }
}

/// Runs commands and queries in a [`Store`].
pub trait WalletStore: Store {
    /// Runs a command in one atomic step. The change is durable when the answer arrives.
    fn execute<C: Command>(
        &self,
        command: C,
    ) -> impl Future<Output = Result<C::Answer, WalletStoreError>> + Send {
        let weight = command.weight();
        let run = move |books: &mut Books<'_>| boxed(command.run(books));
        unboxed(self.run_command(weight, Arc::new(run)))
    }

    /// Answers a query that reads a few rows, as they are at one moment.
    fn get<Q: Query + Clone>(
        &self,
        query: Q,
    ) -> impl Future<Output = Result<Q::Answer, WalletStoreError>> + Send {
        unboxed(self.run_short(Box::new(move |rows: &dyn Engine| boxed(query.clone().run(rows)))))
    }

    /// Answers a query that reads many rows. All rows are those of one moment.
    fn list<Q: Query + Clone>(
        &self,
        query: Q,
    ) -> impl Future<Output = Result<Q::Answer, WalletStoreError>> + Send {
        unboxed(self.run_long(Box::new(move |rows: &dyn Engine| boxed(query.clone().run(rows)))))
    }

    /// Answers a query from the disk, with all rows of one moment. Fails if the rows are not as
    /// they were written.
    fn verify<Q: Query>(
        &self,
        query: Q,
    ) -> impl Future<Output = Result<Q::Answer, WalletStoreError>> + Send {
        unboxed(self.run_on_disk(Box::new(move |rows: &dyn Engine| boxed(query.run(rows)))))
    }
}

impl<S: Store + ?Sized> WalletStore for S {}

fn boxed<A: Send + 'static>(
    answer: Result<A, WalletStoreError>,
) -> Result<BoxedAnswer, WalletStoreError> {
    answer.map(|answer| Box::new(answer) as BoxedAnswer)
}

async fn unboxed<A: 'static>(answer: Answering<'_, BoxedAnswer>) -> Result<A, WalletStoreError> {
    Ok(*answer.await?.downcast().expect("a store hands on the answers that it gets"))
}

/// The result for the writer of a command that was not done: the rules refused it, or the store
/// failed.
pub(super) fn refused<T>(error: WalletStoreError) -> Result<Result<T, Refusal>, StoreError> {
    match error {
        WalletStoreError::Refused(refusal) => Ok(Err(refusal)),
        WalletStoreError::Store(error) => Err(error),
    }
}
