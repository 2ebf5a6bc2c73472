//! What the parts of an open store share.

use std::sync::{Mutex, PoisonError};

use bsv_store::{StoreCounts, StoreError};
use tokio::runtime::Builder;
use tokio::sync::watch;

use super::connection::Connection;
use super::error::{Failure, Unfit};
use super::options::PostgresOptions;
use super::schema::{Incarnation, expect_incarnation};
use super::statements::Parameter;
use super::step::{READ_WRITER, Step};

/// What the parts of an open store share.
pub(super) struct Shared {
    pub(super) options: PostgresOptions,
    /// What tells this process from others, also from others with a copy of its data directory.
    pub(super) id: [u8; 16],
    /// What tells its data directory from others.
    pub(super) machine: [u8; 16],
    pub(super) incarnation: Incarnation,
    pub(super) counts: StoreCounts,
    pub(super) last_event: watch::Sender<u64>,
    /// Whether another process has taken the wallet over.
    pub(super) is_overtaken: watch::Sender<bool>,
    seen: Mutex<Seen>,
}

/// The last step that this process has seen, and who made it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) number: i64,
    pub(super) writer: Vec<u8>,
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
            is_overtaken: watch::Sender::new(false),
            seen: Mutex::new(seen),
        }
    }

    pub(super) fn seen(&self) -> Seen {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Takes note of the last step, which was read after `before` had been seen.
    pub(super) fn note(&self, step: &Step, before: &Seen) -> Result<(), Failure> {
        if step.number < before.number {
            return Err(Unfit::GoneBack(before.number).into());
        }
        self.see(step);
        Ok(())
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

    /// Fails if this process is a server, and another one has taken the wallet over.
    pub(super) fn expect_claim(&self, step: &Step) -> Result<(), Failure> {
        let is_server = self.options.memory.is_some();
        match &step.server {
            Some(server) if is_server && server[..] == self.id => Ok(()),
            _ if is_server => {
                self.note_overtaken();
                Err(Unfit::Overtaken.into())
            }
            _ => Ok(()),
        }
    }

    /// Takes note that another process has taken the wallet over.
    pub(super) fn note_overtaken(&self) {
        self.is_overtaken.send_replace(true);
    }

    /// Tells the number of the last event, which is never behind what was told.
    pub(super) fn tell_event(&self, number: u64) {
        self.last_event.send_if_modified(|last| {
            let is_new = number > *last;
            *last = number.max(*last);
            is_new
        });
    }

    /// Connects to the store that was opened, which has not gone back.
    pub(super) async fn connect(&self) -> Result<Connection, Failure> {
        let connection = Connection::open(&self.options).await?;
        expect_incarnation(&connection, &self.options, &self.incarnation).await?;
        expect_seen(&connection, &self.seen()).await?;
        Ok(connection)
    }

    /// Does some work on a connection of its own, and waits for it.
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

/// Fails if the database does not know a step that was seen.
pub(super) async fn expect_seen(connection: &Connection, seen: &Seen) -> Result<(), Failure> {
    connection.prepare(&[READ_WRITER]).await?;
    let number: Parameter<'_> = Box::new(seen.number);
    let found = connection.run(READ_WRITER, vec![number]).await?;
    let writer = found.first().map(|row| row.try_get::<_, Vec<u8>>(0)).transpose()?;
    match writer {
        Some(writer) if writer == seen.writer => Ok(()),
        _ => Err(Unfit::GoneBack(seen.number).into()),
    }
}
