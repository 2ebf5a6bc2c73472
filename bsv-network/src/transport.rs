use std::error::Error;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use hyper::{Request, Response, StatusCode};
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::connection::Connector;
use crate::error::NodeError;
use crate::hex_digits;

/// Where a node answers RPC, and the credentials. `Debug` does not show a password.
#[derive(Clone, Debug)]
pub struct NodeSettings {
    /// A host name or an IP address.
    pub host: String,
    /// The port.
    pub port: u16,
    /// The credentials.
    pub credentials: NodeCredentials,
}

/// How a client proves to a node that it may call it.
#[derive(Clone, Debug)]
pub enum NodeCredentials {
    /// The node's `rpcuser` and `rpcpassword`.
    Password {
        /// The user name.
        user: String,
        /// The password.
        password: SecretString,
    },
    /// The file `.cookie` that a node without `rpcpassword` writes at each start, in the directory of
    /// its network. The file is read again if the node refuses what it held before.
    CookieFile(PathBuf),
}

impl NodeCredentials {
    /// A user name and a password.
    pub fn password(user: impl Into<String>, password: impl Into<SecretString>) -> Self {
        Self::Password { user: user.into(), password: password.into() }
    }
}

impl NodeSettings {
    /// `host:port`, with an IPv6 address in brackets.
    pub(crate) fn address(&self) -> String {
        if self.host.contains(':') && !self.host.starts_with('[') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}

/// The longest accepted answer, in bytes. This length is far above the hashes of any block and any
/// transaction within policy, and far below the memory of a machine.
pub(crate) const MOST_ANSWER_BYTES: usize = 64 << 20;

/// How many calls a node runs at once (its `rpcthreads`). The node queues 16 more (`rpcworkqueue`),
/// and refuses the rest. Calls above a client's turns wait in the client, where they are not
/// refused.
const TURNS: usize = 4;

/// How many idle connections are kept open.
const MOST_IDLE: usize = 12;

/// How long an abandoned call keeps its turn at most, unless the node answers earlier. The node
/// goes on with such a call.
const LONGEST_UNWAITED: Duration = Duration::from_secs(30);

/// How long a connection may be idle. A node closes connections after 30 idle seconds
/// (`rpcservertimeout`). Closing them earlier keeps calls out of connections that the node is just
/// closing.
const IDLE_TIMEOUT: Duration = Duration::from_secs(20);

/// The node's message when its queue is full. The message comes as plain text with status 500.
const BUSY: &str = "Work queue depth exceeded";

/// The code of every error while a node starts (`RPC_IN_WARMUP`).
const STARTING: i64 = -28;
/// `RPC_FORBIDDEN_BY_SAFE_MODE`.
const SAFE_MODE: i64 = -2;

/// HTTP connections to one node, and a share of the calls that it runs at once.
#[derive(Clone, Debug)]
pub(crate) struct Transport {
    http: Arc<Http>,
    turns: Arc<Semaphore>,
}

/// HTTP connections to one node.
#[derive(Debug)]
struct Http {
    client: Client<Connector, Full<Bytes>>,
    url: String,
    authorization: Authorization,
    address: String,
    host: String,
}

/// The values of the `Authorization` header. `Debug` does not show them.
#[derive(Debug)]
enum Authorization {
    Fixed(HeaderValue),
    Cookie {
        file: PathBuf,
        /// The last value that was read.
        read: Mutex<Option<HeaderValue>>,
    },
}

/// Whether a call may safely be made twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repeatable {
    Yes,
    No,
}

/// Why there is no answer.
type Failure = Box<dyn Error + Send + Sync>;

#[derive(Serialize)]
struct Call<'a, P> {
    jsonrpc: &'static str,
    /// The call's index in a batch, from 0.
    id: usize,
    method: &'a str,
    params: &'a P,
}

impl<'a, P> Call<'a, P> {
    fn new(id: usize, method: &'a str, params: &'a P) -> Self {
        Self { jsonrpc: "1.0", id, method, params }
    }
}

#[derive(Deserialize)]
struct Answer {
    /// The result; `null` is one too.
    result: Box<RawValue>,
    error: Option<AnswerError>,
    id: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
struct AnswerError {
    code: i64,
    message: String,
}

impl Transport {
    pub(crate) fn new(settings: &NodeSettings) -> Self {
        let address = settings.address();
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE_TIMEOUT)
            .pool_max_idle_per_host(MOST_IDLE)
            .build(Connector::new(address.clone()));
        let url = format!("http://{address}/");
        let host = settings.host.clone();
        let authorization = Authorization::new(&settings.credentials);
        let http = Http { client, url, authorization, address, host };
        Self { http: Arc::new(http), turns: Arc::new(Semaphore::new(TURNS)) }
    }

    /// The host name or IP address of the node.
    pub(crate) fn host(&self) -> &str {
        &self.http.host
    }

    /// The same connections, with turns of their own.
    pub(crate) fn with_turns(self, turns: usize) -> Self {
        Self { turns: Arc::new(Semaphore::new(turns)), ..self }
    }

    /// Makes one call whose result is a string, which is read as it arrives. The call must be
    /// repeatable. `timeout` covers each wait for more of the answer.
    pub(crate) async fn open(
        &self,
        method: &str,
        params: &impl Serialize,
        timeout: Duration,
    ) -> Result<AnswerStream<'_>, NodeError> {
        let body = encode(&Call::new(0, method, params));
        let send = async {
            let turn = self.turn().await;
            (turn, self.http.send(body, Repeatable::Yes).await)
        };
        let late = |_| self.unreachable(format!("it did not answer within {timeout:?}"));
        let (turn, sent) = tokio::time::timeout(timeout, send).await.map_err(late)?;
        let response = sent.map_err(|error| self.failed(method, &*error))?;
        let mut stream = AnswerStream {
            transport: self,
            method: method.to_owned(),
            timeout,
            status: response.status(),
            body: response.into_body(),
            text: Vec::new(),
            _turn: turn,
        };
        stream.find_result().await?;
        Ok(stream)
    }

    /// Makes one call. `timeout` covers all of it. The result is JSON as the node wrote it, `null`
    /// included.
    pub(crate) async fn call(
        &self,
        method: &str,
        params: &impl Serialize,
        timeout: Duration,
        repeatable: Repeatable,
    ) -> Result<Box<RawValue>, NodeError> {
        let request = || encode(&Call::new(0, method, params));
        let (status, answer) = self.exchange(method, request, timeout, repeatable).await?;
        self.read(method, status, &answer)
    }

    /// Makes several calls in one HTTP request, a method and its parameters each. The node makes
    /// them in this order and answers each of them. `timeout` covers all of them together, and so
    /// does `repeatable`.
    pub(crate) async fn batch<P: Serialize>(
        &self,
        calls: &[(&str, P)],
        timeout: Duration,
        repeatable: Repeatable,
    ) -> Result<Vec<Result<Box<RawValue>, NodeError>>, NodeError> {
        let methods: Vec<_> = calls.iter().map(|(method, _)| *method).collect();
        let request = || {
            let calls = calls.iter().enumerate();
            let calls = calls.map(|(id, (method, params))| Call::new(id, method, params));
            encode(&calls.collect::<Vec<_>>())
        };
        let name = all_of(&methods);
        let (status, answer) = self.exchange(&name, request, timeout, repeatable).await?;
        self.read_batch(&methods, status, &answer)
    }

    /// Makes a request once there is a turn. Requests can be long, so they are not written earlier.
    async fn exchange(
        &self,
        method: &str,
        request: impl FnOnce() -> Bytes,
        timeout: Duration,
        repeatable: Repeatable,
    ) -> Result<(StatusCode, Vec<u8>), NodeError> {
        let exchange = async {
            let turn = self.turn().await;
            let body = request();
            let http = Arc::clone(&self.http);
            // A node goes on with an abandoned call, so the call keeps its turn.
            let posted = tokio::spawn(async move {
                let _turn = turn;
                let longest = timeout.max(LONGEST_UNWAITED);
                tokio::time::timeout(longest, http.post(body, repeatable)).await?
            });
            posted.await?
        };
        let (status, answer) = match tokio::time::timeout(timeout, exchange).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(error)) => return Err(self.failed(method, &*error)),
            Err(_) => return Err(self.unreachable(format!("it did not answer within {timeout:?}"))),
        };
        if answer.len() > MOST_ANSWER_BYTES {
            let reason = format!("longer than {MOST_ANSWER_BYTES} bytes");
            return Err(NodeError::unexpected(method, reason));
        }
        Ok((status, answer))
    }

    /// Waits for a turn.
    async fn turn(&self) -> OwnedSemaphorePermit {
        let turn = Arc::clone(&self.turns).acquire_owned();
        turn.await.expect("nobody closes the semaphore")
    }

    /// Interprets an answer. Errors of a call come with status 500, or 404 for an unknown method,
    /// and a JSON body.
    fn read(
        &self,
        method: &str,
        status: StatusCode,
        body: &[u8],
    ) -> Result<Box<RawValue>, NodeError> {
        self.check_served(status, body)?;
        let answer: Answer = serde_json::from_slice(body).map_err(|error| {
            NodeError::unexpected(method, format!("HTTP status {status}, {error}"))
        })?;
        match outcome(method, answer) {
            Ok(_) if status != StatusCode::OK => {
                Err(NodeError::unexpected(method, format!("HTTP status {status}, no error")))
            }
            outcome => outcome,
        }
    }

    /// Interprets the answer to a batch, which comes with status 200 even if calls failed. Each
    /// call has its own result or error.
    fn read_batch(
        &self,
        methods: &[&str],
        status: StatusCode,
        body: &[u8],
    ) -> Result<Vec<Result<Box<RawValue>, NodeError>>, NodeError> {
        self.check_served(status, body)?;
        let name = all_of(methods);
        let Ok(answers) = serde_json::from_slice::<Vec<Answer>>(body) else {
            // The node's error, if it refused the batch as a whole.
            self.read(&name, status, body)?;
            return Err(NodeError::unexpected(&name, "one answer to several calls".to_owned()));
        };
        let is_of = |(id, answer): (usize, &Answer)| {
            answer.id.as_deref().is_some_and(|answered| answered.get() == id.to_string())
        };
        let in_order = answers.iter().enumerate().all(is_of);
        if !in_order || answers.len() != methods.len() || status != StatusCode::OK {
            let reason = format!("HTTP status {status}, not one answer to each call");
            return Err(NodeError::unexpected(&name, reason));
        }
        let answers = methods.iter().zip(answers);
        Ok(answers.map(|(method, answer)| outcome(method, answer)).collect())
    }

    /// Checks that the node has accepted the request at all.
    fn check_served(&self, status: StatusCode, body: &[u8]) -> Result<(), NodeError> {
        match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Err(NodeError::Unauthorized),
            StatusCode::SERVICE_UNAVAILABLE => {
                Err(self.unreachable("the node is stopping".to_owned()))
            }
            _ if body.starts_with(BUSY.as_bytes()) => {
                Err(self.unreachable("the node is too busy".to_owned()))
            }
            _ => Ok(()),
        }
    }

    fn failed(&self, method: &str, error: &(dyn Error + 'static)) -> NodeError {
        let reason = innermost(error).to_string();
        if causes_of::<hyper::Error>(error).any(hyper::Error::is_parse) {
            NodeError::unexpected(method, format!("not HTTP, {reason}"))
        } else {
            self.unreachable(reason)
        }
    }

    fn unreachable(&self, reason: String) -> NodeError {
        NodeError::Unreachable { address: self.http.address.clone(), reason }
    }
}

impl Http {
    /// Posts a request. Stops reading an answer that is too long.
    async fn post(
        &self,
        body: Bytes,
        repeatable: Repeatable,
    ) -> Result<(StatusCode, Vec<u8>), Failure> {
        let response = self.send(body, repeatable).await?;
        let status = response.status();
        let mut body = response.into_body();
        let mut answer = Vec::new();
        while let Some(chunk) = next_chunk(&mut body).await? {
            answer.extend_from_slice(&chunk);
            if answer.len() > MOST_ANSWER_BYTES {
                break;
            }
        }
        Ok((status, answer))
    }

    async fn send(
        &self,
        body: Bytes,
        repeatable: Repeatable,
    ) -> Result<Response<Incoming>, Failure> {
        let authorization = self.authorization.current().await?;
        let response = self.send_as(&authorization, body.clone(), repeatable).await?;
        if response.status() != StatusCode::UNAUTHORIZED {
            return Ok(response);
        }
        // A node makes no call that it refuses, so the call can be sent again.
        match self.authorization.newer_than(&authorization).await? {
            Some(newer) => self.send_as(&newer, body, repeatable).await,
            None => Ok(response),
        }
    }

    async fn send_as(
        &self,
        authorization: &HeaderValue,
        body: Bytes,
        repeatable: Repeatable,
    ) -> Result<Response<Incoming>, Failure> {
        let request = |body| self.request(authorization, body);
        match self.client.request(request(body.clone())?).await {
            Err(error) if repeatable == Repeatable::Yes && is_hang_up(&error) => {
                Ok(self.client.request(request(body)?).await?)
            }
            response => Ok(response?),
        }
    }

    fn request(
        &self,
        authorization: &HeaderValue,
        body: Bytes,
    ) -> Result<Request<Full<Bytes>>, Failure> {
        let request = Request::post(&self.url)
            .header(AUTHORIZATION, authorization)
            .header(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        Ok(request.body(Full::new(body))?)
    }
}

/// A call's result, a string that is read as it arrives.
#[derive(Debug)]
pub(crate) struct AnswerStream<'a> {
    transport: &'a Transport,
    method: String,
    timeout: Duration,
    status: StatusCode,
    body: Incoming,
    /// The received bytes that are not yet passed on.
    text: Vec<u8>,
    _turn: OwnedSemaphorePermit,
}

impl AnswerStream<'_> {
    /// Reads up to the beginning of the string. An answer without a string is an error, with the
    /// node's message if it has one.
    async fn find_result(&mut self) -> Result<(), NodeError> {
        const NAME: &[u8] = br#"{"result":"#;
        let beginning = loop {
            // Some answers have a space before the string.
            let value = self.text.strip_prefix(NAME).map(<[u8]>::trim_ascii_start);
            if let Some([first, ..]) = value.filter(|_| self.status == StatusCode::OK) {
                let left = value.map_or(0, <[u8]>::len) - 1;
                break (*first == b'"').then(|| self.text.len() - left);
            }
            if !self.more().await? || self.text.len() > MOST_ANSWER_BYTES {
                self.transport.read(&self.method, self.status, &self.text)?;
                break None;
            }
        };
        let not_string = || {
            let reason = "the answer does not begin with a string".to_owned();
            NodeError::unexpected(&self.method, reason)
        };
        self.text.drain(..beginning.ok_or_else(not_string)?);
        Ok(())
    }

    /// Decodes more of a string of hexadecimal digits and appends the bytes to `out`. Answers
    /// whether there were more.
    pub(crate) async fn read_hex(&mut self, out: &mut Vec<u8>) -> Result<bool, NodeError> {
        loop {
            let end = self.text.iter().position(|byte| *byte == b'"');
            let digits = end.unwrap_or(self.text.len());
            let whole = digits - digits % 2;
            if whole > 0 {
                if !hex_digits::decode(&self.text[..whole], out) {
                    return Err(NodeError::unexpected(&self.method, "not hexadecimal".to_owned()));
                }
                self.text.drain(..whole);
                return Ok(true);
            }
            if end.is_some() {
                return Ok(false);
            }
            if !self.more().await? {
                let reason = "the answer is cut off".to_owned();
                return Err(NodeError::unexpected(&self.method, reason));
            }
        }
    }

    async fn more(&mut self) -> Result<bool, NodeError> {
        let chunk = tokio::time::timeout(self.timeout, next_chunk(&mut self.body)).await;
        let late = |_| {
            self.transport.unreachable(format!("no more of the answer within {:?}", self.timeout))
        };
        let failed = |error: hyper::Error| self.transport.failed(&self.method, &error);
        let chunk = chunk.map_err(late)?.map_err(failed)?;
        self.text.extend_from_slice(chunk.as_deref().unwrap_or_default());
        Ok(chunk.is_some())
    }
}

/// The names of the methods of a batch.
fn all_of(methods: &[&str]) -> String {
    let mut names = methods.to_vec();
    names.dedup();
    names.join(", ")
}

fn encode(calls: &impl Serialize) -> Bytes {
    serde_json::to_vec(calls).expect("parameters are plain values").into()
}

/// The result of one call, or the node's refusal.
fn outcome(method: &str, answer: Answer) -> Result<Box<RawValue>, NodeError> {
    match answer.error {
        None => Ok(answer.result),
        Some(AnswerError { code: STARTING, .. }) => Err(NodeError::Starting),
        Some(AnswerError { code: SAFE_MODE, message }) => Err(NodeError::SafeMode(message)),
        Some(AnswerError { code, message }) => {
            Err(NodeError::Rejected { method: method.to_owned(), code, message })
        }
    }
}

impl Authorization {
    fn new(credentials: &NodeCredentials) -> Self {
        match credentials {
            NodeCredentials::Password { user, password } => {
                Self::Fixed(basic(&format!("{user}:{}", password.expose_secret())))
            }
            NodeCredentials::CookieFile(file) => {
                Self::Cookie { file: file.clone(), read: Mutex::default() }
            }
        }
    }

    async fn current(&self) -> Result<HeaderValue, Failure> {
        let (file, read) = match self {
            Self::Fixed(value) => return Ok(value.clone()),
            Self::Cookie { file, read } => (file, read),
        };
        let known = read.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match known {
            Some(known) => Ok(known),
            None => read_cookie(file, read).await,
        }
    }

    /// The present contents of the cookie file, if they are not the value that the node has refused.
    async fn newer_than(&self, refused: &HeaderValue) -> Result<Option<HeaderValue>, Failure> {
        let Self::Cookie { file, read } = self else { return Ok(None) };
        let present = read_cookie(file, read).await?;
        Ok((present != refused).then_some(present))
    }
}

async fn read_cookie(
    file: &Path,
    read: &Mutex<Option<HeaderValue>>,
) -> Result<HeaderValue, Failure> {
    let path = file.to_owned();
    let text = tokio::task::spawn_blocking(move || read_cookie_file(&path)).await??;
    let value = basic(text.expose_secret().trim_ascii_end());
    *read.lock().unwrap_or_else(PoisonError::into_inner) = Some(value.clone());
    Ok(value)
}

/// The longest accepted cookie file, in bytes. A node writes 75.
const MOST_COOKIE_BYTES: u64 = 1024;

fn read_cookie_file(path: &Path) -> Result<SecretString, Failure> {
    let unreadable = |error| format!("the cookie file {} cannot be read: {error}", path.display());
    let file = File::open(path).map_err(unreadable)?;
    let mut text = String::new();
    file.take(MOST_COOKIE_BYTES).read_to_string(&mut text).map_err(unreadable)?;
    Ok(text.into())
}

/// The value of the header for a user name and a password, with a colon between them.
fn basic(credentials: &str) -> HeaderValue {
    let mut value = HeaderValue::try_from(format!("Basic {}", BASE64_STANDARD.encode(credentials)))
        .expect("base64 has no characters that a header may not have");
    value.set_sensitive(true);
    value
}

/// The next part of a body, or `None` at its end.
async fn next_chunk(body: &mut Incoming) -> Result<Option<Bytes>, hyper::Error> {
    while let Some(frame) = body.frame().await {
        // Other frames are trailers.
        if let Ok(chunk) = frame?.into_data() {
            return Ok(Some(chunk));
        }
    }
    Ok(None)
}

/// Whether the node closed the connection instead of answering. A closed connection meets the first
/// call after a node's restart, if the client has not noticed yet that the old connection is
/// closed.
fn is_hang_up(error: &(dyn Error + 'static)) -> bool {
    let mut of_http = causes_of::<hyper::Error>(error);
    let mut of_io = causes_of::<io::Error>(error).map(io::Error::kind);
    of_http.any(hyper::Error::is_incomplete_message)
        || of_io.any(|kind| matches!(kind, ErrorKind::ConnectionReset | ErrorKind::BrokenPipe))
}

fn causes_of<'a, E: Error + 'static>(
    error: &'a (dyn Error + 'static),
) -> impl Iterator<Item = &'a E> {
    causes(error).filter_map(<dyn Error>::downcast_ref)
}

/// The last cause in the chain, which tells what happened. The causes above it tell where.
fn innermost<'a>(error: &'a (dyn Error + 'static)) -> &'a (dyn Error + 'static) {
    causes(error).last().expect("an error comes first among its causes")
}

fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&error| error.source())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(host: &str) -> NodeSettings {
        NodeSettings {
            host: host.to_owned(),
            port: 8332,
            credentials: NodeCredentials::password("bitcoin", "hunter2"),
        }
    }

    fn read(status: u16, body: &str) -> Result<String, NodeError> {
        let status = StatusCode::from_u16(status).unwrap();
        Transport::new(&settings("localhost"))
            .read("getinfo", status, body.as_bytes())
            .map(|result| result.get().to_owned())
    }

    #[test]
    fn an_address_has_brackets_where_it_needs_them() {
        for (host, address) in [
            ("localhost", "localhost:8332"),
            ("127.0.0.1", "127.0.0.1:8332"),
            ("::1", "[::1]:8332"),
            ("[::1]", "[::1]:8332"),
        ] {
            assert_eq!(settings(host).address(), address);
        }
    }

    #[test]
    fn the_password_is_never_shown() {
        let shown = format!("{:?} {:?}", settings("h"), Transport::new(&settings("h")));
        assert!(!shown.contains("hunter2"), "{shown}");
    }

    #[test]
    fn results_keep_their_spelling() {
        for (result, expected) in
            [("4.656542373906925e-10", "4.656542373906925e-10"), ("null", "null")]
        {
            let body = format!(r#"{{"result":{result},"error":null,"id":"bsv"}}"#);
            assert_eq!(read(200, &body), Ok(expected.to_owned()));
        }
    }

    #[test]
    fn errors_are_told_apart() {
        let error = r#"{"result":null,"error":{"code":-5,"message":"no such thing"},"id":"bsv"}"#;
        let rejected = NodeError::Rejected {
            method: "getinfo".to_owned(),
            code: -5,
            message: "no such thing".to_owned(),
        };
        assert_eq!(read(500, error), Err(rejected));
        assert_eq!(read(500, &error.replace("-5", "-28")), Err(NodeError::Starting));
        let safe_mode = NodeError::SafeMode("no such thing".to_owned());
        assert_eq!(read(500, &error.replace("-5", "-2")), Err(safe_mode));
        assert_eq!(read(401, ""), Err(NodeError::Unauthorized));
        assert_eq!(read(403, ""), Err(NodeError::Unauthorized));
        for (status, body) in [(503, ""), (500, "Work queue depth exceeded\r\n")] {
            assert!(matches!(read(status, body), Err(NodeError::Unreachable { .. })));
        }
    }

    fn read_batch(
        status: u16,
        body: &str,
    ) -> Result<[Result<Box<RawValue>, NodeError>; 2], NodeError> {
        let status = StatusCode::from_u16(status).unwrap();
        let transport = Transport::new(&settings("localhost"));
        let answers = transport.read_batch(&["getinfo", "stop"], status, body.as_bytes())?;
        Ok(answers.try_into().unwrap())
    }

    #[test]
    fn each_call_of_a_batch_has_its_own_answer() {
        let result = r#"{"result":7,"error":null,"id":0}"#;
        let error = r#"{"result":null,"error":{"code":-5,"message":"none"},"id":1}"#;
        let [first, second] = read_batch(200, &format!("[{result},{error}]")).unwrap();
        assert_eq!(first.unwrap().get(), "7");
        let rejected =
            NodeError::Rejected { method: "stop".to_owned(), code: -5, message: "none".to_owned() };
        assert_eq!(second.unwrap_err(), rejected);
        let starting = error.replace("-5", "-28");
        let [_, second] = read_batch(200, &format!("[{result},{starting}]")).unwrap();
        assert_eq!(second.unwrap_err(), NodeError::Starting);
    }

    #[test]
    fn a_batch_that_is_refused_as_a_whole_has_one_error() {
        let error = r#"{"result":null,"error":{"code":-32700,"message":"Parse error"},"id":null}"#;
        let rejected = NodeError::Rejected {
            method: "getinfo, stop".to_owned(),
            code: -32700,
            message: "Parse error".to_owned(),
        };
        assert_eq!(read_batch(500, error).unwrap_err(), rejected);
        let starting = error.replace("-32700", "-28");
        assert_eq!(read_batch(500, &starting).unwrap_err(), NodeError::Starting);
        assert_eq!(read_batch(401, "").unwrap_err(), NodeError::Unauthorized);
        for (status, body) in [(503, ""), (500, "Work queue depth exceeded\r\n")] {
            let error = read_batch(status, body).unwrap_err();
            assert!(matches!(error, NodeError::Unreachable { .. }), "{error}");
        }
    }

    #[test]
    fn nonsense_in_answer_to_a_batch_is_unexpected() {
        let answer = |id: &str| format!(r#"{{"result":7,"error":null,"id":{id}}}"#);
        let batch = |ids: &[&str]| {
            let answers: Vec<_> = ids.iter().map(|id| answer(id)).collect();
            format!("[{}]", answers.join(","))
        };
        assert!(read_batch(200, &batch(&["0", "1"])).is_ok());
        for (status, body) in [
            (200, String::new()),
            (200, "[]".to_owned()),
            (200, answer("0")),
            (200, batch(&["0"])),
            (200, batch(&["0", "1", "2"])),
            (200, batch(&["1", "0"])),
            (200, batch(&["0", "0"])),
            (200, batch(&["0", "null"])),
            (200, format!(r#"[{},{{"result":7,"error":null}}]"#, answer("0"))),
            (200, format!("[{},7]", answer("0"))),
            (200, format!("[{},", answer("0"))),
            (500, batch(&["0", "1"])),
        ] {
            let error = read_batch(status, &body).unwrap_err();
            assert!(matches!(error, NodeError::Unexpected { .. }), "{body}: {error}");
        }
    }

    #[test]
    fn nonsense_is_unexpected() {
        for (status, body) in [
            (200, ""),
            (200, "<html>"),
            (200, "[]"),
            (200, "{}"),
            (200, r#"{"result":1,"error":{"code":"x","message":"y"}}"#),
            (200, r#"{"result":1,"error":"y"}"#),
            (200, "{\"result\":\"\u{1}\",\"error\":null}"),
            (302, r#"{"result":1,"error":null}"#),
            (500, r#"{"result":1,"error":null}"#),
        ] {
            let error = read(status, body).unwrap_err();
            assert!(matches!(error, NodeError::Unexpected { .. }), "{body}: {error}");
        }
    }
}
