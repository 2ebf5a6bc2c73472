//! Payments to a wallet without a node, compared with payments to one that has a node.

mod coins;
mod yes_arc;

use std::thread::sleep;
use std::time::{Duration, Instant};

use bsv_invoicing::InvoiceDraft;
use bsv_invoicing::dpp::{Dialect, ReceivedTerms};
use bsv_tests::{Metrics, Node, Server, Site};
use bsv_tx::Network;
use serde_json::json;

use self::coins::Coins;
use self::yes_arc::YesArc;
use crate::Rounds;
use crate::client::send_all;
use crate::payments::{YesNode, create_all, fill, open, payment_request};
use crate::report::{Bar, Report};

/// How many payments are measured at a time: over one connection, and over many.
const ALONE: usize = 200;
const TOGETHER: usize = 2_000;
const PAYERS: usize = 64;
/// How many coins the wallet with a node has.
const FEW: u64 = 1_000;

/// A site whose wallet asks a broadcaster, and requests that pay invoices of it.
struct Stall {
    site: Site,
    payments: Vec<Vec<u8>>,
}

/// Measures everything and prints the medians over the rounds. Afterwards it counts for so many minutes
/// what following the payments costs, while there is no block.
pub(crate) fn measure(rounds: Rounds, minutes: u32) {
    let (yes_node, node, arc) = (YesNode::start(), Node::start(), YesArc::start());
    node.mine(101);
    let mut coins = Coins::of(&node, rounds.rounds as usize * (ALONE + TOGETHER));
    let mut report = Report::default();
    let mut last = None;
    for round in 1..=rounds.rounds {
        eprintln!("round {round} of {}", rounds.rounds);
        let count = ALONE + TOGETHER;
        let with_node = fill(&yes_node, FEW, count);
        let stall = Stall::new(&node, &arc, &mut coins, count);
        let servers = [with_node.site.server(), stall.site.server()];
        wait_for_headers(&servers[1], &node);
        let [alone, together] = [(0..ALONE, 1), (ALONE..count, PAYERS)].map(|(range, at_once)| {
            let payments = [&with_node.payments, &stall.payments];
            [0, 1].map(|side| {
                let texts = payments[side][range.clone()].to_vec();
                send_all(servers[side].payments().address(), texts, at_once)
            })
        });
        let [by_node, by_services] = alone.map(|load| load.quantile(0.5));
        report.figure("one payment alone, node: ms", by_node);
        report.figure("one payment alone, services: ms", by_services);
        report.compare(
            "one payment alone: node / services",
            by_node / by_services,
            Bar::AtLeast(0.5),
        );
        let [by_node, by_services] = together.map(|load| load.rate);
        report.figure("64 paying, node: per second", by_node);
        report.figure("64 paying, services: per second", by_services);
        report.compare(
            "64 paying: rate with services / node",
            by_services / by_node,
            Bar::AtLeast(0.5),
        );
        last = Some((stall.site, servers));
    }
    if minutes > 0 {
        eprintln!("following {} payments for {minutes} minutes", ALONE + TOGETHER);
        let (before, time) = (arc.requests(), Duration::from_secs(u64::from(minutes) * 60));
        sleep(time);
        let rate = (arc.requests() - before) as f64 / time.as_secs_f64();
        report.compare("following: requests per second", rate, Bar::AtMost(2.0));
    }
    drop(last);
    println!("\n{}", report.table());
}

fn wait_for_headers(server: &Server, node: &Node) {
    let height = f64::from(bsv_tests::rival::height(node));
    let deadline = Instant::now() + Duration::from_secs(60);
    while Metrics::of(server.wallet()).get("bsv_headers_height") != Some(height) {
        assert!(Instant::now() < deadline, "the server does not get the headers");
        sleep(Duration::from_millis(50));
    }
}

impl Stall {
    fn new(node: &Node, arc: &YesArc, coins: &mut Coins, count: usize) -> Self {
        let mut site = Site::with(json!({ "wallet": { "zeroConfLimitSatoshis": "none" } }));
        site.set(
            "services",
            json!({
                // The most that settings allow.
                "broadcasters": [{ "kind": "arc", "url": arc.url(), "requestsPerSecond": 1_000 }],
                "headers": { "peers": [format!("{}:{}", node.host, node.peer_port)] },
            }),
        );
        site.keep_on_disk();
        site.set_env("BSV_LOG", "error");
        let dir = site.network_dir();
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let payments = runtime.block_on(async {
            let wallet = open(&dir).await;
            let draft = InvoiceDraft { satoshis: coins::PRICE, ..InvoiceDraft::default() };
            let mut payments = Vec::with_capacity(count);
            for id in create_all(&wallet, &draft, count as u64).await {
                let terms = wallet.terms(&id).await.unwrap().to_json(Dialect::GoDpp);
                let terms = ReceivedTerms::from_json(&terms, Network::Regtest).unwrap();
                let beef = coins.pay(&terms);
                payments.push(payment_request(&id, terms.payment(beef.subject(), Some(&beef), "")));
            }
            payments
        });
        Self { site, payments }
    }
}
