//! Streams of server-sent events.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use bsv_tests::{Client, Metrics, Reply, Site, openapi};
use serde_json::{Value, json};

use crate::{EVENTS, Shop, check_problem, create_invoice, log, page};

const STREAM: &str = "/api/v1/events/stream";

/// A stream that is read.
pub(crate) struct Stream {
    headers: String,
    connection: BufReader<TcpStream>,
    /// The bytes that were received and not read yet.
    text: String,
}

/// A block of a stream.
#[derive(Debug, Default, PartialEq)]
struct Block {
    retry: Option<String>,
    id: Option<String>,
    event: Option<String>,
    data: Option<String>,
}

impl Stream {
    /// Opens a stream. The error is the answer that came instead.
    fn try_open(client: &Client, query: &str, last: Option<&str>) -> Result<Self, Reply> {
        let headers: Vec<_> = last.iter().map(|id| ("Last-Event-ID", *id)).collect();
        let path = format!("{STREAM}{query}");
        let mut connection = TcpStream::connect(client.address()).unwrap();
        connection.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let mut request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n");
        for (name, value) in &headers {
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

    pub(crate) fn open(client: &Client, query: &str, last: Option<&str>) -> Self {
        let stream = Self::try_open(client, query, last);
        stream.unwrap_or_else(|reply| panic!("{}: {}", reply.status, reply.body))
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
    fn next(&mut self) -> Option<Block> {
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

    /// The next event.
    pub(crate) fn event(&mut self) -> (String, Value) {
        loop {
            let block = self.next().expect("the stream goes on");
            if let Some(data) = block.data {
                let event: Value = serde_json::from_str(&data).unwrap();
                assert_eq!(Some(block.event.unwrap().as_str()), event["type"].as_str());
                return (block.id.unwrap(), event);
            }
        }
    }

    /// The next `count` events.
    pub(crate) fn events(&mut self, count: usize) -> Vec<Value> {
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

fn name(client: &Client) -> String {
    page(client, EVENTS)["log"].as_str().unwrap().to_owned()
}

#[test]
fn a_stream_has_earlier_and_new_events() {
    let shop = Shop::start();
    let count = shop.fill(4);
    let client = shop.client();
    let name = name(client);
    let mut stream = Stream::open(client, "", None);
    for header in [
        "content-type: text/event-stream\r\n",
        "cache-control: no-store\r\n",
        "x-accel-buffering: no\r\n",
    ] {
        assert!(stream.headers.contains(header), "{header} in {}", stream.headers);
    }
    let retry = stream.next().unwrap().retry.unwrap();
    assert!((2000..=5000).contains(&retry.parse().unwrap()), "{retry}");
    let first = stream.next().unwrap();
    let all = log(client);
    assert_eq!(first.id, Some(format!("{name}-1")));
    assert_eq!(first.event.as_deref(), Some("invoice.created"));
    let text = client.get(EVENTS).body;
    assert!(text.contains(&first.data.unwrap()), "the bytes are the same");
    assert_eq!(stream.events(count - 1), all[1..]);
    let mut filtered = Stream::open(client, "?after=latest&types=invoice.deleted", None);
    let id = shop.create_invoice("live");
    let (event_id, event) = stream.event();
    assert_eq!(
        (event_id, &event["data"]["invoiceId"]),
        (format!("{name}-{}", count + 1), &json!(id))
    );
    shop.delete_invoice(&id);
    assert_eq!(filtered.event().0, format!("{name}-{}", count + 2));
    let head = client.request("HEAD", STREAM, b"");
    assert_eq!((head.status, head.header("content-type")), (200, Some("text/event-stream")));
}

#[test]
fn a_stream_continues_where_its_client_stopped() {
    let shop = Shop::start();
    let count = shop.fill(6);
    let client = shop.client();
    let (name, all) = (name(client), log(client));
    let last = format!("{name}-3");
    for last in [last.as_str(), "3"] {
        let mut stream = Stream::open(client, "?after=1", Some(last));
        assert_eq!(stream.events(count - 3), all[3..], "after {last}");
    }
    let other = if name == "00000000" { "00000001" } else { "00000000" };
    let reset = json!({ "log": name, "last": count });
    for (query, last, begins_after) in [
        ("", format!("{other}-3"), 0),
        ("?after=2", format!("{other}-3"), 2),
        ("?after=2", format!("{name}-{}", count + 1), 2),
        ("?after=999999", (count + 1).to_string(), 0),
    ] {
        let mut stream = Stream::open(client, query, Some(&last));
        assert!(stream.next().unwrap().retry.is_some());
        let block = stream.next().unwrap();
        assert_eq!(block.event.as_deref(), Some("reset"), "{query} {last}");
        assert_eq!(serde_json::from_str::<Value>(&block.data.unwrap()).unwrap(), reset);
        assert_eq!(block.id, Some(format!("{name}-{begins_after}")));
        assert_eq!(stream.events(count - begins_after), all[begins_after..], "{query} {last}");
    }
    for last in ["", "x", "-1", &format!("{name}-"), &format!("{name}_3"), "3 4"] {
        let refused = Stream::try_open(client, "", Some(last)).err().unwrap();
        let problem = check_problem(&refused, 400, "invalid-query");
        assert!(problem["errors"]["Last-Event-ID"].is_array(), "{problem}");
    }
    for query in ["?limit=1", "?wait=1", "?after=x", "?types=x", "?after=1&after=1"] {
        let refused = Stream::try_open(client, query, None).err().unwrap();
        check_problem(&refused, 400, "invalid-query");
    }
}

/// No event is lost or repeated, however the server ends.
#[test]
fn a_stream_resumes_over_restarts() {
    let mut shop = Shop::start();
    let mut seen = Vec::new();
    let mut last = None;
    for round in 0..4 {
        let client = shop.client();
        let mut stream = Stream::open(client, "", last.as_deref());
        let count = shop.fill(3);
        for _ in 0..count - 1 {
            let (id, event) = stream.event();
            seen.push(event);
            last = Some(id);
        }
        let Shop { site, server } = shop;
        if round % 2 == 0 {
            server.kill();
        } else {
            assert_eq!(server.stop(), 0);
            while let Some(block) = stream.next() {
                if let Some(data) = block.data {
                    seen.push(serde_json::from_str(&data).unwrap());
                    last = block.id;
                }
            }
        }
        shop = Shop::start_on(site);
    }
    let rest = log(shop.client()).len() - seen.len();
    let mut stream = Stream::open(shop.client(), "", last.as_deref());
    seen.extend(stream.events(rest));
    assert_eq!(seen, log(shop.client()));
}

/// The number of streams in the metrics.
fn told_streams(client: &Client) -> f64 {
    Metrics::of(client).value("bsv_http_streams{listener=\"wallet\"}")
}

#[test]
fn metrics_show_the_number_of_open_streams() {
    let shop = Shop::start();
    let client = shop.client();
    assert_eq!(told_streams(client), 0.0);
    let mut streams = [(); 2].map(|()| Stream::open(client, "", None));
    streams.iter_mut().for_each(|stream| drop(stream.next()));
    assert_eq!(told_streams(client), 2.0);
    drop(streams);
    while told_streams(client) > 0.0 {
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn streams_have_their_own_places() {
    let shop = Shop::start_on(Site::with(json!({ "wallet": { "streams": 2 } })));
    let client = shop.client();
    let mut streams: Vec<_> = (0..2).map(|_| Stream::open(client, "", None)).collect();
    let full = Stream::try_open(client, "", None).err().unwrap();
    check_problem(&full, 503, "too-many-streams");
    let id = create_invoice(client, "while all are taken");
    for stream in &mut streams {
        assert_eq!(stream.event().1["data"]["invoiceId"], json!(id));
    }
    assert_eq!(page(client, &format!("{EVENTS}?after=1&wait=1"))["events"], json!([]));
    // A closed stream makes room.
    drop(streams.pop());
    while Stream::try_open(client, "", None).is_err() {}
    assert_eq!(shop.server.stop(), 0);
    for mut stream in streams {
        while stream.next().is_some() {}
    }
}

#[test]
fn unread_streams_keep_nobody_out() {
    const HOSTILE: u32 = 1024;
    let shop = Shop::start_on(Site::with(json!({ "wallet": { "streams": HOSTILE + 1 } })));
    let client = shop.client();
    let count = shop.fill(300);
    let request = format!("GET {STREAM} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let hostile: Vec<_> = (0..HOSTILE)
        .map(|_| {
            let mut connection = TcpStream::connect(client.address()).unwrap();
            connection.write_all(request.as_bytes()).unwrap();
            connection
        })
        .collect();
    let mut read = Stream::open(client, "", None);
    assert_eq!(read.events(count), log(client));
    let more = shop.fill(30);
    assert_eq!(read.events(more), log(client)[count..]);
    let full = Stream::try_open(client, "", None).err().unwrap();
    check_problem(&full, 503, "too-many-streams");
    assert_eq!(shop.server.stop(), 0);
    drop(hostile);
}
