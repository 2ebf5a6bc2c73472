//! A wallet in PostgreSQL, used by one process and by two, compared with bare commits of one row each.

mod bare;
mod process;
mod served;
mod snapshot;
mod work;

use std::time::Duration;

use bsv_tests::Postgres;

use self::bare::BareInserts;
pub(crate) use self::process::work_for_parent;
use self::process::{CALLERS, Process, rate_of_all};
use self::work::{Order, Work};
use crate::Rounds;
use crate::report::{Bar, Report};

/// How many invoices are looked up.
const LOOKED_UP: u64 = 10_000;
/// More payments than a process makes per second.
const MOST_PAYMENTS: f64 = 40_000.0;
/// Into how many slices a round divides what one caller does alone: the speed of the machine changes from moment to
/// moment.
const SLICES: u32 = 10;

/// A database that has run for a while: it writes its log to files that it has. A new one makes each of them first, and
/// fills it with zeros.
fn warm_server() -> Postgres {
    let server = Postgres::start_with(&["min_wal_size=1GB", "max_wal_size=4GB"]);
    for _ in 0..64 {
        server.query("SELECT pg_logical_emit_message(true, '', repeat('x', 16000000))");
    }
    server.query("CHECKPOINT");
    server
}

/// Measures the parts whose names contain `only`, and prints the medians over the rounds.
pub(crate) fn measure(rounds: Rounds, snapshot: u32, only: &str) {
    let is_measured = |part: &str| part.contains(only);
    let mut report = Report::default();
    let mut stores = Stores::new(rounds);
    for round in 1..=rounds.rounds {
        eprintln!("round {round} of {}", rounds.rounds);
        if is_measured("creating") {
            stores.creating(&mut report);
        }
        if is_measured("paying") {
            stores.paying(&mut report);
        }
        if is_measured("looking") {
            stores.looking(&mut report);
        }
        if is_measured("alone") {
            stores.alone(&mut report);
        }
    }
    if is_measured("snapshot") {
        stores.beside_snapshot(rounds.rounds, snapshot, &mut report);
    }
    drop(stores);
    if is_measured("standby") {
        with_standby(rounds, &mut report);
    }
    if is_measured("served") {
        served::measure(rounds, &mut report);
    }
    println!("\n{}", report.table());
}

/// Two processes with a store each, of one wallet.
struct Stores {
    processes: [Process; 2],
    bare: BareInserts,
    duration: Duration,
    server: Postgres,
}

impl Stores {
    fn new(rounds: Rounds) -> Self {
        let server = warm_server();
        let bare = BareInserts::new(&server);
        let url = server.fresh_url();
        let mut processes = [Process::start(&url), Process::start(&url)];
        processes[0].prepare(LOOKED_UP);
        let duration = Duration::from_secs_f64(rounds.seconds);
        Self { processes, bare, duration, server }
    }

    fn creating(&mut self, report: &mut Report) {
        let bare = self.bare.rate(self.duration);
        let one = self.processes[0].rate(Work::Create, CALLERS, self.duration);
        let two = self.rate_of_both(|_| Work::Create);
        report.figure("bare INSERTs over 64 connections: per second", bare);
        note(report, "64 creating", one, bare, 2.0);
        note(report, "2 processes of 64 creating", two, bare, 2.0);
    }

    fn paying(&mut self, report: &mut Report) {
        let most = (MOST_PAYMENTS * self.duration.as_secs_f64()) as u64;
        let from = self.processes[0].prepare(3 * most);
        let bare = self.bare.rate(self.duration);
        let one = self.processes[0].rate(Work::Pay { from }, CALLERS, self.duration);
        let two = self.rate_of_both(|process| Work::Pay { from: from + (1 + process) * most });
        note(report, "64 paying, two commits each", one, bare, 0.5);
        note(report, "2 processes of 64 paying", two, bare, 0.45);
    }

    fn looking(&mut self, report: &mut Report) {
        let bare = self.bare.rate(self.duration);
        let look = Work::Look { among: LOOKED_UP };
        let looks = self.processes[0].rate(look, CALLERS, self.duration);
        note(report, "64 looking invoices up", looks, bare, 6.0);
    }

    /// Measures one caller of one process, next to bare commits over one connection.
    fn alone(&mut self, report: &mut Report) {
        let slice = self.duration / SLICES;
        for _ in 0..SLICES {
            let from = self.processes[0].prepare((MOST_PAYMENTS * slice.as_secs_f64()) as u64);
            let bare = self.bare.rate_alone(slice);
            let create = self.processes[0].rate(Work::Create, 1, slice);
            let pay = self.processes[0].rate(Work::Pay { from }, 1, slice);
            report.figure("one bare INSERT alone: ms", 1e3 / bare);
            report.figure("one create alone: ms", 1e3 / create);
            report.compare("one create alone: bare INSERTs", bare / create, Bar::AtMost(4.0));
            report.figure("one payment alone: ms", 1e3 / pay);
            report.compare("one payment alone: bare INSERTs", bare / pay, Bar::AtMost(9.0));
        }
    }

    fn rate_of_both(&mut self, work: impl Fn(u64) -> Work) -> f64 {
        let duration = self.duration;
        let order = |process| Order { work: work(process), callers: CALLERS, duration };
        rate_of_all(self.processes.each_mut(), order)
    }
}

/// Measures creating where each commit waits for a standby.
fn with_standby(rounds: Rounds, report: &mut Report) {
    let server = warm_server();
    let _standby = server.standby();
    let mut bare = BareInserts::new(&server);
    let mut process = Process::start(&server.fresh_url());
    let duration = Duration::from_secs_f64(rounds.seconds);
    for round in 1..=rounds.rounds {
        eprintln!("round {round} of {}, with a standby", rounds.rounds);
        let bare = bare.rate(duration);
        let create = process.rate(Work::Create, CALLERS, duration);
        report.figure("bare INSERTs, with a standby: per second", bare);
        note(report, "64 creating, with a standby", create, bare, 2.0);
    }
}

/// Notes a rate, and the ratio to bare commits, which is to be at least `bar`.
fn note(report: &mut Report, what: &str, rate: f64, bare: f64, bar: f64) {
    report.figure(format!("{what}: per second"), rate);
    report.compare(format!("{what}: times bare INSERTs"), rate / bare, Bar::AtLeast(bar));
}
