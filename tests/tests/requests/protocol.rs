use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};

use bsv_tests::{Reply, Site, http};

use crate::requests::Service;
use crate::requests::service::{ONE_OUTPUT, body_with, check, coinbase2};

const TOO_LARGE: &str = "the request body is larger than 1048576 bytes";
const MAX_BODY_LEN: usize = 1 << 20;

fn chunked(body: &[u8], chunk_len: usize) -> Vec<u8> {
    let mut request = b"POST /coinbase2 HTTP/1.1\r\nHost: localhost\r\n\
        Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
        .to_vec();
    for chunk in body.chunks(chunk_len) {
        request.extend(format!("{:x}\r\n", chunk.len()).bytes());
        request.extend(chunk);
        request.extend(b"\r\n");
    }
    request.extend(b"0\r\n\r\n");
    request
}

/// A valid body, padded to `len` bytes.
fn padded_to(len: usize) -> Vec<u8> {
    let mut body = body_with(&[]).into_bytes();
    body.resize(len, b' ');
    body
}

fn connect(service: &Service) -> TcpStream {
    TcpStream::connect(service.server.address()).unwrap()
}

/// Everything that the server sends until it closes the connection.
fn read_all(mut stream: TcpStream) -> String {
    let mut answer = Vec::new();
    // A reset connection counts as closed too.
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

/// Checks that the answer to a request that is not HTTP has one of these statuses, or is empty.
fn check_refused(service: &Service, request: impl AsRef<[u8]>, statuses: &[&str]) {
    let mut stream = connect(service);
    let shown = String::from_utf8_lossy(&request.as_ref()[..request.as_ref().len().min(60)]);
    let _ = stream.write_all(request.as_ref());
    let answer = read_all(stream);
    let status = answer.strip_prefix("HTTP/1.1 ").map_or("", |rest| &rest[..3]);
    assert!(statuses.contains(&status), "{shown:?}: {answer}");
}

#[test]
fn a_caller_that_has_shut_its_sending_side_gets_its_answer() {
    let service = Service::start();
    for _ in 0..5 {
        // The first document by a key waits for the disk.
        assert_eq!(service.server.post("/opreturn/first/rotate", "").body, "OK");
        let mut stream = connect(&service);
        let request = "GET /opreturn/first/1000 HTTP/1.1\r\nHost: localhost\r\n\r\n";
        stream.write_all(request.as_bytes()).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let answer = read_all(stream);
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    }
}

#[test]
fn a_body_up_to_1_mib_is_read() {
    let service = Service::start();
    let answer = service.post_ok(body_with(&[]));
    assert_eq!(service.post_ok(padded_to(MAX_BODY_LEN)), answer);
    service.check_post(padded_to(MAX_BODY_LEN + 1), 413, TOO_LARGE);

    let script_len = 500_000;
    let output = format!("0100000000000000fe20a10700{}", "6a".repeat(script_len));
    let large = format!("\"{}\"", coinbase2("01", &output));
    let answer = service.post_ok(body_with(&[("coinbase2", &large)]));
    assert!(answer.starts_with(&format!("ffffffff02{output}")));
    service.check_alive();
}

#[test]
fn a_body_of_10_mb_is_refused_even_if_the_caller_reads_only_after_sending() {
    let service = Service::start();
    let huge = format!("\"{}\"", coinbase2("01", &ONE_OUTPUT.repeat(150_000)));
    let body = body_with(&[("coinbase2", &huge)]);
    assert!(body.len() > 10_000_000);
    service.check_post(&body, 413, TOO_LARGE);
    let reply = service.raw(chunked(body.as_bytes(), 100_000)).unwrap();
    check(&reply, 413, TOO_LARGE, "10 MB in chunks");
    // Every route reads the body before it does anything else.
    let reply = service.server.request("GET", "/minerid/first", body.as_bytes());
    check(&reply, 413, TOO_LARGE, "GET with 10 MB");
    service.check_alive();
}

#[test]
fn a_body_may_come_in_chunks_of_any_size() {
    let service = Service::start();
    let body = body_with(&[]);
    let answer = service.post_ok(&body);
    for chunk_len in [1, 7, 1000] {
        let reply = service.raw(chunked(body.as_bytes(), chunk_len)).unwrap();
        assert_eq!((reply.status, &reply.body), (200, &answer));
    }
    let reply = service.raw(chunked(b"", 1)).unwrap();
    check(&reply, 400, "Block height must be supplied", "no chunk");

    let reply = service.raw(chunked(&padded_to(MAX_BODY_LEN + 1), 4096)).unwrap();
    check(&reply, 413, TOO_LARGE, "over the limit in chunks");
    service.check_alive();
}

#[test]
fn broken_framing_of_a_body_is_refused() {
    let service = Service::start();
    let head = "POST /coinbase2 HTTP/1.1\r\nHost: localhost\r\n";
    for chunks in
        ["zz\r\n", "-1\r\n", "\r\n\r\n", "ffffffffffffffffff\r\nx", "5\r\nabcdefgh\r\n0\r\n\r\n"]
    {
        let request = format!("{head}Transfer-Encoding: chunked\r\n\r\n{chunks}");
        check_refused(&service, request, &["400"]);
    }
    for framing in [
        "Content-Length: x",
        "Content-Length: -1",
        "Content-Length: 1.5",
        "Content-Length: 18446744073709551616",
        "Content-Length: 2\r\nContent-Length: 3",
        "Transfer-Encoding: gzip",
        "Transfer-Encoding: chunked, gzip",
    ] {
        check_refused(&service, format!("{head}{framing}\r\n\r\n{{}}"), &["400"]);
    }
    service.check_alive();
}

#[test]
fn a_caller_may_wait_before_it_sends_the_body() {
    let service = Service::start();
    let body = body_with(&[]);
    let mut stream = connect(&service);
    let head = format!(
        "POST /coinbase2 HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut told = [0; 25];
    stream.read_exact(&mut told).unwrap();
    assert_eq!(&told, b"HTTP/1.1 100 Continue\r\n\r\n");
    stream.write_all(body.as_bytes()).unwrap();
    let answer = read_all(stream);
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.ends_with(&service.post_ok(&body)));
}

#[test]
fn requests_in_every_form_of_http_1_are_understood() {
    let service = Service::start();
    let address = service.server.address();
    let key = service.key_of("first");
    let right = |reply: Reply| assert_eq!((reply.status, reply.body), (200, key.clone()));
    right(service.get_with("/minerid/first", "Host: localhost\r\n"));
    let host = format!("Host: {address}\r\n");
    right(service.get_with(&format!("http://{address}/minerid/first"), &host));
    right(service.get_with("/minerid/first?", "Host: localhost\r\n"));
    right(service.raw("GET /minerid/first HTTP/1.0\r\n\r\n").unwrap());
    right(service.raw("GET /minerid/first HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n").unwrap());
    right(service.raw("\r\nGET /minerid/first HTTP/1.0\r\n\r\n").unwrap());
    service.check_alive();
}

#[test]
fn a_request_that_is_not_for_one_host_is_refused_by_every_listener() {
    let site = Site::new();
    let server = site.server();
    for client in [server.minerid(), server.wallet(), server.payments()] {
        let address = client.address();
        for (target, hosts) in [
            ("/healthz", String::new()),
            ("/healthz", format!("Host: {address}\r\nHost: {address}\r\n")),
            ("/healthz", format!("Host: {address}\r\nHost: localhost\r\n")),
            ("http://evil.example/healthz", format!("Host: {address}\r\n")),
        ] {
            let request = format!("GET {target} HTTP/1.1\r\n{hosts}\r\n");
            let reply = http::exchange(address, request.as_bytes(), "GET").unwrap();
            assert_eq!(reply.status, 400, "{request}");
        }
    }
}

#[test]
fn a_compressed_body_is_refused_by_every_listener() {
    let site = Site::new();
    let server = site.server();
    for (client, path) in [
        (server.minerid(), "/coinbase2"),
        (server.wallet(), "/api/v1/invoices"),
        (server.payments(), "/api/v1/payment/000000000000"),
    ] {
        let post = |encoding| {
            let headers = [("Content-Type", "application/json"), ("Content-Encoding", encoding)];
            client.send("POST", path, &headers, br#"{"satoshis":1}"#)
        };
        for encoding in ["gzip", "br", "identity, gzip"] {
            let reply = post(encoding);
            let told = (reply.status, reply.header("accept-encoding"));
            assert_eq!(told, (415, Some("identity")), "{path}: {}", reply.body);
        }
        assert_ne!(post("identity").status, 415, "{path}");
    }
    let invoices = server.wallet().get("/api/v1/invoices").body;
    assert_eq!(invoices.matches("\"id\"").count(), 1, "{invoices}");
}

#[test]
fn a_connection_can_be_used_after_a_refusal() {
    let service = Service::start();
    let mut stream = connect(&service);
    let large = "x".repeat(MAX_BODY_LEN + 1);
    for (method, path, body) in [
        ("GET", "/minerid/unknown", ""),
        ("GET", "/nowhere", "ignored"),
        ("PUT", "/minerid/first", "{}"),
        ("POST", "/coinbase2", "x"),
        ("POST", "/coinbase2", &large),
    ] {
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(request.as_bytes()).unwrap();
    }
    stream
        .write_all(b"GET /minerid/first HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        .unwrap();
    let answers = read_all(stream);
    let statuses: Vec<_> = answers.split("HTTP/1.1 ").skip(1).map(|rest| &rest[..3]).collect();
    assert_eq!(statuses, ["422", "404", "405", "400", "413", "200"], "{answers}");
    assert!(answers.ends_with(&service.key_of("first")));
}

#[test]
fn a_head_that_is_too_large_is_refused() {
    let service = Service::start();
    let get = |headers: &str| {
        format!(
            "GET /minerid/first HTTP/1.1\r\nHost: localhost\r\n{headers}Connection: close\r\n\r\n"
        )
    };
    let long = "x".repeat(20_000);
    let many: String = (0..10_000).map(|number| format!("X-{number}: y\r\n")).collect();
    check_refused(&service, get(&format!("X-Long: {long}\r\n")), &["431"]);
    check_refused(&service, get(&format!("X-{long}: x\r\n")), &["431", "400"]);
    check_refused(&service, get(&many), &["431"]);
    check_refused(&service, format!("GET /{long} HTTP/1.1\r\n\r\n"), &["431", "414"]);
    // A head without an end is refused before it fills the memory.
    let endless = "y".repeat(10_000_000);
    check_refused(&service, format!("GET / HTTP/1.1\r\nX-Long: {endless}"), &["431", ""]);
    service.check_alive();
}

#[test]
fn bytes_that_are_no_http_are_refused() {
    let service = Service::start();
    for garbage in [
        &b"\r\n\r\n\r\n\r\ngarbage\r\n\r\n"[..],
        b"\0\0\0\0\0\0\0\0\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET /minerid/first\r\n\r\n",
        b"GET /minerid/first HTTP/3.0\r\n\r\n",
        b"GET /minerid/first HTTP/1.1 x\r\n\r\n",
        b"GET minerid/first HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET  /minerid/first HTTP/1.1\r\n\r\n",
        b"GET /minerid/first HTTP/1.1\r\nHost localhost\r\n\r\n",
        b"GET /minerid/first HTTP/1.1\r\nHost : localhost\r\n\r\n",
        b"GET /minerid/first HTTP/1.1\r\n: x\r\n\r\n",
        b"GET /minerid/first HTTP/1.1\r\nX: \0\r\n\r\n",
        b"GET /\0 HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"G\xc3\xa9T / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    ] {
        check_refused(&service, garbage, &["400", "505", ""]);
    }
    for cut_off in ["", "G", "GET / HTTP/1.1\r\n", "GET / HTTP/1.1\r\nHost: local"] {
        let mut stream = connect(&service);
        stream.write_all(cut_off.as_bytes()).unwrap();
        drop(stream);
    }
    let mut stream = connect(&service);
    stream.write_all(b"POST /coinbase2 HTTP/1.1\r\nContent-Length: 100\r\n\r\n{").unwrap();
    drop(stream);
    service.check_alive();
}

#[test]
fn others_are_answered_while_connections_hang_half_way_through_a_request() {
    let service = Service::start();
    let body = body_with(&[]);
    let answer = service.post_ok(&body);
    let hang = |sent: &str| {
        let mut stream = connect(&service);
        stream.write_all(sent.as_bytes()).unwrap();
        stream
    };
    let mut hanging: Vec<_> =
        (0..200).map(|_| hang("GET /minerid/first HTTP/1.1\r\nHost: loc")).collect();
    let head = "POST /coinbase2 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n";
    let half = body.len() / 2;
    let begun = format!("{head}Content-Length: {}\r\n\r\n{}", body.len(), &body[..half]);
    let posts: Vec<_> = (0..50).map(|_| hang(&begun)).collect();
    hanging.extend((0..20).map(|_| hang(&format!("{head}Transfer-Encoding: chunked\r\n\r\n5"))));
    for _ in 0..10 {
        assert_eq!(service.post_ok(&body), answer);
        assert_eq!(service.server.post("/opreturn/rot/rotate", "").body, "OK");
        service.site.cli_ok(&["getcurrentminerid", "--name", "first"]);
    }
    for mut stream in posts {
        stream.write_all(&body.as_bytes()[half..]).unwrap();
        let answer = read_all(stream);
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    }
}
