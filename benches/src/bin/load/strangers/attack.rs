use std::future::pending;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout};

/// What each of the attackers' connections does until it is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Attack {
    /// Announces a body of ten bytes, and sends none of it.
    NoBody,
    /// Sends a part of a large body, and stops.
    HalfBody,
    /// Connects, and sends nothing.
    Silence,
    /// Sends the head of a request, one byte per second.
    SlowHead,
    /// Sends a large body to a path that does not exist, at 40 KB a second.
    NoPath,
    /// Sends many requests, and reads no answer.
    NoReading,
}

impl Attack {
    pub(super) const ALL: [Self; 6] = [
        Self::NoBody,
        Self::HalfBody,
        Self::Silence,
        Self::SlowHead,
        Self::NoPath,
        Self::NoReading,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::NoBody => "no body",
            Self::HalfBody => "half a large body",
            Self::Silence => "silence",
            Self::SlowHead => "slow heads",
            Self::NoPath => "bodies to no path",
            Self::NoReading => "answers not read",
        }
    }

    /// Sends what the attack sends, for as long as the server takes it.
    async fn send(self, mut stream: OwnedWriteHalf) -> io::Result<()> {
        let post = |path: &str, len: usize| {
            format!("POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len}\r\n\r\n")
        };
        match self {
            Self::NoBody => stream.write_all(post("/api/v1/payment/x", 10).as_bytes()).await?,
            Self::HalfBody => {
                stream.write_all(post("/api/v1/payment/x", 9_000_000).as_bytes()).await?;
                stream.write_all(&[b' '; 66_000]).await?;
            }
            Self::Silence => {}
            Self::SlowHead => {
                stream.write_all(b"GET /api/v1/payment/x HTTP/1.1\r\nX-Slow: ").await?;
                loop {
                    sleep(Duration::from_secs(1)).await;
                    stream.write_all(b"x").await?;
                }
            }
            Self::NoPath => {
                stream.write_all(post("/nowhere", 1 << 30).as_bytes()).await?;
                loop {
                    stream.write_all(&[b' '; 20_000]).await?;
                    sleep(Duration::from_millis(500)).await;
                }
            }
            Self::NoReading => {
                let request = "GET /api/v1/payment/x HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";
                let many = request.repeat(100);
                loop {
                    stream.write_all(many.as_bytes()).await?;
                }
            }
        }
        pending().await
    }

    /// The size of the attacker's receive buffer, unless it is the system's default.
    fn receive_buffer(self) -> Option<u32> {
        (self == Self::NoReading).then_some(4096)
    }
}

/// What the attackers have done, and what became of it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    /// Connections that are open, as the attackers see it.
    pub(super) open: i64,
    pub(super) connected: i64,
    /// Connections that were refused, or not made within a second.
    pub(super) refused: i64,
    /// Connections that the server has closed.
    pub(super) closed: i64,
    /// Connections that the server has closed after an answer.
    pub(super) answered: i64,
}

impl Tally {
    /// What was counted since `before`.
    pub(super) fn since(self, before: Self) -> Self {
        Self {
            open: self.open,
            connected: self.connected - before.connected,
            refused: self.refused - before.refused,
            closed: self.closed - before.closed,
            answered: self.answered - before.answered,
        }
    }
}

/// The attackers, on a thread of their own.
pub(super) struct Crowd {
    counts: Arc<Counts>,
    stop: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

#[derive(Debug, Default)]
struct Counts {
    connected: AtomicI64,
    refused: AtomicI64,
    closed: AtomicI64,
    answered: AtomicI64,
}

/// When the next attacker may connect.
#[derive(Debug)]
struct Pace {
    next: Mutex<Instant>,
    interval: Duration,
}

impl Pace {
    async fn turn(&self) {
        let turn = {
            let mut next = self.next.lock().unwrap();
            let turn = (*next).max(Instant::now());
            *next = turn + self.interval;
            turn
        };
        sleep_until(turn).await;
    }
}

impl Crowd {
    /// Starts attackers who connect from 100 addresses, at most `rate` times per second. They
    /// connect again whenever a connection is closed.
    pub(super) fn begin(attack: Attack, address: &str, connections: u32, rate: u32) -> Self {
        let address = address.parse().unwrap();
        let counts = Arc::new(Counts::default());
        let (stop, stopped) = oneshot::channel();
        let its_counts = Arc::clone(&counts);
        let thread = thread::spawn(move || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let interval = Duration::from_secs(1) / rate;
                let pace = Arc::new(Pace { next: Mutex::new(Instant::now()), interval });
                let mut attackers = JoinSet::new();
                for number in 0..connections {
                    let from = Ipv4Addr::new(127, 0, 1, (number % 100 + 1) as u8);
                    let (pace, counts) = (Arc::clone(&pace), Arc::clone(&its_counts));
                    attackers.spawn(attack_for_ever(attack, from, address, pace, counts));
                }
                let _ = stopped.await;
            });
        });
        Self { counts, stop, thread }
    }

    pub(super) fn tally(&self) -> Tally {
        let read = |count: &AtomicI64| count.load(Ordering::Relaxed);
        let [connected, closed] = [&self.counts.connected, &self.counts.closed].map(read);
        Tally {
            open: connected - closed,
            connected,
            refused: read(&self.counts.refused),
            closed,
            answered: read(&self.counts.answered),
        }
    }

    /// Closes all connections.
    pub(super) fn end(self) {
        let _ = self.stop.send(());
        self.thread.join().unwrap();
    }
}

async fn attack_for_ever(
    attack: Attack,
    from: Ipv4Addr,
    address: SocketAddr,
    pace: Arc<Pace>,
    counts: Arc<Counts>,
) {
    let count = |count: &AtomicI64| count.fetch_add(1, Ordering::Relaxed);
    loop {
        pace.turn().await;
        let connected = timeout(Duration::from_secs(1), connect(attack, from, address)).await;
        let Ok(Ok(stream)) = connected else {
            count(&counts.refused);
            continue;
        };
        count(&counts.connected);
        let (reader, writer) = stream.into_split();
        let is_answered = tokio::select! {
            is_answered = wait(attack, reader) => is_answered,
            Err(_) = attack.send(writer) => false,
        };
        count(&counts.closed);
        if is_answered {
            count(&counts.answered);
        }
    }
}

async fn connect(attack: Attack, from: Ipv4Addr, address: SocketAddr) -> io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    if let Some(size) = attack.receive_buffer() {
        socket.set_recv_buffer_size(size)?;
    }
    socket.bind((from, 0).into())?;
    socket.connect(address).await
}

/// Waits until the server closes a connection. Answers whether it sent something before.
async fn wait(attack: Attack, mut reader: OwnedReadHalf) -> bool {
    if attack == Attack::NoReading {
        return pending().await;
    }
    let mut is_answered = false;
    let mut buffer = [0; 1024];
    while matches!(reader.read(&mut buffer).await, Ok(len) if len > 0) {
        is_answered = true;
    }
    is_answered
}
