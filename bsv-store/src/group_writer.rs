use std::fmt;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, oneshot};

pub use self::tables::{DatabaseBatches, Tables};
use crate::error::StoreError;

mod tables;

/// Runs batches of commands on the tables of some engine.
pub trait Batches: Send + 'static {
    /// The tables that the commands of a batch work on.
    type Open<'t>;
    /// What the observer of commits is told about a batch once it is durable.
    type Told: Send;

    /// [Runs](Batch::run) a batch, and commits what it changed, durably. Answers what the observer is
    /// told, or `None` if nothing was changed. After an error no change remains, unless the error
    /// is [`StoreError::Commit`].
    fn write(&mut self, batch: &mut Batch<Self>) -> Result<Option<Self::Told>, StoreError>;
}

/// Group commit: one thread runs all waiting commands in one write transaction, commits it durably,
/// and only then answers each command.
///
/// A command checks before it writes: a command that refuses has written nothing, and does not
/// affect the others of its commit. A command that finds a damaged record, or panics, fails alone:
/// the transaction is undone, and the other commands run again. A storage error undoes the whole
/// batch, and every caller receives it. After repeated failures of the disk, commands are refused
/// without a try for a while, up to two seconds.
pub struct GroupWriter<T: Batches> {
    /// `None` only during the drop.
    queue: Option<mpsc::Sender<Box<dyn Queued<T>>>>,
    thread: Option<JoinHandle<()>>,
}

/// How many commands may wait, and how many share a batch at most. Further callers wait for a place.
const QUEUE_LEN: usize = 1024;
/// How many bytes the commands of a batch may add to the store together, about. A single command may add more. Without
/// a limit, many large commands would hold up the small ones, and take much memory.
const MOST_WEIGHT: usize = 4 << 20;
/// How long the thread watches for another command before it sleeps: about as long as a commit.
const ATTENTION: Duration = Duration::from_micros(500);
/// How long commands are refused after a second failure in a row. Each further failure doubles it.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

impl<T: Batches> GroupWriter<T> {
    /// Starts the thread on which `batches` run. The thread calls `committed` for each batch that
    /// is durable, before it answers the batch's commands.
    pub fn start(
        mut batches: T,
        committed: impl Fn(T::Told) + Send + 'static,
    ) -> Result<Self, io::Error> {
        let (queue, commands) = mpsc::channel(QUEUE_LEN);
        let thread = thread::Builder::new()
            .name("store writer".to_owned())
            .spawn(move || write_batches(&mut batches, &committed, commands))?;
        Ok(Self { queue: Some(queue), thread: Some(thread) })
    }

    /// Runs `command`, and answers once its outcome is durable. The command may run several times;
    /// all but the last run are undone. The command also runs if its caller stops waiting. `weight`
    /// says about how many bytes it adds to the store, if these are many.
    pub async fn run<V, R>(
        &self,
        weight: usize,
        command: impl FnMut(&mut T::Open<'_>) -> Result<Result<V, R>, StoreError> + Send + 'static,
    ) -> Result<Result<V, R>, StoreError>
    where
        V: Send + 'static,
        R: Send + 'static,
    {
        let (caller, answer) = oneshot::channel();
        let command = Command { weight, command, outcome: None, caller };
        let queue = self.queue.as_ref().expect("the queue exists until the drop");
        queue
            .send(Box::new(command))
            .await
            .unwrap_or_else(|_| unreachable!("the thread receives as long as the queue exists"));
        answer.await.expect("each command is answered")
    }
}

impl<T: Batches> Drop for GroupWriter<T> {
    /// Waits until all queued commands are answered.
    fn drop(&mut self) {
        self.queue = None;
        if let Some(thread) = self.thread.take() {
            // The thread catches panics of commands.
            let _ = thread.join();
        }
    }
}

impl<T: Batches> fmt::Debug for GroupWriter<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GroupWriter").finish_non_exhaustive()
    }
}

/// A command of any result type.
trait Queued<T: Batches>: Send {
    /// About how many bytes the command adds to the store.
    fn weight(&self) -> usize;

    /// Runs the command, unless it has already failed alone.
    fn run(&mut self, tables: &mut T::Open<'_>) -> Ran;

    /// Runs the command only for its reads: its answer and its writes are dropped.
    fn rehearse(&mut self, tables: &mut T::Open<'_>);

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
    weight: usize,
    command: F,
    /// The outcome of the last run, unless the store failed.
    outcome: Option<Result<Result<V, R>, StoreError>>,
    caller: oneshot::Sender<Result<Result<V, R>, StoreError>>,
}

impl<T, F, V, R> Queued<T> for Command<F, V, R>
where
    T: Batches,
    F: FnMut(&mut T::Open<'_>) -> Result<Result<V, R>, StoreError> + Send,
    V: Send,
    R: Send,
{
    fn weight(&self) -> usize {
        self.weight
    }

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

    fn rehearse(&mut self, tables: &mut T::Open<'_>) {
        if !matches!(self.outcome, Some(Err(_))) {
            // It runs again for real, and fails then if it fails.
            let _ = catch_unwind(AssertUnwindSafe(|| (self.command)(tables)));
        }
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

/// Commands that share a commit.
pub struct Batch<T: Batches + ?Sized> {
    commands: Vec<Box<dyn Queued<T>>>,
    /// The next one, if it has come and is not among them.
    next: Option<Box<dyn Queued<T>>>,
    queue: mpsc::Receiver<Box<dyn Queued<T>>>,
}

/// What became of a batch that has run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchRun {
    /// It is to be committed.
    Done,
    /// No command wants anything to be written.
    NothingWritten,
    /// A command has failed alone: all is to be undone, and the batch to run once more. Each time at least one
    /// command fails that runs no more.
    Again,
}

impl<T: Batches> Batch<T> {
    /// Runs the commands, one after the other.
    pub fn run(&mut self, tables: &mut T::Open<'_>) -> Result<BatchRun, StoreError> {
        let mut run = BatchRun::NothingWritten;
        for command in &mut self.commands {
            match command.run(tables) {
                Ran::Wrote => run = BatchRun::Done,
                Ran::WroteNothing => {}
                Ran::FailedAlone => return Ok(BatchRun::Again),
                Ran::StoreFailed(error) => return Err(error),
            }
        }
        Ok(run)
    }

    /// Runs one command for what it reads, such as on rows of which many are not known yet: what it
    /// answers and writes is forgotten.
    ///
    /// # Panics
    /// If there is no such command.
    pub fn rehearse(&mut self, command: usize, tables: &mut T::Open<'_>) {
        self.commands[command].rehearse(tables);
    }

    /// Takes in commands that have come meanwhile, after those that are there. It stops at one that is too large. It is
    /// for use before the batch runs: a command that never ran fails.
    pub fn take_in(&mut self) {
        let mut together = self.weight();
        while self.len() < QUEUE_LEN
            && let Some(command) = self.next.take().or_else(|| self.queue.try_recv().ok())
        {
            together = command.weight().saturating_add(together);
            if together > MOST_WEIGHT && !self.is_empty() {
                self.next = Some(command);
                return;
            }
            self.commands.push(command);
        }
    }

    /// About how many bytes the commands add to the store.
    pub fn weight(&self) -> usize {
        self.commands.iter().fold(0, |sum, it| it.weight().saturating_add(sum))
    }

    /// How many commands there are.
    pub fn len(&self) -> usize {
        self.commands.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.commands.is_empty()
    }

    fn new(queue: mpsc::Receiver<Box<dyn Queued<T>>>) -> Self {
        Self { commands: Vec::new(), next: None, queue }
    }

    /// Waits for commands. Answers whether there are any: there are none once all callers are gone.
    fn wait(&mut self) -> bool {
        if self.next.is_none() {
            self.next = self.queue.blocking_recv();
        }
        self.take_in();
        !self.is_empty()
    }

    /// Tells the callers the outcome of the commit. The batch is empty then.
    fn answer(&mut self, committed: &Result<(), StoreError>) {
        for command in self.commands.drain(..) {
            command.answer(committed.clone());
        }
    }

    /// Watches for another command without sleeping. A single caller waits for every switch of threads, longest for a
    /// thread that has to be woken, and often sends its next command right after an answer.
    fn look_out(&self) {
        let since = Instant::now();
        while self.queue.is_empty() && since.elapsed() < ATTENTION {
            // Threads that have work run first.
            thread::yield_now();
        }
    }
}

impl<T: Batches + ?Sized> fmt::Debug for Batch<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch").field("len", &self.commands.len()).finish_non_exhaustive()
    }
}

fn write_batches<T: Batches>(
    batches: &mut T,
    tell: &impl Fn(T::Told),
    queue: mpsc::Receiver<Box<dyn Queued<T>>>,
) {
    let mut failures = Failures::default();
    let mut batch = Batch::new(queue);
    while batch.wait() {
        let committed = match failures.refusal() {
            Some(error) => Err(error),
            None => {
                let told = batches.write(&mut batch);
                let committed = told.map(|told| told.into_iter().for_each(tell));
                failures.note(&committed);
                committed
            }
        };
        let was_alone = batch.len() == 1;
        batch.answer(&committed);
        if was_alone {
            batch.look_out();
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
