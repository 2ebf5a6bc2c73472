//! Requests to webhooks.

use std::collections::HashMap;
use std::error::Error;
use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use ipnet::IpNet;
use jiff::fmt::rfc2822::DateTimeParser;
use reqwest::header::{CONTENT_TYPE, HeaderMap, RETRY_AFTER, USER_AGENT};
use reqwest::{Client, Response, Url, redirect};
use tokio::time::timeout;

use super::{
    BlockedAddress, Outbound, OwnListeners, Reach, UnknownName, build, has_cause, is_blocked,
};
use crate::model::delivery::{AttemptFailure, AttemptOutcome, MAX_ANSWER_KEPT};
use crate::model::time::Timestamp;
use crate::wallet::WalletSettings;
use crate::webhooks::{WebhookAnswer, WebhookClient, WebhookRequest};

/// The longest URL of a webhook, in bytes.
const MAX_URL_LEN: usize = 2048;
/// How much of an answer's body is read, in bytes.
const MAX_BODY_READ: usize = 4096;
/// How many connections to a webhook are kept open while nothing is sent.
const IDLE_CONNECTIONS: usize = 8;
/// How many URLs have a client of their own. There are fewer webhooks, but their URLs can change.
const MAX_CLIENTS: usize = 64;

/// How long a request may take.
#[derive(Clone, Copy, Debug)]
struct Limits {
    /// Until the connection is made.
    connect: Duration,
    /// Until the head of the answer has come.
    head: Duration,
    /// From then on, until the beginning of the body has come.
    body: Duration,
}

const LIMITS: Limits = Limits {
    connect: Duration::from_secs(5),
    head: Duration::from_secs(15),
    body: Duration::from_secs(2),
};

/// Posts events to webhooks over HTTP. Redirects are not followed.
///
/// It connects only to public addresses, and to the networks that are open to webhooks. The
/// addresses are checked when the name is looked up, for each connection anew.
#[derive(Debug)]
pub struct HttpWebhooks {
    outbound: Outbound,
    user_agent: String,
    limits: Limits,
    /// The clients by URL. They keep connections open for later requests.
    clients: Mutex<HashMap<String, Client>>,
}

impl HttpWebhooks {
    /// For a process with the listeners `own`. The networks `opened` are open to webhooks.
    /// `user_agent` is the name and version in requests, such as `bsv-server/0.1.0`.
    pub fn new(own: OwnListeners, opened: &[IpNet], user_agent: &str) -> Self {
        Self {
            outbound: Outbound::with_opened(own, opened),
            user_agent: user_agent.to_owned(),
            limits: LIMITS,
            clients: Mutex::default(),
        }
    }

    fn client(&self, url: &Url) -> Result<Client, BlockedAddress> {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = clients.get(url.as_str()) {
            return Ok(client.clone());
        }
        let guard = self.outbound.guard(url, reach(url))?;
        let client = self
            .outbound
            .builder(&guard)
            .redirect(redirect::Policy::none())
            .connect_timeout(self.limits.connect)
            .pool_max_idle_per_host(IDLE_CONNECTIONS);
        let client = build(client);
        if clients.len() >= MAX_CLIENTS {
            clients.clear();
        }
        clients.insert(url.as_str().to_owned(), client.clone());
        Ok(client)
    }

    async fn post(&self, request: WebhookRequest) -> Result<WebhookAnswer, AttemptFailure> {
        let WebhookRequest { url, id, timestamp, signature, body } = request;
        let url = Url::parse(&url).map_err(|_| AttemptFailure::Connect)?;
        let client = self.client(&url).map_err(|BlockedAddress| AttemptFailure::BlockedAddress)?;
        let request = client
            .post(url)
            .header(CONTENT_TYPE, "application/json")
            .header(USER_AGENT, &self.user_agent)
            .header("webhook-id", id)
            .header("webhook-timestamp", timestamp)
            .header("webhook-signature", signature)
            .body(body);
        let answer = timeout(self.limits.head, request.send()).await;
        let answer = answer.map_err(|_| AttemptFailure::Timeout)?;
        let answer = answer.map_err(|error| failure(&error))?;
        let outcome = AttemptOutcome::Answered(answer.status().as_u16());
        let retry_after = retry_after(answer.headers(), Timestamp::of_system());
        let mut body = Vec::new();
        // The head has decided, and the body is only shown.
        let _ = timeout(self.limits.body, read_beginning(answer, &mut body)).await;
        body.truncate(MAX_ANSWER_KEPT);
        let answer = String::from_utf8_lossy(&body).into_owned();
        Ok(WebhookAnswer { outcome, answer, retry_after })
    }
}

/// Reads the beginning of a body, as far as it comes.
async fn read_beginning(mut answer: Response, body: &mut Vec<u8>) {
    while body.len() < MAX_BODY_READ
        && let Ok(Some(part)) = answer.chunk().await
    {
        body.extend_from_slice(&part[..part.len().min(MAX_BODY_READ - body.len())]);
    }
}

impl WebhookClient for HttpWebhooks {
    async fn prepare(&self) {
        self.outbound.load_certificates().await;
    }

    async fn send(&self, request: WebhookRequest) -> WebhookAnswer {
        self.post(request).await.unwrap_or_else(|failure| WebhookAnswer {
            outcome: AttemptOutcome::Failed(failure),
            answer: String::new(),
            retry_after: None,
        })
    }
}

/// Checks whether events may be posted to a URL. This does not look up names.
pub(crate) fn check_webhook_url(text: &str, settings: &WalletSettings) -> Result<(), String> {
    if text.len() > MAX_URL_LEN {
        return Err(format!("must have at most {MAX_URL_LEN} bytes"));
    }
    let url = Url::parse(text).map_err(|error| format!("must be a URL: {error}"))?;
    let is_opened = !settings.webhook_networks.is_empty();
    if url.scheme() != "https" && !(url.scheme() == "http" && is_opened) {
        let also = match is_opened {
            true => " or http://",
            false => ", unless [webhooks] allowNetworks opens the network that it leads to",
        };
        return Err(format!("must begin with https://{also}"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("must not name a user or a password".to_owned());
    }
    let own = settings.own_listeners.clone();
    let outbound = Outbound::with_opened(own, &settings.webhook_networks);
    match outbound.guard(&url, reach(&url)) {
        Ok(_) => Ok(()),
        Err(BlockedAddress) => {
            Err("must lead over https to a public address, or to a network that [webhooks] \
                 allowNetworks opens, and not to this service"
                .to_owned())
        }
    }
}

fn reach(url: &Url) -> Reach {
    Reach::Webhook { is_tls: url.scheme() == "https" }
}

/// Why there is no answer.
fn failure(error: &reqwest::Error) -> AttemptFailure {
    if is_blocked(error) {
        AttemptFailure::BlockedAddress
    } else if has_cause(error, <dyn Error>::is::<UnknownName>) {
        AttemptFailure::Dns
    } else if error.is_timeout() {
        AttemptFailure::Timeout
    } else if has_cause(error, is_of_tls) {
        AttemptFailure::Tls
    } else if error.is_connect() {
        AttemptFailure::Connect
    } else {
        AttemptFailure::Answer
    }
}

/// Whether it is an error of TLS. Such an error may be wrapped in one or more I/O errors.
fn is_of_tls(error: &(dyn Error + 'static)) -> bool {
    let mut inner = Some(error);
    while let Some(error) = inner {
        if error.is::<rustls::Error>() {
            return true;
        }
        let io_error = error.downcast_ref::<io::Error>();
        inner = io_error.and_then(io::Error::get_ref).map(|inner| inner as &(dyn Error + 'static));
    }
    false
}

/// The wait that an endpoint asks for: a number of seconds, or a time (RFC 9110, 10.2.3).
fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit()) {
        return Some(Duration::from_secs(text.parse().unwrap_or(u64::MAX)));
    }
    let at = DateTimeParser::new().parse_timestamp(text).ok()?.as_microsecond();
    let wait = u64::try_from(at).ok()?.saturating_sub(now.as_micros());
    Some(Duration::from_micros(wait))
}

#[cfg(test)]
mod tests;
