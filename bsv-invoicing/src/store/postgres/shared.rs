//! What the parts of an open store share.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use bsv_store::{StoreCounts, StoreError};
use tokio::runtime::Builder;
use tokio::sync::watch;

use super::connection::Connection;
use super::error::{Failure, Unfit};
use super::known::{Known, Wants};
use super::options::PostgresOptions;
use super::rows::Changes;
use super::schema::expect_same;
use super::step::{Incarnation, Seen, Step};
use super::transaction::in_time;
use crate::ledger::rows::{Kind, Processes, Table};
use crate::model::process::ProcessId;
use crate::model::time::Timestamp;

/// What the parts of an open store share.
pub(super) struct Shared {
    pub(super) options: PostgresOptions,
    /// The id of this process. No other process has it, not even one with a copy of its data directory.
    pub(super) id: [u8; 16],
    /// The id of its data directory.
    pub(super) machine: [u8; 16],
    pub(super) incarnation: Incarnation,
    pub(super) counts: StoreCounts,
    pub(super) last_event: watch::Sender<u64>,
    /// The number of the last step that another process has made, as far as that is known.
    pub(super) step_by_others: watch::Sender<i64>,
    begun: Instant,
    /// What the database's clock showed when this process had begun, in microseconds since 1970. The system's clock
    /// may jump meanwhile.
    clock_then: AtomicI64,
    /// A digest of the access tokens. It is empty until they have been read.
    pub(super) token_digest: watch::Sender<String>,
    has_joined: AtomicBool,
    /// Whether others took this process for dead.
    pub(super) is_overtaken: watch::Sender<bool>,
    seen: Mutex<Seen>,
}

impl Shared {
    pub(super) fn new(
        options: PostgresOptions,
        [id, machine]: [[u8; 16]; 2],
        incarnation: Incarnation,
        seen: Seen,
    ) -> Self {
        Self {
            options,
            id,
            machine,
            incarnation,
            counts: StoreCounts::default(),
            last_event: watch::Sender::new(0),
            step_by_others: watch::Sender::new(seen.number),
            begun: Instant::now(),
            clock_then: AtomicI64::new(0),
            token_digest: watch::Sender::new(String::new()),
            has_joined: AtomicBool::new(false),
            is_overtaken: watch::Sender::new(false),
            seen: Mutex::new(seen),
        }
    }

    pub(super) fn seen(&self) -> Seen {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Takes note of the last step, which was read after `before` had been seen.
    pub(super) fn note(&self, step: &Step, before: &Seen) -> Result<(), Failure> {
        if step.incarnation != self.incarnation {
            return Err(Unfit::OtherWallet { schema: self.options.schema.clone() }.into());
        }
        if step.has_gone_back(before) {
            return Err(Unfit::GoneBack(before.number).into());
        }
        self.note_time(step.read_at);
        if step.number > before.number && step.writer[..] != self.id {
            self.step_by_others.send_replace(step.number);
        }
        self.see(step);
        Ok(())
    }

    /// Takes note of what the database's clock shows at this moment.
    pub(super) fn note_time(&self, shown: i64) {
        self.clock_then.store(shown.saturating_sub(self.running()), Ordering::Relaxed);
    }

    /// What the database's clock shows.
    pub(super) fn clock(&self) -> Timestamp {
        let shown = self.clock_then.load(Ordering::Relaxed).saturating_add(self.running());
        Timestamp::from_micros(u64::try_from(shown).unwrap_or_default())
    }

    /// For how many microseconds the store has been open.
    fn running(&self) -> i64 {
        i64::try_from(self.begun.elapsed().as_micros()).unwrap_or(i64::MAX)
    }

    /// Takes note of a step that is committed.
    pub(super) fn see(&self, step: &Step) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if step.number > seen.number {
            *seen = Seen::of(step);
        }
        drop(seen);
        self.tell_event(step.last_event());
    }

    /// Wants the row that says whether this process is among those that have the wallet open.
    pub(super) fn want_presence(&self, wants: &mut Wants) {
        wants.want_row(Table::Processes, Processes::key(&self.process()));
    }

    /// Takes note of what that row says.
    pub(super) fn read_presence(&self, known: &Known) -> Result<(), Failure> {
        let row = known.row(Table::Processes, &Processes::key(&self.process()));
        // Under the lock of the door, nobody adds it meanwhile.
        self.note_presence(self.has_joined(), row.flatten().is_some())
    }

    /// Takes note of changes that are committed: they may say that this process has the wallet open.
    pub(super) fn note_joining(&self, changes: &Changes) {
        let joined = changes.rows.get(&Table::Processes).is_some_and(|rows| {
            rows.get(&Processes::key(&self.process())).is_some_and(|it| it.row().is_some())
        });
        self.has_joined.fetch_or(joined, Ordering::Relaxed);
    }

    /// Takes note of whether this process is among those that have the wallet open. Fails if it is not, and was before
    /// it looked: others took it for dead.
    pub(super) fn note_presence(&self, was_there: bool, is_there: bool) -> Result<(), Failure> {
        self.has_joined.fetch_or(is_there, Ordering::Relaxed);
        if was_there && !is_there {
            self.is_overtaken.send_replace(true);
            return Err(Unfit::Overtaken.into());
        }
        Ok(())
    }

    /// Whether this process has been among those that have the wallet open.
    pub(super) fn has_joined(&self) -> bool {
        self.has_joined.load(Ordering::Relaxed)
    }

    /// Its id, as the rules know it.
    pub(super) fn process(&self) -> ProcessId {
        ProcessId::from_bytes(self.id)
    }

    /// Tells the number of the last event. The number that is told never falls.
    pub(super) fn tell_event(&self, number: u64) {
        self.last_event.send_if_modified(|last| {
            let is_new = number > *last;
            *last = number.max(*last);
            is_new
        });
    }

    /// Connects again. Fails if the database is another store, or has lost a step that this process has seen.
    pub(super) async fn connect(&self) -> Result<Connection, Failure> {
        in_time(async {
            let connection = Connection::open(&self.options).await?;
            expect_same(&connection, &self.options, &self.incarnation, &self.seen()).await?;
            Ok(connection)
        })
        .await
    }

    /// The connection, opened anew if that is necessary.
    pub(super) async fn reopen<'c>(
        &self,
        connection: &'c mut Option<Connection>,
    ) -> Result<&'c Connection, Failure> {
        if connection.as_ref().is_none_or(Connection::is_closed) {
            *connection = Some(self.connect().await?);
        }
        Ok(connection.as_ref().expect("it was just opened"))
    }

    /// Does some work on a new connection, and blocks until it is done.
    pub(super) fn with_connection<T>(
        &self,
        work: impl AsyncFnOnce(&Connection) -> Result<T, Failure>,
    ) -> Result<T, StoreError> {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| Failure::of(&error).into_store_error())?;
        let done = runtime.block_on(async { work(&self.connect().await?).await });
        done.map_err(Failure::into_store_error)
    }
}
