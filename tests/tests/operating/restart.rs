use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::mpsc;
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use bsv_tests::payee::Answer;
use bsv_tests::{Callers, ListeningSockets, Receiver, Server, Site, repetitions, vectors};
use serde_json::{Value, json};
use tempfile::TempDir;

const COINBASE2: &str =
    "ffffffff011a0a5325000000001976a9145deb9155942e7d38febc15de8870222fd24d080e88ac00000000";
/// Longer than any step of a stop takes if nobody delays it.
const PATIENCE: Duration = Duration::from_secs(60);

/// The body of a request that succeeds once [`import`] has run.
fn coinbase2() -> String {
    json!({"alias": "first", "blockHeight": 1000, "coinbase2": COINBASE2}).to_string()
}

/// Gives a site identities that can make documents.
fn import(site: &Site) {
    let home = vectors::write_home(&vectors::minerid_0_2(), site.data_dir());
    site.cli_ok(&["importminerid", "--from", home.to_str().unwrap()]);
}

fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "timed out, waiting for: {what}");
        sleep(Duration::from_millis(5));
    }
}

/// Sends a request to the wallet that is answered only when the sender is dropped. Returns that
/// sender, the thread that waits for the status, and the receiver that the request waits for.
fn request_in_flight(server: &Server) -> (mpsc::Sender<()>, thread::JoinHandle<u16>, Receiver) {
    let receiver = Receiver::start();
    let (release, held) = mpsc::channel::<()>();
    let held = std::sync::Mutex::new(held);
    receiver.reply_with(move |_| {
        let _ = held.lock().unwrap().recv();
        Answer::text(200, "at last")
    });
    let hook = json!({"url": receiver.url(), "types": "user.*"}).to_string();
    let hook = server.wallet().post("/api/v1/webhooks", hook);
    assert_eq!(hook.status, 201, "{}", hook.body);
    let hook: Value = serde_json::from_str(&hook.body).unwrap();
    let path = format!("/api/v1/webhooks/{}/test", hook["id"].as_str().unwrap());
    let wallet = server.wallet().clone();
    let asking = thread::spawn(move || wallet.post(&path, "{}").status);
    wait_until("the request is in flight", || receiver.count() > 0);
    (release, asking, receiver)
}

#[test]
fn the_pools_listener_stops_last_and_requests_in_flight_are_answered() {
    let site = Site::with(json!({"webhooks": {"allowNetworks": ["127.0.0.0/8"]}}));
    import(&site);
    let server = site.server();
    let (release, asking, _receiver) = request_in_flight(&server);
    server.begin_stop();
    for client in [server.payments(), server.wallet()] {
        let address = client.address().to_owned();
        wait_until("it is closed", || TcpStream::connect(&address).is_err());
    }
    assert!(site.cli(&["status"]).code != 0, "the control socket is closed");
    assert_eq!(server.post("/coinbase2", coinbase2()).status, 200);
    drop(release);
    assert_eq!(asking.join().unwrap(), 200);
    assert_eq!(server.stop(), 0);
}

/// Sends a body slowly, byte by byte, until the server closes the connection. Answers what the
/// server has sent.
fn drip(address: &str, path: &str) -> thread::JoinHandle<String> {
    let mut stream = TcpStream::connect(address).unwrap();
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n\
         Content-Length: 1000000\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    thread::spawn(move || {
        let mut writer = stream.try_clone().unwrap();
        let dripping = thread::spawn(move || {
            while writer.write_all(b" ").is_ok() {
                sleep(Duration::from_millis(20));
            }
        });
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let _ = stream.shutdown(Shutdown::Both);
        dripping.join().unwrap();
        String::from_utf8_lossy(&answer).into_owned()
    })
}

#[test]
fn a_stranger_who_sends_slowly_or_nothing_does_not_hold_a_stop_up() {
    let dir = TempDir::new().unwrap();
    let log = dir.path().join("log");
    let site = Site::new();
    let server = site.server_logging_to(&log);
    let address = server.payments().address().to_owned();
    let invoice = server.wallet().post("/api/v1/invoices", r#"{"satoshis":1000}"#);
    let invoice: Value = serde_json::from_str(&invoice.body).unwrap();
    let path = format!("/dpp/api/v1/payment/{}", invoice["id"].as_str().unwrap());
    let silent = TcpStream::connect(&address).unwrap();
    let dripping: Vec<_> = (0..3).map(|_| drip(&address, &path)).collect();
    // Connections are accepted in order. Once a later one is answered, the server has accepted all
    // of these.
    assert_eq!(server.payments().get("/healthz").status, 200);
    assert_eq!(server.stop(), 0);
    for stranger in dripping {
        // The server would answer a stranger whose time for the body is over.
        assert_eq!(stranger.join().unwrap(), "", "it is closed before that");
    }
    let mut answer = Vec::new();
    let _ = (&silent).read_to_end(&mut answer);
    assert!(answer.is_empty());
    let log = fs::read_to_string(&log).unwrap();
    assert!(!log.contains("did not end in time") && log.contains("stopped"), "{log}");
}

#[test]
fn with_sockets_that_are_handed_over_no_restart_makes_a_request_fail() {
    let mut site = Site::new();
    let sockets = ListeningSockets::of(&mut site);
    import(&site);
    let mut server = site.server_on(&sockets);
    let callers = Callers::start(3, &sockets.minerid(), "/coinbase2", &coinbase2());
    for _ in 0..repetitions("restarts under load", 100, 20) {
        callers.await_answers(20);
        // The next server waits until this one releases the data directory.
        let next = thread::scope(|scope| {
            let next = scope.spawn(|| site.server_on(&sockets));
            sleep(Duration::from_millis(10));
            assert_eq!(server.stop(), 0);
            next.join().unwrap()
        });
        server = next;
    }
    callers.await_answers(20);
    let seen = callers.stop();
    assert_eq!((seen.refused, &seen.failures), (0, &vec![]), "{} were closed", seen.closed);
    assert_eq!(server.stop(), 0);
}

#[test]
fn requests_that_come_while_no_server_runs_are_answered_by_the_next_one() {
    let mut site = Site::new();
    let sockets = ListeningSockets::of(&mut site);
    import(&site);
    assert_eq!(site.server_on(&sockets).stop(), 0);
    let callers = Callers::start(3, &sockets.minerid(), "/coinbase2", &coinbase2());
    let server = site.server_on(&sockets);
    callers.await_answers(10);
    let seen = callers.stop();
    assert_eq!((seen.refused, seen.closed, &seen.failures), (0, 0, &vec![]));
    assert_eq!(server.stop(), 0);
}

#[test]
fn a_handed_over_socket_that_no_listener_uses_is_refused_with_its_address() {
    let mut site = Site::new();
    let sockets = ListeningSockets::of(&mut site);
    site.set("port", json!(0));
    let mut command = sockets.hand_over(&site.server_command());
    let done = bsv_tests::Done::of(&mut command);
    assert_eq!(done.code, 1);
    let expected = format!("a socket that listens on {} was handed over", sockets.minerid());
    assert!(done.stderr.contains(&expected), "{}", done.stderr);
}

#[test]
fn a_server_whose_sockets_were_not_handed_over_does_not_wait_for_another() {
    let site = Site::new();
    let server = site.server();
    let done = site.try_server().unwrap_err();
    assert!(done.stderr.contains("is in use by bsv-server"), "{}", done.stderr);
    assert_eq!(server.stop(), 0);
}
