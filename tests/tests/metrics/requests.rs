use std::io::{Read, Write};
use std::net::TcpStream;

use bsv_tests::{Client, Metrics, Site};
use serde_json::json;

#[test]
fn answers_are_counted_by_listener_route_method_and_status() {
    let site = Site::new();
    let server = site.server();
    let (wallet, minerid) = (server.wallet(), server.minerid());
    let invoice = wallet.post("/api/v1/invoices", r#"{"satoshis":5}"#);
    assert_eq!(invoice.status, 201);
    wallet.post("/api/v1/invoices", "{}");
    wallet.get("/api/v1/invoices/000000000000");
    wallet.request("HEAD", "/healthz", b"");
    wallet.request("OPTIONS", "/api/v1/balance", b"");
    server.payments().get("/api/v1/payment/000000000000");
    minerid.get("/minerid/nobody");
    minerid.get("/MINERID/Nobody/");
    let metrics = Metrics::of(wallet);
    for (labels, count) in [
        (r#"listener="wallet",route="/api/v1/invoices",method="POST",status="201""#, 1.0),
        (r#"listener="wallet",route="/api/v1/invoices",method="POST",status="400""#, 1.0),
        (r#"listener="wallet",route="/api/v1/invoices/{id}",method="GET",status="404""#, 1.0),
        (r#"listener="wallet",route="/healthz",method="HEAD",status="200""#, 1.0),
        (r#"listener="wallet",route="/api/v1/balance",method="OPTIONS",status="204""#, 1.0),
        (r#"listener="payments",route="/api/v1/payment/{id}",method="GET",status="404""#, 1.0),
    ] {
        assert_eq!(metrics.value(&format!("bsv_http_requests_total{{{labels}}}")), count);
    }
    assert!(!metrics.0.contains("\"minerid\""), "{}", metrics.0);
    let duration = |what: &str| {
        let labels = r#"listener="wallet",route="/api/v1/invoices""#;
        metrics.value(&format!("bsv_http_request_duration_seconds_{what}{{{labels}}}"))
    };
    assert_eq!(duration("count"), 2.0);
    assert!(duration("sum") > 0.0);
    let metrics = Metrics::of(minerid);
    let labels = r#"listener="minerid",route="/minerid/{alias}",method="GET",status="422""#;
    assert_eq!(metrics.value(&format!("bsv_http_requests_total{{{labels}}}")), 2.0);
    assert!(!metrics.0.contains("\"wallet\""), "{}", metrics.0);
}

#[test]
fn no_label_holds_what_strangers_send() {
    let site = Site::new();
    let server = site.server();
    let payments = server.payments();
    let other = |method: &str, status: u16| {
        format!(
            "bsv_http_requests_total{{listener=\"payments\",route=\"none\",method=\"{method}\",\
             status=\"{status}\"}}"
        )
    };
    for number in 0..50 {
        payments.get(&format!("/nowhere{number}"));
        payments.request(&format!("ODD{number}"), &format!("/nowhere{number}"), b"");
        payments.request(&format!("ODD{number}"), &format!("/api/v1/payment/odd{number}"), b"");
    }
    let metrics = Metrics::of(server.wallet());
    assert_eq!(metrics.value(&other("GET", 404)), 50.0);
    assert_eq!(metrics.value(&other("other", 404)), 50.0);
    let of_route = other("other", 405).replace("\"none\"", "\"/api/v1/payment/{id}\"");
    assert_eq!(metrics.value(&of_route), 50.0);
    let text = metrics.0.to_lowercase();
    assert!(!text.contains("odd") && !text.contains("nowhere"), "{text}");
    let lines = metrics.0.lines().filter(|line| line.starts_with("bsv_http_requests_total{"));
    assert_eq!(lines.count(), 3);
}

fn refused(metrics: &Metrics, reason: &str) -> f64 {
    metrics.value(&format!("bsv_refused_requests_total{{reason=\"{reason}\"}}"))
}

#[test]
fn refusals_are_counted_by_reason() {
    let mut site = Site::with(json!({
        "auth": {"requireToken": true},
        "payments": {
            "limitLoopback": true, "requestsPerSecond": 1, "requestBurst": 4,
            "connectionsPerPeer": 2,
        },
    }));
    site.set_env("BSV_LOG", "off");
    site.cli_ok(&["init"]);
    let token = |scope: &str| {
        let made = site.cli_json(&["token", "create", "--scope", scope]);
        format!("Bearer {}", made["token"].as_str().unwrap())
    };
    let [reading, metrics_only] = ["wallet:read", "metrics:read"].map(token);
    let server = site.server();
    let wallet = server.wallet();
    let ask = |headers: &[(&str, &str)]| wallet.send("GET", "/api/v1/balance", headers, b"").status;
    assert_eq!(ask(&[]), 401);
    assert_eq!(ask(&[("Authorization", "Bearer bsv_nobody")]), 401);
    assert_eq!(ask(&[("Authorization", &metrics_only)]), 403);
    assert_eq!(ask(&[("Authorization", &reading), ("Origin", "http://evil.example")]), 403);
    let payments = server.payments();
    let large = vec![b' '; 11 << 20];
    assert_eq!(payments.request("POST", "/api/v1/payment/x", &large).status, 413);
    let statuses: Vec<_> = (0..8).map(|_| payments.get("/healthz").status).collect();
    let too_many = statuses.iter().filter(|status| **status == 429).count();
    assert!(too_many > 0, "{statuses:?}");
    assert_closed_beyond(2, payments);
    let reply = wallet.send("GET", "/metrics", &[("Authorization", &metrics_only)], b"");
    assert_eq!(reply.status, 200);
    let metrics = Metrics(reply.body);
    for (reason, count) in [
        ("token-missing", 1.0),
        ("token-invalid", 1.0),
        ("scope-missing", 1.0),
        ("other-origin", 1.0),
        ("too-large", 1.0),
        ("too-many-requests", too_many as f64),
        ("token-expired", 0.0),
    ] {
        assert_eq!(refused(&metrics, reason), count, "{reason} in\n{}", metrics.0);
    }
    // A connection whose request was answered may still have occupied its place.
    assert!(refused(&metrics, "too-many-connections") >= 1.0, "{}", metrics.0);
    assert_eq!(metrics.value(r#"bsv_http_connections{listener="wallet"}"#), 1.0);
}

/// Opens so many connections, and one more, which the server must close.
fn assert_closed_beyond(most: usize, client: &Client) {
    let mut open: Vec<_> =
        (0..=most).map(|_| TcpStream::connect(client.address()).unwrap()).collect();
    let last = open.last_mut().unwrap();
    assert_eq!(last.read(&mut [0; 1024]).unwrap_or(0), 0);
}

#[test]
fn connections_count_for_as_long_as_they_are_open() {
    let site = Site::new();
    let server = site.server();
    let sample = r#"bsv_http_connections{listener="payments"}"#;
    let open: Vec<_> = (0..5)
        .map(|_| {
            let mut stream = TcpStream::connect(server.payments().address()).unwrap();
            stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n").unwrap();
            assert!(stream.read(&mut [0; 1024]).unwrap() > 0);
            stream
        })
        .collect();
    assert_eq!(Metrics::of(server.wallet()).value(sample), 5.0);
    drop(open);
    crate::metrics::wait_for(server.wallet(), sample, 0.0);
}
