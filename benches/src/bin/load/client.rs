//! A client that uses little of the processor, since it shares the machine with the server that it
//! measures.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

/// A single thread would limit the rate of a server that has more threads.
const THREADS: usize = 2;

/// The place for the number in the text of a [`Request`].
pub(crate) const SLOT: &str = "#######";

/// A request that is not the same each time: it holds a new number of seven digits, or it is
/// another one of several requests.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    texts: Arc<[Vec<u8>]>,
    /// The request that is sent, if it holds a number.
    bytes: Vec<u8>,
    slot: Option<Range<usize>>,
}

impl Request {
    pub(crate) fn get(path: &str) -> Self {
        Self::from_text(&get_text(path))
    }

    /// A `GET` of another of these paths each time.
    pub(crate) fn get_each(paths: impl IntoIterator<Item = String>) -> Self {
        let texts = paths.into_iter().map(|path| get_text(&path).into_bytes()).collect();
        Self { texts, bytes: Vec::new(), slot: None }
    }

    pub(crate) fn post(path: &str, body: &str) -> Self {
        Self::from_text(&format!(
            "POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        ))
    }

    fn from_text(text: &str) -> Self {
        let slot = text.find(SLOT).map(|start| start..start + SLOT.len());
        let bytes = text.as_bytes().to_vec();
        Self { texts: Arc::new([bytes.clone()]), bytes, slot }
    }

    fn with_number(&mut self, mut number: u32) -> &[u8] {
        let Some(slot) = self.slot.clone() else {
            // Requests that follow each other ask for paths far apart in the list.
            return &self.texts[number as usize * 7919 % self.texts.len()];
        };
        for digit in self.bytes[slot].iter_mut().rev() {
            *digit = b'0' + (number % 10) as u8;
            number /= 10;
        }
        &self.bytes
    }
}

fn get_text(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
}

/// Numbers of seven digits, each of which is used once.
#[derive(Clone, Debug)]
pub(crate) struct Numbers(Arc<AtomicU32>);

impl Numbers {
    pub(crate) fn new() -> Self {
        Self(Arc::new(AtomicU32::new(1_000_000)))
    }

    fn next(&self) -> u32 {
        let number = self.0.fetch_add(1, Ordering::Relaxed);
        assert!(number < 10_000_000, "out of numbers: run fewer rounds, or shorter ones");
        number
    }
}

/// What was measured while a server was under load.
#[derive(Clone, Debug)]
pub(crate) struct Load {
    /// Requests answered.
    pub(crate) count: u32,
    /// Requests per second.
    pub(crate) rate: f64,
    /// How long each request took, in microseconds, shortest first.
    pub(crate) times: Vec<u32>,
    /// The number in the last request of each connection, and the body of its answer.
    pub(crate) last: Vec<(u32, String)>,
}

impl Load {
    pub(crate) fn of(mut times: Vec<u32>, elapsed: f64, last: Vec<(u32, String)>) -> Self {
        times.sort_unstable();
        let count = u32::try_from(times.len()).unwrap();
        Self { count, rate: f64::from(count) / elapsed, times, last }
    }

    /// This share of the requests took less time than this, in milliseconds.
    pub(crate) fn quantile(&self, share: f64) -> f64 {
        let index = (self.times.len() as f64 * share) as usize;
        f64::from(self.times[index.min(self.times.len() - 1)]) / 1e3
    }
}

/// Sends `request` again and again for `duration`, over so many connections at once. A connection
/// sends its next request when the one before is answered.
///
/// # Panics
/// If an answer is not a success.
pub(crate) fn load(
    address: &str,
    request: &Request,
    numbers: &Numbers,
    connections: usize,
    duration: Duration,
) -> Load {
    let started = Instant::now();
    let deadline = started + duration;
    let threads = THREADS.min(connections);
    let ends: Vec<_> = thread::scope(|scope| {
        let drive = || drive_all(address, request, numbers, connections / threads, deadline);
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(drive)).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    let elapsed = started.elapsed().as_secs_f64();
    let mut times = Vec::new();
    let mut last = Vec::new();
    for Driven { times: more, number, body } in ends {
        times.extend(more);
        last.push((number, body));
    }
    Load::of(times, elapsed, last)
}

/// Sends each of these requests once, over so many connections at once. A connection sends its next
/// request when the one before is answered.
///
/// # Panics
/// If an answer is not a success.
pub(crate) fn send_all(address: &str, requests: Vec<Vec<u8>>, connections: usize) -> Load {
    let started = Instant::now();
    let threads = THREADS.min(connections);
    let queue = Arc::new(Queue { requests, next: AtomicU32::new(0) });
    let times: Vec<_> = thread::scope(|scope| {
        let send = || send_share(address, &queue, connections / threads);
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(send)).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    Load::of(times, started.elapsed().as_secs_f64(), Vec::new())
}

/// Requests that are sent once each.
struct Queue {
    requests: Vec<Vec<u8>>,
    next: AtomicU32,
}

impl Queue {
    fn next(&self) -> Option<&[u8]> {
        let next = self.next.fetch_add(1, Ordering::Relaxed);
        self.requests.get(next as usize).map(Vec::as_slice)
    }
}

/// Sends one thread's share of the requests. Answers how long each took, in microseconds.
fn send_share(address: &str, queue: &Arc<Queue>, connections: usize) -> Vec<u32> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut senders = JoinSet::new();
        for _ in 0..connections {
            let stream = TcpStream::connect(address).await.unwrap();
            stream.set_nodelay(true).unwrap();
            senders.spawn(send(stream, Arc::clone(queue)));
        }
        senders.join_all().await.concat()
    })
}

async fn send(mut stream: TcpStream, queue: Arc<Queue>) -> Vec<u32> {
    let mut buffer = vec![0; 64 << 10];
    let mut times = Vec::new();
    while let Some(request) = queue.next() {
        let sent = Instant::now();
        stream.write_all(request).await.unwrap();
        read_answer(&mut stream, &mut buffer).await;
        times.push(u32::try_from(sent.elapsed().as_micros()).unwrap_or(u32::MAX));
    }
    times
}

/// Drives one thread's share of the connections.
fn drive_all(
    address: &str,
    request: &Request,
    numbers: &Numbers,
    count: usize,
    deadline: Instant,
) -> Vec<Driven> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut connections = JoinSet::new();
        for _ in 0..count {
            let stream = TcpStream::connect(address).await.unwrap();
            stream.set_nodelay(true).unwrap();
            connections.spawn(drive(stream, request.clone(), numbers.clone(), deadline));
        }
        connections.join_all().await
    })
}

/// What one connection did.
struct Driven {
    times: Vec<u32>,
    /// The number in the last request, and the body of its answer.
    number: u32,
    body: String,
}

async fn drive(
    mut stream: TcpStream,
    mut request: Request,
    numbers: Numbers,
    deadline: Instant,
) -> Driven {
    let mut buffer = vec![0; 64 << 10];
    let mut times = Vec::new();
    let mut sent = Instant::now();
    loop {
        let number = numbers.next();
        stream.write_all(request.with_number(number)).await.unwrap();
        let body = read_answer(&mut stream, &mut buffer).await;
        let now = Instant::now();
        times.push(u32::try_from((now - sent).as_micros()).unwrap_or(u32::MAX));
        if now >= deadline {
            let body = String::from_utf8(buffer[body].to_vec()).unwrap();
            return Driven { times, number, body };
        }
        sent = now;
    }
}

/// Reads one answer, and tells where in the buffer its body lies. The buffer grows with the answer.
pub(crate) async fn read_answer(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Range<usize> {
    let mut len = 0;
    let mut body = None;
    loop {
        if len == buffer.len() {
            buffer.resize(2 * len, 0);
        }
        let read = stream.read(&mut buffer[len..]).await.unwrap();
        assert_ne!(read, 0, "the server hung up");
        len += read;
        if body.is_none() {
            body = find_body(&buffer[..len]);
        }
        match &body {
            Some(body) if body.end <= len => return body.clone(),
            _ => {}
        }
    }
}

/// Where the body of an answer lies, once its head has arrived. Only the line of the length is
/// parsed, so that a longer head costs the client hardly more than a short one.
fn find_body(answer: &[u8]) -> Option<Range<usize>> {
    let mut start = 0;
    let mut len = 0;
    loop {
        let end = start + answer[start..].iter().position(|byte| *byte == b'\n')?;
        let line = &answer[start..end];
        start = end + 1;
        if line == b"\r" {
            assert!(answer.starts_with(b"HTTP/1.1 20"), "{}", String::from_utf8_lossy(answer));
            return Some(start..start + len);
        }
        if let Some(digits) = line.strip_prefix(b"content-length: ") {
            let digits = digits.iter().take_while(|digit| digit.is_ascii_digit());
            len = digits.fold(0, |len, digit| len * 10 + usize::from(digit - b'0'));
        }
    }
}
