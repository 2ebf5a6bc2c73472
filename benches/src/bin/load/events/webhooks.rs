//! Events that are sent to webhooks.

use std::net::TcpListener;
use std::thread;
use std::time::{Duration, Instant};

use bsv_benches::median;
use bsv_tests::{Client, Server};
use serde_json::json;

use super::endpoints::{Endpoints, subscribe, unsubscribe};
use super::{CALM, SINGLE_EVENTS, delays, single_events, start};
use crate::report::{Bar, Report};
use crate::wallet::{BareCommits, Filled};

/// How many events are sent to one endpoint without a pause.
const BACKLOG: u64 = 20_000;
/// How many events a killed server has not sent yet.
const PENDING: u64 = 100_000;
/// How often the delay is measured without and with a dead webhook in a round.
const ALTERNATIONS: usize = 5;
/// How many webhooks there are at most.
const MOST_WEBHOOKS: usize = 16;

/// Measures how soon events are sent, how many per second, and how soon while another endpoint does
/// not answer.
pub(super) fn measure(server: &Server, report: &mut Report) {
    let wallet = server.wallet();
    report.compare("commit to webhook: p99 in ms", delay(wallet, 1), Bar::AtMost(10.0));
    let (deliveries, commits) = (backlog(wallet), BareCommits::new().rate(Duration::from_secs(1)));
    report.compare("deliveries to one endpoint: per second", deliveries, Bar::AtLeast(5_000.0));
    report.figure("bare durable commits, one after the other: per second", commits);
    beside_a_dead_one(wallet, report);
}

/// Measures by turns, because the delays differ from moment to moment.
fn beside_a_dead_one(wallet: &Client, report: &mut Report) {
    // The system accepts connections to this listener, and nobody reads from them.
    let dead = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", dead.local_addr().unwrap());
    let [mut alone, mut beside] = [Vec::new(), Vec::new()];
    for _ in 0..ALTERNATIONS {
        alone.push(delay(wallet, MOST_WEBHOOKS - 1));
        let path = subscribe(wallet, &url, json!({}));
        beside.push(delay(wallet, MOST_WEBHOOKS - 1));
        unsubscribe(wallet, &path);
    }
    report.compare(
        "commit to 15 webhooks beside a dead one: share of p99",
        median(beside) / median(alone),
        Bar::AtMost(1.1),
    );
}

/// 99 of 100 events arrive at each of so many endpoints within this time, in milliseconds.
fn delay(wallet: &Client, count: usize) -> f64 {
    let endpoints = Endpoints::start(count);
    let _subscribed = endpoints.subscribe(wallet, &json!({}));
    let answered = single_events(wallet);
    delays(&answered, &endpoints.until(SINGLE_EVENTS as usize * count)).quantile(0.99)
}

/// How many events per second are sent to one endpoint that has a backlog.
fn backlog(wallet: &Client) -> f64 {
    let endpoints = Endpoints::start(1);
    let after = last(wallet) - BACKLOG;
    let _subscribed = endpoints.subscribe(wallet, &json!({ "after": after }));
    let arrivals = endpoints.until(BACKLOG as usize);
    let [first, last] = [arrivals.first(), arrivals.last()].map(|arrival| arrival.unwrap().at);
    BACKLOG as f64 / (last - first).as_secs_f64()
}

/// The number of the last event.
fn last(wallet: &Client) -> u64 {
    let page = wallet.get("/api/v1/events?after=latest");
    let page: serde_json::Value = serde_json::from_str(&page.body).unwrap();
    page["last"].as_u64().unwrap()
}

/// Kills a server that has many events to send, and starts it again. Measures how soon it sends the
/// first one. Answers the server.
pub(super) fn resume(filled: &Filled, server: Server, report: &mut Report) -> Server {
    let endpoints = Endpoints::start(1);
    let after = last(server.wallet()) - PENDING;
    let path = subscribe(server.wallet(), endpoints.url(), json!({ "after": after }));
    endpoints.until(1);
    server.kill();
    // By then, every event that was on its way has arrived.
    thread::sleep(CALM);
    let came = endpoints.until(1).len();
    let server = start(filled);
    let ready = Instant::now();
    let next = endpoints.until(came + 1)[came].at;
    unsubscribe(server.wallet(), &path);
    let delay = next.saturating_duration_since(ready).as_secs_f64() * 1e3;
    report.compare(
        format!("first of {PENDING} events to a webhook after kill -9: ms from ready"),
        delay,
        Bar::AtMost(50.0),
    );
    server
}
