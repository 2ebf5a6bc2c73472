//! What a pool notices of restarts: for how long nobody answers it, and whether a request fails.

use std::fmt::Display;

use bsv_benches::{Job, Table, median, verdict};
use bsv_tests::callers::Seen;
use bsv_tests::{Callers, ListeningSockets, Server, Site, vectors};

const CALLERS: usize = 4;
/// How many requests must be answered before, and how many after, a restart.
const BETWEEN: u64 = 50;
/// The longest time that callers may go without an answer where no sockets are handed over, in
/// milliseconds.
const MAX_GAP: f64 = 100.0;

/// Restarts a server with a plain keystore so often, first with and then without handing its
/// sockets over. Meanwhile, callers send `POST /coinbase2`, each time over a new connection.
pub(crate) fn measure(restarts: u32) {
    let mut table = Table::new(["", "figure", "bar", ""]);
    for hands_over in [true, false] {
        let seen = restart(restarts, hands_over);
        report(hands_over, &seen, &mut table);
    }
    print!("{table}");
}

fn restart(restarts: u32, hands_over: bool) -> Vec<Seen> {
    let mut site = Site::new();
    site.keep_on_disk();
    site.set_env("BSV_LOG", "error");
    // If the sockets are not handed over, they only serve to find free ports.
    let sockets = ListeningSockets::of(&mut site);
    let address = sockets.minerid();
    let sockets = hands_over.then_some(sockets);
    let home = vectors::write_home(&vectors::minerid_0_2(), site.data_dir());
    site.cli_ok(&["importminerid", "--from", home.to_str().unwrap()]);
    let start = |site: &Site| -> Server {
        sockets.as_ref().map_or_else(|| site.server(), |sockets| site.server_on(sockets))
    };
    let mut server = start(&site);
    let body = Job::recorded().request("1000");
    let callers = Callers::start(CALLERS, &address, "/coinbase2", &body);
    let mut seen = Vec::new();
    for _ in 0..restarts {
        callers.await_answers(BETWEEN);
        callers.take_seen();
        callers.await_answers(1);
        assert_eq!(server.stop(), 0);
        server = start(&site);
        callers.await_answers(BETWEEN);
        seen.push(callers.take_seen());
    }
    seen.push(callers.stop());
    seen
}

fn report(hands_over: bool, seen: &[Seen], table: &mut Table<4>) {
    let how = if hands_over { "sockets handed over" } else { "sockets made anew" };
    eprintln!("{} restarts, {how}", seen.len() - 1);
    let gaps = || seen.iter().map(Seen::longest_gap);
    let mut row = |what: &str, figure: &dyn Display, bar: Option<(String, bool)>| {
        let (bar, outcome) = bar.unzip();
        let outcome = outcome.map(verdict).unwrap_or_default();
        table.row([format!("{what}, {how}"), figure.to_string(), bar.unwrap_or_default(), outcome]);
    };
    let longest = gaps().fold(0.0, f64::max);
    let bar = (!hands_over).then(|| (format!("<= {MAX_GAP} ms"), longest <= MAX_GAP));
    row("longest time without an answer", &format!("{longest:.1} ms"), bar);
    row("median of it", &format!("{:.1} ms", median(gaps())), None);
    let sum = |of: fn(&Seen) -> u64| seen.iter().map(of).sum::<u64>();
    let refused = sum(|seen| seen.refused);
    row("refused", &refused, hands_over.then(|| ("0".to_owned(), refused == 0)));
    row("sent again, closed before any answer", &sum(|seen| seen.closed), None);
    let failed = sum(|seen| seen.failures.len() as u64);
    row("failed", &failed, Some(("0".to_owned(), failed == 0)));
    for failure in seen.iter().flat_map(|seen| &seen.failures).take(3) {
        eprintln!("failed: {failure}");
    }
}
