use std::error::Error;
use std::time::Duration;

use bsv_tx::{ExtendedTransaction, Txid};
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, RETRY_AFTER};
use reqwest::{Client, RequestBuilder, StatusCode};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use thiserror::Error;

use super::answer::{Answer, Members, Word, one_line};

/// The dialect of a broadcaster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// Arcade: `POST /tx`, and refusals with status 400.
    Arcade,
    /// ARC: `POST /v1/tx`, and refusals with the code as the status.
    Arc,
}

/// Where a broadcaster tells of changes. What it tells is only a reason to ask.
#[derive(Clone, Debug)]
pub struct Callback {
    /// The URL to which it posts.
    pub url: String,
    /// The bearer token that it sends along.
    pub token: SecretString,
}

/// A client of one broadcaster.
#[derive(Clone, Debug)]
pub struct Broadcaster {
    dialect: Dialect,
    url: String,
    client: Client,
    api_key: Option<SecretString>,
    callback: Option<Callback>,
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

/// How long an answer may take, and how long it may be.
const TIMEOUT: Duration = Duration::from_secs(30);
const MOST_BYTES: usize = 16 << 20;
/// The longest pause that a broadcaster may ask for.
const MOST_PAUSE: Duration = Duration::from_secs(3_600);
/// How deep the JSON of an answer may be.
const MOST_DEPTH: usize = 32;

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

/// An answer that was read.
struct Read {
    status: StatusCode,
    body: Vec<u8>,
}

impl Broadcaster {
    /// A broadcaster whose routes begin with `url`, without a slash at the end and, for ARC, without
    /// `/v1`. `client` should follow no redirects.
    pub fn new(dialect: Dialect, client: Client, url: impl Into<String>) -> Self {
        Self { dialect, url: url.into(), client, api_key: None, callback: None }
    }

    /// The same broadcaster, which is shown this API key.
    pub fn with_api_key(self, key: SecretString) -> Self {
        Self { api_key: Some(key), ..self }
    }

    /// The same broadcaster, which is asked to tell of changes.
    pub fn with_callback(self, callback: Callback) -> Self {
        Self { callback: Some(callback), ..self }
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
            let token = token.expose_secret();
            request = request.header("X-CallbackUrl", url).header("X-CallbackToken", token);
        }
        let read = self.ask(request.body(transaction.to_bytes())).await?;
        if read.status == StatusCode::NOT_FOUND {
            return Err(read.nonsense("there is no such route"));
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
            return Err(read.nonsense("it tells no policy"));
        }
        let PolicyAnswer { policy } = read.json()?;
        let MiningFee { satoshis, bytes } = policy.mining_fee;
        let rate = u128::from(satoshis) * 1000;
        let rate = (bytes > 0).then(|| rate.div_ceil(u128::from(bytes)));
        let rate = rate.and_then(|rate| u64::try_from(rate).ok());
        rate.ok_or_else(|| read.nonsense("the fee of its policy makes no sense"))
    }

    fn route(&self, path: &str) -> String {
        match self.dialect {
            Dialect::Arcade => format!("{}{path}", self.url),
            Dialect::Arc => format!("{}/v1{path}", self.url),
        }
    }

    async fn ask(&self, request: RequestBuilder) -> Result<Read, BroadcasterError> {
        let request = match &self.api_key {
            Some(key) => request.header(AUTHORIZATION, format!("Bearer {}", key.expose_secret())),
            None => request,
        };
        let mut answer = request.timeout(TIMEOUT).send().await.map_err(unreachable)?;
        let status = answer.status();
        let retry_after = answer.headers().get(RETRY_AFTER);
        let retry_after = retry_after.and_then(|value| value.to_str().ok()?.parse().ok());
        let retry_after = retry_after.map(|seconds| Duration::from_secs(seconds).min(MOST_PAUSE));
        // What the body of these says, and whether it comes, does not matter.
        match status.as_u16() {
            code @ (401 | 403) => return Err(BroadcasterError::Unauthorized(code)),
            code @ (408 | 409 | 413 | 429 | 500..) => {
                return Err(BroadcasterError::Busy { status: code, retry_after });
            }
            _ => {}
        }
        let mut body = Vec::new();
        while let Some(part) = answer.chunk().await.map_err(unreachable)? {
            if body.len() + part.len() > MOST_BYTES {
                let reason = format!("the answer is longer than {MOST_BYTES} bytes");
                return Err(BroadcasterError::Nonsense(reason));
            }
            body.extend_from_slice(&part);
        }
        Ok(Read { status, body })
    }

    /// What an answer about a transaction means.
    fn answer(&self, read: &Read, txid: &Txid) -> Result<Answer, BroadcasterError> {
        let members: Members = read.json()?;
        let named = members.txid.as_deref().filter(|named| !named.is_empty());
        if named.is_some_and(|named| named.parse() != Ok(*txid)) {
            return Err(read.nonsense("it is about another transaction"));
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
        let word = word.ok_or_else(|| read.nonsense("it says nothing about the transaction"))?;
        Ok(Answer { word, path: None })
    }
}

impl Read {
    fn json<'a, T: Deserialize<'a>>(&'a self) -> Result<T, BroadcasterError> {
        if depth(&self.body) > MOST_DEPTH {
            return Err(self.nonsense("its JSON is too deep"));
        }
        serde_json::from_slice(&self.body).map_err(|error| self.nonsense(&error.to_string()))
    }

    fn nonsense(&self, reason: &str) -> BroadcasterError {
        let body = String::from_utf8_lossy(&self.body[..self.body.len().min(200)]);
        let answer = one_line(&body);
        BroadcasterError::Nonsense(format!("{reason} (HTTP {}): {answer}", self.status.as_u16()))
    }
}

/// How deep brackets are nested outside of strings.
fn depth(json: &[u8]) -> usize {
    let (mut depth, mut most) = (0_usize, 0);
    let (mut in_string, mut is_escaped) = (false, false);
    for byte in json {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if in_string => is_escaped = true,
            b'"' => in_string = !in_string,
            b'[' | b'{' if !in_string => depth += 1,
            b']' | b'}' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
        most = most.max(depth);
    }
    most
}

/// The error without the URL, which may hold a key, with its causes.
fn unreachable(error: reqwest::Error) -> BroadcasterError {
    let error = error.without_url();
    let mut reason = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        reason.push_str(&format!(": {error}"));
        cause = error.source();
    }
    BroadcasterError::Unreachable(reason)
}
