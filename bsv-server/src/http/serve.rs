use std::io;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::future::{Either, ready};
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulConnection;
use ipnet::IpNet;
use rustix::net::sockopt::set_socket_send_buffer_size;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;

use super::connections::{Activity, AwaitedBody, BusyBody, Connections, Room};
use super::guard::names_one_host;
use super::peers::{Peers, Slot};
use super::tls::Tls;
use super::transport::Transport;
use super::write_timeout::WriteTimeout;
use super::{Answer, answer};

/// The limits on what strangers can make a listener hold.
#[derive(Clone, Debug)]
pub(crate) struct Limits {
    /// The most concurrent connections. An idle connection makes room for a new one. Without one,
    /// the new connection waits.
    pub(crate) connections: u32,
    /// The limits on each peer, on a listener for strangers.
    pub(crate) peers: Option<Arc<Peers>>,
    /// How long the head of a request may take. The same time limits an idle connection.
    pub(crate) head_timeout: Duration,
    /// How long a peer may take nothing of its answer.
    pub(crate) write_timeout: Duration,
    /// The longest head of a request, in bytes.
    pub(crate) head_len: usize,
    /// How long requests in flight may continue after a shutdown has begun.
    pub(crate) drain_timeout: Duration,
    /// Whether a peer that has shut its sending side still gets its answer. Otherwise it counts as
    /// gone, and its request ends.
    pub(crate) half_close: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 1024,
            peers: None,
            head_timeout: Duration::from_secs(10),
            write_timeout: Duration::from_secs(30),
            head_len: 16 << 10,
            drain_timeout: Duration::from_secs(30),
            half_close: false,
        }
    }
}

/// How much of an answer the kernel holds for a peer, in bytes. Linux doubles this size. Without it, the kernel would
/// hold up to 4 MB for each peer that does not read.
const SEND_BUFFER: usize = 128 << 10;
/// How much of a streamed answer waits for the kernel, and how much of a body is read at once, in
/// bytes.
const MAX_BUFFER: usize = 64 << 10;
/// How often connections are examined that keep a listener from stopping.
const DRAIN_INTERVAL: Duration = Duration::from_millis(10);

/// How often to look for a connection that can make room.
const ROOM_INTERVAL: Duration = Duration::from_millis(1);
/// How many given-up connections may still be ending. Without this reserve, new connections would
/// wait for each of them in turn, and attackers would connect faster.
const ENDING: usize = 16;

/// A source of connections.
pub(crate) trait Listener: Send + 'static {
    /// A connection.
    type Connection: AsyncRead + AsyncWrite + Unpin + Send + 'static;

    /// Waits for the next connection. Answers its address too, if it has one.
    fn accept(&self)
    -> impl Future<Output = io::Result<(Self::Connection, Option<IpAddr>)>> + Send;
}

impl Listener for TcpListener {
    type Connection = tokio::net::TcpStream;

    async fn accept(&self) -> io::Result<(Self::Connection, Option<IpAddr>)> {
        let (stream, address) = TcpListener::accept(self).await?;
        stream.set_nodelay(true)?;
        set_socket_send_buffer_size(&stream, SEND_BUFFER)?;
        Ok((stream, Some(address.ip())))
    }
}

impl Listener for UnixListener {
    type Connection = tokio::net::UnixStream;

    async fn accept(&self) -> io::Result<(Self::Connection, Option<IpAddr>)> {
        Ok((UnixListener::accept(self).await?.0, None))
    }
}

/// A request arrived when its connection had just been given up.
#[derive(Clone, Copy, Debug, Error)]
#[error("the connection made room for another one")]
struct GivenUp;

/// Answers the requests of one connection outside of a listener.
pub(crate) fn serve_stream<C, H, F>(
    stream: C,
    limits: &Limits,
    handler: H,
) -> impl GracefulConnection<Error = hyper::Error>
where
    C: AsyncRead + AsyncWrite + Unpin + 'static,
    H: Fn(Request<AwaitedBody<Incoming>>) -> F,
    F: Future<Output = Answer>,
{
    serve_one(stream, None, limits, Activity::since(Instant::now()), handler)
}

fn serve_one<C, H, F>(
    stream: C,
    acceptor: Option<&TlsAcceptor>,
    limits: &Limits,
    activity: Arc<Activity>,
    handler: H,
) -> impl GracefulConnection<Error = hyper::Error> + use<C, H, F>
where
    C: AsyncRead + AsyncWrite + Unpin + 'static,
    H: Fn(Request<AwaitedBody<Incoming>>) -> F,
    F: Future<Output = Answer>,
{
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(limits.head_timeout)
        .half_close(limits.half_close)
        // Nearly all answers are small: copying one is cheaper than sending its parts.
        .writev(false)
        .max_buf_size(MAX_BUFFER)
        .max_header_size(limits.head_len);
    let stream = WriteTimeout::new(stream, limits.write_timeout, Arc::clone(&activity));
    let stream = Transport::new(stream, acceptor);
    let service = service_fn(move |request| {
        let Some(busy) = activity.begin() else { return Either::Left(ready(Err(GivenUp))) };
        if !names_one_host(&request) {
            let answer = answer::bad_head().map(|body| BusyBody::new(body, busy));
            return Either::Left(ready(Ok(answer)));
        }
        let answer = handler(request.map(|body| AwaitedBody::new(body, Arc::clone(&activity))));
        // The future is on the heap, so that an idle connection does not hold its memory. It is no
        // async block, which would hold `answer` twice.
        let answer = answer.map(|answer| Ok(answer.map(|body| BusyBody::new(body, busy))));
        Either::Right(Box::pin(answer))
    });
    http.serve_connection(TokioIo::new(stream), service)
}

/// Answers requests until `shutdown` completes, over TLS if `tls` is given. Then finishes the
/// requests in flight, but does not wait for slow peers: see [`Connections::give_up_waiting`]. The
/// open connections are listed in `connections`. `handler` receives the address of each request.
pub(crate) async fn serve<L, H, F>(
    listener: L,
    tls: Option<Arc<Tls>>,
    limits: Limits,
    connections: Arc<Connections>,
    handler: H,
    shutdown: impl Future<Output = ()>,
) where
    L: Listener,
    H: Fn(Option<IpAddr>, Request<AwaitedBody<Incoming>>) -> F + Clone + Send + 'static,
    F: Future<Output = Answer> + Send + 'static,
{
    let places = Arc::new(Semaphore::new(limits.connections as usize + ENDING));
    let stop = watch::Sender::new(());
    tokio::pin!(shutdown);
    for number in 0.. {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = &mut shutdown => break,
        };
        let (stream, address) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                // A peer gave up, or there are no more file descriptors. The latter takes a moment
                // to resolve.
                tracing::debug!("cannot accept a connection: {error}");
                sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let peer_place = match limits.peers.as_ref().zip(address) {
            Some((peers, address)) => match peers.connect(address) {
                Some(place) if tls.is_none() || peers.admit_handshake(address) => Some(place),
                // Closes the connection.
                _ => {
                    connections.note_refused();
                    continue;
                }
            },
            None => None,
        };
        let peer = peer_place.as_ref().and_then(Slot::peer);
        let place = tokio::select! {
            place = place(&places, &connections, peer) => place,
            () = &mut shutdown => break,
        };
        // Closes the connection: other connections do not wait behind it.
        let Some(place) = place else {
            connections.note_refused();
            continue;
        };
        let entry = connections.enter(number, peer);
        let handler = handler.clone();
        let activity = Arc::clone(&entry.activity);
        let answer = move |request| handler(address, request);
        let acceptor = tls.as_ref().map(|tls| tls.acceptor());
        let connection = serve_one(stream, acceptor.as_ref(), &limits, activity, answer);
        // On the heap: the task would hold it twice.
        let connection =
            Box::pin(until_stop(connection, stop.subscribe(), Arc::clone(&entry.activity)));
        tokio::spawn(async move {
            tokio::select! {
                biased;
                ended = connection => {
                    if let Err(error) = ended {
                        tracing::debug!("a connection ended: {error}");
                    }
                }
                () = entry.activity.given_up() => {}
            }
            drop((place, peer_place, entry));
        });
    }
    drop(listener);
    let begun = Instant::now();
    let of_strangers = limits.peers.is_some();
    let give_up = async {
        loop {
            connections.give_up_waiting(begun.elapsed(), of_strangers);
            sleep(DRAIN_INTERVAL).await;
        }
    };
    stop.send_replace(());
    let drained = timeout(limits.drain_timeout, stop.closed());
    tokio::select! {
        drained = drained => if drained.is_err() {
            tracing::warn!("some requests did not end in time and are cut off");
        },
        () = give_up => {}
    }
}

/// Answers the requests of a connection. After a stop the connection ends with the request in
/// flight, or with its first one, which may still be on its way.
async fn until_stop<C: GracefulConnection>(
    connection: C,
    mut stop: watch::Receiver<()>,
    activity: Arc<Activity>,
) -> Result<(), C::Error> {
    let mut connection = pin!(connection);
    let stopped = async {
        let _ = stop.changed().await;
        while activity.is_new() {
            sleep(DRAIN_INTERVAL).await;
        }
    };
    tokio::select! {
        biased;
        ended = &mut connection => return ended,
        () = stopped => connection.as_mut().graceful_shutdown(),
    }
    // The receiver tells until the end that there is a connection.
    let ended = connection.await;
    drop(stop);
    ended
}

/// Waits for a place for a connection of `peer`, if necessary that of a connection that waits for
/// its own peer. Answers `None` if `peer` already has places and no connection makes room.
async fn place(
    places: &Arc<Semaphore>,
    connections: &Connections,
    peer: Option<IpNet>,
) -> Option<OwnedSemaphorePermit> {
    loop {
        let room = match places.available_permits() {
            0 => Room::Awaited,
            1..=ENDING => connections.make_room(peer),
            _ => Room::Made,
        };
        match room {
            Room::Made => return Arc::clone(places).try_acquire_owned().ok(),
            Room::Awaited => sleep(ROOM_INTERVAL).await,
            Room::Refused => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use hyper::StatusCode;
    use rustix::net::sockopt::socket_send_buffer_size;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::sync::Notify;

    use super::*;

    #[tokio::test]
    async fn a_new_connection_sends_its_first_request_after_a_stop_and_an_idle_one_holds_nothing_up()
     {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (connections, stop) = (Connections::new(), Notify::new());
        let handler = |_, _| async { answer::text(StatusCode::OK, "answered") };
        let limits = Limits::default();
        let serving =
            serve(listener, None, limits, Arc::clone(&connections), handler, stop.notified());
        let calling = async {
            let mut client = tokio::net::TcpStream::connect(address).await.unwrap();
            let _idle = tokio::net::TcpStream::connect(address).await.unwrap();
            while connections.count() < 2 {
                sleep(DRAIN_INTERVAL).await;
            }
            stop.notify_one();
            while tokio::net::TcpStream::connect(address).await.is_ok() {}
            client.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
            let mut answered = String::new();
            client.read_to_string(&mut answered).await.unwrap();
            assert!(answered.ends_with("answered"), "{answered}");
        };
        tokio::join!(serving, calling);
    }

    #[tokio::test]
    async fn the_kernel_holds_little_of_an_answer_for_a_peer_who_does_not_read() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let _peer = tokio::net::TcpStream::connect(address).await.unwrap();
        let (accepted, _) = Listener::accept(&listener).await.unwrap();
        assert_eq!(socket_send_buffer_size(&accepted).unwrap(), 2 * SEND_BUFFER);
    }
}
