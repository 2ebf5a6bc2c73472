use std::io;
use std::time::{Duration, Instant};

use bsv_server::http::BrokenOff;
use bsv_server::{Config, Create, Instance, OpenError, Surface, control};
use bsv_store::LockError;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Body;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{CONTENT_TYPE, HeaderValue, LINK};
use hyper::http::response::Parts;
use hyper::{Method, StatusCode};
use hyper_util::rt::TokioIo;
use thiserror::Error;
use tokio::net::UnixStream;
use tokio::time::sleep;

/// A request to the service.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) body: Option<String>,
}

/// What the service answered.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) body: String,
    /// Where the invoice that it tells of can be paid.
    pub(crate) payment_url: Option<String>,
    /// The path of the next page, if there is one.
    pub(crate) next: Option<String>,
}

/// The service, wherever it is.
pub(crate) enum Service {
    /// In this process.
    Here(Box<Instance>),
    /// In the server that runs on the data directory.
    Server(SendRequest<Full<Bytes>>),
}

/// Why the service could not be asked.
#[derive(Debug, Error)]
pub(crate) enum ReachError {
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error("the server broke off before it answered, so that what it did is unknown: {0}")]
    BrokenOff(#[from] hyper::Error),
    #[error(transparent)]
    Answer(#[from] BrokenOff),
    #[error("cannot ask the service: {0}")]
    Io(#[from] io::Error),
}

/// For how long a server is waited for that holds the data directory and does not answer: it may be
/// starting or stopping.
const PATIENCE: Duration = Duration::from_secs(5);

impl Service {
    /// Finds the server that runs on the data directory, or else opens that here.
    pub(crate) async fn reach(config: Config, create: Create) -> Result<Self, ReachError> {
        bsv_server::survive_file_size_limit()?;
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Ok(stream) = control::connect(&config.network_dir).await {
                return Self::at_server(stream).await;
            }
            match Instance::open(config.clone(), "bsv-cli", create).await {
                Ok(instance) => return Ok(Self::Here(Box::new(instance))),
                Err(OpenError::Lock(LockError::Held { .. })) if Instant::now() < deadline => {}
                Err(error) => return Err(error.into()),
            }
            sleep(Duration::from_millis(50)).await;
        }
    }

    async fn at_server(stream: UnixStream) -> Result<Self, ReachError> {
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        Ok(Self::Server(sender))
    }

    /// Asks it for something that may be long, which is handed to `take` piece by piece. A refusal is
    /// answered whole.
    pub(crate) async fn ask_for_bytes(
        &mut self,
        request: &Request,
        take: impl FnMut(&[u8]) -> io::Result<()>,
    ) -> Result<Option<Answer>, ReachError> {
        match self {
            Self::Here(instance) => {
                let answer = instance.answer(Surface::Control, request.to_http()).await;
                hand_over(answer, take).await
            }
            Self::Server(sender) => {
                sender.ready().await?;
                hand_over(sender.send_request(request.to_http()).await?, take).await
            }
        }
    }

    /// Asks it for something.
    pub(crate) async fn ask(&mut self, request: &Request) -> Result<Answer, ReachError> {
        match self {
            Self::Here(instance) => {
                let answer = instance.answer(Surface::Control, request.to_http()).await;
                instance.record_hand_outs();
                let (head, body) = answer.into_parts();
                Ok(Answer::new(&head, &body.collect().await?.to_bytes()))
            }
            Self::Server(sender) => {
                sender.ready().await?;
                let answer = sender.send_request(request.to_http()).await?;
                let (head, body) = answer.into_parts();
                Ok(Answer::new(&head, &body.collect().await?.to_bytes()))
            }
        }
    }
}

async fn hand_over<B>(
    answer: hyper::Response<B>,
    mut take: impl FnMut(&[u8]) -> io::Result<()>,
) -> Result<Option<Answer>, ReachError>
where
    B: Body<Data = Bytes> + Unpin,
    ReachError: From<B::Error>,
{
    let (head, mut body) = answer.into_parts();
    if !head.status.is_success() {
        return Ok(Some(Answer::new(&head, &body.collect().await?.to_bytes())));
    }
    while let Some(frame) = body.frame().await {
        take(frame?.data_ref().map_or(&[], |bytes| bytes))?;
    }
    Ok(None)
}

impl Request {
    fn to_http(&self) -> hyper::Request<Full<Bytes>> {
        let body = Full::new(Bytes::from(self.body.clone().unwrap_or_default()));
        let mut request = hyper::Request::new(body);
        *request.method_mut() = self.method.clone();
        if self.body.is_some() {
            let json = HeaderValue::from_static("application/json");
            request.headers_mut().insert(CONTENT_TYPE, json);
        }
        *request.uri_mut() = self.path.parse().expect("paths are made of aliases, ids and numbers");
        request
    }
}

impl Answer {
    fn new(head: &Parts, body: &[u8]) -> Self {
        let link = |relation: &str| {
            let links = head.headers.get_all(LINK).iter().filter_map(|link| link.to_str().ok());
            let end = format!(">; rel=\"{relation}\"");
            let mut targets = links.filter_map(|link| link.strip_prefix('<')?.strip_suffix(&end));
            targets.next().map(str::to_owned)
        };
        Self {
            status: head.status,
            body: String::from_utf8_lossy(body).into_owned(),
            payment_url: link("payment"),
            next: link("next"),
        }
    }
}
