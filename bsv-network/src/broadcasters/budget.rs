use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// The requests for whose answers nobody waits: two a second, to all broadcasters of a set together.
#[derive(Debug)]
pub(super) struct Budget {
    /// How much of the time to come is spent, and when that was noted.
    spent: Mutex<(Duration, Instant)>,
}

/// The time that a request takes up.
const COST: Duration = Duration::from_millis(500);
/// How much unused time can be spent later.
const SAVED: Duration = Duration::from_secs(2);
/// How much time may be spent before it comes. A stranger decides how many ancestors a transaction has,
/// and they must not stop all other questions for long.
const OWED: Duration = Duration::from_secs(10);

impl Budget {
    pub(super) fn new() -> Self {
        Self { spent: Mutex::new((Duration::ZERO, Instant::now())) }
    }

    /// Takes note of a request. It need not wait.
    pub(super) fn spend(&self) {
        let mut spent = self.locked();
        let left = spent.0.saturating_sub(spent.1.elapsed());
        *spent = ((left + COST).min(SAVED + OWED), Instant::now());
    }

    /// How many requests can be made now.
    pub(super) fn left(&self) -> usize {
        let spent = self.locked();
        let left = SAVED.saturating_sub(spent.0.saturating_sub(spent.1.elapsed()));
        (left.as_millis() / COST.as_millis()) as usize
    }

    fn locked(&self) -> MutexGuard<'_, (Duration, Instant)> {
        self.spent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn two_requests_a_second_can_be_made() {
        let (budget, mut made) = (Budget::new(), 0);
        for _ in 0..100 {
            for _ in 0..budget.left() {
                budget.spend();
                made += 1;
            }
            advance(Duration::from_secs(1)).await;
        }
        assert_eq!(made, 4 + 99 * 2);
    }

    #[tokio::test(start_paused = true)]
    async fn many_requests_at_once_stop_the_others_for_ten_seconds_at_most() {
        for (requests, seconds) in [(4, 1), (10, 4), (24, 11), (1_000, 11)] {
            let (budget, begun) = (Budget::new(), Instant::now());
            (0..requests).for_each(|_| budget.spend());
            while budget.left() < 2 {
                advance(Duration::from_secs(1)).await;
            }
            assert_eq!(begun.elapsed(), Duration::from_secs(seconds), "{requests}");
        }
    }
}
