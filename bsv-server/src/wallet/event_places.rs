//! Places for those who wait for events, apart from those of other requests.

use std::sync::Arc;

use hyper::StatusCode;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use crate::http::Problem;

/// The places of requests that wait for an event, and those of streams.
#[derive(Debug)]
pub(super) struct EventPlaces {
    waiting: Arc<Semaphore>,
    streams: Arc<Semaphore>,
    count: u32,
    is_stopping: watch::Sender<bool>,
}

impl EventPlaces {
    /// So many places of both.
    pub(super) fn new(count: u32) -> Self {
        let [waiting, streams] = [(); 2].map(|()| Arc::new(Semaphore::new(count as usize)));
        Self { waiting, streams, count, is_stopping: watch::Sender::new(false) }
    }

    /// Has all that waits end.
    pub(super) fn stop(&self) {
        self.is_stopping.send_replace(true);
    }

    /// Completes when nothing is to wait any more.
    pub(super) fn stopped(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut stopping = self.is_stopping.subscribe();
        async move {
            // Fails if the sender is gone: then, too, nothing is to wait.
            let _ = stopping.wait_for(|is_stopping| *is_stopping).await;
        }
    }

    /// Takes a place of a request that waits.
    pub(super) fn wait(&self) -> Result<OwnedSemaphorePermit, Problem> {
        self.take(&self.waiting, "requests wait for events already: ask again, or without wait")
    }

    /// Takes a place of a stream.
    pub(super) fn stream(&self) -> Result<OwnedSemaphorePermit, Problem> {
        self.take(&self.streams, "streams of events are read already: ask again, or for pages")
    }

    /// How many streams are open.
    pub(super) fn open_streams(&self) -> u64 {
        u64::from(self.count).saturating_sub(self.streams.available_permits() as u64)
    }

    fn take(&self, places: &Arc<Semaphore>, full: &str) -> Result<OwnedSemaphorePermit, Problem> {
        Arc::clone(places).try_acquire_owned().map_err(|_| {
            let detail = format!("{} {full}", self.count);
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, "too-many-streams", detail)
        })
    }
}
