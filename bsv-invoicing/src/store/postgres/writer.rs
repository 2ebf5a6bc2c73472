//! Runs batches of commands. Each batch is one transaction under the lock of the door.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use bsv_store::{Batch, BatchRun, Batches, EngineError, GroupWriter, StoreError};
use tokio::runtime::Runtime;

use super::connection::{Connection, PATIENCE};
use super::error::Failure;
use super::known::{Known, Wants};
use super::memory::Memory;
use super::rows::{Changes, Guess, Reading, SqlRows};
use super::shared::Shared;
use super::statements::Parameter;
use super::step::{self, Step};
use super::transaction::{NotDone, begin, commit, give_up, in_time, read_more};
use crate::ledger::rows::{Change, Table};
use crate::ledger::{Books, BooksOn, Command};
use crate::model::event::EventKind;
use crate::model::process::ProcessId;
use crate::store::WalletStoreError;
use crate::store::wallet_store::refused;

/// Runs batches in the database.
pub(super) struct SqlBatches {
    shared: Arc<Shared>,
    runtime: Runtime,
    connection: Option<Connection>,
    /// How many commits this writer has tried.
    tried: i64,
    /// Rows on which batches are rehearsed.
    memory: Memory,
}

/// What others are told of a batch.
#[derive(Debug)]
pub(super) struct Told {
    pub(super) last_event: u64,
    pub(super) kinds: Vec<EventKind>,
}

/// The first pause between two attempts. Each further one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);
/// The tables of one row that every batch reads.
const EACH_TIME: [Table; 2] = [Table::AllFigures, Table::Rules];
/// How often a batch runs on known rows alone, at most.
const GUESSES: usize = 8;

impl SqlBatches {
    pub(super) fn new(shared: Arc<Shared>, runtime: Runtime, connection: Connection) -> Self {
        let (connection, memory) = (Some(connection), Memory::default());
        Self { shared, runtime, connection, tried: 0, memory }
    }

    /// The connection, opened anew if that is necessary.
    fn connect(&mut self) -> Result<&Connection, Failure> {
        self.runtime.block_on(self.shared.reopen(&mut self.connection))
    }

    /// Closes the connection. Others can write then, though this thread waits for what comes next.
    fn disconnect(&mut self) {
        if let Some(connection) = self.connection.take() {
            self.runtime.block_on(connection.close());
        }
    }

    fn try_write(&mut self, batch: &mut Batch<Self>) -> Result<Option<Told>, Stopped> {
        self.connect()?;
        let (step, known) = self.begin(batch)?;
        let process = self.shared.process();
        let (runtime, connection) = (&self.runtime, self.connection.as_ref());
        let connection = connection.expect("it is open");
        let (done, known) = run(batch, runtime, connection, (process, &step), known)?;
        let memory = &mut self.memory;
        let Some((told, changes)) = done else {
            memory.remember_read(known);
            runtime.block_on(give_up(connection))?;
            return Ok(None);
        };
        self.tried += 1;
        let next = next_step(&step, &changes, self.shared.id.to_vec());
        let begun = Instant::now();
        let remember = || {
            memory.remember_read(known);
            memory.remember_written(&changes.rows);
        };
        let committing = commit(connection, &changes, &next, self.tried, remember);
        let committed = runtime.block_on(committing);
        self.shared.counts.commits.note(begun.elapsed());
        match committed {
            Ok(()) => {
                self.shared.see(&next);
                self.shared.note_joining(&changes);
                Ok(Some(told))
            }
            Err(NotDone::Failed(failure)) => Err(failure.into()),
            Err(NotDone::Undecided(error)) => {
                Err(Stopped::Undecided(Box::new(Undecided { told, changes, after: step, error })))
            }
        }
    }

    /// Begins a transaction, and reads the rows that the batch reads in a rehearsal.
    fn begin(&mut self, batch: &mut Batch<Self>) -> Result<(Step, Known), Failure> {
        let connection = self.connection.as_ref().expect("it is open");
        let mut wants = Wants::default();
        for table in EACH_TIME {
            wants.want_row(table, Vec::new());
        }
        self.shared.want_presence(&mut wants);
        let (memory, process) = (&self.memory, self.shared.process());
        let weight = batch.weight();
        let rehearse = || rehearse(batch, 0, process, Guess::new(&Known::default(), Some(memory)));
        let before = self.shared.seen();
        let (step, mut known) =
            self.runtime.block_on(begin(connection, weight, &wants, rehearse))?;
        self.shared.note(&step, &before)?;
        self.shared.read_presence(&known)?;
        self.take_in(batch, &mut known)?;
        Ok((step, known))
    }

    /// Takes in commands that have come while the database began the transaction, such as while another process held
    /// the lock. Reads the rows that they read in a rehearsal.
    fn take_in(&self, batch: &mut Batch<Self>, known: &mut Known) -> Result<(), Failure> {
        let first = batch.len();
        batch.take_in();
        if first == batch.len() {
            return Ok(());
        }
        self.shared.counts.note_commands(batch.len() - first);
        let guess = Guess::new(known, Some(&self.memory));
        let wants = rehearse(batch, first, self.shared.process(), guess);
        if wants.is_empty() {
            return Ok(());
        }
        let connection = self.connection.as_ref().expect("it is open");
        self.runtime.block_on(read_more(connection, wants, known))
    }

    /// Finds out whether a commit has happened. Its answer was lost.
    fn is_committed(&mut self, after: &Step, error: &EngineError) -> Result<bool, StoreError> {
        tracing::warn!(
            "it is not known whether a change was committed, which is looked up: {error}"
        );
        let begun = Instant::now();
        let mut pauses = Pauses::default();
        loop {
            self.disconnect();
            match self.look_for_step(after) {
                Ok(is_there) => return Ok(is_there),
                Err(Failure::Passing(_)) if begun.elapsed() < PATIENCE => pauses.wait(),
                Err(failure) => {
                    self.disconnect();
                    return Err(StoreError::Commit(failure.into_error()));
                }
            }
        }
    }

    /// Whether this process has made a step after another one.
    fn look_for_step(&mut self, after: &Step) -> Result<bool, Failure> {
        self.connect()?;
        let connection = self.connection.as_ref().expect("it is open");
        self.tried += 1;
        let look = find_step(connection, &self.shared, after.number, self.tried);
        self.runtime.block_on(in_time(look))
    }
}

impl Batches for SqlBatches {
    type Open<'t> = BooksOn<SqlRows<'t>>;
    type Told = Told;

    fn write(&mut self, batch: &mut Batch<Self>) -> Result<Option<Told>, StoreError> {
        self.shared.counts.note_commands(batch.len());
        let begun = Instant::now();
        let mut pauses = Pauses::default();
        loop {
            let failure = match self.try_write(batch) {
                Ok(told) => return Ok(told),
                Err(Stopped::Undecided(commit)) => {
                    if self.is_committed(&commit.after, &commit.error)? {
                        self.shared.note_joining(&commit.changes);
                        return Ok(Some(commit.told));
                    }
                    Failure::Passing(commit.error)
                }
                Err(Stopped::Failed(failure)) => {
                    self.disconnect();
                    failure
                }
            };
            match failure {
                Failure::Passing(error) if begun.elapsed() < PATIENCE => {
                    tracing::debug!("a batch is tried again: {error}");
                    pauses.wait();
                }
                failure => return Err(failure.into_store_error()),
            }
        }
    }
}

/// Why a batch is not known to be done.
enum Stopped {
    Failed(Failure),
    /// It is not known whether it was committed.
    Undecided(Box<Undecided>),
}

/// A batch that may have been committed as a step after another one.
struct Undecided {
    told: Told,
    changes: Changes,
    after: Step,
    /// Why that is not known.
    error: EngineError,
}

impl From<Failure> for Stopped {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// Runs the commands, from one on, one after the other on guessed rows. Answers which rows they read that are not known.
fn rehearse(
    batch: &mut Batch<SqlBatches>,
    first: usize,
    process: ProcessId,
    guess: Guess<'_>,
) -> Wants {
    let rehearsed = catch_unwind(AssertUnwindSafe(|| {
        let Ok(mut books) = BooksOn::open_for(process, SqlRows::to_read(&guess)) else { return };
        for command in first..batch.len() {
            guess.begin_anew();
            batch.rehearse(command, &mut books);
        }
    }));
    // A command may panic on guessed rows. What it has read until then is still worth reading.
    drop(rehearsed);
    guess.into_wants()
}

/// What others are told of a batch, and what it changes. `None` if it changes nothing.
type Ran = Option<(Told, Changes)>;

/// Runs the batch. Answers what it has done, and what it has read.
fn run(
    batch: &mut Batch<SqlBatches>,
    runtime: &Runtime,
    connection: &Connection,
    now: (ProcessId, &Step),
    mut known: Known,
) -> Result<(Ran, Known), Failure> {
    for round in 0.. {
        let (left, failed) = (Cell::new(one_by_one(round)), RefCell::new(None));
        let is_missing = Cell::new(false);
        let read = |wants: &Wants, known: &mut Known| {
            let Some(rest) = left.get().checked_sub(1) else {
                is_missing.set(true);
                return Err(StoreError::Engine(Arc::new(NotKnown)));
            };
            left.set(rest);
            runtime.block_on(read_more(connection, wants.clone(), known)).map_err(|failure| {
                *failed.borrow_mut() = Some(failure.clone());
                failure.into_store_error()
            })
        };
        let reading = Reading { known: RefCell::new(known), read: &read };
        let ran = run_on(batch, now, &reading);
        known = reading.known.into_inner();
        if let Some(failure) = failed.take() {
            return Err(failure);
        }
        if !is_missing.get() {
            return Ok((ran.map_err(Failure::Lasting)?, known));
        }
        let wants = rehearse(batch, 0, now.0, Guess::new(&known, None));
        runtime.block_on(read_more(connection, wants, &mut known))?;
    }
    unreachable!("a batch that may ask for more and more rows ends")
}

/// How many missing rows are read one by one in a run, which else ends at the first one. There are none at first: what
/// the batch asks for in a rehearsal is read together. But some rules do not end in a rehearsal, and some ask for a row
/// only when they have read the one before.
fn one_by_one(round: usize) -> usize {
    round
        .checked_sub(GUESSES)
        .map_or(0, |more| 1_usize.checked_shl(more as u32).unwrap_or(usize::MAX))
}

/// Why a run ends that reads only what is known.
#[derive(Debug, thiserror::Error)]
#[error("a row is not known")]
struct NotKnown;

fn run_on(
    batch: &mut Batch<SqlBatches>,
    (process, step): (ProcessId, &Step),
    reading: &Reading<'_>,
) -> Result<Ran, StoreError> {
    loop {
        let changes = Changes {
            audit_tail: step.audit_tail,
            now_micros: u64::try_from(step.read_at).unwrap_or_default(),
            ..Changes::default()
        };
        let books = BooksOn::open_for(process, SqlRows::new(reading, changes));
        let mut books = books.map_err(store_error)?;
        match batch.run(&mut books)? {
            BatchRun::Again => {}
            BatchRun::NothingWritten => return Ok(None),
            BatchRun::Done => {
                let told = Told { last_event: books.last_event(), kinds: books.told().to_vec() };
                let changes = books.close().map_err(store_error)?.into_changes();
                return Ok((!changes.is_empty()).then_some((told, changes)));
            }
        }
    }
}

fn next_step(step: &Step, changes: &Changes, writer: Vec<u8>) -> Step {
    let figures = changes.rows.get(&Table::AllFigures).and_then(|rows| rows.get(&Vec::new()));
    Step {
        incarnation: step.incarnation.clone(),
        number: step.number + 1,
        writer,
        audit_tail: changes.audit_tail,
        figures: figures.and_then(Change::row).unwrap_or(&step.figures).clone(),
        read_at: step.read_at,
    }
}

/// The failure of an operation that rules never refuse. A refusal means that the store is damaged.
fn store_error(error: WalletStoreError) -> StoreError {
    match error {
        WalletStoreError::Store(error) => error,
        WalletStoreError::Refused(refusal) => StoreError::damaged(refusal),
    }
}

/// Pauses between attempts.
#[derive(Default)]
struct Pauses(u32);

impl Pauses {
    fn wait(&mut self) {
        let pause = FIRST_PAUSE.saturating_mul(2_u32.saturating_pow(self.0)).min(LONGEST_PAUSE);
        self.0 = self.0.saturating_add(1);
        thread::sleep(pause);
    }
}

/// Whether this writer has made a step after the one of this number. If it has, that step is durable, also on the
/// standby that commits wait for. Nobody else commits meanwhile. Takes note of the last step.
async fn find_step(
    connection: &Connection,
    shared: &Shared,
    after: i64,
    writer_step: i64,
) -> Result<bool, Failure> {
    let before = shared.seen();
    let (last, _) = begin(connection, 0, &Wants::default(), Wants::default).await?;
    shared.note(&last, &before)?;
    connection.prepare(&[step::FIND]).await?;
    let given: Vec<Parameter<'_>> = vec![Box::new(after), Box::new(&shared.id[..])];
    let found = !connection.run(step::FIND, given).await?.is_empty();
    if !found {
        give_up(connection).await?;
        return Ok(false);
    }
    // The found step may not have reached the standby yet. An empty step after it reaches the standby later.
    let next = Step { number: last.number + 1, writer: shared.id.to_vec(), ..last };
    match commit(connection, &Changes::default(), &next, writer_step, || ()).await {
        Ok(()) => {
            shared.see(&next);
            Ok(true)
        }
        Err(NotDone::Failed(failure)) => Err(failure),
        Err(NotDone::Undecided(error)) => Err(Failure::Passing(error)),
    }
}

/// Runs a command in one of the next batches.
pub(super) async fn execute<C: Command>(
    writer: &GroupWriter<SqlBatches>,
    command: C,
) -> Result<C::Answer, WalletStoreError> {
    run_boxed(writer, command.weight(), move |books| command.run(books)).await
}

/// Does something to the books in one of the next batches.
pub(super) async fn run_boxed<A: Send + 'static>(
    writer: &GroupWriter<SqlBatches>,
    weight: usize,
    command: impl Fn(&mut Books<'_>) -> Result<A, WalletStoreError> + Send + 'static,
) -> Result<A, WalletStoreError> {
    let run = move |books: &mut BooksOn<SqlRows<'_>>| match command(books) {
        Ok(answer) => Ok(Ok(answer)),
        Err(error) => refused(error),
    };
    writer.run(weight, run).await?.map_err(WalletStoreError::Refused)
}
