//! Pages of events as streams send them, and places for requests that wait for events, separate from those of other
//! requests. A page is made once for all streams that are at the same event.

use std::collections::VecDeque;
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bsv_invoicing::events::{EventFilter, EventQuery, LogName, WrittenPage};
use bsv_invoicing::{Error, Wallet};
use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep, sleep_until};

use super::list::PAUSE;
use crate::http::Problem;
use crate::http::event_stream::{Stopping, StreamPlaces};

/// How many events are read at a time. A slow reader may have several such blocks held.
pub(super) const PAGE: usize = 100;
/// A stream that is further behind than this many events takes turns with other such streams.
const BEHIND: u64 = 1_000;
/// How many blocks are kept for other streams.
const KEPT: usize = 16;
/// The most bytes that precede the JSON of an event.
const HEAD_LEN: usize = 100;
/// Streams at the end of the log look for events at multiples of this time. They look all at once, so that they stay at
/// the same event.
const PERIOD: Duration = Duration::from_millis(10);

/// A page of events as a stream sends it. The log never changes, so a block never becomes wrong.
#[derive(Clone, Debug)]
pub(super) struct EventBlock {
    /// The number of the event before the block.
    after: u64,
    filter: EventFilter,
    /// Server-sent events (WHATWG HTML, 9.2).
    pub(super) text: Bytes,
    /// The number of the last event that was looked at.
    pub(super) next: u64,
}

/// Makes blocks, and keeps the last ones.
#[derive(Debug)]
pub(super) struct EventBlocks {
    kept: Mutex<VecDeque<EventBlock>>,
    /// Streams that are far behind take turns, so that all of them together leave the processors to other requests.
    turns: Semaphore,
    started: Instant,
}

impl EventBlocks {
    pub(super) fn new() -> Self {
        Self { kept: Mutex::default(), turns: Semaphore::new(1), started: Instant::now() }
    }

    /// Returns the block after the event with the number `after`. `last` is the number of the last event in the log.
    pub(super) async fn next(
        &self,
        wallet: &Wallet,
        after: u64,
        filter: EventFilter,
        last: u64,
    ) -> Result<EventBlock, Error> {
        if let Some(block) = self.kept(after, filter) {
            return Ok(block);
        }
        let is_behind = last.saturating_sub(after) > BEHIND;
        let _turn = match is_behind {
            true => Some(self.turns.acquire().await.expect("the turns are never closed")),
            false => None,
        };
        let page = wallet.follow_events(EventQuery { after, filter, limit: PAGE }).await?;
        let text = written(&page, wallet.event_log()).into();
        let block = EventBlock { after, filter, text, next: page.next };
        if is_behind {
            sleep(PAUSE).await;
        } else if page.next > after {
            self.keep(block.clone());
        }
        Ok(block)
    }

    /// Waits until streams at the end of the log look for events again.
    pub(super) async fn next_look(&self) {
        let periods = self.started.elapsed().as_millis() / PERIOD.as_millis() + 1;
        let periods = u32::try_from(periods).unwrap_or(u32::MAX);
        sleep_until(self.started + PERIOD * periods).await;
    }

    fn kept(&self, after: u64, filter: EventFilter) -> Option<EventBlock> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.iter().find(|block| (block.after, block.filter) == (after, filter)).cloned()
    }

    fn keep(&self, block: EventBlock) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.truncate(KEPT - 1);
        kept.push_front(block);
    }
}

fn written(page: &WrittenPage, log: LogName) -> Vec<u8> {
    let len = page.events.iter().map(|event| event.json.len() + HEAD_LEN).sum();
    let mut text = Vec::with_capacity(len);
    for event in &page.events {
        write!(text, "id: {log}-{}\nevent: {}\ndata: ", event.number, event.kind)
            .expect("a vector takes all that is written to it");
        text.extend_from_slice(&event.json);
        text.extend_from_slice(b"\n\n");
    }
    text
}

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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::time::timeout;

    use super::*;
    use crate::wallet::event_stream::tests::{create_users, wallet};

    #[tokio::test]
    async fn streams_at_the_same_event_share_a_block() {
        let dir = tempfile::tempdir().unwrap();
        let wallet = wallet(&dir).await;
        create_users(&wallet, 3).await;
        let (blocks, users) = (EventBlocks::new(), "user.*".parse().unwrap());
        let mut texts = Vec::new();
        for filter in [EventFilter::ALL, EventFilter::ALL, users] {
            let block = blocks.next(&wallet, 0, filter, 3).await.unwrap();
            assert_eq!(block.next, 3);
            texts.push(block.text);
        }
        assert_eq!(texts[0].as_ptr(), texts[1].as_ptr());
        assert_ne!(texts[0].as_ptr(), texts[2].as_ptr(), "another filter");
        let newest = blocks.next(&wallet, 2, EventFilter::ALL, 3).await.unwrap();
        assert!(texts[0].ends_with(&newest.text) && newest.text.len() < texts[0].len());
    }

    #[tokio::test]
    async fn streams_that_are_far_behind_wait_for_each_other_and_others_for_nobody() {
        let dir = tempfile::tempdir().unwrap();
        let wallet = wallet(&dir).await;
        create_users(&wallet, 3).await;
        let blocks = Arc::new(EventBlocks::new());
        let next = |last| {
            let (wallet, blocks) = (Arc::clone(&wallet), Arc::clone(&blocks));
            async move { blocks.next(&wallet, 0, EventFilter::ALL, last).await.unwrap().next }
        };
        let turn = blocks.turns.acquire().await.unwrap();
        let behind = tokio::spawn(next(BEHIND + 1));
        assert_eq!(next(BEHIND).await, 3);
        // Blocks of streams at the end are kept: this one has another filter, so that it is made.
        let filter = "invoice.*".parse().unwrap();
        let other = blocks.next(&wallet, 0, filter, BEHIND + 1);
        assert!(timeout(Duration::from_millis(50), other).await.is_err(), "it has no turn");
        drop(turn);
        assert_eq!(behind.await.unwrap(), 3);
    }
}
