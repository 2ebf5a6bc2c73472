//! Stopping a server while lists are read.

use std::io::Read;
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use bsv_tests::Site;
use serde_json::json;

use crate::wallet_api::Owner;
use crate::wallet_api::list::{begin_to_read, large, large_on};

/// The longest time that a stop may take by default. The server continues open answers for up to 30 s.
const LONGEST: Duration = Duration::from_secs(35);

/// Reads an answer to its end, part by part. It pauses between the parts for as `long` as the server may
/// still run. Gives the text, and whether it ended properly.
fn read_slowly(stream: TcpStream, part: u64, rest: Duration, long: Duration) -> (String, bool) {
    let started = Instant::now();
    let mut answer = Vec::new();
    // If the server breaks the connection off, it may be reset.
    while let Ok(1..) = (&stream).take(part).read_to_end(&mut answer) {
        if started.elapsed() < long {
            thread::sleep(rest);
        }
    }
    let text = String::from_utf8(answer).unwrap();
    let is_whole = text.ends_with("]\r\n0\r\n\r\n");
    (text, is_whole)
}

fn count(text: &str) -> usize {
    text.matches("\"createdAt\"").count()
}

#[test]
fn a_list_is_finished_before_the_server_stops() {
    let owner = large(2500);
    let reader = begin_to_read(&owner);
    let Owner { server, site } = owner;
    let started = Instant::now();
    let rest = Duration::from_millis(200);
    let read = thread::spawn(move || read_slowly(reader, 1 << 20, rest, LONGEST));
    assert_eq!(server.stop(), 0);
    let time = started.elapsed();
    let (text, is_whole) = read.join().unwrap();
    assert!(is_whole);
    assert_eq!(count(&text), 2500);
    assert!((Duration::from_secs(1)..LONGEST / 2).contains(&time), "{time:?}");
    Owner::start_on(site).check_alive(2500);
}

#[test]
fn lists_that_are_read_too_slowly_are_visibly_broken_off_when_the_server_stops() {
    const LONGEST: Duration = Duration::from_secs(7);
    let owner = large_on(Site::with(json!({"http": {"drainSeconds": 2}})), 2500);
    let resting = begin_to_read(&owner);
    let steady = begin_to_read(&owner);
    let Owner { server, site } = owner;
    let started = Instant::now();
    let rest = Duration::from_millis(100);
    let read = thread::spawn(move || read_slowly(steady, 20_000, rest, LONGEST));
    assert_eq!(server.stop(), 0);
    let time = started.elapsed();
    assert!((Duration::from_secs(2)..LONGEST).contains(&time), "{time:?}");
    let rested = read_slowly(resting, 1 << 20, Duration::ZERO, LONGEST);
    for (text, is_whole) in [rested, read.join().unwrap()] {
        let shown = count(&text);
        assert!(!is_whole && shown < 2500, "the answer has a proper end after {shown} of 2500");
    }
    Owner::start_on(site).check_alive(2500);
}
