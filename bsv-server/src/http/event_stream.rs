//! Streams of server-sent events (WHATWG HTML, 9.2), independent of their contents.

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::StatusCode;
use hyper::header::{HeaderName, HeaderValue};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};
use tokio::time::{Instant, sleep_until, timeout};

use super::{Answer, Problem, answer};

/// How long to wait for the reader to take the end of a stream.
const GRACE: Duration = Duration::from_millis(500);
/// Tells front ends not to buffer a stream.
const X_ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// The timing of a stream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// The time without events after which a heartbeat is sent.
    pub(crate) silence: Duration,
    /// The shortest and the longest life of a stream.
    pub(crate) life: [Duration; 2],
    /// The shortest and the longest time after which a client should reconnect, in milliseconds.
    /// The spread keeps clients from reconnecting all at once after a restart.
    pub(crate) retry: [u64; 2],
}

impl Pace {
    /// The pace of the API's streams.
    pub(crate) const USUAL: Self = Self {
        silence: Duration::from_secs(15),
        life: [Duration::from_secs(55 * 60), Duration::from_secs(65 * 60)],
        retry: [2000, 5000],
    };

    /// The block that tells a client when to reconnect.
    pub(crate) fn retry_block(&self) -> String {
        format!("retry: {}\n\n", random_number(self.retry))
    }
}

/// Places for streams, or for other long requests.
#[derive(Debug)]
pub(crate) struct StreamPlaces {
    places: Arc<Semaphore>,
    count: u32,
    full: &'static str,
}

impl StreamPlaces {
    /// Makes this many places. In the refusal, `full` follows the number of places.
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

    /// The number of taken places.
    pub(crate) fn taken(&self) -> u64 {
        u64::from(self.count).saturating_sub(self.places.available_permits() as u64)
    }
}

/// Ends all waiting requests when the server stops.
#[derive(Debug, Default)]
pub(crate) struct Stopping(watch::Sender<bool>);

impl Stopping {
    /// Ends all waiting.
    pub(crate) fn stop(&self) {
        self.0.send_replace(true);
    }

    /// Completes when the server stops.
    pub(crate) fn stopped(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut stopping = self.0.subscribe();
        async move {
            // An error means that the sender is gone, and waiting ends too.
            let _ = stopping.wait_for(|is_stopping| *is_stopping).await;
        }
    }
}

/// An answer whose blocks are sent in parts.
pub(crate) fn answer(parts: mpsc::Receiver<Option<Bytes>>) -> Answer {
    let mut answer = answer::event_stream(parts);
    answer.headers_mut().insert(X_ACCEL_BUFFERING, HeaderValue::from_static("no"));
    answer
}

/// Runs `send`, which fills `parts`, until it ends, the stream has lived long enough, its reader is
/// gone, or `stopped` completes.
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
                tracing::error!("a stream of events was cut off: {error}");
                false
            }
        },
    };
    if is_whole {
        // The stream of a reader who does not take this is broken off.
        let _ = timeout(GRACE, parts.send(None)).await;
    }
}

/// A random number between the first and the second. Without randomness, the first.
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
