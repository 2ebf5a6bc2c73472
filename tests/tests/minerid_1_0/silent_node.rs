//! Rotations while nobody tells which keys blocks have shown.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use bsv_tests::gate::{Gate, Hold};
use bsv_tests::{Node, Server, Site, Template, identities, miner_info, vectors};

use crate::minerid_1_0::scene::{assert_all_taken, identity, miner_id, node, state};

/// A service behind a gate, with an identity whose key a block has shown.
fn scene() -> (Node, Gate, Site, Server) {
    let node = node();
    let gate = Gate::before(&node);
    let site = gate.site();
    let server = site.server();
    site.cli_ok(&["generateminerid", "--name", "old"]);
    site.cli_ok(&["generatevctx", "--name", "old"]);
    miner_info::mine_coinbase_document(&node, &server, "old");
    await_known(&site, "old");
    (node, gate, site, server)
}

fn await_known(site: &Site, alias: &str) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while identity(site, alias)["exposure"] != "known" {
        assert!(Instant::now() < deadline, "{:#}", identity(site, alias));
        thread::sleep(Duration::from_millis(50));
    }
}

fn hand_out(node: &Node, server: &Server, alias: &str) {
    let height = Template::of(node, 1).height();
    server.text(&format!("/opreturn/{alias}/{height}"));
}

fn rotate(server: &Server, alias: &str) -> u16 {
    server.post(&format!("/opreturn/{alias}/rotate"), "").status
}

/// Checks that nodes take two blocks with the current key, and know these keys afterwards.
fn assert_taken(node: &Node, server: &Server, alias: &str, rotated: &[&str]) {
    for _ in 0..2 {
        miner_info::mine_coinbase_document(node, server, alias);
    }
    let rotated = rotated.iter().map(|key| state(key, "ROTATED"));
    let expected: Vec<_> =
        std::iter::once(state(&miner_id(server, alias), "CURRENT")).chain(rotated).collect();
    assert_eq!(miner_info::states(node), [expected]);
    assert_all_taken(node);
}

#[test]
fn a_key_that_no_block_has_shown_is_not_rotated_while_the_node_hangs() {
    let (node, gate, site, server) = scene();
    let first = miner_id(&server, "old");
    gate.shut("getmineridinfo", Hold::Call);
    // The record says that a block has shown this key.
    assert_eq!(rotate(&server, "old"), 200);
    let second = miner_id(&server, "old");
    hand_out(&node, &server, "old");
    let refused = server.post("/opreturn/old/rotate", "");
    assert_eq!(refused.status, 409, "{}", refused.body);
    assert!(refused.body.contains("Rotate again when the node answers"), "{}", refused.body);
    assert_eq!(miner_id(&server, "old"), second);
    site.cli_ok(&["miner", "rotate", "--name", "old", "--force", "--yes"]);
    gate.cut();
    assert_taken(&node, &server, "old", &[&first]);
}

#[test]
fn a_key_of_which_nobody_has_a_document_is_skipped_while_the_node_hangs() {
    let (node, gate, _site, server) = scene();
    let first = miner_id(&server, "old");
    gate.shut("getmineridinfo", Hold::Call);
    assert_eq!([rotate(&server, "old"), rotate(&server, "old")], [200, 200]);
    gate.cut();
    assert_taken(&node, &server, "old", &[&first]);
}

#[test]
fn a_new_revocation_key_makes_no_key_one_of_which_nobody_has_a_document() {
    let node = node();
    let gate = Gate::before(&node);
    let site = gate.site();
    let server = site.server();
    site.cli_ok(&["generateminerid", "--name", "pool", "--protocol", "1.0"]);
    hand_out(&node, &server, "pool");
    site.cli_ok(&["rotaterevocationkey", "--name", "pool"]);
    assert_eq!(identity(&site, "pool")["exposure"], "handedOut");
    gate.shut("getmineridinfo", Hold::Call);
    let refused = server.post("/opreturn/pool/rotate", "");
    assert_eq!(refused.status, 409, "{}", refused.body);
    assert!(refused.body.contains("Rotate again when the node answers"), "{}", refused.body);
    gate.cut();
}

#[test]
fn a_forced_rotation_begins_anew_where_the_node_knows_no_key() {
    let first_node = node();
    let mut site = Site::new();
    let alias = import(&site);
    let server = site.server();
    miner_info::mine_coinbase_document(&first_node, &server, &alias);
    assert_eq!(server.stop(), 0);
    site.move_to(&first_node);
    let server = site.server();
    await_known(&site, &alias);
    assert_eq!(server.stop(), 0);
    let node = node();
    site.move_to(&node);
    let server = site.server();
    let before = miner_id(&server, &alias);
    let refused = server.post(&format!("/opreturn/{alias}/rotate"), "");
    assert_eq!(refused.status, 409, "{}", refused.body);
    assert!(refused.body.contains("knows no key of alias"), "{}", refused.body);
    assert_eq!(miner_id(&server, &alias), before);
    site.cli_ok(&["miner", "rotate", "--name", &alias, "--force", "--yes"]);
    assert_taken(&node, &server, &alias, &[]);
    await_known(&site, &alias);
}

#[test]
fn a_node_that_lacks_blocks_that_were_read_gives_no_identity_up() {
    let first_node = node();
    first_node.mine(30);
    let mut site = Site::on(&first_node);
    let old = import(&site);
    site.cli_ok(&["generateminerid", "--name", "new", "--protocol", "1.0"]);
    let server = site.server();
    miner_info::mine_coinbase_document(&first_node, &server, &old);
    miner_info::mine_from(&first_node, &server, "new");
    await_known(&site, &old);
    await_known(&site, "new");
    assert_eq!(server.stop(), 0);
    // Like the first node with an old copy of its data, and without peers.
    let node = node();
    site.move_to(&node);
    let server = site.server();
    for alias in [&old, "new"] {
        // The record says that a block has shown the key.
        assert_eq!(rotate(&server, alias), 200, "{alias}");
        assert_eq!(identity(&site, alias)["exposure"], "known", "{alias}");
    }
}

/// An imported alias of generation 0.2 with one key.
fn import(site: &Site) -> String {
    let home = vectors::write_home(&vectors::minerid_0_2(), site.data_dir());
    site.cli_ok(&["importminerid", "--from", home.to_str().unwrap()]);
    let mut histories = identities::histories(site).into_iter();
    let (alias, _) = histories.find(|(_, keys)| keys.len() == 1).unwrap();
    alias
}

#[test]
fn a_forced_rotation_mends_an_alias_that_was_rotated_twice_without_a_node() {
    let node = node();
    let mut site = Site::new();
    let alias = import(&site);
    let log = site.data_dir().join("log");
    let server = site.server_logging_to(&log);
    let first = miner_id(&server, &alias);
    miner_info::mine_coinbase_document(&node, &server, &alias);
    for _ in 0..2 {
        assert_eq!(rotate(&server, &alias), 200);
        hand_out(&node, &server, &alias);
    }
    assert!(fs::read_to_string(&log).unwrap().contains("no node tells which keys"));
    let status = site.cli(&["status"]).stdout;
    assert!(status.contains("nothing can be known of what blocks show"), "{status}");
    assert_eq!(server.stop(), 0);
    site.move_to(&node);
    let server = site.server();
    assert_eq!(rotate(&server, &alias), 409);
    site.cli_ok(&["miner", "rotate", "--name", &alias, "--force", "--yes"]);
    assert_taken(&node, &server, &alias, &[&first]);
}

#[test]
fn an_imported_identity_that_no_block_has_shown_begins_with_its_next_key() {
    let node = node();
    let site = Site::on(&node);
    let alias = import(&site);
    let server = site.server();
    assert_eq!(identity(&site, &alias)["exposure"], "handedOut");
    assert_eq!(rotate(&server, &alias), 200);
    assert_taken(&node, &server, &alias, &[]);
    await_known(&site, &alias);
}
