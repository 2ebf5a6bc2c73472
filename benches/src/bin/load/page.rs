//! Payment pages, as payers open them, compared with a bare hyper server that answers as many
//! bytes.

use std::time::Duration;

use crate::Rounds;
use crate::bare::{BareServer, Work};
use crate::client::{Numbers, Request, load, send_all};
use crate::report::{Bar, Report};
use crate::wallet::{FEW, fill};

/// How many payers there are at once.
const PAYERS: usize = 64;
/// How many pages are read again and again.
const OPEN: usize = 100;
/// How many pages are opened for the first time in each round.
const NEW: usize = 200;
/// How often the load alternates between the two servers in a round.
const ALTERNATIONS: usize = 5;

/// Measures everything and prints the medians over the rounds.
pub(crate) fn measure(rounds: Rounds) {
    let count = FEW + u64::from(rounds.rounds) * NEW as u64;
    eprintln!("storing {count} invoices");
    let filled = fill(count);
    let server = filled.site.server();
    let payments = server.payments();
    let pages = filled.paths.iter().map(|path| path.replace("/api/v1/invoices/", "/pay/"));
    let mut pages = pages.collect::<Vec<_>>().into_iter();
    let open: Vec<_> = pages.by_ref().take(OPEN).collect();
    let bare = BareServer::start(Work::Constant, payments.get(&open[0]).body.len());
    let request = Request::get_each(open.iter().cloned());
    let state = Request::get_each(open.iter().map(|page| format!("{page}/state")));
    let duration = Duration::from_secs_f64(rounds.seconds);
    let rate = |address: &str, request: &Request| {
        load(address, request, &Numbers::new(), PAYERS, duration).rate
    };
    let mut report = Report::default();
    for round in 1..=rounds.rounds {
        eprintln!("round {round} of {}", rounds.rounds);
        let new = pages
            .by_ref()
            .take(NEW)
            .map(|page| format!("GET {page} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n").into_bytes());
        let made = send_all(payments.address(), new.collect(), PAYERS);
        report.figure("pages opened for the first time: per second", made.rate);
        rate(payments.address(), &request);
        for _ in 0..ALTERNATIONS {
            let [ours, bare] = [payments.address(), &bare.address].map(|it| rate(it, &request));
            report.figure("GET page: per second", ours);
            report.compare("GET page: share of bare hyper", ours / bare, Bar::AtLeast(0.6));
            report.figure("GET state: per second", rate(payments.address(), &state));
        }
    }
    println!("\n{OPEN} pages are open\n\n{}", report.table());
}
