//! Callers that send requests again and again while a server restarts, each over a new connection.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle, sleep};
use std::time::{Duration, Instant};

/// The running callers. They send until they are stopped.
#[derive(Debug)]
pub struct Callers {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    address: String,
    request: Vec<u8>,
    answered: AtomicU64,
    is_over: AtomicBool,
    seen: Mutex<Seen>,
}

/// What callers have seen.
#[derive(Debug, Default)]
pub struct Seen {
    /// The time of each answer.
    pub answers: Vec<Instant>,
    /// How often a connection was refused.
    pub refused: u64,
    /// How often a connection was closed before the first byte of an answer. The request was then
    /// sent again.
    pub closed: u64,
    /// Other failures.
    pub failures: Vec<String>,
}

enum Ending {
    Answered,
    Refused,
    Closed,
    Failed(String),
}

/// The longest time that an answer may take.
const PATIENCE: Duration = Duration::from_secs(120);

impl Callers {
    /// Starts `count` callers. Each sends the same `POST` to `path` at `address`, and expects
    /// status 200.
    pub fn start(count: usize, address: &str, path: &str, body: &str) -> Self {
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n\
             Connection: close\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let shared = Arc::new(Shared {
            address: address.to_owned(),
            request: request.into_bytes(),
            answered: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
            seen: Mutex::default(),
        });
        let threads = (0..count).map(|_| {
            let shared = Arc::clone(&shared);
            thread::spawn(move || shared.ask())
        });
        Self { threads: threads.collect(), shared }
    }

    /// Waits until this many more requests were answered.
    ///
    /// # Panics
    /// If that takes too long.
    pub fn await_answers(&self, count: u64) {
        let (begun, first) = (Instant::now(), self.shared.answered.load(Ordering::SeqCst));
        while self.shared.answered.load(Ordering::SeqCst) < first + count {
            assert!(begun.elapsed() < PATIENCE, "no more answers: {:?}", self.shared.seen);
            sleep(Duration::from_millis(1));
        }
    }

    /// What they have seen since the last call.
    pub fn take_seen(&self) -> Seen {
        std::mem::take(&mut *self.shared.seen.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Stops them.
    pub fn stop(mut self) -> Seen {
        self.shared.is_over.store(true, Ordering::SeqCst);
        self.threads.drain(..).for_each(|thread| thread.join().unwrap());
        self.take_seen()
    }
}

impl Drop for Callers {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::SeqCst);
    }
}

impl Shared {
    fn ask(&self) {
        while !self.is_over.load(Ordering::SeqCst) {
            let ending = self.ask_once();
            let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            match ending {
                Ending::Answered => {
                    seen.answers.push(Instant::now());
                    self.answered.fetch_add(1, Ordering::SeqCst);
                }
                Ending::Refused => {
                    seen.refused += 1;
                    drop(seen);
                    sleep(Duration::from_millis(1));
                }
                Ending::Closed => seen.closed += 1,
                Ending::Failed(reason) => seen.failures.push(reason),
            }
        }
    }

    fn ask_once(&self) -> Ending {
        let mut stream = match TcpStream::connect(&self.address) {
            Ok(stream) => stream,
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => return Ending::Refused,
            // The connection was closed while it waited to be accepted.
            Err(error) if error.kind() == ErrorKind::ConnectionReset => return Ending::Refused,
            Err(error) => return Ending::Failed(format!("it cannot connect: {error}")),
        };
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        // A failure to send does not count: a server that has closed the connection does not
        // answer.
        let _ = stream.write_all(&self.request);
        let mut answer = Vec::new();
        let read = stream.read_to_end(&mut answer);
        match read {
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                Ending::Failed("no answer came in time".to_owned())
            }
            _ if answer.is_empty() => Ending::Closed,
            Err(error) => Ending::Failed(format!("the answer broke off: {error}")),
            Ok(_) if is_whole(&answer) => Ending::Answered,
            Ok(_) => Ending::Failed(String::from_utf8_lossy(&answer).into_owned()),
        }
    }
}

/// Whether this is a complete answer with status 200.
fn is_whole(answer: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(answer) else { return false };
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let mut lines = head.lines();
    let is_ok = lines.next().is_some_and(|line| line.starts_with("HTTP/1.1 200"));
    let len = lines.find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
    });
    is_ok && len == Some(body.len())
}

impl Seen {
    /// The longest time without an answer, from the first one to the last, in milliseconds.
    pub fn longest_gap(&self) -> f64 {
        let mut answers = self.answers.clone();
        answers.sort();
        let gaps = answers.windows(2).map(|pair| (pair[1] - pair[0]).as_secs_f64() * 1e3);
        gaps.fold(0.0, f64::max)
    }
}
