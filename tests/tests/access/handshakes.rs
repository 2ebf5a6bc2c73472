//! Strangers who begin a TLS handshake and then stay silent.

use std::fs;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::thread::sleep;
use std::time::Duration;

use bsv_tests::tls::{self, setting};
use bsv_tests::{Server, Site, repetitions};
use serde_json::{Value, json};

use crate::access::stalled::connect;

/// A server whose payments listener speaks TLS and has these settings, and its data directory.
fn start(mut payments: Value) -> (Server, Site) {
    payments["tls"] = setting("payee");
    let mut site = Site::with(json!({"payments": payments, "minerid": {"enabled": false}}));
    site.set_env("BSV_LOG", "off");
    (site.server(), site)
}

/// The beginning of a handshake: a record that announces a message of 60,000 bytes, and a part of
/// the message.
fn beginning(len: usize) -> Vec<u8> {
    let mut message = vec![1, 0, 0xea, 0x60, 3, 3];
    message.resize(len, 0);
    let record = |part: &[u8]| {
        let len = u16::try_from(part.len()).unwrap().to_be_bytes();
        [&[22, 3, 1, len[0], len[1]], part].concat()
    };
    message.chunks(16_000).flat_map(record).collect()
}

/// Begins a handshake in one of several ways.
fn begin(address: &str, from: Ipv4Addr, number: usize) -> TcpStream {
    let mut stream = connect(address, from);
    let beginning = match number % 4 {
        0 => Vec::new(),
        1 => beginning(10),
        2 => vec![22],
        _ => beginning(50_000),
    };
    // The server does not read from a connection without a place.
    stream.set_nonblocking(true).unwrap();
    let _ = stream.write(&beginning);
    stream
}

fn is_open(stream: &mut TcpStream) -> bool {
    matches!(stream.read(&mut [0]), Err(error) if error.kind() == ErrorKind::WouldBlock)
}

#[test]
fn handshakes_that_stall_keep_nobody_out() {
    let (server, _site) = start(json!({}));
    let payments = server.payments();
    let count = repetitions("handshakes that stall", 2500, 1800);
    let begin = |number| begin(payments.address(), Ipv4Addr::LOCALHOST, number);
    let before = server.resident_memory();
    let mut crowd: Vec<_> = (0..count).map(begin).collect();
    for _ in 0..100 {
        assert_eq!(payments.get("/api/v1/payment/x").status, 404);
    }
    let grown = server.resident_memory().saturating_sub(before);
    assert!(grown < 1536 * (128 << 10), "{} KiB", grown >> 10);
    crowd.retain_mut(is_open);
    // All that fit are open, except those that made room.
    assert!((700..=1536).contains(&crowd.len()), "{} are left", crowd.len());
}

#[test]
fn one_peer_has_its_share_of_handshakes() {
    let (server, _site) = start(json!({"connectionsPerPeer": 3, "limitLoopback": true}));
    let address = server.payments().address();
    let greedy = Ipv4Addr::new(127, 0, 0, 2);
    let mut held: Vec<_> = (0..3).map(|number| begin(address, greedy, number)).collect();
    let mut refused = begin(address, greedy, 0);
    refused.set_nonblocking(false).unwrap();
    let closed = refused.read(&mut [0]);
    assert!(matches!(closed, Ok(0) | Err(_)), "{closed:?}");
    assert!(held.iter_mut().all(is_open));
    assert_eq!(server.payments().get("/api/v1/payment/x").status, 404);
}

#[test]
fn a_handshake_counts_as_a_request() {
    let limits = json!({"requestsPerSecond": 1, "requestBurst": 20, "limitLoopback": true});
    let (server, _site) = start(limits);
    let address = server.payments().address();
    let handshakes: Vec<_> = (0..30).map(|_| tls::connect(address).is_ok()).collect();
    assert!(handshakes[..20].iter().all(|done| *done), "{handshakes:?}");
    assert!(handshakes[20..].iter().any(|done| !done), "{handshakes:?}");
    sleep(Duration::from_secs(2));
    assert!(tls::connect(address).is_ok(), "it has waited");
}

#[test]
fn a_handshake_has_the_same_time_limit_as_a_head() {
    let (server, _site) = start(json!({}));
    let mut slow = TcpStream::connect(server.payments().address()).unwrap();
    let mut silent = slow.try_clone().unwrap();
    silent.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let drops = std::thread::spawn(move || {
        beginning(300).iter().all(|byte| {
            sleep(Duration::from_millis(100));
            slow.write_all(&[*byte]).is_ok()
        })
    });
    let ended = silent.read(&mut [0]);
    let waits =
        |error: io::Error| matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut);
    assert!(!ended.is_err_and(waits), "it is still open");
    assert!(!drops.join().unwrap(), "the server read everything");
}

#[test]
fn connections_that_stay_silent_after_the_handshake_use_little_memory() {
    let (server, _site) = start(json!({}));
    let address = server.payments().address();
    let connect = || tls::connect(address).unwrap();
    drop((0..100).map(|_| connect()).collect::<Vec<_>>());
    let before = server.resident_memory();
    let held: Vec<_> = (0..900).map(|_| connect()).collect();
    let each = server.resident_memory().saturating_sub(before) / 900;
    assert!(each < 64 << 10, "{each} bytes each");
    assert_eq!(server.payments().get("/api/v1/payment/x").status, 404);
    drop(held);
}

#[test]
fn a_stopping_server_does_not_wait_for_handshakes() {
    let site = Site::with(json!({"payments": {"tls": setting("payee")}}));
    let log = site.data_dir().join("log");
    let server = site.server_logging_to(&log);
    let address = server.payments().address();
    let begun: Vec<_> = (0..4).map(|number| begin(address, Ipv4Addr::LOCALHOST, number)).collect();
    let idle = tls::connect(address).unwrap();
    assert_eq!(server.payments().get("/api/v1/payment/x").status, 404);
    assert_eq!(server.stop(), 0);
    let log = fs::read_to_string(log).unwrap();
    assert!(!log.contains("broken off"), "{log}");
    drop((begun, idle));
}
