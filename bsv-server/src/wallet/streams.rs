//! Answers of any length, which are made while they are sent.

use std::sync::Arc;
use std::time::Duration;

use hyper::StatusCode;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::http::Problem;

/// How many there are at once.
const MAX_STREAMS: usize = 8;
/// For how long one waits for a place.
const PATIENCE: Duration = Duration::from_secs(5);

/// What lies between the parts of one, so that it does not take the processors from other requests.
pub(super) const PAUSE: Duration = Duration::from_micros(2_500);

/// The places of answers that are made while they are sent.
#[derive(Debug)]
pub(super) struct Streams(Arc<Semaphore>);

impl Streams {
    pub(super) fn new() -> Self {
        Self(Arc::new(Semaphore::new(MAX_STREAMS)))
    }

    /// Takes a place, and waits for one if need be.
    pub(super) async fn begin(&self) -> Result<OwnedSemaphorePermit, Problem> {
        let place = timeout(PATIENCE, Arc::clone(&self.0).acquire_owned()).await.map_err(|_| {
            let detail =
                format!("{MAX_STREAMS} lists are read already: ask again, or for pages (limit)");
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, "too-many-lists", detail)
        })?;
        Ok(place.expect("the places are never closed"))
    }
}
