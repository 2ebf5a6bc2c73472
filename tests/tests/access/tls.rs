//! Listeners that speak TLS.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use bsv_tests::tls::{self, VERSIONS, certificate, setting, shown};
use bsv_tests::{Client, Site};
use serde_json::{Value, json};
use tempfile::TempDir;

#[test]
fn each_listener_has_its_own_certificate() {
    let site = Site::with(json!({
        "tls": setting("pool"),
        "wallet": {"tls": setting("shop")},
        "payments": {"tls": setting("payee"), "trustedProxies": ["127.0.0.1"], "requestBurst": 1,
                     "requestsPerSecond": 1},
    }));
    let server = site.server();
    let [minerid, wallet, payments] = [server.minerid(), server.wallet(), server.payments()];
    for (listener, name) in [(minerid, "pool"), (wallet, "shop"), (payments, "payee")] {
        assert_eq!(shown(listener.address()), certificate(name));
        assert_eq!(listener.get("/readyz").status, 200);
    }
    assert_eq!(minerid.get("/minerid/nobody").status, 422);
    let invoice = wallet.post("/api/v1/invoices", json!({"satoshis": 1000}).to_string());
    assert_eq!(invoice.status, 201, "{}", invoice.body);
    let link = format!("<https://{}/dpp/api/v1/payment/", payments.address());
    assert!(invoice.header("link").unwrap().starts_with(&link), "{invoice:?}");
    let ask = |payer| {
        let headers = [("X-Forwarded-For", payer)];
        payments.send("GET", "/api/v1/payment/x", &headers, b"").status
    };
    assert_eq!(ask("203.0.113.1"), 404);
    assert_eq!([(); 5].map(|()| ask("203.0.113.1")).iter().max(), Some(&429));
    assert_eq!(ask("203.0.113.2"), 404, "another payer");
}

#[test]
fn both_versions_of_tls_carry_http_1_1() {
    let site = Site::with(json!({"wallet": {"tls": setting("payee")}}));
    let server = site.server();
    let address = server.wallet().address();
    let handshake = |version, protocols: &[&str]| {
        let mut config = tls::client_config(&[version]);
        config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        let mut stream = tls::over_with(TcpStream::connect(address).unwrap(), &Arc::new(config));
        stream.conn.complete_io(&mut stream.sock).map(|_| stream)
    };
    for version in VERSIONS {
        for (offered, chosen) in [
            (&["h2", "http/1.1"][..], Some(&b"http/1.1"[..])),
            (&["http/1.1"], Some(b"http/1.1")),
            (&[], None),
        ] {
            let mut stream = handshake(version, offered).unwrap();
            assert_eq!(stream.conn.protocol_version(), Some(version.version));
            assert_eq!(stream.conn.alpn_protocol(), chosen);
            let request = "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n";
            stream.write_all(request.as_bytes()).unwrap();
            let mut answer = String::new();
            // This fails if the server omits the closing message of TLS.
            stream.read_to_string(&mut answer).unwrap();
            assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("ok"), "{answer}");
        }
        handshake(version, &["h2"]).unwrap_err();
    }
}

#[test]
fn long_answers_and_requests_arrive_complete() {
    let site = Site::with(json!({"wallet": {"tls": setting("payee")}}));
    let server = site.server();
    let description = "x".repeat(1000);
    let body = json!({"satoshis": 1000, "description": description}).to_string();
    for _ in 0..500 {
        assert_eq!(server.wallet().post("/api/v1/invoices", &body).status, 201);
    }
    let reply = server.wallet().get("/api/v1/invoices");
    let invoices: Vec<Value> = serde_json::from_str(&reply.body).unwrap();
    assert_eq!(invoices.len(), 500);
    let reply = server.wallet().post("/api/v1/invoices", " ".repeat(1 << 20) + "x");
    assert_eq!(reply.status, 413);
    let reply =
        server.wallet().post("/api/v1/invoices", " ".repeat((1 << 20) - body.len()) + &body);
    assert_eq!(reply.status, 201);
}

#[test]
fn a_hang_up_signal_does_not_end_a_server() {
    let mut site = Site::new();
    site.set_env("BSV_LOG", "off");
    let mut server = site.server();
    for _ in 0..3 {
        server.hang_up();
        assert!(server.is_alive());
        assert_eq!(server.get("/healthz").status, 200);
    }
    assert_eq!(server.stop(), 0);
}

#[test]
fn the_server_warns_of_a_public_listener_without_tls() {
    let warnings = |settings: Value| {
        let dir = TempDir::new().unwrap();
        let log = dir.path().join("log");
        let server = Site::with(settings).server_logging_to(&log);
        assert_eq!(server.stop(), 0);
        let log = fs::read_to_string(log).unwrap();
        let warned = log.lines().filter(|line| line.contains("is reachable from other machines"));
        warned.map(|line| line[line.rfind(": set ").unwrap() + 6..].to_owned()).collect::<Vec<_>>()
    };
    let anywhere = "0.0.0.0";
    let local = "listen on 127.0.0.1 behind a front end that encrypts";
    let exposed = json!({
        "host": anywhere, "auth": {"requireToken": true}, "wallet": {"host": anywhere},
        "payments": {"host": anywhere, "publicUrl": "http://pay.example"},
    });
    let expected = [
        format!("tls, or {local}"),
        format!("wallet.tls, or {local}"),
        "payments.tls, or name the front end that encrypts in payments.trustedProxies".to_owned(),
    ];
    assert_eq!(warnings(exposed), expected);
    let protected = [
        json!({"auth": {"requireToken": true}}),
        json!({
            "host": anywhere, "tls": setting("pool"), "auth": {"requireToken": true},
            "wallet": {"host": anywhere, "tls": setting("shop")},
            "payments": {"host": anywhere, "tls": setting("payee"), "publicUrl": "http://a.example"},
        }),
        json!({
            "host": anywhere, "allowUnauthenticated": true, "wallet": {"host": anywhere},
            "payments": {"host": anywhere, "publicUrl": "https://pay.example"},
        }),
        json!({"payments": {
            "host": anywhere, "publicUrl": "http://a.example", "trustedProxies": ["10.0.0.1"],
        }}),
    ];
    for settings in protected {
        assert_eq!(warnings(settings.clone()), [""; 0], "{settings}");
    }
}

#[test]
fn plain_http_gets_no_answer_on_a_tls_listener() {
    let site = Site::with(json!({"wallet": {"tls": setting("payee")}}));
    let server = site.server();
    let address = server.wallet().address();
    Client::new(address).try_request("GET", "/healthz", b"").unwrap_err();
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    assert!(!answer.starts_with(b"HTTP"), "{answer:?}");
    assert_eq!(server.wallet().get("/healthz").status, 200);
}
