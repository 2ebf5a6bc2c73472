//! An endpoint of webhooks. A test controls its answers, and it records the requests.

use std::collections::BTreeMap;
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::payee::{Answer, Payee, Request};

/// Receives events. It stops when dropped.
#[derive(Debug)]
pub struct Receiver(Payee);

/// The longest wait of a test for the next request.
const PATIENCE: Duration = Duration::from_secs(60);

impl Receiver {
    /// A receiver that answers 200.
    pub fn start() -> Self {
        Self::of(Payee::asking(&Value::Null))
    }

    /// Such a receiver over TLS, for clients that trust [`authority`](crate::tls::authority).
    pub fn secure() -> Self {
        Self::of(Payee::secure(&Value::Null))
    }

    fn of(payee: Payee) -> Self {
        let receiver = Self(payee);
        receiver.reply(200);
        receiver
    }

    /// Its URL.
    pub fn url(&self) -> String {
        self.0.url()
    }

    /// Makes it answer with this status from now on.
    pub fn reply(&self, status: u16) {
        self.reply_with(move |_| Answer::text(status, "answered"));
    }

    /// Makes it answer like this from now on.
    pub fn reply_with(&self, behaviour: impl Fn(&Request) -> Answer + Send + Sync + 'static) {
        self.0.on_post(behaviour);
    }

    /// The requests so far, in their order.
    pub fn received(&self) -> Vec<Request> {
        self.0.requests("POST")
    }

    /// The number of requests so far.
    pub fn count(&self) -> usize {
        self.0.count()
    }

    /// The numbers of the events so far, in their order.
    pub fn numbers(&self) -> Vec<u64> {
        self.received().iter().map(number).collect()
    }

    /// How often it got each event.
    pub fn counts(&self) -> BTreeMap<u64, usize> {
        self.numbers().into_iter().fold(BTreeMap::new(), |mut counts, number| {
            *counts.entry(number).or_default() += 1;
            counts
        })
    }

    /// Waits until it got this many requests, and returns them.
    ///
    /// # Panics
    /// If that takes too long.
    pub fn until_count(&self, count: usize) -> Vec<Request> {
        self.until(|receiver| receiver.count() >= count);
        self.received()
    }

    /// Waits until a condition holds.
    ///
    /// # Panics
    /// If that takes too long.
    pub fn until(&self, is_so: impl Fn(&Self) -> bool) {
        let (mut count, mut deadline) = (0, Instant::now() + PATIENCE);
        while !is_so(self) {
            if self.count() > count {
                (count, deadline) = (self.count(), Instant::now() + PATIENCE);
            }
            assert!(Instant::now() < deadline, "timed out: only {:?} arrived", self.numbers());
            sleep(Duration::from_millis(1));
        }
    }
}

/// The number of the event in a request.
///
/// # Panics
/// If the request has none.
pub fn number(request: &Request) -> u64 {
    request.json()["number"].as_u64().unwrap()
}
