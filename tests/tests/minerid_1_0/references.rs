//! References to miner-info transactions. The key that the document names signs the reference to
//! it.

use std::thread;
use std::time::{Duration, Instant};

use bsv_tests::known_miners::of_node;
use bsv_tests::{Node, Server, Site, Template, miner_info};
use bsv_tx::{Script, Txid};
use serde_json::json;

use crate::minerid_1_0::scene::{assert_all_taken, await_acknowledgement, miner_id, node};

fn scene() -> (Node, Site, Server) {
    let node = node();
    let site = Site::on(&node);
    let server = site.server();
    site.cli_ok(&["generateminerid", "--name", "pool", "--protocol", "1.0"]);
    miner_info::mine_from(&node, &server, "pool");
    (node, site, server)
}

/// Has the node put the server's document into a transaction of the next block.
fn publish(node: &Node, server: &Server) -> Txid {
    let height = Template::of(node, 1).height();
    let script = server.text(&format!("/opreturn/pool/{height}"));
    miner_info::publish(node, &Script::from_hex(&script).unwrap())
}

fn refer(template: &Template, server: &Server, txid: Txid) -> String {
    let reply = server.post("/coinbase2", template.reference_request("pool", txid).to_string());
    assert_eq!(reply.status, 200, "{}", reply.body);
    reply.body
}

/// Mines a block with a reference. The node must then know it as the last block of this key.
fn mine(node: &Node, server: &Server, txid: Txid, key: &str) {
    let template = miner_info::template_with_all(node);
    let block = template.mine(node, &refer(&template, server, txid));
    let latest = || of_node(node).get(key).map(|known| known["latestBlock"].clone());
    let deadline = Instant::now() + Duration::from_secs(30);
    while latest() != Some(json!(block.to_string())) {
        assert!(Instant::now() < deadline, "{}", node.log());
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_rotation_after_the_first_reference_to_a_document_changes_no_later_reference_to_it() {
    let (node, site, server) = scene();
    let key = miner_id(&server, "pool");
    let txid = publish(&node, &server);
    let template = miner_info::template_with_all(&node);
    let reference = refer(&template, &server, txid);
    site.cli_ok(&["rotateminerid", "--name", "pool"]);
    assert_eq!(refer(&template, &server, txid), reference);
    // A document that only the command line prints does not count as handed out.
    site.cli_ok(&["miner", "script", "--name", "pool", "--height", "7"]);
    drop(server);
    let server = site.server();
    assert_eq!(refer(&template, &server, txid), reference);
    mine(&node, &server, txid, &key);
    miner_info::mine_from(&node, &server, "pool");
    assert_all_taken(&node);
}

#[test]
fn a_rotation_before_the_first_reference_to_a_document_changes_no_reference_to_it() {
    let (node, site, mut server) = scene();
    // A new revocation key does not change which key has signed the document.
    for before in [&[][..], &["rotaterevocationkey"]] {
        let key = miner_id(&server, "pool");
        let txid = publish(&node, &server);
        for command in before.iter().chain(&["rotateminerid"]) {
            site.cli_ok(&[command, "--name", "pool"]);
        }
        drop(server);
        server = site.server();
        mine(&node, &server, txid, &key);
        miner_info::mine_from(&node, &server, "pool");
        await_acknowledgement(&site, "pool");
        assert_all_taken(&node);
    }
}

#[test]
fn a_document_after_a_rotation_is_referred_to_by_the_new_key() {
    let (node, site, server) = scene();
    publish(&node, &server);
    site.cli_ok(&["rotateminerid", "--name", "pool"]);
    let txid = publish(&node, &server);
    mine(&node, &server, txid, &miner_id(&server, "pool"));
    assert_all_taken(&node);
}
