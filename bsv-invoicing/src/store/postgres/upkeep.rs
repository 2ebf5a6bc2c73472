//! What a process does every second. It shows that it is alive, and looks whether the others are. It remembers the last
//! step that it has seen, in the database and on its own disk. It removes old steps.

use std::convert::Infallible;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use bsv_store::GroupWriter;
use serde::{Deserialize, Serialize};
use tokio::runtime::Builder;
use tokio::sync::oneshot;
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::connection::{Connection, PATIENCE};
use super::error::Failure;
use super::execute;
use super::presence::{Beats, beat};
use super::schema::Incarnation;
use super::shared::{Seen, Shared};
use super::statements::{Parameter, StatementKey, now};
use super::tokens::note_changes;
use super::writer::SqlBatches;
use crate::ledger::Leave;
use crate::model::process::ProcessId;

const TICK: Duration = Duration::from_secs(1);
/// How long the work of a tick may take.
const TICK_PATIENCE: Duration = Duration::from_secs(2);
/// Old steps are removed once in so many ticks.
const SWEEP_TICKS: u64 = 10;

const REMEMBER: StatementKey = StatementKey::Other(concat!(
    "INSERT INTO memory (id, name, version, seen_at, remembered, remembering) VALUES ($1, $2, $3, ",
    now!(),
    ", $4, $5) ON CONFLICT (id) DO UPDATE SET name = EXCLUDED.name, version = EXCLUDED.version, \
     seen_at = EXCLUDED.seen_at, remembered = EXCLUDED.remembered, remembering = EXCLUDED.remembering"
));
/// Removes some of the oldest steps. Those of the last day stay, and those that a process remembers.
const SWEEP: StatementKey = StatementKey::Other(concat!(
    "DELETE FROM step WHERE number IN (SELECT number FROM step ORDER BY number LIMIT 20000) AND made_at < ",
    now!(),
    " - 86400000000 AND number < (SELECT number FROM step ORDER BY number DESC LIMIT 1) \
     AND NOT EXISTS (SELECT 1 FROM memory WHERE step.number IN (remembered, remembering))"
));

/// The thread that does this for a server. It ends when this is dropped. A slow disk holds up no look-ups there.
pub(super) struct Upkeep {
    /// `None` only during the drop.
    running: Option<oneshot::Sender<Infallible>>,
    thread: Option<JoinHandle<()>>,
}

impl Upkeep {
    /// Starts the thread. `path` names the file of the server, and `kept` the step that the file has, if it has one.
    pub(super) fn start(
        path: PathBuf,
        shared: Arc<Shared>,
        writer: Weak<GroupWriter<SqlBatches>>,
        mut kept: Option<Seen>,
    ) -> Result<Self, io::Error> {
        let (running, stopped) = oneshot::channel();
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let thread = thread::Builder::new().name("store upkeep".to_owned()).spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    _ = stopped => {}
                    () = keep_up(&path, &shared, &writer, &mut kept) => {}
                }
                stop(&path, &shared, &mut kept).await;
            });
        })?;
        Ok(Self { running: Some(running), thread: Some(thread) })
    }
}

impl Drop for Upkeep {
    fn drop(&mut self) {
        self.running = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// What a server keeps on its own disk, in hexadecimal digits.
#[derive(Debug, Serialize, Deserialize)]
struct Memory {
    /// The incarnation of the store.
    store: String,
    /// What tells the data directory from others.
    process: String,
    /// The last step that was seen.
    step: i64,
    /// Who made the step.
    writer: String,
}

/// What a server remembers of an earlier run.
pub(super) struct Recalled {
    /// What tells its data directory from others.
    pub(super) machine: [u8; 16],
    /// The last step that it has seen, if that was of this store.
    pub(super) seen: Option<Seen>,
}

/// What a server remembers of an earlier run, if there was one.
pub(super) fn recall(path: &Path, incarnation: &Incarnation) -> Result<Option<Recalled>, Failure> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Failure::of(&format!("cannot read {}: {error}", path.display()))),
    };
    let read = || {
        let memory: Memory = serde_json::from_str(&text).ok()?;
        let machine = hex::decode(&memory.process).ok()?.try_into().ok()?;
        let seen = Seen { number: memory.step, writer: hex::decode(&memory.writer).ok()? };
        let is_same = memory.store == hex::encode(incarnation);
        Some(Recalled { machine, seen: is_same.then_some(seen) })
    };
    let damaged = || Failure::of(&format!("{} cannot be read", path.display()));
    read().map(Some).ok_or_else(damaged)
}

/// Makes the file of a server name the last step that the server has seen, instead of `kept`. The database records both
/// steps before the file changes, so that it keeps whichever of them the file names.
pub(super) async fn remember(
    path: &Path,
    shared: &Shared,
    connection: &Connection,
    kept: &mut Option<Seen>,
) -> Result<(), Failure> {
    let seen = shared.seen();
    connection.prepare(&[REMEMBER]).await?;
    let given: Vec<Parameter<'_>> = vec![
        Box::new(&shared.machine[..]),
        Box::new("bsv-server"),
        Box::new(env!("CARGO_PKG_VERSION")),
        Box::new(kept.as_ref().unwrap_or(&seen).number),
        Box::new(seen.number),
    ];
    connection.run(REMEMBER, given).await?;
    keep(path, shared, seen, kept)
}

/// Writes what a server has seen to its file.
fn keep(path: &Path, shared: &Shared, seen: Seen, kept: &mut Option<Seen>) -> Result<(), Failure> {
    if kept.as_ref() == Some(&seen) {
        return Ok(());
    }
    let memory = Memory {
        store: hex::encode(&shared.incarnation),
        process: hex::encode(shared.machine),
        step: seen.number,
        writer: hex::encode(&seen.writer),
    };
    let text = serde_json::to_string(&memory).map_err(|error| Failure::of(&error))?;
    let dir = path.parent().unwrap_or(Path::new("."));
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    bsv_store::write_atomically(dir, &name, text.as_bytes())
        .map_err(|error| Failure::of(&error))?;
    *kept = Some(seen);
    Ok(())
}

/// Does what a server does every second, until it is dropped.
async fn keep_up(
    path: &Path,
    shared: &Shared,
    writer: &Weak<GroupWriter<SqlBatches>>,
    kept: &mut Option<Seen>,
) {
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut connection, mut beats) = (None, Beats::default());
    for tick in 0_u64.. {
        ticks.tick().await;
        let work = async {
            let open = reopen(shared, &mut connection).await?;
            let dead = beat(open, shared, &mut beats).await?;
            note_changes(open, shared).await?;
            if let Err(failure) = remember(path, shared, open, kept).await {
                keep_alone(path, shared, kept, failure);
            }
            if tick.is_multiple_of(SWEEP_TICKS) {
                sweep(open).await?;
            }
            Ok(dead)
        };
        let worked = timeout(TICK_PATIENCE, work).await;
        match worked.unwrap_or_else(|_| Err(Failure::slow())) {
            Ok(dead) => remove(writer, dead).await,
            Err(failure) => {
                connection = None;
                beats.forget();
                keep_alone(path, shared, kept, failure);
            }
        }
    }
}

/// Removes processes that count as dead. Other processes may then claim their work.
async fn remove(writer: &Weak<GroupWriter<SqlBatches>>, dead: Vec<ProcessId>) {
    for process in dead {
        let Some(writer) = writer.upgrade() else { return };
        let leave = execute(&writer, Leave { process: Some(process) });
        // This process must go on showing that it is alive. The command stays in the queue.
        match timeout(TICK_PATIENCE, leave).await.unwrap_or(Ok(false)) {
            Ok(true) => tracing::warn!(
                "another server is silent: what it did is taken over (process {})",
                hex::encode(process.to_bytes())
            ),
            // Somebody else was faster.
            Ok(false) => {}
            Err(error) => tracing::debug!("a silent server cannot be removed: {error}"),
        }
    }
}

/// Remembers the last step once more before the process stops.
async fn stop(path: &Path, shared: &Shared, kept: &mut Option<Seen>) {
    let stopping = async {
        let connection = shared.connect().await?;
        remember(path, shared, &connection, kept).await
    };
    let stopped = timeout(PATIENCE, stopping).await;
    if let Err(failure) = stopped.unwrap_or_else(|_| Err(Failure::slow())) {
        keep_alone(path, shared, kept, failure);
    }
}

/// Writes the file of a server though the database does not answer: the database may have lost the step.
fn keep_alone(path: &Path, shared: &Shared, kept: &mut Option<Seen>, failure: Failure) {
    let kept = keep(path, shared, shared.seen(), kept);
    for failure in [Some(failure), kept.err()].into_iter().flatten() {
        match failure {
            Failure::Passing(error) => tracing::debug!("{error}"),
            Failure::Lasting(error) => tracing::warn!("{error}"),
        }
    }
}

async fn reopen<'c>(
    shared: &Shared,
    connection: &'c mut Option<Connection>,
) -> Result<&'c Connection, Failure> {
    if connection.as_ref().is_none_or(Connection::is_closed) {
        *connection = Some(shared.connect().await?);
    }
    Ok(connection.as_ref().expect("it was just opened"))
}

async fn sweep(connection: &Connection) -> Result<(), Failure> {
    connection.prepare(&[SWEEP]).await?;
    connection.run(SWEEP, Vec::new()).await.map(drop).map_err(Failure::from)
}
