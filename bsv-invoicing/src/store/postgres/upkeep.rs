//! What a process does from time to time: it shows that it is alive, remembers the last step that it has seen, also
//! where the database cannot lose it, and removes steps that nobody asks for any more.

use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::time::{MissedTickBehavior, interval};

use super::claim::{RENEW, leave};
use super::connection::Connection;
use super::error::Failure;
use super::schema::Incarnation;
use super::shared::{Seen, Shared};
use super::statements::{Parameter, StatementKey};

const TICK: Duration = Duration::from_secs(1);
/// For so many ticks steps may wait to be removed.
const SWEEP_TICKS: u64 = 600;

const REMEMBER: StatementKey = StatementKey::Other(
    "INSERT INTO process (id, name, version, seen_at, remembered) \
     VALUES ($1, $2, $3, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, $4) \
     ON CONFLICT (id) DO UPDATE SET name = EXCLUDED.name, version = EXCLUDED.version, \
     seen_at = EXCLUDED.seen_at, remembered = EXCLUDED.remembered",
);
/// Steps of the last day stay, and those that a process remembers.
const SWEEP: StatementKey = StatementKey::Other(
    "DELETE FROM step WHERE made_at < (extract(epoch FROM clock_timestamp()) * 1000000)::bigint - 86400000000 \
     AND number < (SELECT number FROM step ORDER BY number DESC LIMIT 1) \
     AND NOT EXISTS (SELECT 1 FROM process WHERE remembered = step.number)",
);

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
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
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

/// Keeps on the disk what a server has seen.
pub(super) fn remember(path: &Path, shared: &Shared, seen: &Seen) -> Result<(), Failure> {
    let memory = Memory {
        store: hex::encode(&shared.incarnation),
        process: hex::encode(shared.machine),
        step: seen.number,
        writer: hex::encode(&seen.writer),
    };
    let text = serde_json::to_string(&memory).map_err(|error| Failure::of(&error))?;
    let dir = path.parent().unwrap_or(Path::new("."));
    bsv_store::write_atomically(dir, &name_of(path), text.as_bytes())
        .map_err(|error| Failure::of(&error))
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Does what is to be done every second, until it is dropped. A process without a memory is a visitor.
pub(super) async fn keep_up(shared: &Shared) {
    let Some(path) = &shared.options.memory else { return std::future::pending().await };
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut connection, mut kept) = (None, None);
    for tick in 0_u64.. {
        ticks.tick().await;
        let seen = shared.seen();
        if kept.as_ref() != Some(&seen) {
            match remember(path, shared, &seen) {
                Ok(()) => kept = Some(seen.clone()),
                Err(failure) => tracing::warn!("{}", failure.into_error()),
            }
        }
        if let Err(failure) = work(shared, &mut connection, &seen, tick).await {
            connection = None;
            tracing::debug!("{}", failure.into_error());
        }
    }
}

/// Ends the work of a process that stops: what it has seen is kept, and the next one need not wait for its end.
pub(super) async fn stop(shared: &Shared) {
    let Some(path) = &shared.options.memory else { return };
    let stopped = async {
        remember(path, shared, &shared.seen())?;
        leave(&shared.connect().await?, &shared.id).await
    };
    if let Err(failure) = stopped.await {
        tracing::debug!("{}", failure.into_error());
    }
}

async fn work(
    shared: &Shared,
    connection: &mut Option<Connection>,
    seen: &Seen,
    tick: u64,
) -> Result<(), Failure> {
    if connection.as_ref().is_none_or(Connection::is_closed) {
        *connection = Some(shared.connect().await?);
    }
    let open = connection.as_ref().expect("it was just opened");
    open.prepare(&[RENEW, REMEMBER, SWEEP]).await?;
    if open.run(RENEW, vec![Box::new(&shared.id[..])]).await?.is_empty() {
        shared.note_overtaken();
    }
    let given: Vec<Parameter<'_>> = vec![
        Box::new(&shared.machine[..]),
        Box::new("bsv-server"),
        Box::new(env!("CARGO_PKG_VERSION")),
        Box::new(seen.number),
    ];
    open.run(REMEMBER, given).await?;
    if tick.is_multiple_of(SWEEP_TICKS) {
        open.run(SWEEP, Vec::new()).await?;
    }
    Ok(())
}
