//! A clock that tests control.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bsv_invoicing::Timestamp;
use bsv_invoicing::webhooks::WebhookClock;
use tokio::sync::oneshot;

/// How far it is ahead of the wallet's clock, at least.
const AHEAD: Duration = Duration::from_secs(300);

#[derive(Clone)]
pub(crate) struct TestClock(Arc<Mutex<State>>);

struct State {
    now: Timestamp,
    next_sleeper: u64,
    /// The sleepers by the times at which they wake, and in the order in which they fell asleep.
    sleepers: BTreeMap<(Timestamp, u64), oneshot::Sender<()>>,
}

impl TestClock {
    /// Begins a little after the system's time, which the wallet uses. Everything that the wallet
    /// does is then in the past of this clock.
    pub(crate) fn new() -> Self {
        let now = Timestamp::of_system().after(AHEAD);
        Self(Arc::new(Mutex::new(State { now, next_sleeper: 0, sleepers: BTreeMap::new() })))
    }

    /// Moves the time forward.
    pub(crate) fn advance(&self, duration: Duration) {
        let now = self.now();
        self.set(now.after(duration));
    }

    /// Moves the time forward to this moment, unless it has passed.
    pub(crate) fn set(&self, at: Timestamp) {
        let mut state = self.0.lock().unwrap();
        state.now = state.now.max(at);
        let later = Timestamp::from_micros(state.now.as_micros() + 1);
        let asleep = state.sleepers.split_off(&(later, 0));
        let awake = std::mem::replace(&mut state.sleepers, asleep);
        drop(state);
        for (_, sleeper) in awake {
            let _ = sleeper.send(());
        }
    }
}

/// Removes a sleeper that no longer sleeps.
struct Bed<'c> {
    clock: &'c TestClock,
    key: (Timestamp, u64),
}

impl Drop for Bed<'_> {
    fn drop(&mut self) {
        self.clock.0.lock().unwrap().sleepers.remove(&self.key);
    }
}

impl WebhookClock for TestClock {
    fn now(&self) -> Timestamp {
        self.0.lock().unwrap().now
    }

    async fn sleep_until(&self, at: Timestamp) {
        let (sender, awake) = oneshot::channel();
        let bed = {
            let mut state = self.0.lock().unwrap();
            if at <= state.now {
                None
            } else {
                state.next_sleeper += 1;
                let key = (at, state.next_sleeper);
                state.sleepers.insert(key, sender);
                Some(Bed { clock: self, key })
            }
        };
        if bed.is_some() {
            let _ = awake.await;
        } else {
            tokio::task::yield_now().await;
        }
    }

    fn random(&self) -> u32 {
        let mut bytes = [0; 4];
        getrandom::fill(&mut bytes).unwrap();
        u32::from_le_bytes(bytes)
    }
}
