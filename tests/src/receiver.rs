//! An endpoint that webhooks lead to, which answers as a test tells it to and remembers what it was sent.

use std::collections::BTreeMap;
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::payee::{Answer, Payee, Request};

/// Receives events. It stops when dropped.
#[derive(Debug)]
pub struct Receiver(Payee);

/// No test waits longer for the next request.
const PATIENCE: Duration = Duration::from_secs(60);

impl Receiver {
    /// One that answers 200.
    pub fn start() -> Self {
        Self::of(Payee::asking(&Value::Null))
    }

    /// The same over TLS, for those who trust [`authority`](crate::tls::authority).
    pub fn secure() -> Self {
        Self::of(Payee::secure(&Value::Null))
    }

    fn of(payee: Payee) -> Self {
        let receiver = Self(payee);
        receiver.reply(200);
        receiver
    }

    /// Where it is.
    pub fn url(&self) -> String {
        self.0.url()
    }

    /// From now on it answers with this status.
    pub fn reply(&self, status: u16) {
        self.reply_with(move |_| Answer::text(status, "answered"));
    }

    /// From now on it answers so.
    pub fn reply_with(&self, behaviour: impl Fn(&Request) -> Answer + Send + Sync + 'static) {
        self.0.on_post(behaviour);
    }

    /// What it was sent, in that order.
    pub fn received(&self) -> Vec<Request> {
        self.0.requests("POST")
    }

    /// How many requests it was sent.
    pub fn count(&self) -> usize {
        self.0.count()
    }

    /// The numbers of the events that it was sent, in that order.
    pub fn numbers(&self) -> Vec<u64> {
        self.received().iter().map(number).collect()
    }

    /// How often it was sent each event.
    pub fn counts(&self) -> BTreeMap<u64, usize> {
        self.numbers().into_iter().fold(BTreeMap::new(), |mut counts, number| {
            *counts.entry(number).or_default() += 1;
            counts
        })
    }

    /// Waits until it was sent so many requests, and gives them.
    ///
    /// # Panics
    /// If that does not come.
    pub fn until_count(&self, count: usize) -> Vec<Request> {
        self.until(|receiver| receiver.count() >= count);
        self.received()
    }

    /// Waits until this is so.
    ///
    /// # Panics
    /// If it does not come to that.
    pub fn until(&self, is_so: impl Fn(&Self) -> bool) {
        let (mut count, mut deadline) = (0, Instant::now() + PATIENCE);
        while !is_so(self) {
            if self.count() > count {
                (count, deadline) = (self.count(), Instant::now() + PATIENCE);
            }
            assert!(Instant::now() < deadline, "in vain: only {:?} came", self.numbers());
            sleep(Duration::from_millis(1));
        }
    }
}

/// The number of the event that a request tells of.
///
/// # Panics
/// If it tells of none.
pub fn number(request: &Request) -> u64 {
    request.json()["number"].as_u64().unwrap()
}
