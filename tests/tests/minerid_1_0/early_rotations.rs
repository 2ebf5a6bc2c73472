//! Rotations of keys that no block has shown.

use std::thread;
use std::time::{Duration, Instant};

use bsv_tests::known_miners::of_node;
use bsv_tests::{Metrics, Node, Server, Site, Template, miner_info};
use serde_json::json;

use crate::minerid_1_0::scene::{
    assert_all_taken, await_acknowledgement, identity, miner_id, node, state,
};

/// A service with an identity of each generation. Nobody has a document of either.
fn scene() -> (Node, Site, Server) {
    let node = node();
    let site = Site::on(&node);
    let server = site.server();
    site.cli_ok(&["generateminerid", "--name", "pool", "--protocol", "1.0"]);
    site.cli_ok(&["generateminerid", "--name", "old"]);
    site.cli_ok(&["generatevctx", "--name", "old"]);
    (node, site, server)
}

/// Mines a block with the identity. The node must then know it as the last block of the identity's
/// key.
fn mine(node: &Node, server: &Server, alias: &str) {
    let block = match alias {
        "old" => miner_info::mine_coinbase_document(node, server, alias),
        _ => miner_info::mine_from(node, server, alias).block,
    };
    let known = of_node(node);
    let key = miner_id(server, alias);
    assert_eq!(known[&key]["latestBlock"], block.to_string(), "{alias}: {}", node.log());
}

/// The keys of the only miner that the node knows, the current one first.
fn states(node: &Node) -> Vec<(String, String)> {
    let miners = miner_info::states(node);
    assert_eq!(miners.len(), 1, "{miners:#?}");
    miners.into_iter().next().unwrap()
}

/// Asks for a document that no block will ever hold.
fn hand_out(node: &Node, server: &Server, alias: &str) {
    let height = Template::of(node, 1).height();
    server.text(&format!("/opreturn/{alias}/{height}"));
}

#[test]
fn keys_that_nobody_was_shown_are_replaced() {
    for alias in ["pool", "old"] {
        let (node, site, server) = scene();
        site.cli_ok(&["rotateminerid", "--name", alias]);
        assert_eq!(server.text(&format!("/opreturn/{alias}/rotate")), "OK");
        assert_eq!(identity(&site, alias)["exposure"], "kept");
        for _ in 0..2 {
            mine(&node, &server, alias);
        }
        assert_eq!(states(&node), [state(&miner_id(&server, alias), "CURRENT")]);
        assert_all_taken(&node);
    }
}

#[test]
fn keys_that_no_block_has_shown_are_replaced() {
    for alias in ["pool", "old"] {
        let (node, site, server) = scene();
        for _ in 0..2 {
            hand_out(&node, &server, alias);
            site.cli_ok(&["rotateminerid", "--name", alias]);
        }
        mine(&node, &server, alias);
        let first = miner_id(&server, alias);
        // After these blocks, the key has been shown.
        site.cli_ok(&["rotateminerid", "--name", alias]);
        for _ in 0..2 {
            mine(&node, &server, alias);
        }
        let second = miner_id(&server, alias);
        assert_eq!(states(&node), [state(&second, "CURRENT"), state(&first, "ROTATED")]);
        assert_all_taken(&node);
    }
}

#[test]
fn a_second_rotation_before_a_block_has_shown_the_first_is_refused_or_skips_it() {
    for alias in ["pool", "old"] {
        let (node, site, server) = scene();
        mine(&node, &server, alias);
        let first = miner_id(&server, alias);
        site.cli_ok(&["rotateminerid", "--name", alias]);
        let passed_over = miner_id(&server, alias);
        hand_out(&node, &server, alias);
        let refused = server.get(&format!("/opreturn/{alias}/rotate"));
        assert_eq!(refused.status, 409, "{}", refused.body);
        assert!(refused.body.contains("has not been seen in a block yet"), "{}", refused.body);
        let done = site.cli(&["rotateminerid", "--name", alias]);
        assert_eq!((done.code, miner_id(&server, alias)), (1, passed_over.clone()));
        site.cli_ok(&["miner", "rotate", "--name", alias, "--force", "--yes"]);
        for _ in 0..2 {
            mine(&node, &server, alias);
        }
        let current = miner_id(&server, alias);
        assert_eq!(states(&node), [state(&current, "CURRENT"), state(&first, "ROTATED")]);
        assert_all_taken(&node);
    }
}

/// The service still looks up the validity check output, once per tip.
#[test]
fn a_node_that_keeps_no_miner_ids_is_no_trouble_to_an_identity_of_generation_0_2() {
    let node = Node::start_with(&["minerid=0"]);
    node.mine(101);
    let site = Site::on(&node);
    let log = site.data_dir().join("log");
    let server = site.server_logging_to(&log);
    site.cli_ok(&["generateminerid", "--name", "old"]);
    site.cli_ok(&["generatevctx", "--name", "old"]);
    hand_out(&node, &server, "old");
    let first = miner_id(&server, "old");
    for _ in 0..2 {
        node.mine(1);
        thread::sleep(Duration::from_secs(3));
    }
    let log = std::fs::read_to_string(&log).unwrap();
    assert!(!log.contains("cannot be asked"), "{log}");
    // This node cannot tell the service whether a block has shown the key.
    let refused = server.get("/opreturn/old/rotate");
    assert_eq!(refused.status, 409, "{}", refused.body);
    assert!(refused.body.contains("force the rotation"), "{}", refused.body);
    site.cli_ok(&["miner", "rotate", "--name", "old", "--force", "--yes"]);
    let height = Template::of(&node, 1).height();
    let script = server.text(&format!("/opreturn/old/{height}"));
    assert!(String::from_utf8_lossy(&hex::decode(script).unwrap()).contains(&first));
}

/// Nodes ignore the identity of the first block after the rotation. This shows the service that
/// nobody knows the previous key.
#[test]
fn a_rotation_that_was_forced_while_the_node_was_away_costs_a_block_at_most() {
    for alias in ["pool", "old"] {
        let (mut node, site, server) = scene();
        hand_out(&node, &server, alias);
        let deadline = Instant::now() + Duration::from_secs(30);
        while identity(&site, alias)["exposure"] != "handedOut" {
            assert!(Instant::now() < deadline, "{:#}", identity(&site, alias));
            thread::sleep(Duration::from_millis(50));
        }
        node.stop();
        let refused = site.cli(&["rotateminerid", "--name", alias]);
        assert_eq!(refused.code, 1, "{refused:?}");
        assert!(refused.stderr.contains("force the rotation"), "{refused:?}");
        site.cli_ok(&["miner", "rotate", "--name", alias, "--force", "--yes"]);
        assert_eq!(identity(&site, alias)["announced"], json!(["rotation"]));
        node.restart();
        match alias {
            "old" => drop(miner_info::mine_coinbase_document(&node, &server, alias)),
            _ => drop(miner_info::mine_from(&node, &server, alias)),
        }
        let second = miner_id(&server, alias);
        await_acknowledgement(&site, alias);
        mine(&node, &server, alias);
        assert_eq!(states(&node), [state(&second, "CURRENT")]);
    }
}

/// A pool continues to use documents that it got before the rotation.
#[test]
fn an_alarm_is_raised_if_three_own_blocks_do_not_show_a_rotation() {
    let (node, site, server) = scene();
    mine(&node, &server, "old");
    let begun = Template::of(&node, 1);
    let ask = |height: u32| {
        let request =
            json!({ "blockHeight": height, "alias": "old", "coinbase2": begun.coinbase2 });
        let reply = server.post("/coinbase2", request.to_string());
        assert_eq!(reply.status, 200, "{}", reply.body);
        reply.body
    };
    // The block reward is the same at all these heights.
    let before: Vec<_> = (begun.height()..begun.height() + 4).map(ask).collect();
    site.cli_ok(&["rotateminerid", "--name", "old"]);
    let wait_for_own_blocks = |count: usize| {
        let deadline = Instant::now() + Duration::from_secs(30);
        loop {
            let own_blocks = identity(&site, "old")["unseen"]["ownBlocks"].clone();
            if own_blocks.as_array().is_some_and(|blocks| blocks.len() == count) {
                return;
            }
            assert!(Instant::now() < deadline, "{own_blocks} {}", identity(&site, "old"));
            thread::sleep(Duration::from_millis(50));
        }
    };
    let is_alarmed = || {
        let metrics = Metrics::of(server.minerid());
        let alarm = metrics.value(r#"bsv_minerid_unseen_alarm{alias="old"}"#) == 1.0;
        assert_eq!(
            site.cli(&["status"]).stdout.contains("no block was seen to show"),
            alarm,
            "{}",
            metrics.0
        );
        alarm
    };
    // A block that was mined before the service began to look does not count.
    Template::of(&node, 1).mine(&node, &before[0]);
    for (number, coinbase2) in before[1..].iter().enumerate() {
        wait_for_own_blocks(number);
        assert!(!is_alarmed());
        Template::of(&node, 1).mine(&node, coinbase2);
    }
    wait_for_own_blocks(3);
    assert!(is_alarmed());
    mine(&node, &server, "old");
    await_acknowledgement(&site, "old");
    assert!(!is_alarmed());
}
