//! What lasts ends when its token is revoked or expires.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::thread;

use bsv_tests::clock::Clock;
use bsv_tests::{Client, Site, Stream, vectors};
use serde_json::{Value, json};

use crate::access::Guarded;
use crate::access::guarded::create;
use crate::access::jwt::{GOOD, KEY};

/// A request that waits for the first event.
const WAITING: &str = "/api/v1/events?wait=30";
/// A day after the tokens that tests limit in time, and after the second token of [`GOOD`].
const YEAR_2100: i64 = 4_102_531_200;

/// A stream of events with a token.
fn open(guarded: &Guarded, token: &str) -> Stream {
    Stream::try_open_with(guarded.server.wallet(), token).unwrap()
}

/// Checks that a stream ends properly and cannot be opened again, while another one goes on.
fn check_ended(guarded: &Guarded, [token, code]: [&str; 2], mut stream: Stream, mut other: Stream) {
    stream.wait_for_end();
    let refused = Stream::try_open_with(guarded.server.wallet(), token).unwrap_err();
    let problem: Value = serde_json::from_str(&refused.body).unwrap();
    assert_eq!((refused.status, problem["code"].as_str()), (401, Some(code)));
    guarded.site.cli_ok(&["user", "create", "--name", "Ada"]);
    assert_eq!(other.event().1["type"], "user.created");
}

#[test]
fn a_stream_ends_when_its_token_is_revoked() {
    let guarded = Guarded::start();
    let (token, id) = create(&guarded.site, &["wallet:read"], None);
    let other = open(&guarded, &guarded.token(&["wallet:read"]));
    let stream = open(&guarded, &token);
    guarded.site.cli_ok(&["token", "revoke", "--yes", &id]);
    check_ended(&guarded, [&token, "token-invalid"], stream, other);
}

/// A server that demands tokens and takes those of the older generator, and its clock.
fn with_clock() -> (Guarded, Clock) {
    let mut site = Site::with(json!({"auth": {"requireToken": true, "jwtKey": KEY}}));
    site.set_env("BSV_LOG", "off");
    let clock = Clock::install(&mut site);
    let home = vectors::write_home(&vectors::minerid_0_2(), site.data_dir());
    site.cli_ok(&["importminerid", "--from", home.to_str().unwrap()]);
    (Guarded { server: site.server(), site }, clock)
}

/// Sets the clock to a time, in seconds since 1970.
fn set_clock(clock: &Clock, to: i64) {
    let now = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs();
    clock.shift(to - i64::try_from(now).unwrap());
}

#[test]
fn a_stream_ends_when_its_token_expires() {
    let (guarded, clock) = with_clock();
    let (token, _) = create(&guarded.site, &["wallet:read"], Some("2100-01-01T00:00:00Z"));
    let other = open(&guarded, &guarded.token(&["wallet:read"]));
    let stream = open(&guarded, &token);
    set_clock(&clock, YEAR_2100);
    check_ended(&guarded, [&token, "token-expired"], stream, other);
}

#[test]
fn a_waiting_request_ends_when_its_token_is_revoked() {
    let guarded = Guarded::start();
    let (token, id) = create(&guarded.site, &["wallet:read"], None);
    let other = guarded.token(&["wallet:read"]);
    thread::scope(|scope| {
        let wait = |token| guarded.send("GET", WAITING, "", Some(token));
        let [ended, going_on] =
            [token.as_str(), other.as_str()].map(|it| scope.spawn(move || wait(it)));
        guarded.site.cli_ok(&["token", "revoke", "--yes", &id]);
        assert_eq!(ended.join().unwrap().status, 401);
        guarded.site.cli_ok(&["user", "create", "--name", "Ada"]);
        assert_eq!(going_on.join().unwrap().status, 200);
    });
}

/// A request whose server waits for the rest of the body.
struct HeldBack {
    connection: BufReader<TcpStream>,
    body: String,
}

/// How many bytes the server already has of a request that is held back: with so many it waits half
/// a minute for the rest.
const BEGUN: usize = 900 << 10;

impl HeldBack {
    fn begin(client: &Client, path: &str, token: &str, body: &str) -> Self {
        let connection = TcpStream::connect(client.address()).unwrap();
        let mut connection = BufReader::new(connection);
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\nConnection: close\r\nExpect: 100-continue\r\n\
             Authorization: Bearer {token}\r\n\r\n",
            BEGUN + body.len()
        );
        connection.get_mut().write_all(head.as_bytes()).unwrap();
        let mut line = String::new();
        while line != "\r\n" {
            line.clear();
            connection.read_line(&mut line).unwrap();
            assert!(line == "\r\n" || line.contains(" 100 "), "{line}");
        }
        connection.get_mut().write_all(&[b' '; BEGUN]).unwrap();
        Self { connection, body: body.to_owned() }
    }

    /// Sends the rest, and returns the status of the answer.
    fn end(mut self) -> u16 {
        self.connection.get_mut().write_all(self.body.as_bytes()).unwrap();
        let mut line = String::new();
        self.connection.read_line(&mut line).unwrap();
        line.split(' ').nth(1).unwrap().parse().unwrap()
    }
}

#[test]
fn a_request_that_is_held_back_does_nothing_once_its_token_is_revoked() {
    let guarded = Guarded::start();
    let begin = |token: &str| {
        let body = r#"{"satoshis":1}"#;
        HeldBack::begin(guarded.server.wallet(), "/api/v1/invoices", token, body)
    };
    let (token, id) = create(&guarded.site, &["wallet:write"], None);
    let [revoked, kept] = [begin(&token), begin(&guarded.token(&["wallet:write"]))];
    guarded.site.cli_ok(&["token", "revoke", "--yes", &id]);
    assert_eq!([revoked.end(), kept.end()], [401, 201]);
    assert_eq!(guarded.site.cli_json(&["invoice", "list"]).as_array().unwrap().len(), 1);
}

#[test]
fn a_request_that_is_held_back_does_nothing_once_its_token_expires() {
    let (guarded, clock) = with_clock();
    let own = create(&guarded.site, &["minerid:rotate"], Some("2100-01-01T00:00:00Z")).0;
    let begin = |token| HeldBack::begin(&guarded.minerid(), "/opreturn/first/rotate", token, " ");
    let [own, older, unlimited] = [own.as_str(), GOOD[1], GOOD[0]].map(begin);
    set_clock(&clock, YEAR_2100);
    assert_eq!([own.end(), older.end(), unlimited.end()], [401, 403, 200]);
}
