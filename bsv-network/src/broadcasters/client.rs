use std::fmt;
use std::time::Duration;

use bsv_tx::{ExtendedTransaction, Txid};
use reqwest::header::{CONTENT_TYPE, DATE};
use reqwest::{Client, RequestBuilder, StatusCode, Url};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use thiserror::Error;

use super::answer::{Answer, Members, Word};
use super::callback::Callback;
use crate::service::{
    self, TIMEOUT, Unread, host_of, is_too_deep, one_line, reasons, retry_after, secrets_in,
    without,
};

/// The dialect of a broadcaster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// Arcade: `POST /tx`, and refusals with status 400.
    Arcade,
    /// ARC: `POST /v1/tx`, and refusals with the code as the status.
    Arc,
}

/// A client of one broadcaster.
#[derive(Clone)]
pub struct Broadcaster {
    dialect: Dialect,
    url: String,
    host: String,
    client: Client,
    api_key: Option<SecretString>,
    callback: Option<Callback>,
    requests_per_second: u32,
    /// What its words must not show.
    secrets: Vec<SecretString>,
}

/// Why a broadcaster says nothing about a transaction. Another one may.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BroadcasterError {
    /// There is no complete answer. The broadcaster may have the transaction.
    #[error("it does not answer: {0}")]
    Unreachable(String),
    /// It refuses the API key, or wants one (401, 403).
    #[error("it refuses the API key (HTTP {0})")]
    Unauthorized(u16),
    /// It has no time, or is in trouble.
    #[error("it is busy (HTTP {status})")]
    Busy {
        /// The HTTP status.
        status: u16,
        /// How long it wants to be left alone (`Retry-After`), for an hour at most.
        retry_after: Option<Duration>,
    },
    /// The answer makes no sense.
    #[error("it answers nonsense: {0}")]
    Nonsense(String),
}

/// How often a broadcaster is asked in a second, if nothing else is said.
const REQUESTS_PER_SECOND: u32 = 20;
/// How long an answer may be.
const MOST_BYTES: usize = 16 << 20;

/// `GET /policy`.
#[derive(Deserialize)]
struct PolicyAnswer {
    policy: PolicyMembers,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PolicyMembers {
    mining_fee: MiningFee,
}

#[derive(Deserialize)]
struct MiningFee {
    satoshis: u64,
    bytes: u64,
}

/// What a broadcaster tells of itself (`GET /health`). It may leave out anything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Health {
    /// The height of the chain as it knows it. ARC never tells it.
    #[serde(rename = "blockHeight")]
    pub height: Option<u32>,
    /// Whether it calls itself healthy.
    pub healthy: Option<bool>,
    /// The time of its clock: the header `Date` of the answer.
    #[serde(skip)]
    pub date: Option<String>,
}

/// An answer that was read.
struct Read {
    status: StatusCode,
    date: Option<String>,
    body: Vec<u8>,
}

impl Broadcaster {
    /// A broadcaster whose routes begin with `url`, without a slash at the end and, for ARC, without
    /// `/v1`. `client` should follow no redirects.
    pub fn new(dialect: Dialect, client: Client, url: impl Into<String>) -> Self {
        let url = url.into();
        let (host, secrets) = (host_of(&url), secrets_in(&url));
        let (api_key, callback, requests_per_second) = (None, None, REQUESTS_PER_SECOND);
        Self { dialect, url, host, client, api_key, callback, requests_per_second, secrets }
    }

    /// The same broadcaster, which is shown this API key.
    pub fn with_api_key(self, key: SecretString) -> Self {
        let secrets = [self.secrets, vec![key.clone()]].concat();
        Self { api_key: Some(key), secrets, ..self }
    }

    /// The same broadcaster, which is asked to tell of changes.
    pub fn with_callback(self, callback: Callback) -> Self {
        let in_url = callback.url.as_deref().map(secrets_in).unwrap_or_default();
        let secrets = [self.secrets, in_url, vec![callback.token.clone()]];
        Self { callback: Some(callback), secrets: secrets.concat(), ..self }
    }

    /// The same broadcaster, which a [`BroadcasterSet`](super::BroadcasterSet) asks at most so often
    /// in a second (20 by default, 1 at least).
    pub fn with_requests_per_second(self, requests_per_second: u32) -> Self {
        Self { requests_per_second, ..self }
    }

    pub(super) fn requests_per_second(&self) -> usize {
        self.requests_per_second as usize
    }

    /// Its dialect.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// The host, and the port if the URL has one. Other parts of the URL may be secret.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Gives it a transaction. Its unmined ancestors must have been given before.
    pub async fn send(
        &self,
        transaction: &ExtendedTransaction,
    ) -> Result<Answer, BroadcasterError> {
        let request = self.client.post(self.route("/tx"));
        let mut request = request
            .header(CONTENT_TYPE, "application/octet-stream")
            .header("X-FullStatusUpdates", "true");
        if let Some(Callback { url, token }) = &self.callback {
            request = request.header("X-CallbackToken", token.expose_secret());
            if let Some(url) = url {
                request = request.header("X-CallbackUrl", url);
            }
        }
        let read = self.ask(request.body(transaction.to_bytes())).await?;
        if read.status == StatusCode::NOT_FOUND {
            return Err(self.nonsense(&read, "there is no such route"));
        }
        self.answer(&read, &transaction.transaction().txid())
    }

    /// Asks what became of a transaction.
    pub async fn status(&self, txid: &Txid) -> Result<Answer, BroadcasterError> {
        let read = self.ask(self.client.get(self.route(&format!("/tx/{txid}")))).await?;
        if read.status == StatusCode::NOT_FOUND {
            return Ok(Answer { word: Word::Unknown, path: None });
        }
        self.answer(&read, txid)
    }

    /// The fee that it asks for, in satoshis per 1000 bytes, rounded up.
    pub async fn fee_rate(&self) -> Result<u64, BroadcasterError> {
        let read = self.ask(self.client.get(self.route("/policy"))).await?;
        if !read.status.is_success() {
            return Err(self.nonsense(&read, "it tells no policy"));
        }
        let PolicyAnswer { policy } = self.json(&read)?;
        let MiningFee { satoshis, bytes } = policy.mining_fee;
        let rate = u128::from(satoshis) * 1000;
        let rate = (bytes > 0).then(|| rate.div_ceil(u128::from(bytes)));
        let rate = rate.and_then(|rate| u64::try_from(rate).ok());
        rate.ok_or_else(|| self.nonsense(&read, "the fee of its policy makes no sense"))
    }

    /// What it tells of itself.
    pub async fn health(&self) -> Result<Health, BroadcasterError> {
        let read = self.ask(self.client.get(self.route("/health"))).await?;
        let health = match read.status.is_success() {
            true => self.json(&read)?,
            false => Health::default(),
        };
        Ok(Health { date: read.date, ..health })
    }

    fn route(&self, path: &str) -> String {
        match self.dialect {
            Dialect::Arcade => format!("{}{path}", self.url),
            Dialect::Arc => format!("{}/v1{path}", self.url),
        }
    }

    /// A request for the events after one, by the token of the callback. Only Arcade tells events.
    pub(super) fn events(&self, last_id: Option<&str>) -> Option<RequestBuilder> {
        let Callback { token, .. } = self.callback.as_ref()?;
        if self.dialect != Dialect::Arcade {
            return None;
        }
        let mut url = Url::parse(&self.route("/events")).ok()?;
        url.query_pairs_mut().append_pair("callbackToken", token.expose_secret());
        let request = self.client.get(url).header("X-FullStatusUpdates", "true");
        let request = self.authorized(request);
        Some(match last_id {
            Some(id) => request.header("Last-Event-ID", id),
            None => request,
        })
    }

    fn authorized(&self, request: RequestBuilder) -> RequestBuilder {
        match &self.api_key {
            Some(key) => request.bearer_auth(key.expose_secret()),
            None => request,
        }
    }

    async fn ask(&self, request: RequestBuilder) -> Result<Read, BroadcasterError> {
        let request = self.authorized(request);
        let away = |error| BroadcasterError::Unreachable(reasons(error));
        let answer = request.timeout(TIMEOUT).send().await.map_err(away)?;
        let status = answer.status();
        let date = answer.headers().get(DATE).and_then(|date| date.to_str().ok());
        let date = date.map(str::to_owned);
        // What the body of these says, and whether it comes, does not matter.
        match status.as_u16() {
            code @ (401 | 403) => return Err(BroadcasterError::Unauthorized(code)),
            code @ (408 | 409 | 413 | 429 | 500..) => {
                let retry_after = retry_after(answer.headers());
                return Err(BroadcasterError::Busy { status: code, retry_after });
            }
            _ => {}
        }
        let body = service::read(answer, MOST_BYTES).await.map_err(|unread| match unread {
            Unread::Cut(reason) => BroadcasterError::Unreachable(reason),
            Unread::TooLong => {
                let reason = format!("the answer is longer than {MOST_BYTES} bytes");
                BroadcasterError::Nonsense(reason)
            }
        })?;
        Ok(Read { status, date, body })
    }

    /// What an answer about a transaction means.
    fn answer(&self, read: &Read, txid: &Txid) -> Result<Answer, BroadcasterError> {
        let mut members: Members = self.json(read)?;
        members.hide(&self.secrets);
        let named = members.txid.as_deref().filter(|named| !named.is_empty());
        if named.is_some_and(|named| named.parse() != Ok(*txid)) {
            return Err(self.nonsense(read, "it is about another transaction"));
        }
        let code = members.code().or(match read.status.as_u16() {
            code @ 460..=476 => Some(code),
            _ => None,
        });
        let word = match (read.status.as_u16(), &members.tx_status) {
            (200..=299, Some(state)) if named.is_some() => return Ok(members.of_state(state, txid)),
            (400..=499, _) if code.is_some() => Some(members.of_code(code, txid)),
            (400, _) if self.dialect == Dialect::Arcade => members.without_code(txid),
            _ => None,
        };
        let word =
            word.ok_or_else(|| self.nonsense(read, "it says nothing about the transaction"))?;
        Ok(Answer { word, path: None })
    }

    fn json<'a, T: Deserialize<'a>>(&self, read: &'a Read) -> Result<T, BroadcasterError> {
        if is_too_deep(&read.body) {
            return Err(self.nonsense(read, "its JSON is too deep"));
        }
        // The words of this error repeat those of the answer.
        serde_json::from_slice(&read.body).map_err(|error| self.nonsense(read, &error.to_string()))
    }

    fn nonsense(&self, read: &Read, reason: &str) -> BroadcasterError {
        let line = |words: &str| one_line(&without(&self.secrets, words));
        let (reason, status) = (line(reason), read.status.as_u16());
        let answer = line(&String::from_utf8_lossy(&read.body));
        BroadcasterError::Nonsense(format!("{reason} (HTTP {status}): {answer}"))
    }
}

impl Dialect {
    /// The name in settings and metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Arcade => "arcade",
            Self::Arc => "arc",
        }
    }
}

impl fmt::Debug for Broadcaster {
    /// Shows the host. Other parts of the URL may be secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Broadcaster");
        shown.field("dialect", &self.dialect).field("host", &self.host).finish_non_exhaustive()
    }
}
