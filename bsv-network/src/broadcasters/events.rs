use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bsv_tx::Txid;
use reqwest::Response;
use serde::Deserialize;
use tokio::time::{Instant, sleep_until, timeout, timeout_at};

use super::client::Broadcaster;
use crate::service::is_too_deep;

/// The events that Arcade tells of the transactions that were sent with a callback token. Each one is
/// a reason to ask, and nothing else.
#[derive(Debug)]
pub struct EventStream {
    broadcaster: Broadcaster,
    response: Option<Response>,
    /// Whether there is a response, for others.
    is_live: Arc<AtomicBool>,
    frames: Frames,
    /// The id of the last event, from which the stream is resumed.
    last_id: Option<String>,
    /// When it has last said something.
    heard: Instant,
    /// When it is connected to again, and how long it is waited for after the next failure.
    next: Instant,
    wait: Duration,
}

/// A reason to ask a broadcaster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReasonToAsk {
    /// Something may have become of this transaction.
    Changed(Txid),
    /// Events may be missing: any transaction may have changed.
    Missed,
}

/// What has arrived of a stream, and was not read yet.
#[derive(Debug, Default)]
struct Frames {
    bytes: Vec<u8>,
    /// How many of the bytes have no end of a line.
    searched: usize,
    frame: Frame,
}

/// The lines of one event, as far as they matter.
#[derive(Debug, Default, PartialEq, Eq)]
struct Frame {
    id: Option<String>,
    event: String,
    data: String,
}

/// The data of an event.
#[derive(Deserialize)]
struct Data {
    txid: Txid,
}

/// A stream is alive if it says something in this time. Arcade does every 15 seconds.
const SILENCE: Duration = Duration::from_secs(60);
/// The first wait before a stream is connected to again. It doubles up to the longest one.
const FIRST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// How long a line may be, and the data of an event.
const MOST_BYTES: usize = 4 << 20;
/// How long the id of an event may be: it is a number.
const MOST_DIGITS: usize = 32;

impl EventStream {
    /// The events of a broadcaster, by the token of its callback. `None` if it has no callback, or is
    /// no Arcade.
    pub fn of(broadcaster: &Broadcaster) -> Option<Self> {
        Self::with(broadcaster, &Arc::default())
    }

    /// The same, and `is_live` tells others whether the stream is connected.
    pub(super) fn with(broadcaster: &Broadcaster, is_live: &Arc<AtomicBool>) -> Option<Self> {
        let _ = broadcaster.events(None)?;
        Some(Self {
            broadcaster: broadcaster.clone(),
            response: None,
            is_live: Arc::clone(is_live),
            frames: Frames::default(),
            last_id: None,
            heard: Instant::now(),
            next: Instant::now(),
            wait: FIRST_WAIT,
        })
    }

    /// Whether the stream is connected. While it is, polling can rest.
    pub fn is_live(&self) -> bool {
        self.response.is_some()
    }

    /// Waits for the next reason to ask. It connects by itself, and again after a failure. The first one
    /// is that events may be missing. A call that is given up loses nothing.
    pub async fn next(&mut self) -> ReasonToAsk {
        loop {
            while let Some(frame) = self.frames.next() {
                if let Some(reason) = self.read(frame) {
                    return reason;
                }
            }
            let Some(response) = &mut self.response else {
                if self.connect().await && self.last_id.is_some() {
                    continue;
                }
                return ReasonToAsk::Missed;
            };
            match timeout_at(self.heard + SILENCE, response.chunk()).await {
                Ok(Ok(Some(part))) if self.frames.take(&part) => {
                    (self.heard, self.wait) = (Instant::now(), FIRST_WAIT);
                }
                // It is resumed where it has ended.
                Ok(Ok(None) | Err(_)) => self.leave(),
                Ok(Ok(Some(_))) | Err(_) => {
                    self.leave();
                    return ReasonToAsk::Missed;
                }
            }
        }
    }

    async fn connect(&mut self) -> bool {
        sleep_until(self.next).await;
        let Some(request) = self.broadcaster.events(self.last_id.as_deref()) else { return false };
        let answer = timeout(SILENCE, request.send()).await;
        match answer {
            Ok(Ok(response)) if response.status().is_success() => {
                (self.response, self.frames) = (Some(response), Frames::default());
                self.heard = Instant::now();
                self.is_live.store(true, Ordering::Relaxed);
                true
            }
            _ => {
                self.leave();
                false
            }
        }
    }

    fn leave(&mut self) {
        self.response = None;
        self.is_live.store(false, Ordering::Relaxed);
        self.next = Instant::now() + self.wait;
        self.wait = LONGEST_WAIT.min(self.wait * 2);
    }

    fn read(&mut self, Frame { id, event, data }: Frame) -> Option<ReasonToAsk> {
        self.last_id = id.or(self.last_id.take());
        match event.as_str() {
            "status" if is_too_deep(data.as_bytes()) => Some(ReasonToAsk::Missed),
            "status" => Some(match serde_json::from_str(&data) {
                Ok(Data { txid }) => ReasonToAsk::Changed(txid),
                Err(_) => ReasonToAsk::Missed,
            }),
            "gap" => Some(ReasonToAsk::Missed),
            "shutdown" => {
                self.leave();
                None
            }
            _ => None,
        }
    }
}

impl Drop for EventStream {
    fn drop(&mut self) {
        self.is_live.store(false, Ordering::Relaxed);
    }
}

impl Frames {
    /// Takes what has arrived. Answers whether it is short enough.
    fn take(&mut self, part: &[u8]) -> bool {
        self.bytes.extend_from_slice(part);
        self.bytes.len() + self.frame.data.len() <= MOST_BYTES
    }

    /// The next event that has arrived whole.
    fn next(&mut self) -> Option<Frame> {
        let mut begin = 0;
        let mut whole = None;
        while whole.is_none() {
            let rest = &self.bytes[begin.max(self.searched)..];
            let Some(length) = rest.iter().position(|byte| *byte == b'\n') else { break };
            let end = begin.max(self.searched) + length;
            let line = String::from_utf8_lossy(&self.bytes[begin..end]);
            whole = self.frame.add(line.strip_suffix('\r').unwrap_or(&line));
            begin = end + 1;
        }
        self.bytes.drain(..begin);
        self.searched = if whole.is_some() { 0 } else { self.bytes.len() };
        whole
    }
}

impl Frame {
    /// Adds a line. An empty one ends the event.
    fn add(&mut self, line: &str) -> Option<Self> {
        if line.is_empty() {
            return Some(std::mem::take(self)).filter(|frame| *frame != Self::default());
        }
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match name {
            // It is sent back as a header.
            "id" if is_number(value) => self.id = Some(value.to_owned()),
            "event" => self.event = value.to_owned(),
            "data" => self.data.push_str(value),
            _ => {}
        }
        None
    }
}

fn is_number(text: &str) -> bool {
    (1..=MOST_DIGITS).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The events in parts of a stream.
    fn frames(parts: &[&str]) -> Vec<Frame> {
        let (mut frames, mut all) = (Frames::default(), Vec::new());
        for part in parts {
            assert!(frames.take(part.as_bytes()));
            while let Some(frame) = frames.next() {
                all.push(frame);
            }
        }
        all
    }

    fn frame(id: Option<&str>, event: &str, data: &str) -> Frame {
        Frame { id: id.map(str::to_owned), event: event.to_owned(), data: data.to_owned() }
    }

    const STREAM: &str = "id: 17\nevent: status\ndata: {\"txid\":\"\u{e4}\"}\n\n: keepalive\n\n\
                          event: gap\r\ndata:{}\r\n\r\nretry: 1734\nid: x\nevent: shutdown\ndata\n\nid: 18\n";

    #[test]
    fn events_are_read_in_parts_of_any_size() {
        let expected = [
            frame(Some("17"), "status", "{\"txid\":\"\u{e4}\"}"),
            frame(None, "gap", "{}"),
            frame(None, "shutdown", ""),
        ];
        for size in 1..STREAM.len() {
            let (mut frames, mut all) = (Frames::default(), Vec::new());
            for part in STREAM.as_bytes().chunks(size) {
                assert!(frames.take(part));
                while let Some(frame) = frames.next() {
                    all.push(frame);
                }
            }
            assert_eq!(all, expected, "{size}");
        }
        assert_eq!(frames(&[STREAM, "\n"]).last(), Some(&frame(Some("18"), "", "")));
    }

    #[test]
    fn an_event_has_a_longest_length() {
        let mut frames = Frames::default();
        let line = format!("data: {}\n", "x".repeat(1 << 20));
        let taken = (0..5).filter(|_| {
            let is_taken = frames.take(line.as_bytes());
            assert_eq!(frames.next(), None);
            is_taken
        });
        assert_eq!(taken.count(), 3);
        assert!(!Frames::default().take(&vec![b'x'; MOST_BYTES + 1]));
    }
}
