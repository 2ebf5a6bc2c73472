//! What a server does all the time. It shows that it is alive, and looks whether the others are and whether tokens have
//! changed. It removes old steps.

use std::sync::Weak;
use std::time::Duration;

use bsv_store::GroupWriter;
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::connection::Connection;
use super::error::Failure;
use super::presence::{Beats, beat};
use super::shared::Shared;
use super::statements::{StatementKey, now};
use super::tokens::note_changes;
use super::writer::{SqlBatches, execute};
use crate::ledger::Leave;
use crate::model::process::ProcessId;
use crate::store::WalletStoreError;

pub(super) const TICK: Duration = Duration::from_secs(1);
/// How long the work of a tick may take.
pub(super) const TICK_PATIENCE: Duration = Duration::from_secs(2);
/// How often to look whether tokens have changed: a revoked one is refused, and its streams end, within a second.
const LOOK: Duration = Duration::from_millis(500);
/// A tick comes once in so many looks.
const TICK_LOOKS: u64 = 2;
/// Old steps are removed once in so many looks.
const SWEEP_LOOKS: u64 = 10 * TICK_LOOKS;

/// Removes some of the oldest steps. Those of the last day stay, and those that a process remembers.
const SWEEP: StatementKey = StatementKey::Other(concat!(
    "DELETE FROM @step WHERE number IN (SELECT number FROM @step ORDER BY number LIMIT 20000) AND made_at < ",
    now!(),
    " - 86400000000 AND number < (SELECT number FROM @step ORDER BY number DESC LIMIT 1) \
     AND NOT EXISTS (SELECT 1 FROM @memory WHERE step.number IN (remembered, remembering))"
));

/// Does what a server does all the time, until it is dropped.
pub(super) async fn keep_up(shared: &Shared, writer: &Weak<GroupWriter<SqlBatches>>) {
    if shared.options.memory.is_none() {
        return std::future::pending().await;
    }
    let mut looks = interval(LOOK);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut connection, mut beats) = (None, Beats::default());
    for look in 0_u64.. {
        looks.tick().await;
        let work = async {
            let open = shared.reopen(&mut connection).await?;
            let dead = match look.is_multiple_of(TICK_LOOKS) {
                true => beat(open, shared, &mut beats).await?,
                false => Vec::new(),
            };
            note_changes(open, shared).await?;
            if look.is_multiple_of(SWEEP_LOOKS) {
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
                failure.log();
            }
        }
    }
}

/// Removes processes that count as dead. Other processes may then claim their work. This process must go on showing that
/// it is alive: if there is more to do, the claims of the others show them as dead again.
async fn remove(writer: &Weak<GroupWriter<SqlBatches>>, dead: Vec<ProcessId>) {
    let removing = async {
        for process in dead {
            let Some(writer) = writer.upgrade() else { return };
            match leave(&writer, Some(process)).await {
                Ok(true) => tracing::warn!(
                    "another server is silent: what it did is taken over (process {})",
                    hex::encode(process.to_bytes())
                ),
                // Somebody else was faster.
                Ok(false) => {}
                Err(error) => tracing::debug!("a silent server cannot be removed: {error}"),
            }
        }
    };
    let _ = timeout(TICK_PATIENCE, removing).await;
}

/// Ends all claims of a process, which uses the wallet no more. `None` stands for this process.
/// Returns whether the process used the wallet until now.
pub(super) async fn leave(
    writer: &GroupWriter<SqlBatches>,
    process: Option<ProcessId>,
) -> Result<bool, WalletStoreError> {
    let (mut was_there, mut after) = (false, None);
    loop {
        let left = execute(writer, Leave { process, after }).await?;
        was_there |= left.was_there;
        if left.next.is_none() {
            return Ok(was_there);
        }
        after = left.next;
    }
}

async fn sweep(connection: &Connection) -> Result<(), Failure> {
    connection.prepare(&[SWEEP]).await?;
    connection.run(SWEEP, Vec::new()).await.map(drop).map_err(Failure::from)
}
