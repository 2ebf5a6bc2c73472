use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use bsv_tx::Network;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use super::super::tests::{PUBLIC, SPECIAL};
use super::*;

fn settings(opened: &[&str]) -> WalletSettings {
    let others = vec!["127.0.0.1:9002".parse().unwrap()];
    WalletSettings {
        own_listeners: OwnListeners { payments: Some("0.0.0.0:8445".parse().unwrap()), others },
        webhook_networks: opened.iter().map(|network| network.parse().unwrap()).collect(),
        ..WalletSettings::new(Network::Regtest)
    }
}

#[test]
fn webhooks_lead_to_public_addresses_over_tls_however_they_are_spelt() {
    for opened in [&[][..], &["192.168.0.0/16", "fd00::/8"]] {
        let settings = settings(opened);
        let may = |url: &str| check_webhook_url(url, &settings).is_ok();
        for host in SPECIAL {
            let is_among = ["192.168.0.1", "192.168.257", "[::FFFF:C0A8:1]", "[fdff::1]"];
            let is_opened = !opened.is_empty() && is_among.contains(&host);
            for scheme in ["https", "http"] {
                let url = format!("{scheme}://{host}:3000/x");
                assert_eq!(may(&url), is_opened, "{opened:?}: {url}");
            }
        }
        for host in PUBLIC {
            assert!(may(&format!("https://{host}/x")), "{host}");
            assert!(!may(&format!("http://{host}/x")), "{host}");
        }
    }
}

#[test]
fn webhooks_never_lead_to_listeners_of_this_process() {
    let settings = settings(&["127.0.0.0/8", "0.0.0.0/8", "::/128"]);
    let may = |url: &str| check_webhook_url(url, &settings).is_ok();
    for host in ["127.0.0.1", "0x7f.1", "2130706433", "0", "[::ffff:7f00:1]", "127.0.0.1."] {
        for port in [8445, 9002] {
            assert!(!may(&format!("http://{host}:{port}/")), "{host}:{port}");
        }
        assert!(may(&format!("http://{host}:9003/")), "{host}");
    }
}

#[test]
fn urls_of_other_forms_are_refused() {
    let closed = settings(&[]);
    let opened = settings(&["127.0.0.0/8"]);
    let longest = format!("https://shop.example/{}", "a".repeat(MAX_URL_LEN - 21));
    for (url, with_closed, with_opened) in [
        ("https://shop.example/hook?a=b", true, true),
        ("https://shop.example:444", true, true),
        ("http://shop.example/hook", false, true),
        ("HTTPS://SHOP.EXAMPLE", true, true),
        (&longest, true, true),
        (&format!("{longest}a"), false, false),
        ("ftp://shop.example/", false, false),
        ("file:///etc/passwd", false, false),
        ("https://", false, false),
        ("//shop.example", false, false),
        ("shop.example", false, false),
        ("https://me@shop.example/", false, false),
        ("https://me:secret@shop.example/", false, false),
        ("https://:secret@shop.example/", false, false),
        ("https://shop.example:99999/", false, false),
    ] {
        assert_eq!(check_webhook_url(url, &closed).is_ok(), with_closed, "{url}");
        assert_eq!(check_webhook_url(url, &opened).is_ok(), with_opened, "{url}");
    }
}

#[test]
fn retry_after_is_a_number_of_seconds_or_a_time() {
    let now: Timestamp = "2026-11-21T08:48:56Z".parse().unwrap();
    for (text, expected) in [
        ("0", Some(0)),
        ("120", Some(120)),
        (" 7 ", Some(7)),
        ("99999999999999999999999", Some(u64::MAX)),
        ("Sat, 21 Nov 2026 08:50:06 GMT", Some(70)),
        ("Sat, 21 Nov 2026 08:40:00 GMT", Some(0)),
        ("-1", None),
        ("1.5", None),
        ("", None),
        ("soon", None),
    ] {
        let mut headers = HeaderMap::new();
        headers.insert(RETRY_AFTER, text.parse().unwrap());
        let expected = expected.map(Duration::from_secs);
        assert_eq!(retry_after(&headers, now), expected, "{text:?}");
    }
    assert_eq!(retry_after(&HeaderMap::new(), now), None);
}

/// Handles each connection with `handle`, and counts the connections.
fn server(handle: impl Fn(TcpStream) + Clone + Send + 'static) -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            counted.fetch_add(1, Ordering::SeqCst);
            let handle = handle.clone();
            thread::spawn(move || handle(stream));
        }
    });
    (address, count)
}

/// Reads a request whose body is `{}`.
fn read_request(stream: &mut impl Read) -> Option<String> {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n{}") {
        let mut byte = [0];
        if stream.read(&mut byte).ok()? == 0 {
            return None;
        }
        request.push(byte[0]);
    }
    String::from_utf8(request).ok()
}

/// Answers each request of a connection with `answer`.
fn answering(answer: &'static str) -> impl Fn(TcpStream) + Clone + Send {
    move |mut stream| {
        while read_request(&mut stream).is_some() {
            let _ = stream.write_all(answer.as_bytes());
        }
    }
}

fn client(opened: &[&str]) -> HttpWebhooks {
    let opened: Vec<_> = opened.iter().map(|network| network.parse().unwrap()).collect();
    let limits = Limits { head: Duration::from_secs(5), ..LIMITS };
    HttpWebhooks { limits, ..HttpWebhooks::new(OwnListeners::default(), &opened, "test/1") }
}

async fn send(client: &HttpWebhooks, url: &str) -> WebhookAnswer {
    let request = WebhookRequest {
        url: url.to_owned(),
        id: "evt_3f9a1c02_7".to_owned(),
        timestamp: 5,
        signature: "v1,abc v1,def".to_owned(),
        body: b"{}".to_vec(),
    };
    client.send(request).await
}

const LOOPBACK: &[&str] = &["127.0.0.0/8", "::1/128"];
const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfine";

#[tokio::test]
async fn an_event_is_posted_with_its_headers_and_connections_are_used_again() {
    let (sender, requests) = std::sync::mpsc::channel();
    let (address, connections) = server(move |mut stream| {
        while let Some(request) = read_request(&mut stream) {
            sender.send(request).unwrap();
            stream.write_all(OK.as_bytes()).unwrap();
        }
    });
    let client = client(LOOPBACK);
    for _ in 0..3 {
        let answer = send(&client, &format!("http://localhost:{}/hook?a=b", address.port())).await;
        let expected = WebhookAnswer {
            outcome: AttemptOutcome::Answered(200),
            answer: "fine".to_owned(),
            retry_after: None,
        };
        assert_eq!(answer, expected);
    }
    assert_eq!(connections.load(Ordering::SeqCst), 1);
    let request = requests.recv().unwrap();
    let (head, _) = request.split_once("\r\n\r\n").unwrap();
    let mut lines: Vec<_> = head.split("\r\n").map(str::to_owned).collect();
    assert_eq!(lines.remove(0), "POST /hook?a=b HTTP/1.1");
    lines.sort();
    let expected = [
        "accept: */*".to_owned(),
        "content-length: 2".to_owned(),
        "content-type: application/json".to_owned(),
        format!("host: localhost:{}", address.port()),
        "user-agent: test/1".to_owned(),
        "webhook-id: evt_3f9a1c02_7".to_owned(),
        "webhook-signature: v1,abc v1,def".to_owned(),
        "webhook-timestamp: 5".to_owned(),
    ];
    assert_eq!(lines, expected);
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let (trap, trapped) = server(answering(OK));
    let redirect =
        format!("HTTP/1.1 307 Elsewhere\r\nLocation: http://{trap}/\r\nContent-Length: 0\r\n\r\n");
    let (address, _) = server(answering(redirect.leak()));
    let answer = send(&client(LOOPBACK), &format!("http://{address}/")).await;
    assert_eq!(answer.outcome, AttemptOutcome::Answered(307));
    assert_eq!(trapped.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn nothing_connects_to_internal_addresses_not_even_by_name() {
    let (trap, trapped) = server(answering(OK));
    let own = OwnListeners { payments: None, others: vec![trap] };
    let opened: Vec<_> = LOOPBACK.iter().map(|network| network.parse().unwrap()).collect();
    let with_own = HttpWebhooks::new(own, &opened, "test/1");
    let (closed, elsewhere) = (client(&[]), client(&["10.0.0.0/8"]));
    for client in [&closed, &elsewhere, &with_own] {
        for scheme in ["http", "https"] {
            for host in ["127.0.0.1", "localhost", "0x7f.1", "[::ffff:127.0.0.1]", "0"] {
                let answer = send(client, &format!("{scheme}://{host}:{}/", trap.port())).await;
                let expected = AttemptOutcome::Failed(AttemptFailure::BlockedAddress);
                assert_eq!(answer.outcome, expected, "{scheme} {host}");
            }
        }
    }
    assert_eq!(trapped.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn only_the_beginning_of_an_answer_is_read() {
    let (address, _) = server(|mut stream| {
        read_request(&mut stream);
        let head = "HTTP/1.1 500 Oh\r\nRetry-After: 60\r\nContent-Length: 10000000000\r\n\r\n";
        let _ = stream.write_all(head.as_bytes());
        while stream.write_all(&[b'x'; 1000]).is_ok() {}
    });
    let answer = send(&client(LOOPBACK), &format!("http://{address}/")).await;
    assert_eq!(answer.outcome, AttemptOutcome::Answered(500));
    assert_eq!(answer.answer, "x".repeat(MAX_ANSWER_KEPT));
    assert_eq!(answer.retry_after, Some(Duration::from_secs(60)));
}

#[tokio::test]
async fn an_endpoint_whose_head_takes_too_long_times_out() {
    for sent in ["", "HTTP/1.1 200 OK\r\n"] {
        let (address, _) = server(move |mut stream| {
            read_request(&mut stream);
            let _ = stream.write_all(sent.as_bytes());
            let _ = stream.read(&mut [0]);
        });
        let limits = Limits { head: Duration::from_millis(300), ..LIMITS };
        let client = HttpWebhooks { limits, ..client(LOOPBACK) };
        let answer = send(&client, &format!("http://{address}/")).await;
        assert_eq!(answer.outcome, AttemptOutcome::Failed(AttemptFailure::Timeout), "{sent:?}");
    }
}

#[tokio::test]
async fn an_endpoint_that_dawdles_or_breaks_off_in_its_body_has_taken_the_event() {
    for (status, stays) in [(200, true), (200, false), (204, false), (500, true), (500, false)] {
        let (address, _) = server(move |mut stream| {
            read_request(&mut stream);
            let head = format!("HTTP/1.1 {status} It\r\nContent-Length: 9\r\n\r\ncut");
            let _ = stream.write_all(head.as_bytes());
            if stays {
                let _ = stream.read(&mut [0]);
            }
        });
        let limits = Limits { body: Duration::from_millis(300), ..LIMITS };
        let client = HttpWebhooks { limits, ..client(LOOPBACK) };
        let answer = send(&client, &format!("http://{address}/")).await;
        let told = if status == 204 { "" } else { "cut" };
        let expected = (AttemptOutcome::Answered(status), told);
        assert_eq!((answer.outcome, answer.answer.as_str()), expected, "{stays}");
    }
}

#[tokio::test]
async fn the_kinds_of_failures_are_told_apart() {
    let refused = {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        format!("http://{}/", listener.local_addr().unwrap())
    };
    let (closing, _) = server(|mut stream| drop(read_request(&mut stream)));
    let (cut, _) = server(|mut stream| {
        read_request(&mut stream);
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Le");
    });
    let (nonsense, _) = server(answering("SSH-2.0-OpenSSH\r\n"));
    let (plain, _) = server(|mut stream| {
        let _ = stream.read(&mut [0; 10_000]);
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
    });
    let (stranger, _) = server(with_certificate);
    let client = client(LOOPBACK);
    for (url, expected) in [
        (refused, AttemptFailure::Connect),
        (format!("http://{closing}/"), AttemptFailure::Answer),
        (format!("http://{cut}/"), AttemptFailure::Answer),
        (format!("http://{nonsense}/"), AttemptFailure::Answer),
        (format!("https://{plain}/"), AttemptFailure::Tls),
        (format!("https://localhost:{}/", stranger.port()), AttemptFailure::Tls),
        ("https://no-such-name.invalid/".to_owned(), AttemptFailure::Dns),
    ] {
        let answer = send(&client, &url).await;
        assert_eq!(answer.outcome, AttemptOutcome::Failed(expected), "{url}");
    }
}

/// Speaks TLS with a certificate that no public authority has signed.
fn with_certificate(stream: TcpStream) {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/vectors/tls");
    let certificate = CertificateDer::from_pem_file(dir.join("shop.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_file(dir.join("shop.key")).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    let connection = ServerConnection::new(Arc::new(config)).unwrap();
    answer_tls(StreamOwned::new(connection, stream));
}

fn answer_tls(mut stream: StreamOwned<ServerConnection, TcpStream>) {
    if read_request(&mut stream).is_some() {
        let _ = stream.write_all(OK.as_bytes());
    }
}
