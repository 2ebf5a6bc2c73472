use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Sources that are in use, and those that are left alone after they failed.
#[derive(Debug, Default)]
pub(super) struct Pool(Mutex<HashMap<Target, Standing>>);

/// What can be asked.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Target {
    /// An HTTP service, by its URL.
    Service(String),
    Node(SocketAddr),
}

#[derive(Clone, Copy, Debug)]
struct Standing {
    is_used: bool,
    /// How often it has failed in a row.
    failures: u32,
    /// When it may be used again.
    free_at: Instant,
}

/// A source that nobody else uses while this exists.
#[derive(Debug)]
pub(super) struct Taken<'a> {
    pool: &'a Pool,
    target: &'a Target,
}

/// How long an HTTP service is left alone after a failure, at first and at last.
const SERVICE_PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(60)];
/// How long an address of a node is left alone, likewise. Nodes ban clients who come back soon.
const NODE_PAUSES: [Duration; 2] = [Duration::from_secs(30), Duration::from_secs(1_800)];
/// How many targets are remembered.
const MOST_TARGETS: usize = 10_000;

impl Pool {
    /// Takes a target, unless it is in use or has failed recently. `is_apart` says that no other node
    /// in its range of addresses may be in use either: all of them may belong to one owner.
    pub(super) fn take<'a>(&'a self, target: &'a Target, is_apart: bool) -> Option<Taken<'a>> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if all.len() > MOST_TARGETS {
            all.retain(|_, known| known.is_used || known.free_at > now);
        }
        let is_near = |(other, known): (&Target, &Standing)| {
            known.is_used && other.range().is_some() && other.range() == target.range()
        };
        if is_apart && all.iter().any(is_near) {
            return None;
        }
        let known = all.entry(target.clone()).or_insert(Standing {
            is_used: false,
            failures: 0,
            free_at: now,
        });
        let is_free = !known.is_used && known.free_at <= now;
        known.is_used |= is_free;
        is_free.then(|| Taken { pool: self, target })
    }

    /// When one of these targets may be used again, the first of them. `None` if others use all.
    pub(super) fn next_free(&self, targets: &[Target]) -> Option<Instant> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let unused = targets.iter().filter_map(|target| all.get(target)).filter(|it| !it.is_used);
        unused.map(|known| known.free_at).min()
    }

    fn change(&self, target: &Target, change: impl FnOnce(&mut Standing)) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = all.get_mut(target) {
            change(known);
        }
    }
}

impl Taken<'_> {
    /// Leaves the target alone for a while: for longer after each failure in a row.
    pub(super) fn leave_alone(&self, was_good: bool) {
        self.pool.change(self.target, |known| {
            known.failures = if was_good { 1 } else { known.failures + 1 };
            known.free_at = Instant::now() + self.target.pause(known.failures);
        });
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        self.pool.change(self.target, |known| known.is_used = false);
    }
}

impl Target {
    /// The pause after a number of failures: twice as long after each one.
    fn pause(&self, failures: u32) -> Duration {
        let [first, last] = match self {
            Self::Service(_) => SERVICE_PAUSES,
            Self::Node(_) => NODE_PAUSES,
        };
        first.saturating_mul(1 << failures.saturating_sub(1).min(16)).min(last)
    }

    /// The addresses that providers give to one customer, at most.
    fn range(&self) -> Option<[u8; 4]> {
        let Self::Node(address) = self else { return None };
        Some(match address.ip().to_canonical() {
            IpAddr::V4(ip) => {
                let [first, second, ..] = ip.octets();
                [first, second, 0, 0]
            }
            IpAddr::V6(ip) => {
                let [first, second, third, fourth, ..] = ip.octets();
                [first, second, third, fourth]
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::sleep;

    use super::*;

    fn node(address: &str) -> Target {
        Target::Node(address.parse().unwrap())
    }

    #[tokio::test(start_paused = true)]
    async fn a_target_that_fails_is_left_alone_for_longer_and_longer() {
        let pool = Pool::default();
        let node = node("127.0.0.1:8333");
        for pause in [30, 60, 120, 240, 480, 960, 1_800, 1_800] {
            let taken = pool.take(&node, false).unwrap();
            assert!(pool.take(&node, false).is_none());
            taken.leave_alone(false);
            drop(taken);
            sleep(Duration::from_secs(pause - 1)).await;
            assert!(pool.take(&node, false).is_none());
            sleep(Duration::from_secs(2)).await;
        }
        // One that was good meanwhile begins again.
        pool.take(&node, false).unwrap().leave_alone(true);
        sleep(Duration::from_secs(31)).await;
        drop(pool.take(&node, false).unwrap());
        assert!(pool.take(&node, false).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn nodes_that_are_used_at_once_are_apart() {
        let pool = Pool::default();
        let names = [
            "10.1.0.1:8333",
            "10.1.9.9:8333",
            "10.2.0.1:8333",
            "[::ffff:10.2.0.2]:8333",
            "[2001:db8::1]:1",
            "[2001:db8:9::1]:1",
        ];
        let nodes = names.map(node);
        let taken: Vec<_> = nodes.iter().map(|node| pool.take(node, true)).collect();
        let is_taken: Vec<_> = taken.iter().map(Option::is_some).collect();
        assert_eq!(is_taken, [true, false, true, false, true, false]);
        // Whoever names nodes may name neighbours.
        assert!(pool.take(&nodes[1], false).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn the_next_free_target_is_one_of_those_that_are_asked_for() {
        let pool = Pool::default();
        let [first, second] = ["127.0.0.1:1", "127.0.0.1:2"].map(node);
        let begun = Instant::now();
        pool.take(&first, false).unwrap().leave_alone(false);
        let used = pool.take(&second, false);
        assert_eq!(pool.next_free(std::slice::from_ref(&second)), None);
        drop(used);
        assert_eq!(pool.next_free(std::slice::from_ref(&first)), Some(begun + NODE_PAUSES[0]));
        assert_eq!(pool.next_free(&[first, second.clone()]), Some(begun));
    }
}
