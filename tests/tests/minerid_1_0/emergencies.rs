//! Revoking an identity while something else is announced, without a node, or before anybody knows
//! the identity.

use std::thread;
use std::time::{Duration, Instant};

use bsv_tests::gate::{Gate, Refusal};
use bsv_tests::{Node, Server, Site, miner_info};
use serde_json::json;

use crate::minerid_1_0::scene::{
    assert_all_taken, await_acknowledgement, identity, miner_id, node, state,
};

/// An identity with two keys, both of which blocks have shown.
fn scene() -> (Node, Site, Server, [String; 2]) {
    let node = node();
    let site = Site::on(&node);
    let server = site.server();
    site.cli_ok(&["generateminerid", "--name", "pool", "--protocol", "1.0"]);
    miner_info::mine_from(&node, &server, "pool");
    let first = miner_id(&server, "pool");
    site.cli_ok(&["rotateminerid", "--name", "pool"]);
    miner_info::mine_from(&node, &server, "pool");
    await_acknowledgement(&site, "pool");
    let second = miner_id(&server, "pool");
    (node, site, server, [first, second])
}

fn states(node: &Node) -> Vec<(String, String)> {
    let miners = miner_info::states(node);
    assert_eq!(miners.len(), 1, "{miners:#?}");
    miners.into_iter().next().unwrap()
}

fn await_told(site: &Site) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while identity(site, "pool")["revocationTold"] != json!(true) {
        assert!(Instant::now() < deadline, "{:#}", identity(site, "pool"));
        thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_stolen_key_is_revoked_while_a_rotation_and_a_new_revocation_key_are_announced() {
    let (node, site, server, [first, second]) = scene();
    site.cli_ok(&["rotateminerid", "--name", "pool"]);
    site.cli_ok(&["rotaterevocationkey", "--name", "pool"]);
    let revocation_key = identity(&site, "pool")["revocationKey"].clone();
    site.cli_ok(&["revokemineridpartially", "--yes", "--name", "pool", "--minerid", &second]);
    assert_eq!(identity(&site, "pool")["announced"], json!(["partialRevocation", "revocationKey"]));
    let fourth = miner_id(&server, "pool");
    for _ in 0..4 {
        miner_info::mine_from(&node, &server, "pool");
        thread::sleep(Duration::from_millis(300));
    }
    await_acknowledgement(&site, "pool");
    let expected = [state(&fourth, "CURRENT"), state(&second, "REVOKED"), state(&first, "ROTATED")];
    assert_eq!(states(&node), expected);
    // The new revocation key, which had to wait for the revocation, was announced after it.
    assert_eq!(miner_info::known(&node, &fourth)["revocationKey"], revocation_key);
    assert_all_taken(&node);
}

#[test]
fn all_is_revoked_while_a_rotation_and_a_new_revocation_key_are_announced() {
    let (node, site, server, [first, second]) = scene();
    site.cli_ok(&["rotateminerid", "--name", "pool"]);
    site.cli_ok(&["rotaterevocationkey", "--name", "pool"]);
    site.cli_ok(&["revokemineridcompletely", "--yes", "--name", "pool"]);
    assert_eq!(miner_id(&server, "pool"), second, "the key that nodes know signs");
    miner_info::mine_from(&node, &server, "pool");
    node.mine(1);
    await_acknowledgement(&site, "pool");
    assert_eq!(identity(&site, "pool")["state"], "closed");
    assert_eq!(server.text("/opreturn/pool/isvalid"), "false");
    assert_eq!(states(&node), [state(&second, "REVOKED"), state(&first, "REVOKED")]);
    assert_all_taken(&node);
}

#[test]
fn a_revocation_without_a_node_is_told_as_soon_as_it_answers() {
    let (mut node, site, server, [_, second]) = scene();
    node.stop();
    let command = ["revokemineridpartially", "--yes", "--name", "pool", "--minerid", &second];
    let done = site.cli(&command);
    assert_eq!(done.code, 1);
    assert!(done.stderr.contains("is recorded, but the node was not told"), "{done:?}");
    assert_eq!(identity(&site, "pool")["announced"], json!(["partialRevocation"]));
    node.restart();
    await_told(&site);
    assert_eq!(miner_info::known(&node, &second)["minerIdState"], "REVOKED");
    miner_info::mine_from(&node, &server, "pool");
    await_acknowledgement(&site, "pool");
}

#[test]
fn an_identity_of_generation_0_2_is_revoked_without_a_node_and_spends_its_vctx_later() {
    let mut node = node();
    let site = Site::on(&node);
    let server = site.server();
    site.cli_ok(&["generateminerid", "--name", "old"]);
    site.cli_ok(&["generatevctx", "--name", "old"]);
    let outpoint = identity(&site, "old")["vctx"]["outpoint"].as_str().unwrap().to_owned();
    let (txid, vout) = outpoint.split_once(':').unwrap();
    let vout: u32 = vout.parse().unwrap();
    node.stop();
    let done = site.cli(&["miner", "revoke", "--yes", "--name", "old"]);
    assert_eq!(done.code, 1);
    assert!(done.stderr.contains("is recorded, but the node was not told"), "{done:?}");
    assert_eq!(server.get("/opreturn/old/7").status, 422);
    assert_eq!(server.text("/opreturn/old/isvalid"), "false");
    node.restart();
    let deadline = Instant::now() + Duration::from_secs(30);
    while !node.call("gettxout", json!([txid, vout, true])).is_null() {
        assert!(Instant::now() < deadline, "it is not spent");
        thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_revocation_that_the_network_has_not_got_is_made_again_with_the_fee_that_it_demands_by_now() {
    let mut node = node();
    let gate = Gate::before(&node);
    let mut site = gate.site();
    let server = site.server();
    site.cli_ok(&["generateminerid", "--name", "old"]);
    site.cli_ok(&["generatevctx", "--name", "old"]);
    gate.refuse(Refusal { method: "sendrawtransaction", code: -26, message: "mempool full" });
    assert_eq!(site.cli(&["miner", "revoke", "--yes", "--name", "old"]).code, 1);
    assert_eq!(server.stop(), 0);
    node.restart_with(&["minminingtxfee=0.00001000"]);
    site.move_to(&node);
    let done = site.cli_json(&["miner", "revoke", "--yes", "--name", "old"]);
    let mempool = node.call("getrawmempool", json!([true]));
    let [(txid, entry)] = &mempool.as_object().unwrap().iter().collect::<Vec<_>>()[..] else {
        panic!("{mempool:#} {done:#}");
    };
    // At the rate before, the fee is 20 satoshis.
    assert!(entry["fee"].as_f64().unwrap() > 0.000_001, "{txid} {entry:#}");
}

#[test]
fn an_identity_that_nobody_knows_is_closed_at_once() {
    let node = node();
    let site = Site::on(&node);
    let server = site.server();
    for alias in ["kept", "shown"] {
        site.cli_ok(&["generateminerid", "--name", alias, "--protocol", "1.0"]);
    }
    // A document was handed out, and no block was made with it.
    server.text("/opreturn/shown/7");
    for alias in ["kept", "shown"] {
        site.cli_ok(&["revokemineridcompletely", "--yes", "--name", alias]);
        assert_eq!(identity(&site, alias)["state"], "closed");
        assert_eq!(server.text(&format!("/opreturn/{alias}/isvalid")), "false");
        assert_eq!(server.get(&format!("/opreturn/{alias}/7")).status, 422);
    }
}
