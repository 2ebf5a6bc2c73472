//! Places for requests that wait for events, separate from those of other requests.

use std::sync::Arc;

use tokio::sync::OwnedSemaphorePermit;

use super::event_blocks::EventBlocks;
use crate::http::Problem;
use crate::http::event_stream::{Stopping, StreamPlaces};

/// The places of requests that wait for an event, and those of streams.
#[derive(Debug)]
pub(super) struct EventPlaces {
    waiting: StreamPlaces,
    streams: StreamPlaces,
    blocks: Arc<EventBlocks>,
    stopping: Stopping,
}

impl EventPlaces {
    /// Makes this many places of each kind.
    pub(super) fn new(count: u32) -> Self {
        let waiting = "requests already wait for events: ask again later, or without wait";
        let streams = "streams of events are already open: ask again later, or for pages";
        Self {
            waiting: StreamPlaces::new(count, waiting),
            streams: StreamPlaces::new(count, streams),
            blocks: Arc::new(EventBlocks::new()),
            stopping: Stopping::default(),
        }
    }

    /// Ends all waiting requests.
    pub(super) fn stop(&self) {
        self.stopping.stop();
    }

    /// Completes when waiting has to end.
    pub(super) fn stopped(&self) -> impl Future<Output = ()> + Send + use<> {
        self.stopping.stopped()
    }

    /// Tells streams that the server stops.
    pub(super) fn stopping(&self) -> &Stopping {
        &self.stopping
    }

    /// Takes a place for a request that waits.
    pub(super) fn wait(&self) -> Result<OwnedSemaphorePermit, Problem> {
        self.waiting.take()
    }

    /// Takes a place for a stream.
    pub(super) fn stream(&self) -> Result<OwnedSemaphorePermit, Problem> {
        self.streams.take()
    }

    /// The blocks that streams send.
    pub(super) fn blocks(&self) -> Arc<EventBlocks> {
        Arc::clone(&self.blocks)
    }

    /// The number of open streams.
    pub(super) fn open_streams(&self) -> u64 {
        self.streams.taken()
    }
}
