use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// What was measured while a list was read.
pub(crate) struct List {
    pub(crate) count: u64,
    pub(crate) elapsed: Duration,
}

impl List {
    pub(crate) fn rate(&self) -> f64 {
        self.count as f64 / self.elapsed.as_secs_f64()
    }
}

/// Reads the whole list of invoices. It counts opening braces, since no text of an invoice holds
/// one.
pub(crate) fn read_list(address: &str) -> List {
    let started = Instant::now();
    let mut stream = TcpStream::connect(address).unwrap();
    stream
        .write_all(b"GET /api/v1/invoices HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
        .unwrap();
    let mut buffer = vec![0; 1 << 20];
    let mut count = 0;
    let mut end = Vec::new();
    loop {
        let len = stream.read(&mut buffer).unwrap();
        if len == 0 {
            break;
        }
        let read = &buffer[..len];
        count += read.iter().filter(|byte| **byte == b'{').count() as u64;
        end.extend_from_slice(&read[len.saturating_sub(8)..]);
        end.drain(..end.len().saturating_sub(8));
    }
    assert!(end.ends_with(b"]\r\n0\r\n\r\n"), "the list broke off");
    List { count, elapsed: started.elapsed() }
}
