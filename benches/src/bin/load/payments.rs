//! Payments under load, with few coins and with many.

mod fill;
mod node;

use std::time::Duration;

use bsv_tests::Server;

pub(crate) use self::fill::{Filled, create_all, fill, open, paying, payment_request};
pub(crate) use self::node::YesNode;
use crate::Rounds;
use crate::client::{Load, Numbers, Request, load, send_all};
use crate::report::{Bar, Report};
use crate::wallet::BareCommits;

/// How many coins the small wallet has.
const FEW: u64 = 1_000;
const PAYERS: usize = 64;
/// How often a round measures one connection: bare commits, the small wallet and the large one take
/// turns, since the speed of the machine changes from moment to moment.
const SLICES: u32 = 20;
/// How many payments are measured at a time: over one connection, and over many.
const ALONE: usize = 50;
const TOGETHER: usize = 3_000;

/// Measures everything and prints the medians over the rounds.
pub(crate) fn measure(rounds: Rounds, many: u64) {
    let node = YesNode::start();
    eprintln!("storing {many} invoices and as many coins");
    let per_round = SLICES as usize * ALONE + TOGETHER;
    let count = rounds.rounds as usize * per_round;
    let large = fill(&node, many, count);
    let large_server = large.site.server();
    let mut large_payments = large.payments.iter();
    let mut commits = BareCommits::new();
    let mut report = Report::default();
    let duration = Duration::from_secs_f64(rounds.seconds);
    for round in 1..=rounds.rounds {
        eprintln!("round {round} of {}", rounds.rounds);
        let small = fill(&node, FEW, per_round);
        let server = small.site.server();
        let mut payments = small.payments.iter();
        let pay =
            |server: &Server, payments: &mut std::slice::Iter<'_, Vec<u8>>, count, at_once| {
                let texts: Vec<_> = payments.take(count).cloned().collect();
                send_all(server.payments().address(), texts, at_once)
            };
        for _ in 0..SLICES {
            let before = commits.rate(duration / SLICES);
            let alone = pay(&server, &mut payments, ALONE, 1);
            let alone_many = pay(&large_server, &mut large_payments, ALONE, 1);
            let bare = (before + commits.rate(duration / SLICES)) / 2.0;
            note_alone(&mut report, bare, [&alone, &alone_many]);
        }
        let bare = commits.rate(duration);
        let together = pay(&server, &mut payments, TOGETHER, PAYERS);
        let together_many = pay(&large_server, &mut large_payments, TOGETHER, PAYERS);
        note_together(&mut report, bare, [&together, &together_many]);
        balances(&server, &large_server, duration, &mut report);
    }
    hanging(&node, &large, &large_server, duration, &mut report);
    println!("\nmany = {many} coins, few = {FEW}\n\n{}", report.table());
}

fn note_alone(report: &mut Report, bare: f64, loads: [&Load; 2]) {
    report.figure("bare durable commits: per second", bare);
    let [few, many] = loads.map(|load| load.quantile(0.5));
    report.figure("one payment alone, few: ms", few);
    report.figure("one payment alone, many: ms", many);
    report.compare("one payment alone, few: bare commits", few / 1e3 * bare, Bar::AtMost(4.0));
    report.compare("one payment alone: time with many / few", many / few, Bar::AtMost(1.3));
}

fn note_together(report: &mut Report, bare: f64, loads: [&Load; 2]) {
    for (name, load) in ["few", "many"].into_iter().zip(loads) {
        report.figure(format!("64 paying, {name}: per second"), load.rate);
        let what = format!("64 paying, {name}: times bare commits");
        report.compare(what, load.rate / bare, Bar::AtLeast(1.0));
        let what = format!("64 paying, {name}: p99 in ms");
        report.compare(what, load.quantile(0.99), Bar::AtMost(60.0));
    }
    let ratio = loads[0].rate / loads[1].rate;
    report.compare("64 paying: rate with few / many", ratio, Bar::AtMost(1.3));
}

fn balances(few: &Server, many: &Server, duration: Duration, report: &mut Report) {
    let rate = |server: &Server| {
        let request = Request::get("/api/v1/balance");
        load(server.wallet().address(), &request, &Numbers::new(), PAYERS, duration).rate
    };
    let (few, many) = (rate(few), rate(many));
    report.compare("GET balance: few / many", few / many, Bar::AtMost(1.3));
}

/// Measures how fast invoices are created while the node does not answer to one payment.
fn hanging(
    node: &YesNode,
    large: &Filled,
    server: &Server,
    duration: Duration,
    report: &mut Report,
) {
    let create = || {
        let request = Request::post("/api/v1/invoices", r#"{"satoshis":1000}"#);
        load(server.wallet().address(), &request, &Numbers::new(), PAYERS, duration).rate
    };
    let quiet = create();
    let address = server.payments().address().to_owned();
    let text = large.hanging.clone();
    let hung = std::thread::spawn(move || send_all(&address, vec![text], 1));
    node.wait_until_hanging();
    report.compare("creates while a broadcast hangs: share", create() / quiet, Bar::AtLeast(0.8));
    node.let_go();
    hung.join().unwrap();
}
