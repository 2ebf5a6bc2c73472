//! The last step that a server has seen, in a file of its own. A database that does not know this step has lost what was
//! committed.

use std::convert::Infallible;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use serde::{Deserialize, Serialize};
use tokio::runtime::Builder;
use tokio::sync::oneshot;
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::connection::Connection;
use super::error::Failure;
use super::shared::Shared;
use super::statements::{Parameter, StatementKey, now};
use super::step::{Incarnation, Seen};
use super::upkeep::{TICK, TICK_PATIENCE};

const REMEMBER: StatementKey = StatementKey::Other(concat!(
    "INSERT INTO @memory (id, name, version, seen_at, remembered, remembering) VALUES ($1, $2, $3, ",
    now!(),
    ", $4, $5) ON CONFLICT (id) DO UPDATE SET name = EXCLUDED.name, version = EXCLUDED.version, \
     seen_at = EXCLUDED.seen_at, remembered = EXCLUDED.remembered, remembering = EXCLUDED.remembering"
));
/// What a server keeps on its own disk, in hexadecimal digits.
#[derive(Debug, Serialize, Deserialize)]
struct StepFile {
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
        let file: StepFile = serde_json::from_str(&text).ok()?;
        let machine = hex::decode(&file.process).ok()?.try_into().ok()?;
        let seen = Seen { number: file.step, writer: hex::decode(&file.writer).ok()? };
        let is_same = file.store == hex::encode(incarnation);
        Some(Recalled { machine, seen: is_same.then_some(seen) })
    };
    let damaged = || Failure::of(&format!("{} cannot be read", path.display()));
    read().map(Some).ok_or_else(damaged)
}

/// The thread that writes the file every second. It ends when this is dropped. A slow disk holds up nothing else.
pub(super) struct StepKeeper {
    /// `None` only during the drop.
    running: Option<oneshot::Sender<Infallible>>,
    thread: Option<JoinHandle<()>>,
}

impl StepKeeper {
    /// Starts the thread. `path` names the file, and `kept` the step that it has, if it has one.
    pub(super) fn start(
        path: PathBuf,
        shared: Arc<Shared>,
        mut kept: Option<Seen>,
    ) -> Result<Self, io::Error> {
        let (running, stopped) = oneshot::channel();
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let thread = thread::Builder::new().name("store step".to_owned()).spawn(move || {
            let mut connection = None;
            runtime.block_on(async {
                tokio::select! {
                    _ = stopped => {}
                    () = keep_up(&path, &shared, &mut connection, &mut kept) => {}
                }
                remember_in_any_case(&path, &shared, &mut connection, &mut kept).await;
            });
        })?;
        Ok(Self { running: Some(running), thread: Some(thread) })
    }
}

impl Drop for StepKeeper {
    fn drop(&mut self) {
        self.running = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Remembers the last step every second, until it is dropped.
async fn keep_up(
    path: &Path,
    shared: &Shared,
    connection: &mut Option<Connection>,
    kept: &mut Option<Seen>,
) {
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        remember_in_any_case(path, shared, connection, kept).await;
    }
}

/// Makes the file of a server name the last step that the server has seen, instead of `kept`. Does so even if the
/// database does not answer, which may have lost the step.
async fn remember_in_any_case(
    path: &Path,
    shared: &Shared,
    connection: &mut Option<Connection>,
    kept: &mut Option<Seen>,
) {
    let seen = shared.seen();
    let record =
        async { record(shared.reopen(connection).await?, shared, kept.as_ref(), &seen).await };
    let recorded = timeout(TICK_PATIENCE, record).await.unwrap_or_else(|_| Err(Failure::slow()));
    if let Err(failure) = recorded {
        *connection = None;
        failure.log();
    }
    if let Err(failure) = keep(path, shared, seen, kept) {
        failure.log();
    }
}

/// Makes the file of a server name the last step that the server has seen, instead of `kept`.
pub(super) async fn remember(
    path: &Path,
    shared: &Shared,
    connection: &Connection,
    kept: &mut Option<Seen>,
) -> Result<(), Failure> {
    let seen = shared.seen();
    record(connection, shared, kept.as_ref(), &seen).await?;
    keep(path, shared, seen, kept)
}

/// Records in the database which step the file names, and which it will name. The database keeps both.
async fn record(
    connection: &Connection,
    shared: &Shared,
    kept: Option<&Seen>,
    seen: &Seen,
) -> Result<(), Failure> {
    connection.prepare(&[REMEMBER]).await?;
    let given: Vec<Parameter<'_>> = vec![
        Box::new(&shared.machine[..]),
        Box::new("bsv-server"),
        Box::new(env!("CARGO_PKG_VERSION")),
        Box::new(kept.unwrap_or(seen).number),
        Box::new(seen.number),
    ];
    connection.run(REMEMBER, given).await?;
    Ok(())
}

/// Writes what a server has seen to its file.
fn keep(path: &Path, shared: &Shared, seen: Seen, kept: &mut Option<Seen>) -> Result<(), Failure> {
    if kept.as_ref() == Some(&seen) {
        return Ok(());
    }
    let file = StepFile {
        store: hex::encode(&shared.incarnation),
        process: hex::encode(shared.machine),
        step: seen.number,
        writer: hex::encode(&seen.writer),
    };
    let text = serde_json::to_string(&file).map_err(|error| Failure::of(&error))?;
    let dir = path.parent().unwrap_or(Path::new("."));
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    bsv_store::write_atomically(dir, &name, text.as_bytes())
        .map_err(|error| Failure::of(&error))?;
    *kept = Some(seen);
    Ok(())
}
