//! The claim to be the server of a wallet: one process at a time has it, for as long as that is alive. It is taken
//! under the lock of the door, so that a process that was overtaken can commit nothing more.

use std::time::{Duration, Instant};

use tokio::time::sleep;

use super::connection::Connection;
use super::error::{Failure, Unfit};
use super::known::Wants;
use super::statements::{StatementKey, now};
use super::step::Step;
use super::transaction::{begin, give_up};

/// The kind of the claim.
macro_rules! server {
    () => {
        "1"
    };
}

/// Whether another process has the claim, and is alive.
const FIND_RIVAL: StatementKey = StatementKey::Other(concat!(
    "SELECT 1 FROM claim WHERE kind = ",
    server!(),
    " AND holder <> $1 AND alive_until > ",
    now!()
));
const TAKE: StatementKey = StatementKey::Other(concat!(
    "INSERT INTO claim (kind, key, token, holder, alive_until) VALUES (",
    server!(),
    ", '', $1, $2, ",
    now!(),
    " + 5000000) \
     ON CONFLICT (kind, key) DO UPDATE SET token = EXCLUDED.token, holder = EXCLUDED.holder, \
     alive_until = EXCLUDED.alive_until"
));
/// A process counts as alive for 5 seconds after it has said so. It says so every second.
pub(super) const RENEW: StatementKey = StatementKey::Other(concat!(
    "UPDATE claim SET alive_until = ",
    now!(),
    " + 5000000 WHERE kind = ",
    server!(),
    " AND holder = $1 RETURNING token"
));
const LEAVE: StatementKey = StatementKey::Other(concat!(
    "UPDATE claim SET alive_until = 0 WHERE kind = ",
    server!(),
    " AND holder = $1"
));

/// How long a server waits for another one that may have ended.
const WAITING: Duration = Duration::from_secs(7);
pub(super) const PERIOD: Duration = Duration::from_millis(200);

/// Takes the claim, when no other process has it that is alive.
pub(super) async fn take(connection: &Connection, id: &[u8; 16]) -> Result<Step, Failure> {
    let begun = Instant::now();
    loop {
        if let Some(step) = try_take(connection, id).await? {
            return Ok(step);
        }
        if begun.elapsed() > WAITING {
            return Err(Unfit::InUse.into());
        }
        sleep(PERIOD).await;
    }
}

async fn try_take(connection: &Connection, id: &[u8; 16]) -> Result<Option<Step>, Failure> {
    let (step, _) = begin(connection, &Wants::default()).await?;
    connection.prepare(&[FIND_RIVAL, TAKE]).await?;
    if !connection.run(FIND_RIVAL, vec![Box::new(&id[..])]).await?.is_empty() {
        give_up(connection).await?;
        return Ok(None);
    }
    connection.run(TAKE, vec![Box::new(step.number), Box::new(&id[..])]).await?;
    connection.control("COMMIT").await?;
    Ok(Some(step))
}

/// Leaves the claim to the next process at once.
pub(super) async fn leave(connection: &Connection, id: &[u8; 16]) -> Result<(), Failure> {
    connection.prepare(&[LEAVE]).await?;
    connection.run(LEAVE, vec![Box::new(&id[..])]).await?;
    Ok(())
}
