use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulConnection, GracefulShutdown};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

use super::Answer;
use super::patient::Patient;

/// What a stranger can make a listener hold.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Connections at once; further ones wait to be accepted.
    pub(crate) connections: usize,
    /// For how long the head of a request may arrive, also on an idle connection.
    pub(crate) head_timeout: Duration,
    /// For how long a peer may take nothing of its answer.
    pub(crate) answer_patience: Duration,
    /// The size of a request's head, in bytes.
    pub(crate) head_len: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 1024,
            head_timeout: Duration::from_secs(10),
            answer_patience: Duration::from_secs(30),
            head_len: 16 << 10,
        }
    }
}

/// For how long requests in flight may go on after a shutdown has begun.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(30);

/// Something that accepts connections.
pub(crate) trait Listener: Send + 'static {
    /// A connection.
    type Connection: AsyncRead + AsyncWrite + Unpin + Send + 'static;

    /// Waits for the next connection.
    fn accept(&self) -> impl Future<Output = io::Result<Self::Connection>> + Send;
}

impl Listener for TcpListener {
    type Connection = tokio::net::TcpStream;

    async fn accept(&self) -> io::Result<Self::Connection> {
        let (stream, _) = TcpListener::accept(self).await?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }
}

impl Listener for UnixListener {
    type Connection = tokio::net::UnixStream;

    async fn accept(&self) -> io::Result<Self::Connection> {
        Ok(UnixListener::accept(self).await?.0)
    }
}

/// Answers the requests that come over one connection.
pub(crate) fn serve_stream<C, H, F>(
    stream: C,
    limits: Limits,
    handler: H,
) -> impl GracefulConnection<Error = hyper::Error>
where
    C: AsyncRead + AsyncWrite + Unpin + 'static,
    H: Fn(Request<Incoming>) -> F,
    F: Future<Output = Answer>,
{
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(limits.head_timeout)
        // Nearly all answers are small: to copy one costs less than to gather its parts.
        .writev(false)
        .max_header_size(limits.head_len);
    let service = service_fn(move |request| {
        let answer = handler(request);
        async { Ok::<_, Infallible>(answer.await) }
    });
    let stream = Patient::new(stream, limits.answer_patience);
    http.serve_connection(TokioIo::new(stream), service)
}

/// Answers requests until `shutdown` completes, then finishes those in flight.
pub(crate) async fn serve<L, H, F>(
    listener: L,
    limits: Limits,
    handler: H,
    shutdown: impl Future<Output = ()>,
) where
    L: Listener,
    H: Fn(Request<Incoming>) -> F + Clone + Send + 'static,
    F: Future<Output = Answer> + Send + 'static,
{
    let places = Arc::new(Semaphore::new(limits.connections));
    let graceful = GracefulShutdown::new();
    tokio::pin!(shutdown);
    loop {
        let accepted = async {
            let place = Arc::clone(&places).acquire_owned().await.ok()?;
            Some((place, listener.accept().await))
        };
        let (place, connection) = tokio::select! {
            Some(accepted) = accepted => accepted,
            () = &mut shutdown => break,
        };
        let stream = match connection {
            Ok(stream) => stream,
            Err(error) => {
                // A peer that gave up, or no more file descriptors: the latter takes a moment.
                tracing::debug!("cannot accept a connection: {error}");
                sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let connection = graceful.watch(serve_stream(stream, limits, handler.clone()));
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!("a connection ended: {error}");
            }
            drop(place);
        });
    }
    drop(listener);
    if timeout(DRAIN_TIMEOUT, graceful.shutdown()).await.is_err() {
        tracing::warn!("some requests did not end in time and are broken off");
    }
}
