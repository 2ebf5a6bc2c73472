//! Metrics, asked for as monitoring systems do, with few invoices and with many.

use std::time::Duration;

use crate::Rounds;
use crate::client::{Load, Numbers, Request, load};
use crate::report::{Bar, Report};
use crate::wallet::{CREATORS, FEW, Filled, create, fill};

/// How many invoices are read before the metrics, so that the metrics have something to show.
const ASKED_FOR: usize = 1_000;

/// Measures everything and prints the medians over the rounds.
pub(crate) fn measure(rounds: Rounds, many: u64) {
    eprintln!("storing {many} invoices");
    let filled = [FEW, many].map(fill);
    let servers = filled.each_ref().map(|filled| filled.site.server());
    let [few, many_at] = servers.each_ref().map(|server| server.wallet().address());
    filled.iter().zip([few, many_at]).for_each(|(filled, address)| use_all(filled, address));
    let duration = Duration::from_secs_f64(rounds.seconds);
    let ask = |address: &str| -> Load {
        load(address, &Request::get("/metrics"), &Numbers::new(), 1, duration)
    };
    let mut report = Report::default();
    for round in 1..=rounds.rounds {
        eprintln!("round {round} of {}", rounds.rounds);
        let [few, many] = [few, many_at].map(ask);
        report.figure("GET /metrics, few: ms", few.quantile(0.5));
        report.compare("GET /metrics, many: ms", many.quantile(0.5), Bar::AtMost(2.0));
        report.compare("GET /metrics, many: p99 in ms", many.quantile(0.99), Bar::AtMost(2.0));
        let ratio = many.quantile(0.5) / few.quantile(0.5);
        report.compare("GET /metrics: many / few", ratio, Bar::AtMost(1.3));
    }
    println!("\nmany = {many} invoices, few = {FEW}\n\n{}", report.table());
}

/// Makes requests, commits and events for the metrics of a server to count.
fn use_all(filled: &Filled, address: &str) {
    let reads = Request::get_each(filled.spread_paths(ASKED_FOR));
    let moment = Duration::from_millis(100);
    load(address, &reads, &Numbers::new(), CREATORS, moment);
    create(address, CREATORS, moment);
}
