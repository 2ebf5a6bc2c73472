//! Streams of server-sent events (WHATWG HTML, 9.2), whatever they tell.

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::StatusCode;
use hyper::header::{HeaderName, HeaderValue};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};
use tokio::time::{Instant, sleep_until, timeout};

use super::{Answer, Problem, answer};

/// For how long a reader is waited for to learn that a stream ends.
const GRACE: Duration = Duration::from_millis(500);
/// Keeps front ends from holding a stream back.
const X_ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// How a stream goes on where nothing happens.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// How long nothing is sent before a heartbeat.
    pub(crate) silence: Duration,
    /// For how long a stream goes on, at least and at most.
    pub(crate) life: [Duration; 2],
    /// After how many milliseconds a client is to come back, at least and at most. They do not all come at once
    /// after a restart.
    pub(crate) retry: [u64; 2],
}

impl Pace {
    /// That of the API.
    pub(crate) const USUAL: Self = Self {
        silence: Duration::from_secs(15),
        life: [Duration::from_secs(55 * 60), Duration::from_secs(65 * 60)],
        retry: [2000, 5000],
    };

    /// What tells a client when to come back.
    pub(crate) fn retry_block(&self) -> String {
        format!("retry: {}\n\n", random_number(self.retry))
    }
}

/// Places of streams, or of others who stay for long.
#[derive(Debug)]
pub(crate) struct StreamPlaces {
    places: Arc<Semaphore>,
    count: u32,
    full: &'static str,
}

impl StreamPlaces {
    /// So many places. `full` follows their number where somebody is told that there is none left.
    pub(crate) fn new(count: u32, full: &'static str) -> Self {
        Self { places: Arc::new(Semaphore::new(count as usize)), count, full }
    }

    /// Takes a place.
    pub(crate) fn take(&self) -> Result<OwnedSemaphorePermit, Problem> {
        Arc::clone(&self.places).try_acquire_owned().map_err(|_| {
            let detail = format!("{} {}", self.count, self.full);
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, "too-many-streams", detail)
        })
    }

    /// How many are taken.
    pub(crate) fn taken(&self) -> u64 {
        u64::from(self.count).saturating_sub(self.places.available_permits() as u64)
    }
}

/// Ends all that waits when the server stops.
#[derive(Debug, Default)]
pub(crate) struct Stopping(watch::Sender<bool>);

impl Stopping {
    /// Has all that waits end.
    pub(crate) fn stop(&self) {
        self.0.send_replace(true);
    }

    /// Completes when nothing is to wait any more.
    pub(crate) fn stopped(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut stopping = self.0.subscribe();
        async move {
            // Fails if the sender is gone: then, too, nothing is to wait.
            let _ = stopping.wait_for(|is_stopping| *is_stopping).await;
        }
    }
}

/// The answer whose blocks come in parts.
pub(crate) fn answer(parts: mpsc::Receiver<Option<Bytes>>) -> Answer {
    let mut answer = answer::event_stream(parts);
    answer.headers_mut().insert(X_ACCEL_BUFFERING, HeaderValue::from_static("no"));
    answer
}

/// Lets `send`, which fills `parts`, go on until it is at its end, the stream has lived for long enough, its reader
/// is gone, or `stopped` completes.
pub(crate) async fn run<T, E: Display>(
    parts: mpsc::Sender<Option<Bytes>>,
    pace: Pace,
    stopped: impl Future<Output = ()> + Send,
    send: impl Future<Output = Result<T, E>> + Send,
) {
    let end = sleep_until(Instant::now() + random_between(pace.life));
    let is_whole = tokio::select! {
        biased;
        () = stopped => true,
        () = parts.closed() => false,
        () = end => true,
        sent = send => match sent {
            Ok(_) => true,
            Err(error) => {
                tracing::error!("a stream of events breaks off: {error}");
                false
            }
        },
    };
    if is_whole {
        // Of a reader who is behind, the stream is broken off.
        let _ = timeout(GRACE, parts.send(None)).await;
    }
}

/// A number from the first to the second. Where there is no chance to be had, the first.
fn random_number([first, second]: [u64; 2]) -> u64 {
    let mut bytes = [0; 8];
    if getrandom::fill(&mut bytes).is_err() {
        return first;
    }
    first + u64::from_le_bytes(bytes) % (second - first + 1)
}

fn random_between(bounds: [Duration; 2]) -> Duration {
    let millis = bounds.map(|bound| u64::try_from(bound.as_millis()).unwrap_or(u64::MAX / 2));
    Duration::from_millis(random_number(millis))
}
