use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use bsv_tests::{Reply, Server, Site};
use serde_json::{Value, json};

const PATH: &str = "/api/v1/payment/x";

/// A server with these settings of the payments listener, and the data directory that it needs.
fn start(payments: Value) -> (Server, Site) {
    let site = Site::with(json!({"payments": payments, "minerid": {"enabled": false}}));
    (site.server(), site)
}

fn is_refused(reply: &Reply) -> bool {
    if reply.status != 429 {
        assert_eq!(reply.status, 404, "{}", reply.body);
        return false;
    }
    let wait: u64 = reply.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=1000).contains(&wait), "{wait}");
    let problem: Value = serde_json::from_str(&reply.body).unwrap();
    assert_eq!(problem["code"], "too-many-requests");
    true
}

#[test]
fn a_payer_with_too_many_requests_is_told_when_to_try_again() {
    let limited = json!({"requestsPerSecond": 1, "requestBurst": 20, "limitLoopback": true});
    let (server, _site) = start(limited);
    let payments = server.payments();
    let refused: Vec<_> = (0..30).map(|_| is_refused(&payments.get(PATH))).collect();
    assert!(refused[..20].iter().all(|refused| !refused), "{refused:?}");
    assert!(refused[20..].iter().any(|refused| *refused), "{refused:?}");
    let heads: Vec<_> = (0..30).map(|_| payments.request("HEAD", PATH, b"").status).collect();
    assert!(heads.contains(&429), "{heads:?}");
    check_rest_is_thrown_away(&server);
    // The owner is not a stranger.
    for _ in 0..30 {
        assert_eq!(server.wallet().get("/api/v1/balance").status, 200);
    }
    std::thread::sleep(Duration::from_secs(2));
    assert!(!is_refused(&payments.get(PATH)), "it has waited");
}

/// Sends many requests at once, and checks that the connection is closed when the first one is refused.
fn check_rest_is_thrown_away(server: &Server) {
    let mut stream = TcpStream::connect(server.payments().address()).unwrap();
    let ahead = format!("POST {PATH} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 2\r\n\r\n{{}}");
    stream.write_all(ahead.repeat(50).as_bytes()).unwrap();
    let mut text = Vec::new();
    let mut buffer = [0; 4096];
    while let Ok(len @ 1..) = stream.read(&mut buffer) {
        text.extend_from_slice(&buffer[..len]);
    }
    let text = String::from_utf8_lossy(&text);
    assert_eq!(text.matches("HTTP/1.1 429").count(), 1, "{text}");
    assert_eq!(text.matches("connection: close").count(), 1, "{text}");
}

#[test]
fn this_machine_is_exempt_unless_configured() {
    let (server, _site) =
        start(json!({"requestsPerSecond": 1, "requestBurst": 1, "connectionsPerPeer": 1}));
    for _ in 0..20 {
        assert!(!is_refused(&server.payments().get(PATH)));
    }
    let held: Vec<_> =
        (0..5).map(|_| TcpStream::connect(server.payments().address()).unwrap()).collect();
    assert!(!is_refused(&server.payments().get(PATH)));
    drop(held);
}

#[test]
fn peers_behind_a_front_end_are_distinguished() {
    let (server, _site) = start(json!({
        "requestsPerSecond": 1, "requestBurst": 5, "trustedProxies": ["127.0.0.1", "10.0.0.0/8"],
    }));
    let ask = |forwarded: &[&str]| {
        let headers: Vec<_> = forwarded.iter().map(|value| ("X-Forwarded-For", *value)).collect();
        is_refused(&server.payments().send("GET", PATH, &headers, b""))
    };
    let uses_up = |forwarded: &dyn Fn(usize) -> String| {
        (0..20).filter(|n| ask(&[&forwarded(*n)])).count() >= 10
    };
    assert!(uses_up(&|_| "203.0.113.1".to_owned()));
    assert!(!ask(&["203.0.113.2"]), "another peer");
    assert!(!ask(&[]), "the front end itself");
    // A header that the peer itself sends comes before the front end's addition.
    assert!(uses_up(&|n| format!("198.51.100.{n}, 203.0.113.3")));
    assert!(uses_up(&|n| format!("198.51.100.{n}, 203.0.113.4, 10.1.1.1")));
    assert!(uses_up(&|n| format!("2001:db8::{n}")));
    assert!(ask(&["198.51.100.77", "203.0.113.1"]));
}

#[test]
fn an_untrusted_peer_cannot_name_another_peer() {
    let (server, _site) =
        start(json!({"requestsPerSecond": 1, "requestBurst": 5, "limitLoopback": true}));
    let refused = (0..20).filter(|n| {
        let forwarded = format!("198.51.100.{n}");
        let headers = [("X-Forwarded-For", forwarded.as_str())];
        is_refused(&server.payments().send("GET", PATH, &headers, b""))
    });
    assert!(refused.count() >= 10);
}

#[test]
fn a_peer_has_a_share_of_the_connections() {
    let (server, _site) = start(json!({"connectionsPerPeer": 3, "limitLoopback": true}));
    let connect = || TcpStream::connect(server.payments().address()).unwrap();
    let mut held: Vec<_> = (0..3).map(|_| connect()).collect();
    // The held connections have been accepted, because they wait before this one.
    let closed = connect().read(&mut [0]);
    assert!(matches!(closed, Ok(0) | Err(_)), "{closed:?}");
    held.pop();
    let mut answered = false;
    for _ in 0..50 {
        answered |= server.payments().try_send("GET", PATH, &[], b"").is_ok();
        if answered {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(answered, "a place that is free again cannot be used");
    assert_eq!(server.wallet().get("/api/v1/balance").status, 200);
}

#[test]
fn a_listener_may_have_few_connections() {
    let (server, _site) = start(json!({"connections": 1, "streams": 1}));
    let held: Vec<_> =
        (0..10).map(|_| TcpStream::connect(server.payments().address()).unwrap()).collect();
    for _ in 0..5 {
        assert!(!is_refused(&server.payments().get(PATH)));
    }
    drop(held);
}
