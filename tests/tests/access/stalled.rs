//! Strangers who begin to send something and then stop.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::thread;
use std::time::{Duration, Instant};

use bsv_tests::{Client, Server, Site};
use serde_json::{Value, json};
use tokio::net::TcpSocket;

use crate::access::Guarded;

/// A path of the payments listener that takes a body.
const PATH: &str = "/api/v1/payment/AAAAAAAAAAAAAAAA";
/// How long a test waits for a connection to end.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server with these settings of the payments listener, and the data directory that it needs.
fn start(payments: Value) -> (Server, Site) {
    let mut site = Site::with(json!({"payments": payments, "minerid": {"enabled": false}}));
    site.set_env("BSV_LOG", "off");
    (site.server(), site)
}

/// Begins a request of this many bytes, and sends the first ones.
fn begin(address: &str, from: Ipv4Addr, path: &str, len: usize, sent: usize) -> TcpStream {
    let mut stream = connect(address, from);
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n\
         Content-Length: {len}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(&vec![b' '; sent]).unwrap();
    stream
}

pub(crate) fn connect(address: &str, from: Ipv4Addr) -> TcpStream {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
    let connected = runtime.block_on(async {
        let socket = TcpSocket::new_v4().unwrap();
        // With this, unread answers soon wait at the server.
        socket.set_recv_buffer_size(4096).unwrap();
        socket.bind(SocketAddr::new(IpAddr::V4(from), 0)).unwrap();
        socket.connect(address.parse().unwrap()).await.unwrap().into_std().unwrap()
    });
    connected.set_nonblocking(false).unwrap();
    connected
}

/// Whether the server closed the connection without an answer.
fn is_given_up(stream: &mut TcpStream) -> bool {
    stream.set_nonblocking(true).unwrap();
    match stream.peek(&mut [0]) {
        Ok(len) => len == 0,
        Err(error) => error.kind() != ErrorKind::WouldBlock,
    }
}

/// Checks that one of these has ended, or ends in a moment, and no other.
fn check_one_has_made_room(held: &mut [TcpStream], has_ended: fn(&mut TcpStream) -> bool) {
    let begun = Instant::now();
    while !held.iter_mut().any(has_ended) {
        assert!(begun.elapsed() < PATIENCE, "none of them has made room");
        thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(held.iter_mut().map(has_ended).filter(|has_ended| *has_ended).count(), 1);
}

#[test]
fn unfinished_bodies_keep_nobody_out() {
    let (server, _site) = start(json!({"connections": 15, "streams": 1}));
    let payments = server.payments();
    let stalled = |_| begin(payments.address(), Ipv4Addr::LOCALHOST, PATH, 10, 1);
    let mut held: Vec<_> = (0..16).map(stalled).collect();
    assert_eq!(payments.get("/api/v1/payment/x").status, 404);
    check_one_has_made_room(&mut held, is_given_up);
}

#[test]
fn one_peer_keeps_no_other_out() {
    let settings =
        json!({"connections": 15, "streams": 1, "connectionsPerPeer": 16, "limitLoopback": true});
    let (server, _site) = start(settings);
    let payments = server.payments();
    let greedy = Ipv4Addr::new(127, 0, 0, 2);
    let stalled = |_| begin(payments.address(), greedy, PATH, 10, 1);
    let mut held: Vec<_> = (0..16).map(stalled).collect();
    for _ in 0..4 {
        assert_eq!(payments.get("/api/v1/payment/x").status, 404);
    }
    assert!(held.iter_mut().any(is_given_up));
}

#[test]
fn peers_that_reconnect_again_and_again_keep_no_other_out() {
    let settings = json!({"connections": 15, "streams": 1, "limitLoopback": true});
    let (server, _site) = start(settings);
    let payments = server.payments();
    let greedy = |n: u8| Ipv4Addr::new(127, 0, 0, n % 8 + 2);
    let stalled = |n| begin(payments.address(), greedy(n), PATH, 10, 1);
    let held: Vec<_> = (0..16).map(stalled).collect();
    let mut further: Vec<_> = (0..40).map(|n| connect(payments.address(), greedy(n))).collect();
    assert_eq!(payments.get("/api/v1/payment/x").status, 404);
    for stream in &mut further {
        assert_eq!(stream.read(&mut [0]).unwrap_or(0), 0, "its peer has a place");
    }
    drop(held);
}

/// Sends requests without reading the answers, until the server accepts no more.
fn ask_for_much(address: &str) -> TcpStream {
    let mut stream = connect(address, Ipv4Addr::LOCALHOST);
    stream.set_write_timeout(Some(Duration::from_millis(300))).unwrap();
    let many = "GET /api/v1/payment/x HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".repeat(100);
    while stream.write_all(many.as_bytes()).is_ok() {}
    stream
}

/// Whether the server has closed a connection from which it reads nothing.
fn is_closed(stream: &mut TcpStream) -> bool {
    stream.set_nonblocking(true).unwrap();
    stream.write(b"x").is_err_and(|error| error.kind() != ErrorKind::WouldBlock)
}

#[test]
fn unread_answers_keep_nobody_out() {
    let (server, _site) = start(json!({"connections": 15, "streams": 1}));
    let payments = server.payments();
    let mut held: Vec<_> = thread::scope(|scope| {
        let ask = || scope.spawn(|| ask_for_much(payments.address()));
        let asking: Vec<_> = (0..16).map(|_| ask()).collect();
        asking.into_iter().map(|asking| asking.join().unwrap()).collect()
    });
    let begun = Instant::now();
    assert_eq!(payments.get("/api/v1/payment/x").status, 404);
    assert!(
        begun.elapsed().as_secs() < 20,
        "a new client must not wait the 30 s that a slow reader has"
    );
    check_one_has_made_room(&mut held, is_closed);
}

#[test]
fn one_peer_does_not_take_all_places_of_large_bodies() {
    let settings = json!({"limitLoopback": true, "requestBurst": 1000});
    let (server, _site) = start(settings);
    let payments = server.payments();
    let greedy = Ipv4Addr::new(127, 0, 0, 2);
    let stalled = |_| begin(payments.address(), greedy, PATH, 200_000, 70_000);
    let held: Vec<_> = (0..16).map(stalled).collect();
    let large = " ".repeat(100_000);
    let reply =
        payments.send("POST", PATH, &[("Content-Type", "application/json")], large.as_bytes());
    assert_eq!(reply.status, 400, "{}", reply.body);
    drop(held);
}

#[test]
fn a_request_that_is_refused_anyway_is_refused_before_its_body() {
    let guarded = Guarded::start();
    let Guarded { server, .. } = &guarded;
    let [minerid, wallet, payments] =
        [server.address(), server.wallet().address(), server.payments().address()];
    for (address, path, len, status) in [
        (minerid, "/coinbase2", 10, 401),
        (wallet, "/api/v1/invoices", 10, 401),
        (payments, "/api/v1/payment", 10, 404),
        (payments, "/api/v1/channel/x", 10, 405),
        (payments, PATH, 100_000_000, 413),
    ] {
        let mut stream = begin(address, Ipv4Addr::LOCALHOST, path, len, 1);
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).unwrap();
        assert_eq!(answer, *format!("HTTP/1.1 {status}").as_bytes(), "{path}");
    }
    let token = guarded.token(&["wallet:read"]);
    let reply = Client::new(wallet).send(
        "POST",
        "/nothing",
        &[("Authorization", &format!("Bearer {token}"))],
        b"{}",
    );
    assert_eq!(reply.status, 404);
}
