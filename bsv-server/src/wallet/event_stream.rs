//! Events as they come: server-sent events (WHATWG HTML, 9.2).

use std::sync::Arc;

use bsv_invoicing::{Error, EventFilter, EventPage, EventQuery, LogName};
use bytes::Bytes;
use hyper::header::HeaderName;
use hyper::{HeaderMap, Method, StatusCode, Uri};
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::time::{Instant, sleep, sleep_until};

use super::event_places::EventPlaces;
use super::events::{After, once};
use super::headers::number;
use super::streams::PAUSE;
use crate::http::event_stream::{self, Pace};
use crate::http::{self, Answer, Problem};
use crate::wallet_store::Wallet;

/// How many events are read at once, and how many a stream holds for a slow reader.
const PAGE: usize = 100;
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// Where a client has stopped, as it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LastEventId {
    /// The log; this one, if it is not told.
    log: Option<LogName>,
    number: u64,
}

impl LastEventId {
    /// Reads `3f9a1c02-1042`, or a bare number.
    fn parse(text: &str) -> Option<Self> {
        let (log, text) = match text.split_once('-') {
            Some((log, text)) => (Some(log.parse().ok()?), text),
            None => (None, text),
        };
        Some(Self { log, number: number(text)? })
    }
}

/// What a request asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Asked {
    after: Option<After>,
    filter: Option<EventFilter>,
    last: Option<LastEventId>,
}

impl Asked {
    /// Reads the query and the headers. All that is wrong with them is told at once.
    pub(super) fn parse(uri: &Uri, headers: &HeaderMap) -> Result<Self, Problem> {
        let mut asked = Self::default();
        let mut problem =
            Problem::new(StatusCode::BAD_REQUEST, "invalid-query", "the query cannot be answered");
        for (name, value) in http::parameters(uri) {
            if let Err(message) = asked.set(&name, &value) {
                problem = problem.with_field(&name, &[message]);
            }
        }
        for id in headers.get_all(LAST_EVENT_ID) {
            let read = id.to_str().ok().and_then(LastEventId::parse);
            if read.is_none() || asked.last.is_some() {
                let message = "must be the id of an event of a stream, such as 3f9a1c02-1042";
                problem = problem.with_field("Last-Event-ID", &[message.to_owned()]);
            }
            asked.last = read;
        }
        if problem.has_fields() { Err(problem) } else { Ok(asked) }
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

    /// Where the stream begins, and whether the client has to be told that it is not where it stopped.
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
        // A number of a log that was longer says nothing about this one.
        let known = [after, asked].into_iter().find(|number| *number <= last);
        Ok(Start { after: known.unwrap_or(0), reset: is_reset.then_some(last) })
    }
}

/// Where a stream begins.
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
    let (parts, body) = mpsc::channel(1);
    if *method == Method::GET {
        let place = places.stream()?;
        let Start { after, reset } = asked.start(wallet).await?;
        let filter = asked.filter.unwrap_or_default();
        let stream = EventStream {
            wallet: Arc::clone(wallet),
            query: EventQuery { after, filter, limit: PAGE },
            parts,
            pace: Pace::USUAL,
            _place: place,
        };
        tokio::spawn(stream.run(reset, places.stopped()));
    }
    Ok(event_stream::answer(body))
}

/// A stream that goes on.
struct EventStream {
    wallet: Arc<Wallet>,
    query: EventQuery,
    parts: mpsc::Sender<Option<Bytes>>,
    pace: Pace,
    _place: OwnedSemaphorePermit,
}

impl EventStream {
    /// Sends until the stream has lived for long enough, its reader is gone, or `stopped` completes.
    async fn run(mut self, reset: Option<u64>, stopped: impl Future<Output = ()> + Send) {
        let (parts, pace) = (self.parts.clone(), self.pace);
        event_stream::run(parts, pace, stopped, self.send_all(reset)).await;
    }

    async fn send_all(&mut self, reset: Option<u64>) -> Result<std::convert::Infallible, Error> {
        let log = self.wallet.event_log();
        let mut last = self.wallet.last_event();
        let mut block = self.pace.retry_block().into_bytes();
        if let Some(last) = reset {
            let data = format!("{{\"log\":\"{log}\",\"last\":{last}}}");
            let id = self.query.after;
            block.extend(format!("id: {log}-{id}\nevent: reset\ndata: {data}\n\n").into_bytes());
        }
        let mut heartbeat_at = Instant::now() + self.pace.silence;
        loop {
            // There is room for what is read now, so that a slow reader holds one page.
            let Ok(room) = self.parts.reserve().await else {
                return std::future::pending().await;
            };
            last.mark_unchanged();
            let page = self.wallet.event_page(self.query).await?;
            self.query.after = page.next;
            write_events(&page, log, &mut block);
            let is_due = Instant::now() >= heartbeat_at;
            if block.is_empty() && is_due {
                block.extend(format!("id: {log}-{}\n\n", page.next).into_bytes());
            }
            if !block.is_empty() {
                room.send(Some(std::mem::take(&mut block).into()));
                heartbeat_at = Instant::now() + self.pace.silence;
            }
            if !page.is_end() {
                sleep(PAUSE).await;
                continue;
            }
            tokio::select! {
                Ok(()) = last.changed() => {}
                () = sleep_until(heartbeat_at) => {}
            }
        }
    }
}

fn write_events(page: &EventPage, log: LogName, block: &mut Vec<u8>) {
    for event in &page.events {
        let (number, kind) = (event.number, event.kind);
        block.extend(format!("id: {log}-{number}\nevent: {kind}\ndata: ").into_bytes());
        event.write_json(log, block);
        block.extend_from_slice(b"\n\n");
    }
}

#[cfg(test)]
mod tests;
