//! Blocks that have shown an announcement and then leave the main chain.

use std::thread;
use std::time::{Duration, Instant};

use bsv_tests::rival::{Rival, height, tip};
use bsv_tests::{Node, Server, Site, Template, miner_info};
use serde_json::{Value, json};

use crate::minerid_1_0::scene::{await_acknowledgement, identity, miner_id, node, state};

/// Mines a block with the server's document, and gives it to another node.
fn mine_for_both(node: &Node, server: &Server, other: &Node) {
    let block = miner_info::mine_from(node, server, "pool").block;
    let block = node.call("getblock", json!([block.to_string(), false]));
    other.call("submitblock", json!([block]));
    assert_eq!(tip(other), tip(node));
}

/// Waits until the command line shows an identity for which this is so.
fn await_identity(site: &Site, alias: &str, is_so: impl Fn(&Value) -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !is_so(&identity(site, alias)) {
        assert!(Instant::now() < deadline, "{:#}", identity(site, alias));
        thread::sleep(Duration::from_millis(50));
    }
}

/// Waits until the service announces exactly this.
fn await_announced(site: &Site, alias: &str, announced: &Value) {
    await_identity(site, alias, |identity| identity["announced"] == *announced);
}

/// The keys that another node knows, which has never seen the lost blocks.
fn states(other: &Node) -> Vec<(String, String)> {
    let miners = miner_info::states(other);
    assert_eq!(miners.len(), 1, "{miners:#?}");
    miners.into_iter().next().unwrap()
}

/// An identity that both nodes know.
fn scene() -> (Node, Site, Server, String) {
    let node = node();
    let site = Site::on(&node);
    let server = site.server();
    site.cli_ok(&["generateminerid", "--name", "pool", "--protocol", "1.0"]);
    miner_info::mine_from(&node, &server, "pool");
    let first = miner_id(&server, "pool");
    (node, site, server, first)
}

#[test]
fn a_rotation_is_announced_again_until_a_block_of_the_main_chain_shows_it() {
    let (node, site, server, first) = scene();
    let rival = Rival::of(&node);
    site.cli_ok(&["rotateminerid", "--name", "pool"]);
    let second = miner_id(&server, "pool");
    miner_info::mine_from(&node, &server, "pool");
    await_acknowledgement(&site, "pool");
    let seen_in = identity(&site, "pool")["seenIn"].clone();
    assert_eq!(seen_in.as_array().unwrap().last().unwrap()["blockHash"], tip(&node));
    assert_eq!(identity(&site, "pool")["prevMinerId"], json!(second));

    rival.outgrow(&node);
    rival.show_to(&node);
    await_announced(&site, "pool", &json!(["rotation"]));
    assert_eq!(identity(&site, "pool")["prevMinerId"], json!(first));
    drop(server);
    let server = site.server();
    assert_eq!(identity(&site, "pool")["announced"], json!(["rotation"]));
    // The service sees that its block is in the main chain, and continues from there.
    for _ in 0..2 {
        mine_for_both(&node, &server, &rival.node);
        assert_eq!(states(&rival.node), [state(&second, "CURRENT"), state(&first, "ROTATED")]);
        await_acknowledgement(&site, "pool");
    }
    assert_eq!(identity(&site, "pool")["prevMinerId"], json!(second));
}

#[test]
fn a_revocation_key_is_announced_again_until_a_block_of_the_main_chain_shows_it() {
    let (node, site, server, first) = scene();
    let rival = Rival::of(&node);
    site.cli_ok(&["rotaterevocationkey", "--name", "pool"]);
    let key = identity(&site, "pool")["revocationKey"].clone();
    miner_info::mine_from(&node, &server, "pool");
    await_acknowledgement(&site, "pool");

    rival.outgrow(&node);
    rival.show_to(&node);
    await_announced(&site, "pool", &json!(["revocationKey"]));
    for _ in 0..2 {
        mine_for_both(&node, &server, &rival.node);
        let known = miner_info::known(&rival.node, &first);
        assert_eq!((&known["revocationKey"], &known["minerIdState"]), (&key, &json!("CURRENT")));
        await_acknowledgement(&site, "pool");
    }
    let latest = &bsv_tests::known_miners::of_node(&rival.node)[&first]["latestBlock"];
    assert_eq!(*latest, tip(&node), "{}", rival.node.log());
}

/// In generation 0.2, documents repeat the last rotation anyway. The next rotation has to wait
/// until others know the last one.
#[test]
fn a_rotation_of_generation_0_2_waits_until_a_block_of_the_main_chain_shows_the_one_before() {
    let node = node();
    let site = Site::on(&node);
    let server = site.server();
    site.cli_ok(&["generateminerid", "--name", "old"]);
    site.cli_ok(&["generatevctx", "--name", "old"]);
    let mine = |other: &Node| {
        let block = miner_info::mine_coinbase_document(&node, &server, "old");
        let block = node.call("getblock", json!([block.to_string(), false]));
        other.call("submitblock", json!([block]));
        assert_eq!(tip(other), tip(&node));
    };
    miner_info::mine_coinbase_document(&node, &server, "old");
    let first = miner_id(&server, "old");
    let rival = Rival::of(&node);
    site.cli_ok(&["rotateminerid", "--name", "old"]);
    let second = miner_id(&server, "old");
    assert_eq!(identity(&site, "old")["announced"], json!(["rotation"]));
    miner_info::mine_coinbase_document(&node, &server, "old");
    await_acknowledgement(&site, "old");

    rival.outgrow(&node);
    rival.show_to(&node);
    await_announced(&site, "old", &json!(["rotation"]));
    let refused = site.cli(&["rotateminerid", "--name", "old"]);
    assert_eq!(refused.code, 1, "{}", refused.stdout);
    assert!(refused.stderr.contains("rotation"), "{}", refused.stderr);
    mine(&rival.node);
    await_acknowledgement(&site, "old");
    site.cli_ok(&["rotateminerid", "--name", "old"]);
    mine(&rival.node);
    let third = miner_id(&server, "old");
    assert_eq!(
        states(&rival.node),
        [state(&third, "CURRENT"), state(&second, "ROTATED"), state(&first, "ROTATED")]
    );
}

/// Others have never seen the key of the lost rotation.
#[test]
fn a_rotation_of_generation_0_2_after_one_that_is_lost_follows_the_key_before() {
    let node = node();
    let site = Site::on(&node);
    let server = site.server();
    site.cli_ok(&["generateminerid", "--name", "old"]);
    site.cli_ok(&["generatevctx", "--name", "old"]);
    let mine = || miner_info::mine_coinbase_document(&node, &server, "old");
    mine();
    let first = miner_id(&server, "old");
    let mut rival = Rival::of(&node);
    site.cli_ok(&["rotateminerid", "--name", "old"]);
    mine();
    await_acknowledgement(&site, "old");
    site.cli_ok(&["rotateminerid", "--name", "old"]);
    let third = miner_id(&server, "old");
    rival.outgrow(&node);
    rival.show_to(&node);
    let is_rotation = |seen: &Value| seen["shown"] == "rotation";
    await_identity(&site, "old", |identity| {
        !identity["seenIn"].as_array().unwrap().iter().any(is_rotation)
    });
    for _ in 0..2 {
        mine();
        rival.follow(&node);
        let expected = [state(&third, "CURRENT"), state(&first, "ROTATED")];
        assert_eq!(states(&rival.node), expected, "{}", rival.node.log());
        await_acknowledgement(&site, "old");
    }
}

/// The service's own node knows the rotated key, and other nodes do not.
#[test]
fn an_upgrade_after_a_lost_rotation_announces_it_again() {
    let node = node();
    let site = Site::on(&node);
    let server = site.server();
    site.cli_ok(&["generateminerid", "--name", "pool"]);
    site.cli_ok(&["generatevctx", "--name", "pool"]);
    miner_info::mine_coinbase_document(&node, &server, "pool");
    let first = miner_id(&server, "pool");
    let rival = Rival::of(&node);
    site.cli_ok(&["rotateminerid", "--name", "pool"]);
    let second = miner_id(&server, "pool");
    miner_info::mine_coinbase_document(&node, &server, "pool");
    await_acknowledgement(&site, "pool");
    rival.outgrow(&node);
    rival.show_to(&node);
    await_announced(&site, "pool", &json!(["rotation"]));
    site.cli_ok(&["upgrademinerid", "--yes", "--name", "pool"]);
    node.mine(1);
    let foreign = node.call("getblock", json!([tip(&node), false]));
    rival.node.call("submitblock", json!([foreign]));
    // Waits until the service has seen that block, whatever it concludes.
    let deadline = Instant::now() + Duration::from_secs(30);
    let announced = json!(["rotation", "revocationKey"]);
    let has_looked = |identity: &Value| {
        let unseen = |name: &str| identity["unseen"][name].as_u64().unwrap_or_default();
        unseen("sinceHeight") + unseen("blocks") == height(&node)
            || identity["announced"] != announced
    };
    while !has_looked(&identity(&site, "pool")) {
        assert!(Instant::now() < deadline, "{:#}", identity(&site, "pool"));
        thread::sleep(Duration::from_millis(50));
    }
    for _ in 0..3 {
        mine_for_both(&node, &server, &rival.node);
        assert_eq!(states(&rival.node), [state(&second, "CURRENT"), state(&first, "ROTATED")]);
    }
    await_acknowledgement(&site, "pool");
}

/// Blocks with two announcements, one after the other, are lost.
#[test]
fn announcements_after_a_lost_block_continue_from_what_the_main_chain_shows() {
    let (node, site, server, first) = scene();
    let rival = Rival::of(&node);
    for command in ["rotateminerid", "rotaterevocationkey"] {
        site.cli_ok(&[command, "--name", "pool"]);
        miner_info::mine_from(&node, &server, "pool");
        await_acknowledgement(&site, "pool");
    }
    site.cli_ok(&["rotaterevocationkey", "--name", "pool"]);
    let second = miner_id(&server, "pool");
    let key = identity(&site, "pool")["revocationKey"].clone();
    rival.outgrow(&node);
    rival.show_to(&node);
    await_announced(&site, "pool", &json!(["rotation", "revocationKey"]));
    for _ in 0..4 {
        mine_for_both(&node, &server, &rival.node);
        thread::sleep(Duration::from_millis(500));
    }
    await_acknowledgement(&site, "pool");
    assert_eq!(states(&rival.node), [state(&second, "CURRENT"), state(&first, "ROTATED")]);
    assert_ne!(miner_info::known(&rival.node, &second)["revocationKey"], Value::Null);
    assert_eq!(miner_info::known(&rival.node, &second)["revocationKey"], key);
}

/// The node goes on to believe the lost blocks, and refuses what others accept after them.
#[test]
fn a_forced_rotation_follows_the_key_in_the_main_chain_and_not_one_that_only_the_node_believes() {
    let (node, site, server, first) = scene();
    let rival = Rival::of(&node);
    site.cli_ok(&["rotaterevocationkey", "--name", "pool"]);
    miner_info::mine_from(&node, &server, "pool");
    site.cli_ok(&["rotateminerid", "--name", "pool"]);
    let lost = miner_id(&server, "pool");
    miner_info::mine_from(&node, &server, "pool");
    await_acknowledgement(&site, "pool");
    let rotate = || site.cli_ok(&["miner", "rotate", "--force", "--yes", "--name", "pool"]);
    rotate();
    let shown = miner_id(&server, "pool");
    rival.outgrow(&node);
    rival.show_to(&node);
    await_announced(&site, "pool", &json!(["rotation", "revocationKey"]));
    mine_for_both(&node, &server, &rival.node);
    await_acknowledgement(&site, "pool");
    assert_eq!(miner_info::known(&node, &lost)["minerIdState"], "CURRENT");

    rotate();
    assert_eq!(identity(&site, "pool")["prevMinerId"], json!(shown));
    mine_for_both(&node, &server, &rival.node);
    let last = miner_id(&server, "pool");
    let rotated = [&shown, &first].map(|key| state(key, "ROTATED"));
    assert_eq!(states(&rival.node), [&[state(&last, "CURRENT")][..], &rotated].concat());
}

#[test]
fn a_complete_revocation_is_announced_again_until_a_block_of_the_main_chain_shows_it() {
    let (node, site, server, first) = scene();
    let rival = Rival::of(&node);
    site.cli_ok(&["revokemineridcompletely", "--yes", "--name", "pool"]);
    miner_info::mine_from(&node, &server, "pool");
    await_acknowledgement(&site, "pool");
    assert_eq!(identity(&site, "pool")["state"], "closed");

    rival.outgrow(&node);
    rival.show_to(&node);
    await_announced(&site, "pool", &json!(["completeRevocation"]));
    // Another miner's block in between changes nothing.
    node.mine(1);
    let height = Template::of(&node, 1).height();
    let foreign = node.call("getblock", json!([tip(&node), false]));
    rival.node.call("submitblock", json!([foreign]));
    assert!(height > 0);
    mine_for_both(&node, &server, &rival.node);
    assert_eq!(states(&rival.node), [state(&first, "REVOKED")]);
    node.mine(1);
    await_acknowledgement(&site, "pool");
    assert_eq!(identity(&site, "pool")["state"], "closed");
}

/// Documents have no previous key, since others know none.
#[test]
fn an_identity_that_only_lost_blocks_have_shown_begins_with_its_current_key() {
    for (alias, is_rotation_mined) in [("pool", false), ("pool", true), ("old", true)] {
        let node = node();
        let site = Site::on(&node);
        let server = site.server();
        match alias {
            "old" => {
                site.cli_ok(&["generateminerid", "--name", "old"]);
                site.cli_ok(&["generatevctx", "--name", "old"]);
            }
            _ => drop(site.cli_ok(&["generateminerid", "--name", "pool", "--protocol", "1.0"])),
        }
        let mut rival = Rival::of(&node);
        let mine = || match alias {
            "old" => drop(miner_info::mine_coinbase_document(&node, &server, alias)),
            _ => drop(miner_info::mine_from(&node, &server, alias)),
        };
        mine();
        await_identity(&site, alias, |identity| identity["exposure"] == "known");
        assert_eq!(identity(&site, alias)["seenIn"][0]["shown"], "identity");
        site.cli_ok(&["rotateminerid", "--name", alias]);
        let second = miner_id(&server, alias);
        if is_rotation_mined {
            mine();
            await_acknowledgement(&site, alias);
        }

        rival.outgrow(&node);
        rival.show_to(&node);
        await_identity(&site, alias, |identity| identity["exposure"] == "handedOut");
        for _ in 0..2 {
            mine();
            rival.follow(&node);
            let expected = [state(&second, "CURRENT")];
            assert_eq!(states(&rival.node), expected, "{alias} {}", rival.node.log());
        }
        await_identity(&site, alias, |identity| identity["exposure"] == "known");
        site.cli_ok(&["rotateminerid", "--name", alias]);
        mine();
        rival.follow(&node);
        let third = miner_id(&server, alias);
        let expected = [state(&third, "CURRENT"), state(&second, "ROTATED")];
        assert_eq!(states(&rival.node), expected, "{alias} {}", rival.node.log());
    }
}

/// Only lost blocks have shown an identity that was then revoked back to a key. Its documents begin
/// with the new key at once, since others know none of the keys before it.
#[test]
fn a_revocation_back_to_a_key_that_only_lost_blocks_have_shown_begins_with_the_new_key() {
    let node = node();
    let site = Site::on(&node);
    let server = site.server();
    site.cli_ok(&["generateminerid", "--name", "pool", "--protocol", "1.0"]);
    let mut rival = Rival::of(&node);
    miner_info::mine_from(&node, &server, "pool");
    let first = miner_id(&server, "pool");
    await_identity(&site, "pool", |identity| identity["exposure"] == "known");
    site.cli_ok(&["rotateminerid", "--name", "pool"]);
    miner_info::mine_from(&node, &server, "pool");
    await_acknowledgement(&site, "pool");
    rival.outgrow(&node);
    rival.show_to(&node);
    await_identity(&site, "pool", |identity| identity["exposure"] == "handedOut");

    site.cli_ok(&["miner", "revoke", "--name", "pool", "--back-to", &first, "--yes"]);
    let third = miner_id(&server, "pool");
    assert_eq!(identity(&site, "pool")["prevMinerId"], json!(third));
    miner_info::mine_from(&node, &server, "pool");
    rival.follow(&node);
    let expected = [state(&third, "CURRENT")];
    assert_eq!(states(&rival.node), expected, "{}", rival.node.log());
}
