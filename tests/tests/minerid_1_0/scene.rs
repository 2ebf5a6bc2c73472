//! Helpers for tests with a node and a service whose identity is in the node's blocks.

use std::thread;
use std::time::{Duration, Instant};

use bsv_tests::{Node, Server, Site, miner_info};
use serde_json::{Value, json};

/// A node that has coins for miner-info transactions.
pub(crate) fn node() -> Node {
    let node = Node::start();
    node.mine(101);
    miner_info::fund(&node);
    node
}

/// What the command line shows of `alias`.
pub(crate) fn identity(site: &Site, alias: &str) -> Value {
    let list = site.cli_json(&["miner", "list"]);
    let identities = list.as_array().unwrap().iter();
    identities.clone().find(|identity| identity["alias"] == alias).unwrap().clone()
}

/// Waits until the service has seen everything that `alias` announces in a block.
pub(crate) fn await_acknowledgement(site: &Site, alias: &str) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while identity(site, alias)["announced"] != json!([]) {
        assert!(Instant::now() < deadline, "{:#}", identity(site, alias));
        thread::sleep(Duration::from_millis(50));
    }
}

pub(crate) fn miner_id(server: &Server, alias: &str) -> String {
    server.text(&format!("/minerid/{alias}"))
}

/// A miner id with its state, as the node lists it.
pub(crate) fn state(id: &str, state: &str) -> (String, String) {
    (id.to_owned(), state.to_owned())
}

/// Checks that the node has accepted every identity in its blocks.
pub(crate) fn assert_all_taken(node: &Node) {
    let log = node.log();
    let complaints: Vec<_> = log
        .lines()
        .filter(|line| line.contains("Invalid MinerInfo") || line.contains("Miner ID error"))
        .collect();
    assert!(complaints.is_empty(), "{complaints:#?}");
}
