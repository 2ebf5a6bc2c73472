mod failure;

use std::fmt::Display;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use bsv_server::{Api, Config, Create, Instance, OpenError, control};
use bsv_store::LockError;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::Method;
use hyper::body::Body;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{CONTENT_TYPE, HOST, HeaderValue, LINK};
use hyper::http::response::Parts;
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::sleep;

pub(crate) use self::failure::{ReachError, Refusal};
use crate::error::CliError;

/// A request to the service.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) body: Option<String>,
}

/// A successful answer of the service.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) body: String,
    /// The payment URL of the invoice in the answer.
    pub(crate) payment_url: Option<String>,
    /// The URL of that invoice's page.
    pub(crate) page_url: Option<String>,
    /// The path of the next page, if there is one.
    pub(crate) next: Option<String>,
}

/// The service, in this process or in a server.
pub(crate) enum Service {
    /// In this process.
    Here(Box<Instance>),
    /// In the server that runs on the data directory.
    Server(SendRequest<Full<Bytes>>),
}

/// A line before the result of long work.
#[derive(Deserialize)]
struct Progress {
    progress: (u32, u32),
}

/// How long to wait for a server that holds the data directory but does not answer. Such a server
/// may be starting or stopping.
const PATIENCE: Duration = Duration::from_secs(5);

impl Service {
    /// Connects to the server that runs on the data directory. Without one, opens the data
    /// directory in this process.
    pub(crate) async fn reach(config: Config, create: Create) -> Result<Self, ReachError> {
        bsv_server::survive_file_size_limit()?;
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(server) = Self::of_server(&config.network_dir).await? {
                return Ok(server);
            }
            match Instance::open(config.clone(), "bsv-cli", create).await {
                Ok(instance) => return Ok(Self::Here(Box::new(instance))),
                Err(OpenError::Lock(LockError::Held { .. })) if Instant::now() < deadline => {}
                Err(error) => return Err(error.into()),
            }
            sleep(Duration::from_millis(50)).await;
        }
    }

    /// The server that runs on the data directory of a network, if any.
    pub(crate) async fn of_server(network_dir: &Path) -> Result<Option<Self>, ReachError> {
        let Ok(stream) = control::connect(network_dir).await else { return Ok(None) };
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        Ok(Some(Self::Server(sender)))
    }

    /// Whether the service is in this process, so that nobody else changes anything.
    pub(crate) fn is_here(&self) -> bool {
        matches!(self, Self::Here(_))
    }

    /// `GET path`.
    pub(crate) async fn get(&mut self, path: impl Into<String>) -> Result<Answer, CliError> {
        self.ask(Request { method: Method::GET, path: path.into(), body: None }).await
    }

    /// `DELETE path`.
    pub(crate) async fn delete(&mut self, path: impl Into<String>) -> Result<Answer, CliError> {
        self.ask(Request { method: Method::DELETE, path: path.into(), body: None }).await
    }

    /// `POST path` with a JSON body.
    pub(crate) async fn post(
        &mut self,
        path: impl Into<String>,
        body: impl Display,
    ) -> Result<Answer, CliError> {
        let body = Some(body.to_string());
        self.ask(Request { method: Method::POST, path: path.into(), body }).await
    }

    /// `PATCH path` with a JSON body.
    pub(crate) async fn patch(
        &mut self,
        path: impl Into<String>,
        body: impl Display,
    ) -> Result<Answer, CliError> {
        let body = Some(body.to_string());
        self.ask(Request { method: Method::PATCH, path: path.into(), body }).await
    }

    async fn ask(&mut self, request: Request) -> Result<Answer, CliError> {
        let mut body = Vec::new();
        let head = self.stream(&request, |bytes| io::Write::write_all(&mut body, bytes)).await?;
        Ok(Answer::new(&head, String::from_utf8_lossy(&body).into_owned()))
    }

    /// Requests long work. `progress` gets the height that it has reached, and the height of the last
    /// block.
    pub(crate) async fn work(
        &mut self,
        request: &Request,
        mut progress: impl FnMut(u32, u32),
    ) -> Result<Answer, CliError> {
        let mut body = Vec::new();
        let head = self.stream(request, |bytes| {
            body.extend_from_slice(bytes);
            while let Some(end) = body.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = body.drain(..=end).collect();
                let told = serde_json::from_slice(&line).map_err(io::Error::other)?;
                let Progress { progress: (height, last) } = told;
                progress(height, last);
            }
            Ok(())
        });
        let head = head.await?;
        let body = String::from_utf8_lossy(&body).into_owned();
        match body.strip_prefix("{\"problem\":").and_then(|rest| rest.strip_suffix('}')) {
            Some(problem) => Err(Refusal::new(problem.to_owned()).into()),
            None => Ok(Answer::new(&head, body)),
        }
    }

    /// Requests a long answer, and passes it to `take` piece by piece.
    pub(crate) async fn stream(
        &mut self,
        request: &Request,
        take: impl FnMut(&[u8]) -> io::Result<()>,
    ) -> Result<Parts, CliError> {
        match self {
            Self::Here(instance) => {
                let answer = instance.answer(Api::Control, request.to_http()).await;
                instance.record_hand_outs();
                hand_over(answer, take).await
            }
            Self::Server(sender) => {
                sender.ready().await.map_err(ReachError::from)?;
                let answer = sender.send_request(request.to_http()).await;
                hand_over(answer.map_err(ReachError::from)?, take).await
            }
        }
    }
}

async fn hand_over<B>(
    answer: hyper::Response<B>,
    mut take: impl FnMut(&[u8]) -> io::Result<()>,
) -> Result<Parts, CliError>
where
    B: Body<Data = Bytes> + Unpin,
    ReachError: From<B::Error>,
{
    let (head, mut body) = answer.into_parts();
    if !head.status.is_success() {
        let body = body.collect().await.map_err(ReachError::from)?.to_bytes();
        return Err(Refusal::new(String::from_utf8_lossy(&body).into_owned()).into());
    }
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(ReachError::from)?;
        take(frame.data_ref().map_or(&[], |bytes| bytes))?;
    }
    Ok(head)
}

impl Request {
    fn to_http(&self) -> hyper::Request<Full<Bytes>> {
        let body = Full::new(Bytes::from(self.body.clone().unwrap_or_default()));
        let mut request = hyper::Request::new(body);
        *request.method_mut() = self.method.clone();
        request.headers_mut().insert(HOST, HeaderValue::from_static("localhost"));
        if self.body.is_some() {
            let json = HeaderValue::from_static("application/json");
            request.headers_mut().insert(CONTENT_TYPE, json);
        }
        *request.uri_mut() = self.path.parse().expect("paths are made of aliases, ids and numbers");
        request
    }
}

impl Answer {
    fn new(head: &Parts, body: String) -> Self {
        let link = |relation: &str| {
            let links = head.headers.get_all(LINK).iter().filter_map(|link| link.to_str().ok());
            let mut links = links.filter_map(|link| link.strip_prefix('<')?.split_once(">; "));
            let relation = format!("rel=\"{relation}\"");
            let found = links.find(|(_, rest)| rest.split("; ").any(|it| it == relation));
            found.map(|(target, _)| target.to_owned())
        };
        let [payment_url, page_url, next] = ["payment", "alternate", "next"].map(link);
        Self { body, payment_url, page_url, next }
    }

    /// The parsed answer.
    pub(crate) fn read<T: DeserializeOwned>(&self) -> Result<T, CliError> {
        Ok(serde_json::from_str(&self.body).map_err(ReachError::Nonsense)?)
    }

    /// The parsed answer of any form.
    pub(crate) fn value(&self) -> Result<Value, CliError> {
        self.read()
    }
}
