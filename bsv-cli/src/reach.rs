use std::io;
use std::time::{Duration, Instant};

use bsv_server::{Config, Instance, OpenError, Surface, control};
use bsv_store::LockError;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1;
use hyper::{Method, Response, StatusCode};
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
}

/// Why the service could not be asked.
#[derive(Debug, Error)]
pub(crate) enum ReachError {
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error("the server broke off before it answered, so that what it did is unknown: {0}")]
    BrokenOff(#[from] hyper::Error),
    #[error("cannot ask the service: {0}")]
    Io(#[from] io::Error),
}

/// For how long a data directory that somebody holds is tried again, where no server answers: a
/// server may be starting or stopping, or another command may run.
const PATIENCE: Duration = Duration::from_secs(5);

/// Asks the server that runs on the data directory, or else a service in this process.
pub(crate) async fn ask(config: Config, request: &Request) -> Result<Answer, ReachError> {
    bsv_server::survive_file_size_limit()?;
    let deadline = Instant::now() + PATIENCE;
    loop {
        match Instance::open(config.clone(), "bsv-cli") {
            Ok(instance) => return ask_here(&instance, request).await,
            Err(OpenError::Lock(LockError::Held { .. })) if Instant::now() < deadline => {}
            Err(error) => return Err(error.into()),
        }
        if let Ok(stream) = control::connect(&config.network_dir).await {
            return ask_server(stream, request).await;
        }
        sleep(Duration::from_millis(50)).await;
    }
}

async fn ask_here(instance: &Instance, request: &Request) -> Result<Answer, ReachError> {
    let answer = instance.answer(Surface::Control, request.to_http()).await;
    instance.record_hand_outs();
    let (head, body) = answer.into_parts();
    let Ok(body) = body.collect().await;
    Ok(Answer::new(head.status, &body.to_bytes()))
}

async fn ask_server(stream: UnixStream, request: &Request) -> Result<Answer, ReachError> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    let answer: Response<_> = sender.send_request(request.to_http()).await?;
    let (head, body) = answer.into_parts();
    Ok(Answer::new(head.status, &body.collect().await?.to_bytes()))
}

impl Request {
    fn to_http(&self) -> hyper::Request<Full<Bytes>> {
        let body = Full::new(Bytes::from(self.body.clone().unwrap_or_default()));
        let mut request = hyper::Request::new(body);
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = self.path.parse().expect("paths are made of aliases and numbers");
        request
    }
}

impl Answer {
    fn new(status: StatusCode, body: &[u8]) -> Self {
        Self { status, body: String::from_utf8_lossy(body).into_owned() }
    }
}
