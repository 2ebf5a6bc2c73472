use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Mutex, MutexGuard, PoisonError};
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
        let mut all = self.locked();
        let now = Instant::now();
        if free_at(&all, target, is_apart, now).is_none_or(|free_at| free_at > now) {
            return None;
        }
        if all.len() >= MOST_TARGETS && !all.contains_key(target) {
            let unused = all.iter().filter(|(_, known)| !known.is_used);
            let longest_free = unused.min_by_key(|(_, known)| known.free_at);
            if let Some(forgotten) = longest_free.map(|(target, _)| target.clone()) {
                all.remove(&forgotten);
            }
        }
        let known = all.entry(target.clone());
        known.or_insert(Standing { is_used: false, failures: 0, free_at: now }).is_used = true;
        Some(Taken { pool: self, target })
    }

    /// When one of these targets may be used again, the first of them. `None` if none may be used
    /// while those are that are in use.
    pub(super) fn next_free(&self, targets: &[Target], is_apart: bool) -> Option<Instant> {
        let (all, now) = (self.locked(), Instant::now());
        targets.iter().filter_map(|target| free_at(&all, target, is_apart, now)).min()
    }

    /// Whether one of these targets may be used at once.
    pub(super) fn has_free(&self, targets: &[Target]) -> bool {
        self.next_free(targets, false).is_some_and(|free_at| free_at <= Instant::now())
    }

    /// Puts those first that were not used yet, and last those that were used last or failed often.
    pub(super) fn sort(&self, targets: &mut [Target]) {
        let all = self.locked();
        targets.sort_by_key(|target| all.get(target).map(|known| known.free_at));
    }

    fn change(&self, target: &Target, change: impl FnOnce(&mut Standing)) {
        if let Some(known) = self.locked().get_mut(target) {
            change(known);
        }
    }

    fn locked(&self) -> MutexGuard<'_, HashMap<Target, Standing>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// When a target may be used, which may be in the past. `None` if it is in use, or near one that is and
/// must be apart.
fn free_at(
    all: &HashMap<Target, Standing>,
    target: &Target,
    is_apart: bool,
    now: Instant,
) -> Option<Instant> {
    let is_near = |(other, known): (&Target, &Standing)| {
        known.is_used && other.range().is_some() && other.range() == target.range()
    };
    let known = all.get(target);
    let is_taken = known.is_some_and(|known| known.is_used) || is_apart && all.iter().any(is_near);
    (!is_taken).then(|| known.map_or(now, |known| known.free_at))
}

impl Taken<'_> {
    /// Leaves the target alone for a while: for longer after each failure in a row, and for as long as
    /// it has asked for.
    pub(super) fn leave_alone(&self, was_good: bool, asked_for: Option<Duration>) {
        self.pool.change(self.target, |known| {
            known.failures = if was_good { 1 } else { known.failures + 1 };
            let pause = self.target.pause(known.failures).max(asked_for.unwrap_or_default());
            known.free_at = Instant::now() + pause;
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
    use std::slice;

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
            taken.leave_alone(false, None);
            drop(taken);
            sleep(Duration::from_secs(pause - 1)).await;
            assert!(pool.take(&node, false).is_none());
            sleep(Duration::from_secs(2)).await;
        }
        // One that was good meanwhile begins again.
        pool.take(&node, false).unwrap().leave_alone(true, None);
        sleep(Duration::from_secs(31)).await;
        drop(pool.take(&node, false).unwrap());
        // One may ask for a longer pause.
        pool.take(&node, false).unwrap().leave_alone(false, Some(Duration::from_secs(90)));
        sleep(Duration::from_secs(89)).await;
        assert!(pool.take(&node, false).is_none());
        sleep(Duration::from_secs(2)).await;
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
    async fn the_number_of_targets_that_are_remembered_is_bounded() {
        let pool = Pool::default();
        let node = |number: u32| Target::Node((number.to_be_bytes(), 8333).into());
        let (used, failed) = (node(0), node(1));
        let _taken = pool.take(&used, false);
        pool.take(&failed, false).unwrap().leave_alone(false, Some(Duration::from_secs(3_600)));
        for number in 2..MOST_TARGETS as u32 + 50 {
            pool.take(&node(number), false).unwrap().leave_alone(false, None);
        }
        assert_eq!(pool.locked().len(), MOST_TARGETS);
        // These were forgotten last.
        sleep(Duration::from_secs(31)).await;
        assert!(pool.take(&used, false).is_none() && pool.take(&failed, false).is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn targets_that_were_not_used_come_first_and_those_that_were_used_last_come_last() {
        let pool = Pool::default();
        let [first, second, third, fourth] =
            ["127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3", "127.0.0.1:4"].map(node);
        pool.take(&first, false).unwrap().leave_alone(false, None);
        sleep(Duration::from_secs(1)).await;
        pool.take(&third, false).unwrap().leave_alone(false, None);
        let mut targets = [third.clone(), first.clone(), second.clone(), fourth.clone()];
        pool.sort(&mut targets);
        assert_eq!(targets, [second, fourth, first, third]);
    }

    #[tokio::test(start_paused = true)]
    async fn the_next_free_target_is_one_of_those_that_are_asked_for() {
        let pool = Pool::default();
        let [first, second] = ["127.0.0.1:1", "127.0.0.1:2"].map(node);
        let begun = Instant::now();
        pool.take(&first, false).unwrap().leave_alone(false, None);
        let used = pool.take(&second, false);
        let next = |target: &Target, is_apart| pool.next_free(slice::from_ref(target), is_apart);
        assert_eq!(next(&second, false), None);
        assert_eq!(next(&first, false), Some(begun + NODE_PAUSES[0]));
        // It is near one that is in use.
        assert_eq!(next(&first, true), None);
        drop(used);
        assert_eq!(next(&first, true), Some(begun + NODE_PAUSES[0]));
        assert_eq!(pool.next_free(&[first, second], true), Some(begun));
    }
}
