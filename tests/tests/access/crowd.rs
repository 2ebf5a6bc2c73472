use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use bsv_tests::repetitions;
use serde_json::json;

use crate::access::Guarded;

/// Opens this many connections. Every other one stays silent, and the rest begin a request.
fn crowd(address: &str, count: usize) -> Vec<TcpStream> {
    let connect = |number: usize| {
        let mut stream = TcpStream::connect(address).unwrap();
        if number % 2 == 1 {
            stream
                .write_all(b"GET /minerid/first HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ")
                .unwrap();
        }
        stream.set_nonblocking(true).unwrap();
        stream
    };
    (0..count).map(connect).collect()
}

fn is_open(stream: &mut TcpStream) -> bool {
    matches!(stream.read(&mut [0]), Err(error) if error.kind() == ErrorKind::WouldBlock)
}

#[test]
fn silent_connections_keep_nobody_out() {
    let guarded = Guarded::start_with(json!({}));
    let count = repetitions("idle and slow connections per listener", 2500, 1800);
    let listeners = [
        (guarded.server.address(), "/minerid/first", 200, 1024),
        // 128 places are for waiting for events.
        (guarded.server.wallet().address(), "/api/v1/balance", 200, 1024 + 128),
        // 512 places are for payment pages.
        (guarded.server.payments().address(), "/api/v1/payment/x", 404, 1024 + 512),
    ];
    for (address, path, status, places) in listeners {
        let client = bsv_tests::Client::new(address);
        let mut crowd = crowd(address, count);
        // A connection that is used from time to time is not the idlest.
        for _ in 0..100 {
            assert_eq!(client.get(path).status, status, "{path}");
        }
        crowd.retain_mut(is_open);
        // All that fit are open, except those that made room.
        assert!((700..=places).contains(&crowd.len()), "{} are left", crowd.len());
    }
}

#[test]
fn an_answer_under_way_is_not_given_up_for_newcomers() {
    let guarded = Guarded::start_with(json!({}));
    let address = guarded.server.address();
    let mut stream = TcpStream::connect(address).unwrap();
    // A request whose body comes in pieces is under way.
    let head = "POST /coinbase2 HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 60000\r\n\
                Connection: close\r\n\r\n{";
    stream.write_all(head.as_bytes()).unwrap();
    let is_crowded = AtomicBool::new(false);
    thread::scope(|scope| {
        let sent = scope.spawn(|| {
            let mut sent = 1;
            while !is_crowded.load(Ordering::Relaxed) {
                (&stream).write_all(b" ").unwrap();
                sent += 1;
                thread::sleep(Duration::from_millis(100));
            }
            sent
        });
        let _crowd = crowd(address, 1100);
        assert_eq!(guarded.server.get("/minerid/first").status, 200);
        is_crowded.store(true, Ordering::Relaxed);
        let rest = format!("{:>1$}", "}", 60_000 - sent.join().unwrap());
        (&stream).write_all(rest.as_bytes()).unwrap();
    });
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.ends_with("Block height must be supplied"), "{answer}");
}
