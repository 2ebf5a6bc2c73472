//! Payments that wait until another payment of the same invoice is decided.

use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};

use super::broadcast::{Broadcast, outcome_of};
use crate::wallet::running::Running;

/// How long a payment waits.
const PATIENCE: Duration = Duration::from_secs(5);
/// How many payments wait at once.
const MAX_WAITING: usize = 32;
/// The longest transaction that waits, in bytes. Longer ones take up much memory meanwhile.
const MAX_LEN: usize = 30_000;

/// The places of payments that wait.
#[derive(Debug)]
pub(crate) struct WaitingPlaces(Semaphore);

impl Default for WaitingPlaces {
    fn default() -> Self {
        Self(Semaphore::new(MAX_WAITING))
    }
}

/// A payment that may have to wait.
pub(super) struct Turn<'a> {
    places: &'a WaitingPlaces,
    deadline: Instant,
    is_last: bool,
}

impl<'a> Turn<'a> {
    /// The first turn of a payment with a transaction of so many bytes.
    pub(super) fn first(places: &'a WaitingPlaces, len: usize) -> Self {
        Self { places, deadline: Instant::now() + PATIENCE, is_last: len > MAX_LEN }
    }

    /// Waits until the payment that is being offered for an invoice is decided, but not for long.
    /// Returns whether there is another turn.
    pub(super) async fn next(&mut self, offered: &Running<u64, Broadcast>, invoice: u64) -> bool {
        if self.is_last || Instant::now() >= self.deadline {
            return false;
        }
        let Ok(_place) = self.places.0.try_acquire() else { return false };
        match offered.get(&invoice) {
            Some(other) => timeout_at(self.deadline, outcome_of(other.outcome)).await.is_ok(),
            // The other payment was decided a moment ago, or waits for the network.
            None => {
                self.is_last = true;
                true
            }
        }
    }
}
