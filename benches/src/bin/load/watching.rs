//! A wallet that watches many scripts while strangers' transactions are published.

mod attribution;
mod catch_up;
mod feed;
mod fill;
mod memory;
mod node;
mod traffic;

use std::fs::{self, DirEntry};
use std::time::Duration;
use std::{io, thread};

use bsv_tests::Server;
use serde_json::json;

use self::feed::Feed;
use self::fill::fill;
use self::node::ChainNode;
use self::traffic::{Contents, foreign};
use crate::Rounds;
use crate::report::{Bar, Report};
use crate::wallet::{BareCommits, CREATORS, create};

/// How many payments are published in a round.
const PAYMENTS: usize = 300;
/// How often the load alternates between the servers in a round.
const ALTERNATIONS: u32 = 5;

/// Measures everything and prints the medians over the rounds.
pub(crate) fn measure(rounds: Rounds, scripts: u64) {
    let feed = Feed::start();
    let node = ChainNode::start(&feed.address, Contents::new(&[foreign(0)]));
    let mut report = Report::default();
    eprintln!("memory of {scripts} scripts");
    memory::measure(&node, scripts, &mut report);

    eprintln!("storing {scripts} scripts");
    let count = rounds.rounds as usize;
    let watching = fill(node.settings.clone(), scripts, count * (1 + PAYMENTS));
    let (mined, published) = watching.shown.split_at(count);
    let server = watching.site.server();
    node.wait_until_watched();
    wait_until_checked(&server);
    catch_up::measure(&node, &server, mined, &mut report);

    // Its store is as large as the other one, since a small store that grows is slower.
    let without_node = fill(json!({}), scripts, 0);
    let alone = without_node.site.server();
    wait_until_checked(&alone);
    let mut commits = BareCommits::new();
    let duration = Duration::from_secs_f64(rounds.seconds);
    for (round, invoices) in published.chunks(PAYMENTS).enumerate() {
        eprintln!("round {} of {count}: seeing payments, and creating invoices", round + 1);
        feed.flow(true);
        attribution::measure(&feed, &node, &server, invoices, &mut commits, &mut report);
        creates(&feed, &server, &alone, duration, &mut report);
    }
    println!("\n{scripts} scripts are watched\n\n{}", report.table());
}

/// Waits until the server has checked its store. The check begins 5 seconds after the start.
fn wait_until_checked(server: &Server) {
    thread::sleep(Duration::from_secs(6));
    let is_check = |task: io::Result<DirEntry>| {
        let name = fs::read_to_string(task.unwrap().path().join("comm"));
        name.is_ok_and(|name| name == "store check\n")
    };
    let tasks = format!("/proc/{}/task", server.id());
    while fs::read_dir(&tasks).unwrap().any(is_check) {
        thread::sleep(Duration::from_millis(100));
    }
}

/// Compares how fast a wallet creates invoices while it watches with how fast a wallet without a
/// node does.
fn creates(
    feed: &Feed,
    watching: &Server,
    alone: &Server,
    duration: Duration,
    report: &mut Report,
) {
    let rate = |server: &Server| create(server.wallet().address(), CREATORS, duration).rate;
    for _ in 0..ALTERNATIONS {
        feed.flow(true);
        let with = rate(watching);
        feed.flow(false);
        let without = rate(alone);
        report.figure("64 creating, without a node: per second", without);
        report.compare("64 creating, while watching: share", with / without, Bar::AtLeast(0.95));
    }
}
