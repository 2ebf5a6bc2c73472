//! Services in front of a real node, for clients without a node of their own: Arcade, ARC and Chaintracks. A test decides
//! how they behave.
//!
//! The node judges what is submitted, and shows what becomes of it. So the services tell the truth unless their
//! [`Mood`] says otherwise.

mod arc;
mod arcade;
mod chaintracks;
mod mood;
mod network;
mod push;

use std::sync::Arc;
use std::thread::sleep;

use bsv_network::NodeSettings;
use bsv_tx::Transaction;
use jiff::fmt::rfc2822::DateTimePrinter;
use serde_json::Value;

pub use self::mood::{Callbacks, Cut, HeaderPart, Mood, Path, Word};
use self::network::{Network, Subscription};
use self::push::Push;
use crate::node::Node;
use crate::payee::{Answer, Payee, Request};

/// One operator's services. They know only the transactions that they were given. They stop when dropped.
#[derive(Debug)]
pub struct Service {
    server: Payee,
    network: Arc<Network>,
    push: Arc<Push>,
}

impl Service {
    /// Honest services in front of `node`.
    pub fn before(node: &Node) -> Self {
        Self::of(node.settings())
    }

    /// Honest services in front of a node with these settings.
    pub(crate) fn of(node: NodeSettings) -> Self {
        let network = Arc::new(Network::of(node));
        let push = Push::of(&network);
        let server = Payee::asking(&Value::Null);
        let answer = || {
            let (network, push) = (Arc::clone(&network), Arc::clone(&push));
            move |request: &Request| answer(&network, &push, request)
        };
        server.on_get(answer());
        server.on_post(answer());
        Self { server, network, push }
    }

    /// The URL of the broadcasters. ARC's routes begin with `/v1` behind it, those of Arcade do not.
    pub fn url(&self) -> String {
        format!("http://{}", self.server.address())
    }

    /// The URL of the headers.
    pub fn chaintracks_url(&self) -> String {
        format!("{}/chaintracks/v2", self.url())
    }

    /// The URL at which chain trackers for WhatsOnChain find headers.
    pub fn whatsonchain_url(&self) -> String {
        format!("{}/whatsonchain", self.url())
    }

    /// Host and port.
    pub fn address(&self) -> String {
        self.server.address()
    }

    /// Sets the mood.
    pub fn be(&self, mood: Mood) {
        self.network.change_mood(|it| *it = mood);
    }

    /// Changes a part of the mood.
    pub fn change(&self, change: impl FnOnce(&mut Mood)) {
        self.network.change_mood(change);
    }

    /// Loses its memory, and ends all streams, like a service that begins anew.
    pub fn restart_empty(&self) {
        self.network.forget();
        self.push.restart();
    }

    /// Sends this text to all open streams of events, like `event: gap`.
    pub fn say(&self, text: &str) {
        self.push.say(text);
    }

    /// Takes a transaction from somebody who does not want to be told of it.
    pub(crate) fn take(&self, transaction: &Transaction) {
        // What it thinks of it is told to those who ask.
        let _ = self.network.submit(transaction, &Subscription::none());
    }

    /// The requests with this method so far.
    pub fn requests(&self, method: &str) -> Vec<Request> {
        self.server.requests(method)
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // Threads that feed streams end with them.
        self.push.restart();
    }
}

fn answer(network: &Network, push: &Push, request: &Request) -> Answer {
    let mood = network.mood();
    sleep(mood.delay);
    if mood.cut == Some(Cut::Request) {
        return Answer::Bytes(Vec::new());
    }
    let key = mood.api_key.map(|key| format!("Bearer {key}"));
    if key.is_some() && key.as_deref() != request.header("authorization") {
        return Answer::with(401, &[], b"");
    }
    if let Some((status, retry_after)) = mood.condition {
        let seconds = retry_after.map(|seconds| seconds.to_string());
        let mut headers = vec![("Content-Type", "application/json; charset=utf-8")];
        headers.extend(seconds.as_deref().map(|seconds| ("Retry-After", seconds)));
        return Answer::with(status, &headers, br#"{"error":"service overloaded, retry shortly"}"#);
    }
    let answer = dated(route(network, push, request), mood.clock);
    match (answer, mood.cut, mood.nonsense) {
        (Answer::Bytes(_), Some(Cut::Answer), _) => Answer::Bytes(Vec::new()),
        (Answer::Bytes(bytes), Some(_), _) => Answer::Bytes(bytes[..bytes.len() - 5].to_vec()),
        (Answer::Bytes(_), None, Some(nonsense)) => Answer::text(200, &nonsense),
        (answer, _, _) => answer,
    }
}

/// The answer with the header `Date` of a clock that is so many seconds ahead.
fn dated(answer: Answer, ahead: i64) -> Answer {
    let Answer::Bytes(bytes) = answer else { return answer };
    let time = jiff::Timestamp::now() + jiff::SignedDuration::from_secs(ahead);
    let date = DateTimePrinter::new().timestamp_to_rfc9110_string(&time).unwrap();
    let end = bytes.iter().position(|byte| *byte == b'\n').map_or(0, |place| place + 1);
    let (status, rest) = bytes.split_at(end);
    Answer::Bytes([status, format!("Date: {date}\r\n").as_bytes(), rest].concat())
}

fn route(network: &Network, push: &Push, request: &Request) -> Answer {
    let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
    match path {
        "/events" => {
            let token = query.split('&').find_map(|pair| pair.strip_prefix("callbackToken="));
            let last = request.header("last-event-id").and_then(|id| id.parse().ok());
            push.events(token, last)
        }
        "/chaintracks/v2/tip/stream" => push.tips(),
        "/v1/policy" => arcade::policy(network),
        path if path.starts_with("/v1/") => arc::answer(network, request),
        path => {
            if let Some(path) = path.strip_prefix("/chaintracks") {
                chaintracks::answer(network, request, path)
            } else if let Some(path) = path.strip_prefix("/whatsonchain") {
                chaintracks::header_of_block(network, path)
            } else {
                arcade::answer(network, request)
            }
        }
    }
}
