//! Requests for documents at the moment when a block arrives.

use std::time::{Duration, Instant};

use bsv_tests::gate::{Gate, Hold};
use bsv_tests::known_miners::of_node;
use bsv_tests::{Node, Server, Site, Template, miner_info};
use serde_json::json;

use crate::minerid_1_0::scene::{assert_all_taken, await_acknowledgement, identity, node};

/// Mines a block with the server's document. The node must then know it as the last block of the
/// alias's key.
fn mine(node: &Node, site: &Site, server: &Server) {
    let key = identity(site, "pool")["minerId"].as_str().unwrap().to_owned();
    let mined = miner_info::mine_from(node, server, "pool");
    let known = of_node(node);
    assert_eq!(known[&key]["latestBlock"], mined.block.to_string(), "{}", node.log());
}

/// A new revocation key may be announced only once. If a document announces it again, nodes ignore
/// the identity of its block.
#[test]
fn documents_right_after_a_block_know_what_it_has_shown() {
    let node = node();
    let site = Site::on(&node);
    let server = site.server();
    site.cli_ok(&["generateminerid", "--name", "pool", "--protocol", "1.0"]);
    mine(&node, &site, &server);
    for round in 0..8 {
        if round % 2 == 0 {
            site.cli_ok(&["rotateminerid", "--name", "pool"]);
        }
        site.cli_ok(&["rotaterevocationkey", "--name", "pool"]);
        for _ in 0..3 {
            mine(&node, &site, &server);
        }
        assert_eq!(identity(&site, "pool")["announced"], json!([]), "round {round}");
    }
    assert_all_taken(&node);
}

/// If the last block holds another pool's miner id, it shows none of this pool's announcements.
#[test]
fn a_block_of_another_miner_changes_nothing() {
    let node = node();
    let [site, other] = [(); 2].map(|()| Site::on(&node));
    let [server, others] = [&site, &other].map(Site::server);
    for site in [&site, &other] {
        site.cli_ok(&["generateminerid", "--name", "pool", "--protocol", "1.0"]);
    }
    mine(&node, &site, &server);
    site.cli_ok(&["rotaterevocationkey", "--name", "pool"]);
    mine(&node, &other, &others);
    node.mine(1);
    assert_eq!(identity(&site, "pool")["announced"], json!(["revocationKey"]));
    for _ in 0..2 {
        mine(&node, &site, &server);
    }
    assert_all_taken(&node);
}

/// If each request waited for the node, the test would take minutes.
#[test]
fn a_node_that_hangs_is_waited_for_once() {
    let node = node();
    let gate = Gate::before(&node);
    let mut settings = gate.settings();
    settings["minerid"] = json!({ "askNodeMs": 3_000 });
    let site = Site::with(settings);
    let server = site.server();
    site.cli_ok(&["generateminerid", "--name", "pool", "--protocol", "1.0"]);
    mine(&node, &site, &server);
    await_acknowledgement(&site, "pool");
    site.cli_ok(&["rotateminerid", "--name", "pool"]);
    gate.shut("getblockchaininfo", Hold::Call);
    gate.wait_for(1);
    node.mine(1);
    let template = Template::of(&node, 1);
    let begun = Instant::now();
    for number in 0..40 {
        server.text(&format!("/opreturn/pool/{}", template.height() + number % 3));
    }
    assert!(begun.elapsed() < Duration::from_secs(60), "each request waits for the node");
    gate.open();
    mine(&node, &site, &server);
    await_acknowledgement(&site, "pool");
}
