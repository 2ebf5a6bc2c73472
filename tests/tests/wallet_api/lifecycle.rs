//! Stopping a server while lists are read.

use std::io::Read;
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use crate::wallet_api::Owner;
use crate::wallet_api::list::{begin_to_read, large};

/// The longest time that a stop may take. The server continues open answers for up to 30 s.
const LONGEST: Duration = Duration::from_secs(35);

/// Reads an answer to its end, part by part. It pauses between the parts as long as the server may
/// still run. Gives the text, and whether it ended properly.
fn read_slowly(stream: TcpStream, part: u64, rest: Duration) -> (String, bool) {
    let started = Instant::now();
    let mut answer = Vec::new();
    // If the server breaks the connection off, it may be reset.
    while let Ok(1..) = (&stream).take(part).read_to_end(&mut answer) {
        if started.elapsed() < LONGEST {
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
    let read = thread::spawn(|| read_slowly(reader, 1 << 20, Duration::from_millis(200)));
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
    let owner = large(4500);
    let resting = begin_to_read(&owner);
    let steady = begin_to_read(&owner);
    let Owner { server, site } = owner;
    let started = Instant::now();
    let read = thread::spawn(|| read_slowly(steady, 20_000, Duration::from_millis(100)));
    assert_eq!(server.stop(), 0);
    let time = started.elapsed();
    assert!(time < LONGEST, "{time:?}");
    for (text, is_whole) in [read_slowly(resting, 1 << 20, Duration::ZERO), read.join().unwrap()] {
        let shown = count(&text);
        assert!(!is_whole && shown < 4500, "the answer has a proper end after {shown} of 4500");
    }
    Owner::start_on(site).check_alive(4500);
}
