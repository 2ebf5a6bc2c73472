//! The front ends of `docs/operate.md`, before a real server.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use bsv_tests::tls::{self, authority};
use bsv_tests::{Client, FrontEnd, Node, Server, Site, free_port};
use serde_json::{Value, json};
use tokio::net::TcpSocket;
use tokio::runtime::Builder;

use crate::payments::merchant::Merchant;
use crate::payments::paying_scene::site_with;

/// Starts a front end at a port, before a payments listener.
type Start = fn(u16, &str) -> FrontEnd;

const FRONT_ENDS: [Start; 2] = [FrontEnd::nginx, FrontEnd::caddy];

/// Settings of a payments listener behind a front end at this port.
fn behind(port: u16, more: &[(&str, Value)]) -> Value {
    let mut payments = json!({
        "publicUrl": format!("https://127.0.0.1:{port}"), "trustedProxies": ["127.0.0.1"],
    });
    for (name, value) in more {
        payments[name] = value.clone();
    }
    payments
}

#[test]
fn an_invoice_is_paid_through_a_front_end() {
    let node = Node::start();
    node.mine(110);
    let port = free_port();
    let mut site = site_with(&node, json!({ "payments": behind(port, &[]) }));
    site.set_env("SSL_CERT_FILE", authority());
    let shop = Merchant { server: site.server(), site };
    for start in FRONT_ENDS {
        let _front_end = start(port, shop.server.payments().address());
        let id = shop.invoice(20_000);
        let host = format!("https://127.0.0.1:{port}");
        let mut stream = open_stream(port, &id);
        shop.site.cli_ok(&["wallet", "faucet", &format!("{host}/dpp/api/v1/payment/{id}")]);
        assert_eq!(shop.state(&id), "paid");
        wait_for(&mut stream, r#""state":"paid""#);
        check_long_payment(&shop.server, &host, &id);
    }
    assert_eq!(shop.balance(), 40_000);
}

/// Opens the stream of an invoice's page, and reads its head and its first state.
fn open_stream(port: u16, id: &str) -> impl BufRead {
    let connection = TcpStream::connect(("127.0.0.1", port)).unwrap();
    connection.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let mut stream = tls::over(connection);
    write!(stream, "GET /pay/{id}/stream HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n").unwrap();
    let mut stream = BufReader::new(stream);
    wait_for(&mut stream, "200 OK");
    wait_for(&mut stream, r#""state":"pending""#);
    stream
}

/// Reads until a line contains this.
fn wait_for(stream: &mut impl BufRead, text: &str) {
    let mut read = String::new();
    while !read.lines().last().unwrap_or_default().contains(text) {
        assert!(stream.read_line(&mut read).unwrap() > 0, "no {text} in {read}");
    }
}

/// Checks that a payment of nearly 10 MB reaches the server.
fn check_long_payment(server: &Server, host: &str, id: &str) {
    let body = json!({ "memo": "x".repeat(9_900_000) }).to_string();
    let path = format!("/dpp/api/v1/payment/{id}");
    let direct = server.payments().post(&path, &body);
    let passed = Client::at(host).unwrap().unchecked().post(&path, &body);
    assert_eq!((passed.status, passed.body), (direct.status, direct.body));
}

#[test]
fn a_front_end_tells_payers_apart() {
    let port = free_port();
    let limits = [
        ("requestsPerSecond", json!(1)),
        ("requestBurst", json!(5)),
        ("limitLoopback", json!(true)),
    ];
    let site =
        Site::with(json!({ "payments": behind(port, &limits), "minerid": { "enabled": false } }));
    for (start, [first, second]) in
        FRONT_ENDS.iter().zip([["127.0.0.2", "127.0.0.3"], ["127.0.0.4", "127.0.0.5"]])
    {
        let server = site.server();
        let _front_end = start(port, server.payments().address());
        // The payer writes another address into each request.
        let refused =
            (0..20).filter(|n| ask(port, first, &format!("198.51.100.{n}")) == 429).count();
        assert!(refused >= 10, "{refused}");
        assert_eq!(ask(port, second, first), 404);
    }
}

/// Asks for an invoice that does not exist, from an address of this machine and with an address that
/// the payer claims to have. Answers the status.
fn ask(port: u16, from: &str, claimed: &str) -> u16 {
    let connecting = async {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(SocketAddr::new(from.parse().unwrap(), 0)).unwrap();
        socket.connect(SocketAddr::new("127.0.0.1".parse().unwrap(), port)).await.unwrap()
    };
    let runtime = Builder::new_current_thread().enable_io().build().unwrap();
    let connection = runtime.block_on(connecting).into_std().unwrap();
    connection.set_nonblocking(false).unwrap();
    let mut stream = tls::over(connection);
    write!(
        stream,
        "GET /dpp/api/v1/payment/x HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Forwarded-For: {claimed}\r\n\
         Connection: close\r\n\r\n"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.split(' ').nth(1).unwrap().parse().unwrap()
}
