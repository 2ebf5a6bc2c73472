//! Places for those who wait for events, apart from those of other requests.

use tokio::sync::OwnedSemaphorePermit;

use crate::http::Problem;
use crate::http::event_stream::{Stopping, StreamPlaces};

/// The places of requests that wait for an event, and those of streams.
#[derive(Debug)]
pub(super) struct EventPlaces {
    waiting: StreamPlaces,
    streams: StreamPlaces,
    stopping: Stopping,
}

impl EventPlaces {
    /// So many places of both.
    pub(super) fn new(count: u32) -> Self {
        let waiting = "requests wait for events already: ask again, or without wait";
        let streams = "streams of events are read already: ask again, or for pages";
        Self {
            waiting: StreamPlaces::new(count, waiting),
            streams: StreamPlaces::new(count, streams),
            stopping: Stopping::default(),
        }
    }

    /// Has all that waits end.
    pub(super) fn stop(&self) {
        self.stopping.stop();
    }

    /// Completes when nothing is to wait any more.
    pub(super) fn stopped(&self) -> impl Future<Output = ()> + Send + use<> {
        self.stopping.stopped()
    }

    /// Takes a place of a request that waits.
    pub(super) fn wait(&self) -> Result<OwnedSemaphorePermit, Problem> {
        self.waiting.take()
    }

    /// Takes a place of a stream.
    pub(super) fn stream(&self) -> Result<OwnedSemaphorePermit, Problem> {
        self.streams.take()
    }

    /// How many streams are open.
    pub(super) fn open_streams(&self) -> u64 {
        self.streams.taken()
    }
}
