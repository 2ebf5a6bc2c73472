//! Events: how soon streams and webhooks tell them, and what this costs the server.

mod arrival;
mod endpoints;
mod streams;
mod webhooks;

use std::thread;
use std::time::{Duration, Instant};

use bsv_tests::{Client, Server, openapi};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::json;

use self::arrival::Arrival;
use self::endpoints::Endpoints;
use self::streams::Streams;
use crate::Rounds;
use crate::client::{Load, Numbers, Request, load};
use crate::report::{Bar, Report};
use crate::wallet::{BODY, CREATORS, Filled, create, fill};

/// How many streams the wallet is set to allow.
const MOST_STREAMS: u32 = 10_000;
/// How many events are made and timed one at a time.
const SINGLE_EVENTS: u32 = 100;
/// The pause between two of these events, so that all streams are quiet again.
const CALM: Duration = Duration::from_millis(50);
/// How many streams are open while invoices are created.
const BESIDE: u32 = 100;
/// How many webhooks there are while invoices are created.
const WEBHOOKS: usize = 4;
/// How many streams are opened by clients that do not read them.
const HOSTILE: u32 = 1_024;
/// How many invoices are read, one after the other.
const READ: usize = 1_000;
/// How long a server is left alone before its memory is measured.
const REST: Duration = Duration::from_secs(2);

/// Measures the parts whose names contain `only`, and prints the medians over the rounds.
pub(crate) fn measure(rounds: Rounds, events: u64, only: &str) {
    let is_measured = |part: &str| part.contains(only);
    raise_descriptor_limit();
    let mut report = Report::default();
    eprintln!("storing {events} invoices");
    let mut filled = fill(events);
    filled.site.set("wallet", json!({ "streams": MOST_STREAMS }));
    filled.site.set("webhooks", json!({ "allowNetworks": ["127.0.0.0/8"] }));
    let mut server = start(&filled);
    for round in 1..=rounds.rounds {
        eprintln!("round {round} of {}", rounds.rounds);
        if is_measured("pages") {
            pages(&server, events, &mut report, rounds);
        }
        if is_measured("telling") {
            telling(&server, &mut report);
        }
        if is_measured("webhooks") {
            webhooks::measure(&server, &mut report);
        }
        if is_measured("creating") {
            creating(&server, rounds, &mut report);
        }
        if is_measured("unread") {
            unread(&server, rounds, &filled, &mut report);
        }
        if is_measured("resuming") {
            server = webhooks::resume(&filled, server, &mut report);
        }
    }
    drop(server);
    if is_measured("memory") {
        for _ in 0..rounds.rounds {
            memory(&start(&filled), &mut report);
        }
    }
    println!("\n{events} events are stored\n\n{}", report.table());
}

/// Starts the server. Its answers are not compared with the OpenAPI file, since that would take
/// time.
fn start(filled: &Filled) -> Server {
    let server = filled.site.server();
    openapi::forget(server.wallet().address());
    server
}

/// Reads pages of 1,000 events from all over the log.
fn pages(server: &Server, events: u64, report: &mut Report, rounds: Rounds) {
    let after = (0..100).map(|index| events / 100 * index);
    let pages = after.map(|after| format!("/api/v1/events?after={after}&limit=1000"));
    let duration = Duration::from_secs_f64(rounds.seconds);
    let address = server.wallet().address();
    let Load { times, .. } = load(address, &Request::get_each(pages), &Numbers::new(), 1, duration);
    report.compare(
        "page of 1,000 events: ms",
        f64::from(times[times.len() / 2]) / 1e3,
        Bar::AtMost(3.0),
    );
}

/// Measures how soon streams send an event.
fn telling(server: &Server, report: &mut Report) {
    for (count, share, bar) in [(1, 0.5, 1.0), (1_000, 0.99, 20.0)] {
        let delay = delay(server, count, share);
        let name = format!("commit to stream, {count}: p{} in ms", share * 100.0);
        report.compare(name, delay, Bar::AtMost(bar));
    }
}

/// An event is made while `count` streams are open. This share of them has the event within so many
/// milliseconds of the answer to the request that made it.
fn delay(server: &Server, count: u32, share: f64) -> f64 {
    let streams = Streams::open(server.wallet().address(), count, "after=latest");
    let answered = single_events(server.wallet());
    thread::sleep(CALM);
    let arrivals = streams.close();
    assert_eq!(arrivals.len(), answered.len() * count as usize, "events are missing");
    delays(&answered, &arrivals).quantile(share)
}

/// Makes events one at a time. Answers when each request was answered.
fn single_events(wallet: &Client) -> Vec<Instant> {
    let json = [("Content-Type", "application/json")];
    let create = |_| {
        thread::sleep(CALM);
        let answer = wallet.send("POST", "/api/v1/invoices", &json, BODY.as_bytes());
        assert_eq!(answer.status, 201);
        Instant::now()
    };
    (0..SINGLE_EVENTS).map(create).collect()
}

/// How long after the answer to the request that made it each event arrived.
fn delays(answered: &[Instant], arrivals: &[Arrival]) -> Load {
    let first = arrivals.iter().map(|arrival| arrival.number).min().unwrap();
    let times = arrivals.iter().map(|arrival| {
        let answered = answered[usize::try_from(arrival.number - first).unwrap()];
        u32::try_from(arrival.at.saturating_duration_since(answered).as_micros()).unwrap()
    });
    Load::of(times.collect(), 1.0, Vec::new())
}

/// Measures how fast invoices are created: without streams and webhooks, with ones that leave the
/// events of invoices out, and with ones that take them.
fn creating(server: &Server, rounds: Rounds, report: &mut Report) {
    let address = server.wallet().address();
    let duration = Duration::from_secs_f64(rounds.seconds);
    let alone = create(address, CREATORS, duration).rate;
    report.figure("64 creating, nobody is told: per second", alone);
    let endpoints = Endpoints::start(WEBHOOKS);
    for (what, types, bar) in [("leave out", "user.*", 0.9), ("take", "*", 0.6)] {
        let subscribed = endpoints.subscribe(server.wallet(), &json!({ "types": types }));
        let streams =
            Streams::open_untimed(address, BESIDE, &format!("after=latest&types={types}"));
        let share = create(address, CREATORS, duration).rate / alone;
        let came = streams.close_untimed();
        drop(subscribed);
        let beside = format!("{WEBHOOKS} webhooks and {BESIDE} streams");
        let name = format!("64 creating, {beside} that {what} their events: share");
        report.compare(name, share, Bar::AtLeast(bar));
        if types == "*" {
            report.figure("events over these streams: per second", came as f64 / rounds.seconds);
        }
    }
}

/// Measures how fast invoices are read and created, without and with streams of a long log whose
/// clients read nothing.
fn unread(server: &Server, rounds: Rounds, filled: &Filled, report: &mut Report) {
    let address = server.wallet().address();
    let duration = Duration::from_secs_f64(rounds.seconds);
    let reads = Request::get_each(filled.spread_paths(READ));
    let rates = || {
        let read = load(address, &reads, &Numbers::new(), CREATORS, duration);
        [read.rate, create(address, CREATORS, duration).rate]
    };
    let [reads, creates] = rates();
    let streams = streams::open_unread(address, HOSTILE);
    let [beside_reads, beside_creates] = rates();
    drop(streams);
    for (what, share) in [("reading", beside_reads / reads), ("creating", beside_creates / creates)]
    {
        let name = format!("64 {what}, {HOSTILE} streams that nobody reads: share");
        report.compare(name, share, Bar::AtLeast(0.9));
    }
}

/// How much of the server's memory an idle stream takes.
fn memory(server: &Server, report: &mut Report) {
    let before = server.resident_memory();
    let streams = Streams::open(server.wallet().address(), MOST_STREAMS, "after=latest");
    thread::sleep(REST);
    let grown = server.resident_memory().saturating_sub(before) as f64;
    streams.close();
    let each = grown / f64::from(MOST_STREAMS) / 1024.0;
    report.compare(format!("{MOST_STREAMS} idle streams: KiB each"), each, Bar::AtMost(12.0));
}

/// Raises the limit of open files, so that this process can have a connection for each stream.
fn raise_descriptor_limit() {
    let maximum = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).unwrap();
}
