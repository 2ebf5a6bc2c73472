//! Miner identities in blocks that a real node accepts and reads.

use bsv_minerid::formats::{Document, IdentityScript};
use bsv_tests::{Node, Server, Site, Template, miner_info};
use bsv_tx::{Script, TxOut};
use serde_json::{Value, json};

/// Mines a block with a coinbase transaction from `POST /coinbase2`, and returns its document.
fn mine_with_identity(node: &Node, server: &Server, alias: &str, outputs: usize) -> Document {
    let template = Template::of(node, outputs);
    let request = template.coinbase2_request(node, alias).to_string();
    let reply = server.post("/coinbase2", request);
    assert_eq!(reply.status, 200, "{}", reply.body);
    template.mine(node, &reply.body);

    let coinbase = template.coinbase(&reply.body);
    let before = template.coinbase(&template.coinbase2);
    let (identity, others) = coinbase.outputs.split_last().unwrap();
    assert_eq!((others, &coinbase.inputs), (before.outputs.as_slice(), &before.inputs));
    assert_eq!(identity, &TxOut { satoshis: 0, locking_script: identity.locking_script.clone() });

    let script = IdentityScript::parse(&identity.locking_script).unwrap();
    let document = Document::from_json(std::str::from_utf8(&script.document).unwrap()).unwrap();
    assert_eq!(document.height, template.height());
    let extensions = &document.extensions;
    assert!(extensions.block_bind.is_some() && extensions.block_info.is_some());
    assert!(extensions.fee_spec.is_some() && extensions.miner_params.is_some());
    document
}

/// The node's facts about its only miner.
fn known_miner(node: &Node) -> Value {
    let dump = node.call("dumpminerids", json!([]));
    let miners = dump["miners"].as_array().unwrap();
    assert_eq!(miners.len(), 1, "{dump:#}");
    miners[0].clone()
}

#[test]
fn a_node_lists_the_identity_of_a_block_and_its_successor_after_a_rotation() {
    let node = Node::start();
    node.mine(101);
    let site = Site::on(&node);
    let server = site.server();
    site.cli_ok(&["generateminerid", "--name", "pool"]);
    site.cli_ok(&["config", "--name", "pool", "name=Test \u{7f}\t/ é \"Pool\"", "email=a@b.c"]);
    site.cli_ok(&["generatevctx", "--name", "pool"]);
    let first = server.text("/minerid/pool");
    for (outputs, transactions) in [(1, 0), (3, 5)] {
        let address = node.call("getnewaddress", json!([]));
        for _ in 0..transactions {
            node.call("sendtoaddress", json!([address, 1]));
        }
        let document = mine_with_identity(&node, &server, "pool", outputs);
        assert_eq!(document.miner_id.to_string(), first);
        let vctx = json!([document.vctx.txid.to_string(), document.vctx.vout, false]);
        assert_ne!(node.call("gettxout", vctx), Value::Null, "the VCTx is real and unspent");
    }
    let miner = known_miner(&node);
    assert_eq!(miner["name"], "Test \u{7f}\t/ é \"Pool\"");
    assert_eq!(miner["numrecentblocks"], "2/2016");
    assert_eq!(miner["minerids"][0]["minerid"], first);
    assert_eq!(miner["minerids"][0]["state"], "CURRENT");

    assert_eq!(server.text("/opreturn/pool/rotate"), "OK");
    let second = server.text("/minerid/pool");
    assert_ne!(first, second);
    let document = mine_with_identity(&node, &server, "pool", 2);
    assert_eq!(document.previous_miner_id.to_string(), first);

    let miner = known_miner(&node);
    assert_eq!(miner["numrecentblocks"], "3/2016");
    let ids = miner["minerids"].as_array().unwrap();
    assert_eq!((&ids[0]["minerid"], &ids[0]["state"]), (&json!(second), &json!("CURRENT")));
    assert_eq!((&ids[1]["minerid"], &ids[1]["state"]), (&json!(first), &json!("ROTATED")));
    assert_eq!(ids[1]["nextminerid"], second);
    assert!(!node.log().contains("Invalid MinerInfo"), "{}", node.log());
}

/// Mines the next block with a tag after the extranonce and with the identity of `alias`, which is
/// "old" for generation 0.2 and "new" for 1.0. Answers its height.
fn mine_with_tag(node: &Node, server: &Server, alias: &str, tag: &[u8]) -> u32 {
    let (template, request) = if alias == "old" {
        let template = miner_info::template_with_all(node).with_tag(tag);
        let request = template.coinbase2_request(node, alias);
        (template, request)
    } else {
        let height = Template::of(node, 1).height();
        let script = server.text(&format!("/opreturn/{alias}/{height}"));
        let txid = miner_info::publish(node, &Script::from_hex(&script).unwrap());
        let template = miner_info::template_with_all(node).with_tag(tag);
        let request = template.reference_request(alias, txid);
        (template, request)
    };
    let reply = server.post("/coinbase2", request.to_string());
    assert_eq!(reply.status, 200, "{}", reply.body);
    template.mine(node, &reply.body);

    let coinbase = template.coinbase(&reply.body);
    assert!(coinbase.inputs[0].unlocking_script.as_bytes().ends_with(tag));
    let before = template.coinbase(&template.coinbase2);
    assert_eq!(coinbase.inputs, before.inputs);
    assert_eq!(coinbase.outputs[..coinbase.outputs.len() - 1], before.outputs);
    template.height()
}

#[test]
fn a_tag_after_the_extranonce_stays_and_enters_no_block_binding() {
    let node = Node::start();
    node.mine(101);
    miner_info::fund(&node);
    let site = Site::on(&node);
    let server = site.server();
    site.cli_ok(&["miner", "create", "--name", "old"]);
    site.cli_ok(&["miner", "vctx", "--name", "old"]);
    site.cli_ok(&["miner", "create", "--name", "new", "--protocol", "1.0"]);
    for tag in [&b"/a pool/"[..], &[0], &[0x2f; 80]] {
        for alias in ["old", "new"] {
            let height = mine_with_tag(&node, &server, alias, tag).to_string();
            // The verifier computes the modified Merkle root from the block.
            let report = site.cli_json(&["miner", "verify", "--height", &height]);
            assert_eq!(report["verdict"], "valid", "{report:#}");
            let mut checks = report["outputs"][0]["checks"].as_array().unwrap().iter();
            let binding = checks.find(|check| check["check"] == "block-binding").unwrap();
            assert_eq!(binding["outcome"], "holds", "{report:#}");
            let known = miner_info::known(&node, &server.text(&format!("/minerid/{alias}")));
            assert_eq!(known["minerIdState"], "CURRENT", "{known:#}");
        }
    }
    assert!(!node.log().contains("Invalid MinerInfo"), "{}", node.log());
    let dump = node.call("dumpminerids", json!([]));
    let blocks = dump["miners"].as_array().unwrap().iter().map(|miner| &miner["numrecentblocks"]);
    assert_eq!(blocks.collect::<Vec<_>>(), ["3/2016", "3/2016"]);
}
