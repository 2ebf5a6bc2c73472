//! What the service learns of a chain that races, and of a node that refuses some calls.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use bsv_tests::faults::{Fault, Faults, Operations};
use bsv_tests::gate::{Gate, Refusal};
use bsv_tests::{Node, Server, Site, miner_info};
use serde_json::json;

use crate::minerid_1_0::scene::{identity, node};

/// A site without a wallet, whose service reaches the node through the gate.
fn scene() -> (Node, Gate, Site) {
    let node = node();
    let gate = Gate::before(&node);
    let mut site = gate.site();
    site.set("wallet", json!({ "enabled": false }));
    (node, gate, site)
}

fn make(site: &Site, alias: &str) {
    site.cli_ok(&["generateminerid", "--name", alias]);
    site.cli_ok(&["generatevctx", "--name", alias]);
}

fn await_that(what: &str, is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !is_so() {
        assert!(Instant::now() < deadline, "waited in vain: {what}");
        thread::sleep(Duration::from_millis(50));
    }
}

fn await_member(site: &Site, alias: &str, pointer: &str, expected: &str) {
    let what = format!("{pointer} of {alias} is {expected}");
    await_that(&what, || identity(site, alias).pointer(pointer) == Some(&json!(expected)));
}

fn mine_known(node: &Node, site: &Site, server: &Server, alias: &str) -> String {
    let block = miner_info::mine_coinbase_document(node, server, alias);
    await_member(site, alias, "/exposure", "known");
    block.to_string()
}

#[test]
fn vctxs_are_looked_at_until_no_block_comes_meanwhile() {
    let (_node, gate, site) = scene();
    site.cli_ok(&["generateminerid", "--name", "old"]);
    gate.race("gettxout", 100);
    site.cli_ok(&["generatevctx", "--name", "old"]);
    assert_eq!(identity(&site, "old")["vctx"]["state"], "notSeen");
    // The last block comes during the last look.
    gate.race("gettxout", 5);
    let _server = site.server();
    await_member(&site, "old", "/vctx/state", "unspent");
}

#[test]
fn a_vctx_that_cannot_be_looked_at_hides_no_block() {
    let (node, gate, site) = scene();
    let server = site.server();
    make(&site, "a");
    make(&site, "b");
    let vctx = identity(&site, "a")["vctx"]["outpoint"].as_str().unwrap().to_owned();
    let txid = vctx.split(':').next().unwrap();
    let refusal = Refusal { method: "gettxout", code: -1, message: "not now" };
    gate.refuse_about(txid, refusal);
    let heard = gate.heard("gettxout", txid);
    mine_known(&node, &site, &server, "b");
    assert!(gate.heard("gettxout", txid) > heard, "nothing was refused");
}

/// The main thread of the server also keeps a watchdog quiet.
#[test]
fn a_disk_that_hangs_while_a_block_is_noted_stops_no_thread_of_the_runtime() {
    let (node, _gate, mut site) = scene();
    let faults = Faults::install(&mut site);
    let logs = tempfile::tempdir().unwrap();
    let log = logs.path().join("log");
    let server = site.server_logging_to(&log);
    make(&site, "old");
    faults.begin(Fault::HANGING);
    node.mine(1);
    await_that("the block is noted", || faults.count(Operations::Syncing) > 0);
    server.begin_stop();
    await_that("the server stops", || fs::read_to_string(&log).unwrap().contains("stopping: "));
    faults.end();
    assert_eq!(server.wait(), 0);
}

#[test]
fn a_failure_about_one_identity_hides_no_block_of_the_others() {
    let (node, gate, site) = scene();
    let server = site.server();
    make(&site, "a");
    make(&site, "b");
    let block = mine_known(&node, &site, &server, "a");
    let refusal = Refusal { method: "getblockheader", code: -1, message: "not now" };
    gate.refuse_about(&block, refusal);
    let heard = gate.heard("getblockheader", &block);
    mine_known(&node, &site, &server, "b");
    assert!(gate.heard("getblockheader", &block) > heard, "nothing was refused");
}
