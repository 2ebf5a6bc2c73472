//! Answers of any length, which are made while they are sent.

use std::sync::Arc;
use std::time::Duration;

use hyper::StatusCode;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::http::Problem;

/// The most concurrent streams.
const MAX_STREAMS: usize = 8;
/// How long a request waits for a place.
const PATIENCE: Duration = Duration::from_secs(5);

/// The pause between the parts of a stream, which leaves the processors to other requests.
pub(super) const PAUSE: Duration = Duration::from_micros(2_500);

/// The places for answers that are made while they are sent.
#[derive(Debug)]
pub(super) struct Streams(Arc<Semaphore>);

impl Streams {
    pub(super) fn new() -> Self {
        Self(Arc::new(Semaphore::new(MAX_STREAMS)))
    }

    /// Takes a place. Waits for one if necessary.
    pub(super) async fn begin(&self) -> Result<OwnedSemaphorePermit, Problem> {
        let place = timeout(PATIENCE, Arc::clone(&self.0).acquire_owned()).await.map_err(|_| {
            let detail = format!(
                "{MAX_STREAMS} lists are already being read: ask again later, or for pages (limit)"
            );
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, "too-many-lists", detail)
        })?;
        Ok(place.expect("the places are never closed"))
    }
}
