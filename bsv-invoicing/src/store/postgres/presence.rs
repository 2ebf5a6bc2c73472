//! Tells which processes are alive. Each raises a number every second. It counts as dead when another process has seen
//! the same number for a while. Clocks of different machines are never compared.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::connection::Connection;
use super::error::Failure;
use super::shared::Shared;
use super::statements::StatementKey;
use crate::model::process::ProcessId;

pub(super) const BEAT: StatementKey =
    StatementKey::Other("UPDATE @processes SET beat = beat + 1 WHERE key = $1 RETURNING beat");
/// Includes processes that were removed and still have claims. The beat of such a process never changes.
pub(super) const READ_BEATS: StatementKey = StatementKey::Other(
    "SELECT key, beat FROM @processes WHERE key <> $1 \
     UNION SELECT holder, -1 FROM (SELECT substring(row FROM 1 FOR 16) AS holder FROM @claims) c \
     WHERE holder <> $1 AND NOT EXISTS (SELECT 1 FROM @processes WHERE key = holder)",
);

/// How long a process is silent until it counts as dead.
const SILENCE: Duration = Duration::from_secs(5);

/// The beats of other processes, and since when each has been the same.
#[derive(Default)]
pub(super) struct Beats(HashMap<ProcessId, (i64, Instant)>);

impl Beats {
    /// Takes note of the beats of all other processes. Returns those that count as dead.
    fn note(&mut self, beats: &[(ProcessId, i64)], now: Instant) -> Vec<ProcessId> {
        self.0.retain(|known, _| beats.iter().any(|(process, _)| process == known));
        let mut dead = Vec::new();
        for &(process, beat) in beats {
            let (last, since) = self.0.entry(process).or_insert((beat, now));
            if *last != beat {
                (*last, *since) = (beat, now);
            } else if now.duration_since(*since) >= SILENCE {
                dead.push(process);
            }
        }
        dead
    }

    /// Forgets all beats. A process that could not reach the database for a while does not know whether the others were
    /// alive: perhaps they could not reach it either.
    pub(super) fn forget(&mut self) {
        self.0.clear();
    }
}

/// Shows that this process is alive, if it has the wallet open, and returns the other processes that count as dead.
pub(super) async fn beat(
    connection: &Connection,
    shared: &Shared,
    beats: &mut Beats,
) -> Result<Vec<ProcessId>, Failure> {
    connection.prepare(&[BEAT, READ_BEATS]).await?;
    // It may begin to be there while it looks.
    let was_there = shared.has_joined();
    let is_there = !connection.run(BEAT, vec![Box::new(&shared.id[..])]).await?.is_empty();
    shared.note_presence(was_there, is_there)?;
    let mut others = Vec::new();
    for row in connection.run(READ_BEATS, vec![Box::new(&shared.id[..])]).await? {
        let id: &[u8] = row.try_get(0)?;
        // Another version may have ids of another form.
        if let Ok(id) = id.try_into() {
            others.push((ProcessId::from_bytes(id), row.try_get(1)?));
        }
    }
    Ok(beats.note(&others, Instant::now()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: ProcessId = ProcessId::ALONE;

    #[test]
    fn a_process_counts_as_dead_after_five_seconds_without_a_beat() {
        let (mut beats, begun) = (Beats::default(), Instant::now());
        let at = |seconds| begun + Duration::from_secs(seconds);
        let b = ProcessId::from_bytes([1; 16]);
        assert_eq!(beats.note(&[(A, 1), (b, 7)], at(0)), []);
        assert_eq!(beats.note(&[(A, 2), (b, 7)], at(4)), []);
        assert_eq!(beats.note(&[(A, 3), (b, 7)], at(5)), [b]);
        assert_eq!(beats.note(&[(A, 3)], at(9)), []);
        assert_eq!(beats.note(&[(A, 3), (b, 7)], at(10)), [A], "what came back is new");
    }

    #[test]
    fn whoever_could_not_look_begins_anew() {
        let (mut beats, begun) = (Beats::default(), Instant::now());
        beats.note(&[(A, 1)], begun);
        beats.forget();
        let later = begun + SILENCE;
        assert_eq!(beats.note(&[(A, 1)], later), []);
        assert_eq!(beats.note(&[(A, 1)], later + SILENCE), [A]);
    }
}
