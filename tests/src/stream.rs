//! Streams of server-sent events.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

use crate::http::{Client, Reply};
use crate::openapi;

/// The path of the stream of the wallet's events.
pub const STREAM: &str = "/api/v1/events/stream";

/// A stream that is read.
#[derive(Debug)]
pub struct Stream {
    /// The head of the answer in lower case.
    pub headers: String,
    connection: BufReader<TcpStream>,
    /// The bytes that were received and not read yet.
    text: String,
}

/// A block of a stream.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Block {
    /// After how many milliseconds to connect again.
    pub retry: Option<String>,
    /// The id of the event.
    pub id: Option<String>,
    /// The type of the event.
    pub event: Option<String>,
    /// The event.
    pub data: Option<String>,
}

impl Stream {
    /// Opens a stream of all events of the wallet, with this query and `Last-Event-ID`. The error is
    /// the answer that came instead.
    pub fn try_open(client: &Client, query: &str, last: Option<&str>) -> Result<Self, Reply> {
        let headers: Vec<_> = last.iter().map(|id| ("Last-Event-ID", *id)).collect();
        Self::try_send(client, query, &headers)
    }

    /// The same with these headers.
    fn try_send(client: &Client, query: &str, headers: &[(&str, &str)]) -> Result<Self, Reply> {
        let path = format!("{STREAM}{query}");
        let mut connection = TcpStream::connect(client.address()).unwrap();
        connection.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let mut request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n");
        for (name, value) in headers {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        connection.write_all(format!("{request}\r\n").as_bytes()).unwrap();
        let mut connection = BufReader::new(connection);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert!(connection.read_line(&mut head).unwrap() > 0, "{head}");
        }
        let reply = head_of_reply(&head);
        if reply.status != 200 {
            let reply = rest_of_reply(&head, &mut connection);
            openapi::check(client.address(), request.as_bytes(), &reply);
            return Err(reply);
        }
        openapi::check(client.address(), request.as_bytes(), &reply);
        Ok(Self { headers: head.to_ascii_lowercase(), connection, text: String::new() })
    }

    /// The same, of a server that must not refuse it.
    ///
    /// # Panics
    /// If it does.
    pub fn open(client: &Client, query: &str, last: Option<&str>) -> Self {
        let stream = Self::try_open(client, query, last);
        stream.unwrap_or_else(|reply| panic!("{}: {}", reply.status, reply.body))
    }

    /// Opens a stream of all events with this token.
    pub fn try_open_with(client: &Client, token: &str) -> Result<Self, Reply> {
        Self::try_send(client, "", &[("Authorization", &format!("Bearer {token}"))])
    }

    /// Receives a chunk. Returns whether there was one.
    fn receive(&mut self) -> bool {
        let mut len = String::new();
        self.connection.read_line(&mut len).unwrap();
        let len = usize::from_str_radix(len.trim(), 16).unwrap_or_else(|_| panic!("{len:?}"));
        let mut chunk = vec![0; len + 2];
        self.connection.read_exact(&mut chunk).unwrap();
        self.text.push_str(std::str::from_utf8(&chunk[..len]).unwrap());
        len > 0
    }

    /// The next block. `None` if the stream has ended properly.
    ///
    /// # Panics
    /// If it has not, or is silent for a minute.
    pub fn next_block(&mut self) -> Option<Block> {
        let end = loop {
            match self.text.find("\n\n") {
                Some(end) => break end,
                None if !self.receive() => return None,
                None => {}
            }
        };
        let mut block = Block::default();
        for line in self.text[..end].lines() {
            let (name, value) = line.split_once(": ").unwrap_or_else(|| panic!("{line}"));
            let place = match name {
                "retry" => &mut block.retry,
                "id" => &mut block.id,
                "event" => &mut block.event,
                "data" => &mut block.data,
                _ => panic!("{line}"),
            };
            assert_eq!(place.replace(value.to_owned()), None);
        }
        self.text.drain(..end + 2);
        Some(block)
    }

    /// Reads up to the proper end.
    ///
    /// # Panics
    /// If the stream still goes on after some heartbeats.
    pub fn wait_for_end(&mut self) {
        let mut blocks_without_data = 0;
        while let Some(block) = self.next_block() {
            blocks_without_data += usize::from(block.data.is_none());
            assert!(blocks_without_data < 4, "the stream goes on");
        }
    }

    /// The next event, and its id.
    ///
    /// # Panics
    /// If the stream ends before it.
    pub fn event(&mut self) -> (String, Value) {
        loop {
            let block = self.next_block().expect("the stream goes on");
            if let Some(data) = block.data {
                let event: Value = serde_json::from_str(&data).unwrap();
                assert_eq!(Some(block.event.unwrap().as_str()), event["type"].as_str());
                return (block.id.unwrap(), event);
            }
        }
    }

    /// The next `count` events.
    ///
    /// # Panics
    /// If the stream ends before them.
    pub fn events(&mut self, count: usize) -> Vec<Value> {
        (0..count).map(|_| self.event().1).collect()
    }
}

/// An answer whose head was read.
fn head_of_reply(head: &str) -> Reply {
    let mut lines = head.trim_end().split("\r\n");
    let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    let headers = lines.map(|line| line.split_once(':').unwrap());
    let headers = headers.map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()));
    Reply { status, headers: headers.collect(), body: String::new() }
}

fn rest_of_reply(head: &str, connection: &mut impl Read) -> Reply {
    let mut reply = head_of_reply(head);
    let len = reply.header("content-length").unwrap().parse().unwrap();
    connection.take(len).read_to_string(&mut reply.body).unwrap();
    reply
}
