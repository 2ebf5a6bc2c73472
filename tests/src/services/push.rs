//! What a service tells by itself: Arcade's stream of events, the stream of tips, and callbacks.

use std::sync::{Arc, Mutex, Weak, mpsc};
use std::thread::{self, sleep};
use std::time::{Duration, Instant, SystemTime};

use bsv_tx::{BlockHash, Txid};
use serde_json::{Value, json};

use super::mood::Callbacks;
use super::network::{Dialect, Network, News, Subscription};
use super::{arc, arcade, chaintracks};
use crate::http::Client;
use crate::payee::Answer;

const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\
                      Cache-Control: no-cache\r\nConnection: close\r\n\r\n";

/// How often it looks for news.
const PERIOD: Duration = Duration::from_millis(50);
/// How long streams are silent at most.
const SILENCE: Duration = Duration::from_secs(15);

#[derive(Debug)]
pub(super) struct Push {
    network: Arc<Network>,
    log: Mutex<Log>,
    letters: mpsc::Sender<Letter>,
}

#[derive(Debug, Default)]
struct Log {
    frames: Vec<Frame>,
    events: Vec<Stream>,
    tips: Vec<Stream>,
    /// The tip that was told last.
    tip: String,
}

/// An event of a stream.
#[derive(Clone, Debug)]
struct Frame {
    id: u128,
    txid: Txid,
    tokens: Vec<String>,
    is_terminal: bool,
    text: String,
}

/// An open stream. Without a token it gets everything.
#[derive(Debug)]
struct Stream {
    token: Option<String>,
    parts: mpsc::Sender<Vec<u8>>,
}

/// A callback to deliver.
#[derive(Clone, Debug)]
struct Letter {
    url: String,
    token: Option<String>,
    body: Value,
}

impl Frame {
    fn is_for(&self, token: Option<&str>) -> bool {
        token.is_none_or(|token| self.tokens.iter().any(|it| it == token))
    }
}

impl Push {
    pub(super) fn of(network: &Arc<Network>) -> Arc<Self> {
        let (letters, posted) = mpsc::channel();
        let log = Mutex::default();
        let push = Arc::new(Self { network: Arc::clone(network), log, letters });
        let (follower, network) = (Arc::downgrade(&push), Arc::clone(network));
        thread::spawn(move || follow(&follower));
        thread::spawn(move || deliver(&network, &posted));
        push
    }

    /// Opens Arcade's stream of events. With the id of the last event that was read it begins after that, else with
    /// the present state of the transactions that are still under way.
    pub(super) fn events(&self, token: Option<&str>, last: Option<u128>) -> Answer {
        let mut log = self.log.lock().unwrap();
        let missed: Vec<_> = log.frames.iter().filter(|frame| frame.is_for(token)).collect();
        let is_last = |(place, frame): &(usize, &&Frame)| {
            !missed[place + 1..].iter().any(|later| later.txid == frame.txid)
        };
        let due: String = match (token, last) {
            (None, _) => String::new(),
            (_, Some(last)) => {
                missed.iter().filter(|it| it.id > last).map(|it| it.text.as_str()).collect()
            }
            (_, None) => {
                let present = missed.iter().enumerate().filter(is_last);
                present.filter(|it| !it.1.is_terminal).map(|it| it.1.text.as_str()).collect()
            }
        };
        open(&mut log.events, token, &due)
    }

    /// Opens the stream of tips, which begins with the present one.
    pub(super) fn tips(&self) -> Answer {
        let log = &mut *self.log.lock().unwrap();
        self.tell_tip(log);
        open(&mut log.tips, None, &log.tip)
    }

    /// Sends this text to all streams of events.
    pub(super) fn say(&self, text: &str) {
        send(&mut self.log.lock().unwrap().events, text, |_| true);
    }

    /// Ends all streams, and forgets all events.
    pub(super) fn restart(&self) {
        *self.log.lock().unwrap() = Log::default();
    }

    fn tip(&self) -> String {
        let headers = self.network.headers().unwrap_or_default();
        let Some(last) = headers.last() else { return String::new() };
        format!("data: {}\n\n", chaintracks::described(last, headers.len() - 1))
    }

    fn tell_tip(&self, log: &mut Log) {
        let tip = self.tip();
        if tip != log.tip {
            send(&mut log.tips, &tip, |_| true);
            log.tip = tip;
        }
    }

    /// Tells a new tip, and that the streams are alive.
    fn refresh(&self, heard: &mut Instant) {
        let log = &mut *self.log.lock().unwrap();
        if !log.tips.is_empty() {
            self.tell_tip(log);
        }
        if heard.elapsed() > SILENCE {
            *heard = Instant::now();
            for streams in [&mut log.events, &mut log.tips] {
                send(streams, ": keepalive\n\n", |_| true);
            }
        }
    }

    fn tell(&self, News { txid, state, subscriptions }: &News) {
        let mood = self.network.mood();
        let row = arcade::row(txid, state, &mood);
        let is_terminal = arcade::is_terminal(state);
        for Subscription { dialect, url, token, is_full } in subscriptions {
            let Some(url) = url else { continue };
            let (body, is_told) = match dialect {
                Dialect::Arcade => (row.clone(), *is_full || is_terminal),
                Dialect::Arc => (arc::callback(txid, state, &mood), arc::is_told(state, *is_full)),
            };
            if is_told {
                // Deliveries end with the service.
                let _ = self.letters.send(Letter { url: url.clone(), token: token.clone(), body });
            }
        }
        let id = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_nanos();
        let text = format!("id: {id}\nevent: status\ndata: {}\n\n", frame_of(row));
        let tokens = subscriptions.iter().filter_map(|it| it.token.clone()).collect();
        let frame = Frame { id, txid: *txid, tokens, is_terminal, text };
        let mut log = self.log.lock().unwrap();
        if !mood.is_mute {
            send(&mut log.events, &frame.text, |token| frame.is_for(token));
        }
        log.frames.push(frame);
    }
}

/// The members of a row that events have.
fn frame_of(mut row: Value) -> Value {
    if let Some(members) = row.as_object_mut() {
        let others = ["nextRetryAt", "merkleRegisteredAt", "orphanedProofs"];
        members.retain(|name, _| !others.contains(&name.as_str()));
    }
    row
}

fn open(streams: &mut Vec<Stream>, token: Option<&str>, due: &str) -> Answer {
    let (parts, coming) = mpsc::channel();
    streams.push(Stream { token: token.map(str::to_owned), parts });
    Answer::Stream([HEAD, due.as_bytes()].concat(), Arc::new(Mutex::new(coming)))
}

/// Sends a text to the streams of some tokens, and drops the streams whose readers are gone.
fn send(streams: &mut Vec<Stream>, text: &str, is_for: impl Fn(Option<&str>) -> bool) {
    streams.retain(|Stream { token, parts }| {
        !is_for(token.as_deref()) || parts.send(text.as_bytes().to_vec()).is_ok()
    });
}

/// Tells the news until the service ends.
fn follow(push: &Weak<Push>) {
    let (mut known, mut heard) = (None, Instant::now());
    while let Some(push) = push.upgrade() {
        let tip = push.network.tip();
        if tip.is_some() && tip != known {
            known = tip;
            push.network.give_waiting();
            push.network.touch_all();
        }
        for news in push.network.news() {
            push.tell(&news);
        }
        if !push.network.mood().is_mute {
            push.refresh(&mut heard);
        }
        drop(push);
        sleep(PERIOD);
    }
}

/// Delivers callbacks until the service ends.
fn deliver(network: &Network, posted: &mpsc::Receiver<Letter>) {
    let mut held = None;
    for letter in posted {
        match network.mood().callbacks {
            Callbacks::Dropped => {}
            Callbacks::Honest => post(&letter),
            Callbacks::Doubled => {
                post(&letter);
                post(&letter);
            }
            Callbacks::Reordered => match held.take() {
                Some(earlier) => {
                    post(&letter);
                    post(&earlier);
                }
                None => held = Some(letter),
            },
            Callbacks::Forged => {
                let mut forged = letter.clone();
                forged.body["txStatus"] = json!("MINED");
                forged.body["blockHash"] = json!(BlockHash::from_bytes([7; 32]).to_string());
                forged.body["blockHeight"] = json!(1);
                post(&forged);
                post(&letter);
            }
        }
    }
}

fn post(Letter { url, token, body }: &Letter) {
    let rest = url.strip_prefix("http://").unwrap_or_default();
    let Some((address, path)) = rest.split_once('/') else { return };
    let authorization = format!("Bearer {}", token.as_deref().unwrap_or_default());
    let headers = [("Content-Type", "application/json"), ("Authorization", &authorization)];
    let body = body.to_string();
    // Receivers are away at times.
    let _ = Client::new(address).unchecked().try_send(
        "POST",
        &format!("/{path}"),
        &headers,
        body.as_bytes(),
    );
}
