//! Payments that wait until another payment of the same invoice is decided.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::{Mutex as FairMutex, OwnedMutexGuard, Semaphore, SemaphorePermit};
use tokio::time::{Instant, sleep, timeout_at};

use super::broadcast::{Broadcast, outcome_of};
use crate::wallet::running::Running;

/// How often a payer looks what became of a payment that another process offers.
pub(super) const ELSEWHERE_PERIOD: Duration = Duration::from_millis(50);
/// How long a payment waits.
const PATIENCE: Duration = Duration::from_secs(5);
/// How many payments wait at once.
const MAX_WAITING: usize = 32;
/// The longest transaction that waits, in bytes. Longer ones take up much memory meanwhile.
const MAX_LEN: usize = 30_000;

/// The payments that wait. Those of an invoice come in the order of their arrival, so that nobody
/// gets a turn sooner by offering more payments.
#[derive(Debug)]
pub(crate) struct WaitingPayments {
    places: Semaphore,
    queues: Mutex<HashMap<u64, Weak<FairMutex<()>>>>,
}

impl Default for WaitingPayments {
    fn default() -> Self {
        Self { places: Semaphore::new(MAX_WAITING), queues: Mutex::default() }
    }
}

impl WaitingPayments {
    /// The queue of an invoice.
    fn queue(&self, invoice: u64) -> Arc<FairMutex<()>> {
        let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        queues.retain(|_, queue| queue.strong_count() > 0);
        queues.get(&invoice).and_then(Weak::upgrade).unwrap_or_else(|| {
            let queue = Arc::default();
            queues.insert(invoice, Arc::downgrade(&queue));
            queue
        })
    }
}

/// The turns of a payment.
pub(super) struct Turns<'a> {
    waiting: &'a WaitingPayments,
    is_short: bool,
    deadline: Instant,
    /// Whether there was a turn while no other payment was being offered.
    was_free: bool,
    /// Its place, and its right to be the next, once it is the first in the queue of its invoice.
    first: Option<(SemaphorePermit<'a>, OwnedMutexGuard<()>)>,
}

impl<'a> Turns<'a> {
    /// The turns of a payment whose transaction has so many bytes.
    pub(super) fn new(waiting: &'a WaitingPayments, len: usize) -> Self {
        let (is_short, deadline) = (len <= MAX_LEN, Instant::now() + PATIENCE);
        Self { waiting, is_short, deadline, was_free: false, first: None }
    }

    /// Waits until the payment that is being offered for an invoice is decided, but not for long.
    /// Returns whether there is another turn.
    ///
    /// `is_offered` tells whether any process is offering a payment of the invoice.
    pub(super) async fn next(
        &mut self,
        offered: &Running<u64, Broadcast>,
        invoice: u64,
        is_offered: bool,
    ) -> bool {
        if !self.is_short || Instant::now() >= self.deadline {
            return false;
        }
        if self.first.is_none() {
            let Ok(place) = self.waiting.places.try_acquire() else { return false };
            let queue = self.waiting.queue(invoice).lock_owned();
            let Ok(first) = timeout_at(self.deadline, queue).await else { return false };
            self.first = Some((place, first));
        }
        match offered.get(&invoice) {
            Some(other) => timeout_at(self.deadline, outcome_of(other.outcome)).await.is_ok(),
            None if is_offered => {
                sleep(ELSEWHERE_PERIOD).await;
                true
            }
            // The other payment was decided a moment ago, or it is not known yet whether the
            // network has taken it.
            None => !std::mem::replace(&mut self.was_free, true),
        }
    }
}
