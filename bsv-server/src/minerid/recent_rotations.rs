//! Rotations by GET, which proxies may send twice.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bsv_minerid::{Alias, Error};
use tokio::sync::Mutex;
use tokio::time::Instant;

/// How long after a rotation another GET for the same alias counts as its repetition.
const REPETITION: Duration = Duration::from_secs(10);

/// When a GET last rotated each alias. There are never more entries than aliases.
#[derive(Debug, Default)]
pub(super) struct RecentRotations(Arc<Mutex<BTreeMap<Alias, Instant>>>);

impl RecentRotations {
    /// Rotates an alias unless a GET has just done so. A concurrent GET waits for the first one. A
    /// rotation that was begun goes on if its caller leaves, so that it counts.
    pub(super) async fn once(
        &self,
        alias: &Alias,
        rotation: impl Future<Output = Result<(), Error>> + Send + 'static,
    ) -> Result<(), Error> {
        let mut recent = Arc::clone(&self.0).lock_owned().await;
        recent.retain(|_, rotated| rotated.elapsed() < REPETITION);
        if recent.contains_key(alias) {
            tracing::info!("a GET that rotates alias {alias} is repeated, and changes nothing");
            return Ok(());
        }
        let alias = alias.clone();
        let rotated = tokio::spawn(async move {
            rotation.await?;
            recent.insert(alias, Instant::now());
            Ok(())
        });
        rotated.await.expect("rotations do not panic, and are not cancelled")
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use tokio::time::{sleep, timeout};

    use super::*;

    /// Requests a rotation that takes a second, and answers the number of rotations.
    async fn ask(recent: &RecentRotations, alias: &str, rotations: &Arc<AtomicU32>) -> u32 {
        let counted = Arc::clone(rotations);
        let rotation = async move {
            // As a change on the disk, this goes on once it has begun.
            let change = tokio::spawn(async move {
                sleep(Duration::from_secs(1)).await;
                counted.fetch_add(1, Ordering::Relaxed);
            });
            change.await.unwrap();
            Ok(())
        };
        recent.once(&alias.parse().unwrap(), rotation).await.unwrap();
        rotations.load(Ordering::Relaxed)
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_repeated_within_ten_seconds_happens_once() {
        let recent = RecentRotations::default();
        let (pool, other) = (Arc::default(), Arc::default());
        let at_once = tokio::join!(ask(&recent, "pool", &pool), ask(&recent, "pool", &pool));
        assert_eq!(at_once, (1, 1));
        assert_eq!(ask(&recent, "other", &other).await, 1);
        sleep(Duration::from_millis(8_900)).await;
        assert_eq!(ask(&recent, "pool", &pool).await, 1);
        sleep(Duration::from_millis(100)).await;
        assert_eq!(ask(&recent, "pool", &pool).await, 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_rotation_whose_caller_has_left_counts() {
        let (recent, pool) = (RecentRotations::default(), Arc::default());
        let left = timeout(Duration::from_millis(500), ask(&recent, "pool", &pool)).await;
        left.unwrap_err();
        assert_eq!(ask(&recent, "pool", &pool).await, 1);
        sleep(Duration::from_secs(5)).await;
        assert_eq!(pool.load(Ordering::Relaxed), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn what_fails_is_tried_again() {
        let recent = RecentRotations::default();
        let alias: Alias = "pool".parse().unwrap();
        let failure = async { Err(Error::UnknownAlias("pool".to_owned())) };
        recent.once(&alias, failure).await.unwrap_err();
        assert_eq!(ask(&recent, "pool", &Arc::default()).await, 1);
    }
}
