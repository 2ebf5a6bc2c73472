//! The state of all miner ids according to a node and to a scan of its chain, in one form.

use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::miner_info;
use crate::node::Node;

/// Each miner id, with the facts about it and its miner.
pub type KnownMiners = BTreeMap<String, Value>;

/// The node's answers about all miner ids (`dumpminerids`), and about each (`getmineridinfo`).
///
/// # Panics
/// If the answers contradict each other.
pub fn of_node(node: &Node) -> KnownMiners {
    let (dump, infos) = answers(node);
    let mut known = KnownMiners::new();
    for miner in dump["miners"].as_array().unwrap() {
        for listed in miner["minerids"].as_array().unwrap() {
            let id = text(&listed["minerid"]);
            let info = &infos[id];
            assert_eq!([&info["minerId"], &info["minerIdState"]], [id, text(&listed["state"])]);
            // For a single miner id, the node repeats its last document: after the announcement of
            // a rotation, the miner id is its own predecessor.
            let previous = text(&info["prevMinerId"]);
            assert!([id, text(&listed["prevminerid"])].contains(&previous), "{info:#}");
            let revocation_key = Some(&info["revocationKey"]).filter(|key| *key != "");
            let entry = json!({
                "state": listed["state"],
                "version": listed["version"],
                "previous": listed["prevminerid"],
                "next": listed["nextminerid"],
                "revocationKey": revocation_key,
                "creationBlock": listed["creationblock"],
                "firstBlock": miner["firstblock"],
                "latestBlock": miner["latestblock"],
                "recentBlocks": miner["numrecentblocks"],
            });
            known.insert(id.to_owned(), entry);
        }
    }
    known
}

/// Makes the node forget all miner ids and read them from its chain again (`rebuildminerids`). Then
/// waits until it gives the expected answers, which differ from its earlier ones.
///
/// # Panics
/// If it does not in twenty seconds.
pub fn await_rebuilt(node: &Node, expected: &KnownMiners) {
    assert_ne!(of_node(node), *expected);
    node.call("rebuildminerids", json!([true]));
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let known = of_node(node);
        if known == *expected {
            return;
        }
        assert!(Instant::now() < deadline, "{known:#?} is not {expected:#?}");
        thread::sleep(Duration::from_millis(100));
    }
}

/// The list of all miner ids and the node's answer about each, both of the same moment.
fn answers(node: &Node) -> (Value, BTreeMap<String, Value>) {
    let dump = || node.call("dumpminerids", json!([]));
    let mut before = dump();
    loop {
        let miners = before["miners"].as_array().unwrap();
        let listed = miners.iter().flat_map(|miner| miner["minerids"].as_array().unwrap());
        let ids = listed.map(|listed| text(&listed["minerid"]).to_owned());
        let infos = ids.map(|id| (id.clone(), miner_info::known(node, &id))).collect();
        let after = dump();
        if after == before {
            return (before, infos);
        }
        before = after;
    }
}

/// The last line of a scan (`bsv-cli miner scan --json`).
pub fn of_scan(summary: &Value) -> KnownMiners {
    let mut known = KnownMiners::new();
    for miner in summary["miners"].as_array().unwrap() {
        for key in miner["minerIds"].as_array().unwrap() {
            let entry = json!({
                "state": key["state"],
                "version": key["version"],
                "previous": key["previousMinerId"],
                "next": key["nextMinerId"],
                "revocationKey": key["revocationKey"],
                "creationBlock": key["creationBlock"],
                "firstBlock": miner["firstBlock"],
                "latestBlock": miner["latestBlock"],
                "recentBlocks": format!("{}/{}", miner["recentBlocks"], summary["reputationBlocks"]),
            });
            known.insert(text(&key["minerId"]).to_owned(), entry);
        }
    }
    known
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}
