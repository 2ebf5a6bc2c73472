//! Many open streams of events, and the events that arrive over them.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::arrival::{self, Arrival, find};

/// The number of lines of an event, with the empty line after it.
const LINES_OF_EVENT: usize = 4;
/// How much of a stream is read at once if arrivals are noted. Many of these streams are open.
const TIMED_READ: usize = 4 << 10;
/// How much of a stream is read at once if arrivals are not noted, so that reading takes little of
/// the processors.
const UNTIMED_READ: usize = 256 << 10;
/// How many streams may be in the middle of being opened.
const OPENING: usize = 64;

/// Open streams, which a thread of their own reads.
pub(crate) struct Streams {
    close: watch::Sender<bool>,
    reader: JoinHandle<Vec<Reader>>,
}

impl Streams {
    /// Opens so many streams with this query. Returns when all have begun.
    pub(crate) fn open(address: &str, count: u32, query: &str) -> Self {
        Self::open_read(address, count, query, true)
    }

    /// Opens streams without noting when events arrive, so that reading takes little of the processors.
    pub(crate) fn open_untimed(address: &str, count: u32, query: &str) -> Self {
        Self::open_read(address, count, query, false)
    }

    fn open_read(address: &str, count: u32, query: &str, is_timed: bool) -> Self {
        let request = request(query);
        let (close, closed) = watch::channel(false);
        let begun = Arc::new(AtomicU32::new(0));
        let reader = thread::spawn({
            let (address, begun) = (address.to_owned(), Arc::clone(&begun));
            move || read_all(&address, count, &request, is_timed, &begun, &closed)
        });
        while begun.load(Ordering::Relaxed) < count {
            assert!(!reader.is_finished(), "a stream cannot be opened");
            thread::sleep(Duration::from_millis(1));
        }
        Self { close, reader }
    }

    /// Closes the streams, and answers the events that arrived.
    pub(crate) fn close(self) -> Vec<Arrival> {
        self.close_readers().into_iter().flat_map(|reader| reader.arrivals).collect()
    }

    /// Closes the streams, and answers how many events arrived.
    pub(crate) fn close_untimed(self) -> usize {
        let lines: usize = self.close_readers().iter().map(|reader| reader.lines).sum();
        lines / LINES_OF_EVENT
    }

    fn close_readers(self) -> Vec<Reader> {
        self.close.send_replace(true);
        self.reader.join().unwrap()
    }
}

/// Opens so many streams from the beginning of the log, and reads nothing.
pub(crate) fn open_unread(address: &str, count: u32) -> Vec<std::net::TcpStream> {
    let open = |_| {
        let mut stream = std::net::TcpStream::connect(address).unwrap();
        stream.write_all(request("after=0").as_bytes()).unwrap();
        stream
    };
    (0..count).map(open).collect()
}

fn request(query: &str) -> String {
    format!("GET /api/v1/events/stream?{query} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
}

fn read_all(
    address: &str,
    count: u32,
    request: &str,
    is_timed: bool,
    begun: &Arc<AtomicU32>,
    closed: &watch::Receiver<bool>,
) -> Vec<Reader> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let opening = Arc::new(Semaphore::new(OPENING));
        let mut readers = JoinSet::new();
        for _ in 0..count {
            let turn = Arc::clone(&opening).acquire_owned().await.unwrap();
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(request.as_bytes()).await.unwrap();
            let (begun, mut closed) = (Arc::clone(begun), closed.clone());
            readers.spawn(async move {
                let mut reader = Reader::default();
                reader.read_head(&mut stream).await;
                begun.fetch_add(1, Ordering::Relaxed);
                drop(turn);
                tokio::select! {
                    () = reader.read_events(&mut stream, is_timed) => {}
                    _ = closed.wait_for(|is_closed| *is_closed) => {}
                }
                reader
            });
        }
        readers.join_all().await
    })
}

/// Reads one stream.
#[derive(Default)]
struct Reader {
    /// The bytes that have arrived and are not a whole block yet.
    text: Vec<u8>,
    arrivals: Vec<Arrival>,
    /// How many lines have arrived, if arrivals are not noted.
    lines: usize,
}

impl Reader {
    async fn read_head(&mut self, stream: &mut TcpStream) {
        while find(&self.text, b"\r\n\r\n").is_none() {
            self.read(stream, TIMED_READ).await;
        }
        assert!(self.text.starts_with(b"HTTP/1.1 200"), "a stream is refused");
    }

    /// Reads for ever: the caller drops the future.
    async fn read_events(&mut self, stream: &mut TcpStream, is_timed: bool) {
        let len = if is_timed { TIMED_READ } else { UNTIMED_READ };
        loop {
            self.read(stream, len).await;
            if !is_timed {
                self.lines += lines(&self.text);
                self.text.clear();
                continue;
            }
            let at = Instant::now();
            let mut read = 0;
            while let Some(len) = find(&self.text[read..], b"\n\n") {
                let block = &self.text[read..read + len];
                self.arrivals.extend(number(block).map(|number| Arrival { number, at }));
                read += len + 2;
            }
            self.text.drain(..read);
        }
    }

    async fn read(&mut self, stream: &mut TcpStream, len: usize) {
        self.text.reserve(len);
        assert_ne!(stream.read_buf(&mut self.text).await.unwrap(), 0, "a stream has ended");
    }
}

/// How many lines end in a text. Counting in small numbers is what processors do fast.
fn lines(text: &[u8]) -> usize {
    let in_part = |part: &[u8]| part.iter().map(|byte| u8::from(*byte == b'\n')).sum::<u8>();
    text.chunks(usize::from(u8::MAX)).map(|part| usize::from(in_part(part))).sum()
}

/// The number of the event in a block, if it holds one.
fn number(block: &[u8]) -> Option<u64> {
    let event = find(block, b"\ndata: {\"id\"")?;
    arrival::number(&block[event..])
}
