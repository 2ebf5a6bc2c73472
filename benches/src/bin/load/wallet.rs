//! The wallet under load, with few invoices and with many.

mod commits;
mod fill;
mod stream;

use std::thread;
use std::time::Duration;

use bsv_benches::median;
use bsv_tests::{Client, Server};

pub(crate) use self::commits::BareCommits;
pub(crate) use self::fill::{Filled, fill};
use crate::Rounds;
use crate::bare::{BareServer, Work};
use crate::client::{Load, Numbers, Request, load};
use crate::report::{Bar, Report};

/// How many invoices the small wallet has.
pub(crate) const FEW: u64 = 1_000;
const READERS: usize = 64;
pub(crate) const CREATORS: usize = 64;
const STARTS: usize = 5;
/// How often the load alternates between the servers in a round.
const ALTERNATIONS: usize = 5;

/// Measures everything and prints the medians over the rounds.
pub(crate) fn measure(rounds: Rounds, many: u64) {
    eprintln!("storing {many} invoices");
    let large = fill(many);
    let server = large.site.server();
    let mut report = Report::default();
    let mut load = WalletLoad::new(rounds, &large, &server);
    for round in 1..=rounds.rounds {
        eprintln!("round {round} of {}", rounds.rounds);
        load.round(&mut report);
    }
    load.lists(&mut report);
    starts(&large, server, &mut report);
    println!("\nmany = {many} invoices, few = {FEW}\n\n{}", report.table());
}

struct WalletLoad<'a> {
    duration: Duration,
    commits: BareCommits,
    bare_invoice: BareServer,
    bare_balance: BareServer,
    large: &'a Filled,
    large_server: &'a Server,
}

impl<'a> WalletLoad<'a> {
    fn new(rounds: Rounds, large: &'a Filled, large_server: &'a Server) -> Self {
        let body_len = |path: &str| large_server.wallet().get(path).body.len();
        Self {
            duration: Duration::from_secs_f64(rounds.seconds),
            commits: BareCommits::new(),
            bare_invoice: BareServer::start(Work::Constant, body_len(&large.paths[0])),
            bare_balance: BareServer::start(Work::Constant, body_len("/api/v1/balance")),
            large,
            large_server,
        }
    }

    /// Compares everything once. Each round has a new small store, since creating invoices makes a
    /// store larger.
    fn round(&mut self, report: &mut Report) {
        let small = fill(FEW);
        let server = small.site.server();
        self.reads(&small, &server, report);
        self.creates(&server, report);
    }

    fn reads(&self, small: &Filled, server: &Server, report: &mut Report) {
        // Both servers are asked for the same number of different invoices, however many they
        // store.
        let invoice = |filled: &Filled| Request::get_each(filled.spread_paths(FEW as usize));
        let balance = Request::get("/api/v1/balance");
        for (what, bare, small, large) in [
            ("GET invoice", &self.bare_invoice, invoice(small), invoice(self.large)),
            ("GET balance", &self.bare_balance, balance.clone(), balance),
        ] {
            let [few_at, many_at] =
                [server, self.large_server].map(|s| s.wallet().address().to_owned());
            // The bare server gets the same requests, so that it has to read the same bytes.
            let sides = [(&few_at, &small), (&bare.address, &small), (&many_at, &large)];
            let rates = || sides.map(|(address, request)| self.read(address, request));
            // This fills the caches again, from which creating invoices has displaced what is read
            // here.
            rates();
            for _ in 0..ALTERNATIONS {
                let [few, bare, many] = rates();
                report.figure(format!("{what}: per second"), few);
                report.compare(
                    format!("{what}: share of bare hyper"),
                    few / bare,
                    Bar::AtLeast(0.75),
                );
                report.compare(format!("{what}: few / many"), few / many, Bar::AtMost(1.3));
            }
        }
        for (count, name) in [(10_000, "10,000"), (100_000, "100,000")] {
            let spread = Request::get_each(self.large.spread_paths(count));
            self.read(self.large_server.wallet().address(), &spread);
            let rate = self.read(self.large_server.wallet().address(), &spread);
            report.figure(format!("GET one of {name} invoices among many: per second"), rate);
        }
    }

    fn creates(&mut self, server: &Server, report: &mut Report) {
        let commits = self.commits.rate(self.duration);
        let alone = self.create(server, 1);
        let few = self.create(server, CREATORS);
        let many = self.create(self.large_server, CREATORS);
        let alone_time = alone.quantile(0.5);
        report.figure("bare durable commits: per second", commits);
        report.figure("one create alone: ms", alone_time);
        report.compare(
            "one create alone: bare commits",
            alone_time / 1e3 * commits,
            Bar::AtMost(3.0),
        );
        report.figure("64 creating: per second", few.rate);
        report.compare("64 creating: times bare commits", few.rate / commits, Bar::AtLeast(6.0));
        report.compare("64 creating: p99 in ms", few.quantile(0.99), Bar::AtMost(10.0));
        report.compare("64 creating: few / many", few.rate / many.rate, Bar::AtMost(1.3));
        report.compare("64 creating, many: p99 in ms", many.quantile(0.99), Bar::AtMost(10.0));
    }

    /// Measures the list of all invoices: alone, and while other invoices are created.
    fn lists(&self, report: &mut Report) {
        let address = self.large_server.wallet().address();
        self.large_server.reset_peak_memory();
        let before = self.large_server.resident_memory();
        let alone = stream::read_list(address);
        let quiet = median((0..5).map(|_| self.create(self.large_server, CREATORS).rate));
        let (list, rates) = thread::scope(|scope| {
            let list = scope.spawn(|| stream::read_list(address));
            let mut rates = Vec::new();
            while !list.is_finished() {
                rates.push(create(address, CREATORS, Duration::from_millis(200)).rate);
            }
            // The list ended during the last measurement, which therefore does not count.
            rates.pop();
            (list.join().unwrap(), rates)
        });
        let growth = self.large_server.peak_memory().saturating_sub(before) as f64 / 1e6;
        report.compare("whole list: invoices per second", alone.rate(), Bar::AtLeast(200_000.0));
        report.figure("whole list, while 64 create: invoices per second", list.rate());
        let share = median(rates) / quiet;
        report.compare("64 creating, while the list streams: share", share, Bar::AtLeast(0.8));
        report.compare("growth of memory by all that, at its peak: MB", growth, Bar::AtMost(64.0));
    }

    fn create(&self, server: &Server, connections: usize) -> Load {
        create(server.wallet().address(), connections, self.duration)
    }

    fn read(&self, address: &str, request: &Request) -> f64 {
        load(address, request, &Numbers::new(), READERS, self.duration).rate
    }
}

pub(crate) const BODY: &str =
    r#"{"satoshis":1000,"description":"a cup of coffee","reference":"order 12345"}"#;

pub(crate) fn create(address: &str, connections: usize, duration: Duration) -> Load {
    let request = Request::post("/api/v1/invoices", BODY);
    load(address, &request, &Numbers::new(), connections, duration)
}

fn create_until_it_ends(address: &str) {
    let client = Client::new(address);
    let json = [("Content-Type", "application/json")];
    while client.try_send("POST", "/api/v1/invoices", &json, BODY.as_bytes()).is_ok() {}
}

/// Measures the start of the large site's server: after it was killed while it created invoices,
/// and after it was stopped.
fn starts(large: &Filled, server: Server, report: &mut Report) {
    let mut server = server;
    for _ in 0..STARTS {
        let address = server.wallet().address().to_owned();
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| create_until_it_ends(&address));
            }
            thread::sleep(Duration::from_millis(500));
            server.kill();
        });
        server = large.site.server();
        let time = server.start_time.as_secs_f64() * 1e3;
        report.compare("start after kill -9, many: ms", time, Bar::AtMost(200.0));
        assert_eq!(server.stop(), 0);
        server = large.site.server();
        let time = server.start_time.as_secs_f64() * 1e3;
        report.compare("start, many: ms", time, Bar::AtMost(200.0));
        let memory = server.resident_memory() as f64 / 1e6;
        report.compare("memory after start, many: MB", memory, Bar::AtMost(40.0));
    }
}
