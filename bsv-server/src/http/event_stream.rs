//! Streams of server-sent events (WHATWG HTML, 9.2), independent of their contents.

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};
use hyper::StatusCode;
use hyper::header::{HeaderName, HeaderValue};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::Instant;

use super::{Answer, BrokenOff, Problem, answer};

/// Tells front ends not to buffer a stream.
const X_ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// The timing of a stream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// The time without events after which a heartbeat is sent.
    pub(crate) silence: Duration,
    /// The shortest and the longest life of a stream, without the silence before its last heartbeat.
    pub(crate) life: [Duration; 2],
    /// The shortest and the longest time after which a client should reconnect, in milliseconds.
    /// The spread keeps clients from reconnecting all at once after a restart.
    pub(crate) retry: [u64; 2],
}

impl Pace {
    /// The pace of the API's streams.
    pub(crate) const USUAL: Self = Self {
        silence: Duration::from_secs(15),
        life: [Duration::from_secs(55 * 60), Duration::from_secs(64 * 60)],
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

/// What a stream sends.
pub(crate) trait Blocks: Send + 'static {
    /// Why the stream is cut off.
    type Error: Display;

    /// Waits for the next block. Returns `None` after the last one. The future may be dropped
    /// before it completes, when the stream ends.
    fn next(&mut self) -> impl Future<Output = Result<Option<Bytes>, Self::Error>> + Send;
}

/// An answer that sends these blocks until they end, the stream has lived long enough, or the server
/// stops. A block is made when there is room for it, so that a slow reader holds little memory.
pub(crate) fn answer(blocks: impl Blocks, pace: Pace, stopping: &Stopping) -> Answer {
    with_blocks(until_over(blocks, pace, stopping))
}

/// The same answer to a HEAD.
pub(crate) fn head() -> Answer {
    with_blocks(stream::empty())
}

fn with_blocks(blocks: impl Stream<Item = Result<Bytes, BrokenOff>> + Send + 'static) -> Answer {
    let mut answer = answer::event_stream(blocks);
    answer.headers_mut().insert(X_ACCEL_BUFFERING, HeaderValue::from_static("no"));
    answer
}

/// The blocks until they end, the stream has lived long enough, or the server stops.
pub(crate) fn until_over<B: Blocks>(
    blocks: B,
    pace: Pace,
    stopping: &Stopping,
) -> impl Stream<Item = Result<Bytes, BrokenOff>> + Send + use<B> {
    // A timer for each stream would take memory: a silent stream ends at its next heartbeat.
    let ends_at = Instant::now() + random_between(pace.life);
    let blocks = stream::unfold(Some(blocks), move |mut blocks| async move {
        if Instant::now() >= ends_at {
            return None;
        }
        match blocks.as_mut()?.next().await {
            Ok(block) => Some((Ok(block?), blocks)),
            Err(error) => {
                tracing::error!("a stream of events was cut off: {error}");
                Some((Err(BrokenOff), None))
            }
        }
    });
    let mut stopping = stopping.0.subscribe();
    blocks.take_until(async move {
        // An error means that the sender is gone, and the stream ends too.
        let _ = stopping.wait_for(|is_stopping| *is_stopping).await;
    })
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
