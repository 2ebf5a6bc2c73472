//! Deliveries: events that are sent to webhooks, and their outcomes.

use std::time::Duration;

use minicbor::{Decode, Encode};

use crate::model::time::Timestamp;
use crate::webhooks::schedule::wait_after;

/// How long the wallet keeps a delivery that is over.
pub const DELIVERIES_KEPT: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// How many attempts of one delivery the wallet keeps: the last ones.
pub const MAX_ATTEMPTS_KEPT: usize = 12;
/// How much of an endpoint's answer the wallet keeps, in bytes.
pub const MAX_ANSWER_KEPT: usize = 1024;

/// An event that the wallet has sent to a webhook, or sends again.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Delivery {
    /// The number of the previous event that was sent to the webhook; 0 if there is none.
    #[n(0)]
    pub previous: u64,
    /// Its state.
    #[n(1)]
    pub state: DeliveryState,
    /// How many attempts were made since the delivery began, or since the owner last asked for it
    /// again.
    #[n(2)]
    pub tries: u32,
    /// The last [`MAX_ATTEMPTS_KEPT`] attempts, in their order.
    #[n(3)]
    pub attempts: Vec<Attempt>,
}

/// The state of a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub enum DeliveryState {
    /// It is sent again.
    #[n(0)]
    Pending {
        /// When, at the earliest.
        #[n(0)]
        next_attempt_at: Timestamp,
    },
    /// The endpoint has it.
    #[n(1)]
    Delivered,
    /// All attempts failed.
    #[n(2)]
    Failed,
}

impl DeliveryState {
    /// The names of all states.
    pub const NAMES: [&'static str; 3] = ["pending", "delivered", "failed"];

    /// The name that the API uses.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pending { .. } => "pending",
            Self::Delivered => "delivered",
            Self::Failed => "failed",
        }
    }

    /// When it is sent again, if it is.
    pub fn next_attempt_at(self) -> Option<Timestamp> {
        match self {
            Self::Pending { next_attempt_at } => Some(next_attempt_at),
            Self::Delivered | Self::Failed => None,
        }
    }
}

/// One attempt to send an event.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Attempt {
    /// When it began.
    #[n(0)]
    pub at: Timestamp,
    /// How long it took.
    #[n(1)]
    pub milliseconds: u32,
    /// Its outcome.
    #[n(2)]
    pub outcome: AttemptOutcome,
    /// The beginning of the answer, of [`MAX_ANSWER_KEPT`] bytes at most.
    #[n(3)]
    pub answer: String,
}

/// The outcome of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub enum AttemptOutcome {
    /// The endpoint has answered with this status.
    #[n(0)]
    Answered(#[n(0)] u16),
    /// There is no answer.
    #[n(1)]
    Failed(#[n(0)] AttemptFailure),
}

/// Why there is no answer. The reasons are vague on purpose: details would show the person who
/// chooses the URLs what is in the network of this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(index_only)]
pub enum AttemptFailure {
    /// The URL leads to an address that is forbidden to webhooks.
    #[n(1)]
    BlockedAddress = 1,
    /// The name cannot be looked up.
    #[n(2)]
    Dns = 2,
    /// There is no connection.
    #[n(3)]
    Connect = 3,
    /// There is no TLS connection. The certificate may be that of another host.
    #[n(4)]
    Tls = 4,
    /// It took too long.
    #[n(5)]
    Timeout = 5,
    /// There is a connection, but it broke, or its other end does not speak HTTP.
    #[n(6)]
    Answer = 6,
}

impl AttemptFailure {
    /// The failure of this number.
    pub fn of_number(number: u8) -> Option<Self> {
        let all = [
            Self::BlockedAddress,
            Self::Dns,
            Self::Connect,
            Self::Tls,
            Self::Timeout,
            Self::Answer,
        ];
        all.into_iter().find(|failure| *failure as u8 == number)
    }

    /// The name that the API uses.
    pub fn name(self) -> &'static str {
        match self {
            Self::BlockedAddress => "blocked-address",
            Self::Dns => "dns",
            Self::Connect => "connect",
            Self::Tls => "tls",
            Self::Timeout => "timeout",
            Self::Answer => "answer",
        }
    }
}

/// The status by which an endpoint says that it no longer exists.
const GONE: u16 = 410;

impl AttemptOutcome {
    /// Whether the endpoint has the event.
    pub fn is_success(self) -> bool {
        matches!(self, Self::Answered(200..=299))
    }

    /// Whether the endpoint says that it no longer exists.
    pub fn is_gone(self) -> bool {
        self == Self::Answered(GONE)
    }

    /// The status, if the endpoint has answered.
    pub fn status(self) -> Option<u16> {
        match self {
            Self::Answered(status) => Some(status),
            Self::Failed(_) => None,
        }
    }

    /// The name that metrics use: `success`, `status` for any other status, or the failure's name.
    pub fn name(self) -> &'static str {
        match self {
            outcome if outcome.is_success() => "success",
            Self::Answered(_) => "status",
            Self::Failed(failure) => failure.name(),
        }
    }
}

impl Attempt {
    /// When it was over.
    pub fn ended_at(&self) -> Timestamp {
        self.at.after(Duration::from_millis(self.milliseconds.into()))
    }
}

impl Delivery {
    /// A delivery with no attempt yet.
    pub(crate) fn due(previous: u64, at: Timestamp) -> Self {
        let state = DeliveryState::Pending { next_attempt_at: at };
        Self { previous, state, tries: 0, attempts: Vec::new() }
    }

    /// Starts the attempts anew.
    pub(crate) fn begin_again(&mut self, now: Timestamp) {
        self.state = DeliveryState::Pending { next_attempt_at: now };
        self.tries = 0;
    }

    /// Records an attempt. The endpoint's `Retry-After` and a random number decide when the next
    /// attempt is made.
    pub(crate) fn add(&mut self, attempt: &Attempt, retry_after: Option<Duration>, random: u32) {
        self.tries = self.tries.saturating_add(1);
        self.state = match wait_after(self.tries, retry_after, random) {
            _ if attempt.outcome.is_success() => DeliveryState::Delivered,
            Some(wait) => {
                DeliveryState::Pending { next_attempt_at: attempt.ended_at().after(wait) }
            }
            None => DeliveryState::Failed,
        };
        if self.attempts.len() >= MAX_ATTEMPTS_KEPT {
            self.attempts.drain(..=self.attempts.len() - MAX_ATTEMPTS_KEPT);
        }
        self.attempts.push(attempt.clone());
    }

    /// Its place in the order of time: whether it is over, and the time of its next attempt, or of
    /// its last one if it is over.
    pub(crate) fn place(&self) -> (bool, Timestamp) {
        let last = self.attempts.last().map_or(Timestamp::from_micros(0), |attempt| attempt.at);
        match self.state.next_attempt_at() {
            Some(next) => (false, next),
            None => (true, last),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attempt(seconds: u64, outcome: AttemptOutcome) -> Attempt {
        let at = Timestamp::from_micros(seconds * 1_000_000);
        Attempt { at, milliseconds: 1500, outcome, answer: seconds.to_string() }
    }

    #[test]
    fn only_2xx_is_a_success() {
        for (status, expected) in
            [(100, false), (199, false), (200, true), (299, true), (300, false), (410, false)]
        {
            assert_eq!(AttemptOutcome::Answered(status).is_success(), expected, "{status}");
        }
        assert!(!AttemptOutcome::Failed(AttemptFailure::Timeout).is_success());
    }

    #[test]
    fn a_delivery_fails_after_twelve_attempts_and_begins_anew_when_it_is_asked_for_again() {
        let mut delivery = Delivery::due(7, Timestamp::from_micros(5));
        for round in 0..2 {
            for number in 1..=12 {
                let number = round * 100 + number;
                assert_eq!(delivery.state.name(), "pending");
                delivery.add(&attempt(number, AttemptOutcome::Answered(500)), None, 0);
                if number == round * 100 + 1 {
                    let next = delivery.attempts.last().unwrap().ended_at();
                    let next = next.after(Duration::from_secs(4));
                    assert_eq!(delivery.state.next_attempt_at(), Some(next));
                    assert_eq!(delivery.place(), (false, next));
                }
            }
            assert_eq!(delivery.state, DeliveryState::Failed);
            let last = delivery.attempts.last().unwrap();
            assert_eq!(delivery.place(), (true, last.at));
            assert_eq!(delivery.attempts.len(), MAX_ATTEMPTS_KEPT);
            delivery.begin_again(Timestamp::from_micros(9));
        }
        delivery.add(&attempt(500, AttemptOutcome::Answered(204)), None, 0);
        assert_eq!(delivery.state, DeliveryState::Delivered);
        assert_eq!((delivery.previous, delivery.attempts.len()), (7, MAX_ATTEMPTS_KEPT));
    }
}
