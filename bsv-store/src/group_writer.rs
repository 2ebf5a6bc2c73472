use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use redb::WriteTransaction;
use tokio::sync::{mpsc, oneshot};

use crate::database::Database;
use crate::error::StoreError;
use crate::files::FileError;

/// The tables that commands work on, which are opened once for all commands of a commit.
pub trait Tables: 'static {
    /// The opened tables.
    type Open<'t>;
    /// What the observer of commits is told about a batch once it is durable.
    type Told: Send;

    /// Opens the tables.
    fn open(transaction: &WriteTransaction) -> Result<Self::Open<'_>, StoreError>;

    /// Writes back the changes that commands made only in memory.
    fn close(tables: Self::Open<'_>) -> Result<Self::Told, StoreError>;
}

/// Group commit: one thread runs all waiting commands in one write transaction, commits it durably,
/// and only then answers each command.
///
/// A command checks before it writes: a command that refuses has written nothing, and does not
/// affect the others of its commit. A command that finds a damaged record, or panics, fails alone:
/// the transaction is undone, and the other commands run again. A storage error undoes the whole
/// batch, and every caller receives it. After repeated failures of the disk, commands are refused
/// without a try for a while, up to two seconds.
pub struct GroupWriter<T: Tables> {
    /// `None` only during the drop.
    queue: Option<mpsc::Sender<Box<dyn Queued<T>>>>,
    thread: Option<JoinHandle<()>>,
}

/// How many commands may wait. Further callers wait for a place.
const QUEUE_LEN: usize = 1024;
/// How long the thread watches for another command before it sleeps: about as long as a commit.
const ATTENTION: Duration = Duration::from_micros(500);
/// How long commands are refused after a second failure in a row. Each further failure doubles it.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

impl<T: Tables> GroupWriter<T> {
    /// Starts the thread that writes to `database`. The thread calls `committed` for each batch
    /// that is durable, before it answers the batch's commands.
    pub fn start(
        database: Arc<Database>,
        committed: impl Fn(T::Told) + Send + 'static,
    ) -> Result<Self, FileError> {
        let (queue, commands) = mpsc::channel(QUEUE_LEN);
        let dir = database.dir().to_owned();
        let thread = thread::Builder::new()
            .name("store writer".to_owned())
            .spawn(move || write_batches::<T>(&database, &committed, commands))
            .map_err(FileError::new("start a thread that writes to", &dir))?;
        Ok(Self { queue: Some(queue), thread: Some(thread) })
    }

    /// Runs `command`, and answers once its outcome is durable. The command may run several times;
    /// all but the last run are undone. The command also runs if its caller stops waiting.
    pub async fn run<V, R>(
        &self,
        command: impl FnMut(&mut T::Open<'_>) -> Result<Result<V, R>, StoreError> + Send + 'static,
    ) -> Result<Result<V, R>, StoreError>
    where
        V: Send + 'static,
        R: Send + 'static,
    {
        let (caller, answer) = oneshot::channel();
        let command = Command { command, outcome: None, caller };
        let queue = self.queue.as_ref().expect("the queue exists until the drop");
        queue
            .send(Box::new(command))
            .await
            .unwrap_or_else(|_| unreachable!("the thread receives as long as the queue exists"));
        answer.await.expect("each command is answered")
    }
}

impl<T: Tables> Drop for GroupWriter<T> {
    /// Waits until all queued commands are answered.
    fn drop(&mut self) {
        self.queue = None;
        if let Some(thread) = self.thread.take() {
            // The thread catches panics of commands.
            let _ = thread.join();
        }
    }
}

impl<T: Tables> fmt::Debug for GroupWriter<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GroupWriter").finish_non_exhaustive()
    }
}

/// A command of any result type.
trait Queued<T: Tables>: Send {
    /// Runs the command, unless it has already failed alone.
    fn run(&mut self, tables: &mut T::Open<'_>) -> Ran;

    /// Tells the caller the outcome.
    fn answer(self: Box<Self>, committed: Result<(), StoreError>);
}

/// What one run of a command did.
enum Ran {
    /// The command succeeded and may have written.
    Wrote,
    /// The command has written nothing.
    WroteNothing,
    /// The command has failed alone, and may have written something.
    FailedAlone,
    /// The store has failed.
    StoreFailed(StoreError),
}

struct Command<F, V, R> {
    command: F,
    /// The outcome of the last run, unless the store failed.
    outcome: Option<Result<Result<V, R>, StoreError>>,
    caller: oneshot::Sender<Result<Result<V, R>, StoreError>>,
}

impl<T, F, V, R> Queued<T> for Command<F, V, R>
where
    T: Tables,
    F: FnMut(&mut T::Open<'_>) -> Result<Result<V, R>, StoreError> + Send,
    V: Send,
    R: Send,
{
    fn run(&mut self, tables: &mut T::Open<'_>) -> Ran {
        if let Some(Err(_)) = self.outcome {
            return Ran::WroteNothing;
        }
        // The panic is caught here, before it reaches the engine's transaction. Otherwise the
        // engine would mark the file as in need of repair.
        let outcome = catch_unwind(AssertUnwindSafe(|| (self.command)(tables)));
        let outcome = outcome.unwrap_or(Err(StoreError::Panicked));
        let ran = match &outcome {
            Ok(Ok(_)) => Ran::Wrote,
            Ok(Err(_)) => Ran::WroteNothing,
            Err(StoreError::Damaged(_) | StoreError::Panicked) => Ran::FailedAlone,
            Err(error) => return Ran::StoreFailed(error.clone()),
        };
        self.outcome = Some(outcome);
        ran
    }

    fn answer(self: Box<Self>, committed: Result<(), StoreError>) {
        let outcome = match (self.outcome, committed) {
            (Some(Err(error)), _) | (_, Err(error)) => Err(error),
            (Some(outcome), Ok(())) => outcome,
            (None, Ok(())) => Err(StoreError::Panicked),
        };
        // The caller may be gone.
        let _ = self.caller.send(outcome);
    }
}

type Batch<T> = Vec<Box<dyn Queued<T>>>;

fn write_batches<T: Tables>(
    database: &Database,
    tell: &impl Fn(T::Told),
    mut commands: mpsc::Receiver<Box<dyn Queued<T>>>,
) {
    let mut failures = Failures::default();
    let mut batch = Vec::with_capacity(QUEUE_LEN);
    while commands.blocking_recv_many(&mut batch, QUEUE_LEN) > 0 {
        let committed = match failures.refusal() {
            Some(error) => Err(error),
            None => {
                database.counts().note_commands(batch.len());
                let told = write(database, &mut batch);
                let committed = told.map(|told| told.into_iter().for_each(tell));
                failures.note(&committed);
                committed
            }
        };
        let was_alone = batch.len() == 1;
        for command in batch.drain(..) {
            command.answer(committed.clone());
        }
        if was_alone {
            look_out(&commands);
        }
    }
}

/// Watches for another command without sleeping. A single caller waits for every switch of threads,
/// longest for a thread that has to be woken, and often sends its next command right after an
/// answer.
fn look_out<T: Tables>(commands: &mpsc::Receiver<Box<dyn Queued<T>>>) {
    let since = Instant::now();
    while commands.is_empty() && since.elapsed() < ATTENTION {
        // Threads that have work run first.
        thread::yield_now();
    }
}

/// Why a batch is not committed yet.
enum NotCommitted {
    /// Nothing was written.
    NothingWritten,
    /// A command has failed alone: the others must run again.
    RunAgain,
}

/// Writes the batch. Answers what the observer is told, or `None` if nothing was written.
fn write<T: Tables>(
    database: &Database,
    batch: &mut Batch<T>,
) -> Result<Option<T::Told>, StoreError> {
    loop {
        let written = database.write_batch(|transaction| {
            let mut tables = T::open(transaction)?;
            let mut has_written = false;
            for command in &mut *batch {
                match command.run(&mut tables) {
                    Ran::Wrote => has_written = true,
                    Ran::WroteNothing => {}
                    Ran::FailedAlone => return Ok(Err(NotCommitted::RunAgain)),
                    Ran::StoreFailed(error) => return Err(error),
                }
            }
            let told = T::close(tables)?;
            Ok(if has_written { Ok(told) } else { Err(NotCommitted::NothingWritten) })
        })?;
        match written {
            Ok(told) => return Ok(Some(told)),
            Err(NotCommitted::NothingWritten) => return Ok(None),
            // The loop ends: each round excludes at least one command that failed.
            Err(NotCommitted::RunAgain) => {}
        }
    }
}

/// Consecutive failures of the disk.
#[derive(Default)]
struct Failures {
    count: u32,
    last: Option<(StoreError, Instant)>,
}

impl Failures {
    fn note(&mut self, committed: &Result<(), StoreError>) {
        match committed {
            Ok(()) => *self = Self::default(),
            Err(
                error @ (StoreError::Engine(_) | StoreError::Commit(_) | StoreError::Open { .. }),
            ) => {
                self.count = self.count.saturating_add(1);
                // A command that is refused because of this failure was never part of a failed
                // commit.
                let error = match error {
                    StoreError::Commit(cause) => StoreError::Engine(Arc::clone(cause)),
                    error => error.clone(),
                };
                self.last = Some((error, Instant::now()));
            }
            Err(_) => {}
        }
    }

    /// The last failure, as long as it is too early to try again. After a first failure there is no
    /// wait: the reopened file usually works.
    fn refusal(&self) -> Option<StoreError> {
        let (error, at) = self.last.as_ref()?;
        let doublings = self.count.checked_sub(2)?;
        let pause = FIRST_PAUSE.saturating_mul(2_u32.saturating_pow(doublings)).min(LONGEST_PAUSE);
        (at.elapsed() < pause).then(|| error.clone())
    }
}

#[cfg(test)]
mod tests;
