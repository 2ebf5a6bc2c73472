//! Streams of server-sent events.

use std::io::Write;
use std::net::TcpStream;
use std::time::Duration;

use bsv_tests::stream::{STREAM, Stream};
use bsv_tests::{Client, Metrics, Site};
use serde_json::{Value, json};

use crate::events::{EVENTS, Shop, check_problem, create_invoice, log, page};

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
    let retry = stream.next_block().unwrap().retry.unwrap();
    assert!((2000..=5000).contains(&retry.parse().unwrap()), "{retry}");
    let first = stream.next_block().unwrap();
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
        assert!(stream.next_block().unwrap().retry.is_some());
        let block = stream.next_block().unwrap();
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
            while let Some(block) = stream.next_block() {
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
    streams.iter_mut().for_each(|stream| drop(stream.next_block()));
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
        while stream.next_block().is_some() {}
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
