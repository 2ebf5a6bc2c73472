//! A stream of events: server-sent events (WHATWG HTML, 9.2).

use std::sync::Arc;
use std::time::Duration;

use bsv_invoicing::events::{EventFilter, LogName};
use bsv_invoicing::{Error, Wallet};
use bytes::Bytes;
use hyper::header::HeaderName;
use hyper::{HeaderMap, Method, Uri};
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::{Instant, sleep_until};

use super::event_blocks::{EventBlocks, EventPlaces};
use super::events::{After, once};
use super::headers::number;
use crate::http::event_stream::{self, Blocks, Pace};
use crate::http::{self, Answer, Problem};

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// The last event that a client has received, by its own account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LastEventId {
    /// The name of the log, or `None` for this log.
    log: Option<LogName>,
    number: u64,
}

impl LastEventId {
    /// Parses `3f9a1c02-1042`, or a bare number.
    fn parse(text: &str) -> Option<Self> {
        let (log, text) = match text.split_once('-') {
            Some((log, text)) => (Some(log.parse().ok()?), text),
            None => (None, text),
        };
        Some(Self { log, number: number(text)? })
    }
}

/// The parameters of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Asked {
    after: Option<After>,
    filter: Option<EventFilter>,
    last: Option<LastEventId>,
}

impl Asked {
    /// Parses the query and the headers. Reports all faults at once.
    pub(super) fn parse(uri: &Uri, headers: &HeaderMap) -> Result<Self, Problem> {
        let mut asked = Self::default();
        let mut problem = http::read_parameters(uri, |name, value| asked.set(name, value));
        for id in headers.get_all(LAST_EVENT_ID) {
            let read = id.to_str().ok().and_then(LastEventId::parse);
            if read.is_none() || asked.last.is_some() {
                let message = "must be the id of an event of a stream, such as 3f9a1c02-1042";
                problem = problem.with_field("Last-Event-ID", &[message.to_owned()]);
            }
            asked.last = read;
        }
        problem.unless_faulty(asked)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        match name {
            "after" => {
                let after = After::parse(value).ok_or("must be a number, or latest")?;
                once(&mut self.after, after)
            }
            "types" => once(&mut self.filter, value.parse().map_err(|error| format!("{error}"))?),
            _ => Err(http::UNKNOWN_PARAMETER.to_owned()),
        }
    }

    /// Determines where the stream begins, and whether the client must be told that it does not
    /// continue where the client stopped.
    async fn start(&self, wallet: &Wallet) -> Result<Start, Error> {
        let (last, own) = (wallet.latest_event().await?, wallet.event_log());
        let asked = match self.after {
            None => 0,
            Some(After::Latest) => last,
            Some(After::Number(number)) => number,
        };
        let (after, is_of_other) = match self.last {
            Some(id) if id.log.is_none_or(|log| log == own) => (id.number, false),
            Some(_) => (asked, true),
            None => (asked, false),
        };
        let is_reset = is_of_other || after > last;
        // A number from a longer log means nothing in this log.
        let known = [after, asked].into_iter().find(|number| *number <= last);
        Ok(Start { after: known.unwrap_or(0), reset: is_reset.then_some(last) })
    }
}

/// The beginning of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Start {
    after: u64,
    /// The number of the last event, if the client has read another log.
    reset: Option<u64>,
}

pub(super) async fn answer(
    wallet: &Arc<Wallet>,
    places: &EventPlaces,
    asked: Asked,
    method: &Method,
) -> Result<Answer, Problem> {
    if *method == Method::HEAD {
        return Ok(event_stream::head());
    }
    let place = places.stream()?;
    let start = asked.start(wallet).await?;
    let filter = asked.filter.unwrap_or_default();
    let stream =
        EventStream::new(Arc::clone(wallet), places.blocks(), start, filter, Pace::USUAL, place);
    Ok(event_stream::answer(stream, Pace::USUAL, places.stopping()))
}

/// A stream that is being sent.
struct EventStream {
    wallet: Arc<Wallet>,
    blocks: Arc<EventBlocks>,
    last: watch::Receiver<u64>,
    /// The number of the last event when the stream looked last.
    newest: u64,
    /// The number of the last event that was looked at.
    after: u64,
    filter: EventFilter,
    /// The first block, until it is sent.
    head: Option<Bytes>,
    silence: Duration,
    heartbeat_at: Instant,
    _place: OwnedSemaphorePermit,
}

impl EventStream {
    fn new(
        wallet: Arc<Wallet>,
        blocks: Arc<EventBlocks>,
        Start { after, reset }: Start,
        filter: EventFilter,
        pace: Pace,
        place: OwnedSemaphorePermit,
    ) -> Self {
        let mut head = pace.retry_block();
        if let Some(last) = reset {
            let log = wallet.event_log();
            let data = format!("{{\"log\":\"{log}\",\"last\":{last}}}");
            head.push_str(&format!("id: {log}-{after}\nevent: reset\ndata: {data}\n\n"));
        }
        let mut last = wallet.last_event();
        let newest = *last.borrow_and_update();
        Self {
            newest,
            last,
            wallet,
            blocks,
            after,
            filter,
            head: Some(head.into()),
            silence: pace.silence,
            heartbeat_at: Instant::now() + pace.silence,
            _place: place,
        }
    }

    /// Waits until there are events that were not looked at, or the heartbeat is due.
    async fn next_look(&mut self) {
        self.blocks.next_look().await;
        tokio::select! {
            Ok(()) = self.last.changed() => {}
            () = sleep_until(self.heartbeat_at) => {}
        }
        self.newest = *self.last.borrow_and_update();
    }

    fn send(&mut self, block: Bytes) -> Option<Bytes> {
        self.heartbeat_at = Instant::now() + self.silence;
        Some(block)
    }
}

impl Blocks for EventStream {
    type Error = Error;

    async fn next(&mut self) -> Result<Option<Bytes>, Error> {
        if let Some(head) = self.head.take() {
            return Ok(Some(head));
        }
        loop {
            if self.after < self.newest {
                // The future is on the heap, so that a waiting stream does not hold its memory.
                let next = self.blocks.next(&self.wallet, self.after, self.filter, self.newest);
                let block = Box::pin(next).await?;
                self.after = block.next;
                if !block.text.is_empty() {
                    return Ok(self.send(block.text));
                }
            } else {
                self.next_look().await;
            }
            if Instant::now() >= self.heartbeat_at {
                let heartbeat = format!("id: {}-{}\n\n", self.wallet.event_log(), self.after);
                return Ok(self.send(heartbeat.into()));
            }
        }
    }
}

#[cfg(test)]
pub(super) mod tests;
