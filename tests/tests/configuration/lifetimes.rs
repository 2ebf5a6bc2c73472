//! How a server starts and ends.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use bsv_tests::Site;
use serde_json::json;

use super::programs::{Server, check_refused};

#[test]
fn a_port_that_is_taken_is_named() {
    let holder = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = holder.local_addr().unwrap();
    let site = Site::with(json!({"port": address.port()}));
    let reason = format!("cannot listen on {address}: ");
    check_refused(&mut site.server_command(), &[&reason]);
    drop(holder);
    assert_eq!(site.server().address(), address.to_string());
}

#[test]
fn a_server_that_cannot_listen_makes_nothing() {
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = other.local_addr().unwrap();
    let site = Site::with(json!({ "wallet": { "port": address.port() } }));
    check_refused(&mut site.server_command(), &[&format!("cannot listen on {address}")]);
    assert_eq!(fs::read_dir(site.data_dir()).unwrap().count(), 0);
    drop(other);
    assert_eq!(site.server().stop(), 0);
}

#[test]
fn a_signal_ends_the_server_after_the_requests_in_flight() {
    for signal in ["TERM", "INT"] {
        let site = Site::new();
        let server = Server::start(&mut site.server_command());
        site.cli_ok(&["generateminerid", "-n", "pool"]);
        let mut idle = TcpStream::connect(server.address()).unwrap();
        let mut request = TcpStream::connect(server.address()).unwrap();
        request
            .write_all(
                b"POST /opreturn/pool/rotate HTTP/1.1\r\nHost: localhost\r\n\
                  Expect: 100-continue\r\nContent-Length: 2\r\n\r\n",
            )
            .unwrap();
        // The signal comes as soon as the request is in flight.
        let mut told = [0; 25];
        request.read_exact(&mut told).unwrap();
        assert_eq!(&told, b"HTTP/1.1 100 Continue\r\n\r\n");
        request.write_all(b"{").unwrap();
        let key = server.get("/minerid/pool").body;

        server.signal(signal);
        while TcpStream::connect(server.address()).is_ok() {
            thread::sleep(Duration::from_millis(10));
        }
        request.write_all(b"}").unwrap();
        let mut answer = String::new();
        request.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("OK"), "{answer}");
        assert_eq!(idle.read(&mut [0]).unwrap(), 0);
        assert_eq!(server.wait(), (0, String::new()));

        let control = site.network_dir().join("control.sock");
        assert!(control.exists(), "a socket that is left over is replaced");
        let server = site.server();
        assert_ne!(server.text("/minerid/pool"), key);
        assert_eq!(site.cli_ok(&["getcurrentminerid", "-n", "pool"]), server.text("/minerid/pool"));
        assert_eq!(server.stop(), 0);
    }
}

#[test]
fn a_socket_from_before_a_crash_is_replaced() {
    let site = Site::new();
    let server = site.server();
    site.cli_ok(&["generateminerid", "-n", "pool"]);
    server.kill();
    let control = site.network_dir().join("control.sock");
    assert!(control.exists());
    let server = site.server();
    assert_eq!(site.cli_ok(&["getcurrentminerid", "-n", "pool"]), server.text("/minerid/pool"));
    assert_eq!(server.stop(), 0);
}
