//! What a node believes of an identity after each of its changes.

use bsv_tests::{Node, Server, Site, miner_info};
use serde_json::json;

use crate::scene::{assert_all_taken, await_acknowledgement, identity, miner_id, node, state};

/// The keys that the node knows of its one miner, the current one first.
fn states(node: &Node) -> Vec<(String, String)> {
    let miners = miner_info::states(node);
    assert_eq!(miners.len(), 1, "{miners:#?}");
    miners.into_iter().next().unwrap()
}

fn mine(node: &Node, server: &Server) {
    miner_info::mine_from(node, server, "pool");
}

/// Twelve blocks: a first id, which continues, a rotation, a roll of the revocation key, a block that
/// is given up for another, both at once, data, and a partial revocation.
#[test]
fn a_node_follows_an_identity_through_all_its_changes() {
    let node = node();
    let site = Site::on(&node);
    let server = site.server();
    site.cli_ok(&["generateminerid", "--name", "pool", "--protocol", "1.0"]);
    site.cli_ok(&["config", "--name", "pool", "name=Pool \"é\" \u{7f}"]);
    let first = miner_id(&server, "pool");
    let first_revocation_key = identity(&site, "pool")["revocationKey"].clone();

    mine(&node, &server);
    mine(&node, &server);
    assert_eq!(states(&node), [state(&first, "CURRENT")]);
    assert_eq!(miner_info::known(&node, &first)["revocationKey"], first_revocation_key);

    // A rotation is announced in one block, and once more in the next.
    assert_eq!(server.text("/opreturn/pool/rotate"), "OK");
    let second = miner_id(&server, "pool");
    assert_eq!(identity(&site, "pool")["announced"], json!(["rotation"]));
    let refused = server.get("/opreturn/pool/rotate");
    assert_eq!(refused.status, 409, "{}", refused.body);
    let expected = "The rotation of alias \"pool\" has not been seen in a block yet: until then nothing else can be announced";
    assert_eq!(refused.body, expected);
    let refused = site.cli(&["rotateminerid", "--name", "pool"]);
    assert_eq!((refused.code, refused.stderr.contains("has not been seen")), (1, true));
    mine(&node, &server);
    assert_eq!(states(&node), [state(&second, "CURRENT"), state(&first, "ROTATED")]);
    assert_eq!(miner_info::known(&node, &second)["prevMinerId"], json!(first));
    await_acknowledgement(&site, "pool");
    mine(&node, &server);
    assert_eq!(miner_info::known(&node, &second)["prevMinerId"], json!(second));

    site.cli_ok(&["rotaterevocationkey", "--name", "pool"]);
    let second_revocation_key = identity(&site, "pool")["revocationKey"].clone();
    mine(&node, &server);
    let known = miner_info::known(&node, &second);
    assert_eq!(known["revocationKey"], second_revocation_key);
    assert_eq!(known["prevRevocationKey"], first_revocation_key);
    await_acknowledgement(&site, "pool");

    // The block that showed the new revocation key leaves the chain, and another takes its place.
    let tip = node.call("getbestblockhash", json!([]));
    node.call("invalidateblock", json!([tip]));
    node.mine(2);
    mine(&node, &server);
    let known = miner_info::known(&node, &second);
    assert_eq!(known["prevRevocationKey"], second_revocation_key);

    // Both at once.
    site.cli_ok(&["rotateminerid", "--name", "pool"]);
    site.cli_ok(&["rotaterevocationkey", "--name", "pool"]);
    let third = miner_id(&server, "pool");
    mine(&node, &server);
    assert_eq!(states(&node)[0], state(&third, "CURRENT"));
    let revocation_key = identity(&site, "pool")["revocationKey"].clone();
    assert_eq!(miner_info::known(&node, &third)["revocationKey"], revocation_key);
    await_acknowledgement(&site, "pool");
    mine(&node, &server);

    mine_with_data(&node, &site, &server);

    // A partial revocation leaves the keys before the compromised one as they were.
    site.cli_ok(&["revokemineridpartially", "--name", "pool", "--minerid", &third]);
    let fourth = miner_id(&server, "pool");
    assert_eq!(miner_info::known(&node, &third)["minerIdState"], "REVOKED");
    mine(&node, &server);
    let after = states(&node);
    assert_eq!(after[0], state(&fourth, "CURRENT"));
    for expected in [state(&third, "REVOKED"), state(&second, "ROTATED"), state(&first, "ROTATED")]
    {
        assert!(after.contains(&expected), "{after:#?}");
    }
    await_acknowledgement(&site, "pool");
    mine(&node, &server);
    assert_eq!(states(&node), after);
    assert_all_taken(&node);
}

/// Data in a transaction of its own, to which the document refers.
fn mine_with_data(node: &Node, site: &Site, server: &Server) {
    let file = site.data_dir().join("data.json");
    let data = r#"{"dataRefs":{"refs":[{"brfcIds":["62b21572ca46"],"data":{"62b21572ca46":{"alpha":1}},"vout":0}]}}"#;
    std::fs::write(&file, data).unwrap();
    site.cli_ok(&["datarefs", "--name", "pool", file.to_str().unwrap()]);
    let scripts = server.text("/datarefs/pool/opreturns");
    let scripts: Vec<String> = serde_json::from_str(&scripts).unwrap();
    let txid = miner_info::publish_data(node, &scripts);
    let height = bsv_tests::Template::of(node, 1).height();
    let path = format!("/opreturn/pool/{height}/{txid}");
    let head = server.request("HEAD", &path, b"");
    assert_eq!(head.status, 200);
    let without = server.text(&format!("/opreturn/pool/{height}"));
    let script = server.text(&path);
    assert_ne!(script, without);
    assert_eq!(server.text(&format!("/opreturn/pool/{height}")), script);
    miner_info::mine_from(node, server, "pool");
    let found = node.call("datarefindexdump", json!([]));
    let is_indexed = found.to_string().contains(&txid.to_string());
    assert!(is_indexed, "{found:#}");
}

#[test]
fn an_upgraded_identity_goes_on_as_the_same_miner() {
    let node = node();
    let site = Site::on(&node);
    let server = site.server();
    site.cli_ok(&["generateminerid", "--name", "pool"]);
    site.cli_ok(&["config", "--name", "pool", "name=a pool"]);
    site.cli_ok(&["generatevctx", "--name", "pool"]);
    let first = miner_id(&server, "pool");
    let mine_0_2 = || {
        let template = miner_info::template_with_all(&node);
        let request = template.coinbase2_request(&node, "pool").to_string();
        let reply = server.post("/coinbase2", request);
        assert_eq!(reply.status, 200, "{}", reply.body);
        template.mine(&node, &reply.body);
    };
    mine_0_2();
    assert_eq!(server.text("/opreturn/pool/rotate"), "OK");
    mine_0_2();
    let second = miner_id(&server, "pool");
    site.cli_ok(&["upgrademinerid", "--name", "pool"]);
    assert_eq!(server.text("/opreturn/pool/isvalid"), "true");
    assert_eq!(identity(&site, "pool")["minerContact"], json!({ "name": "a pool" }));
    mine(&node, &server);
    await_acknowledgement(&site, "pool");
    mine(&node, &server);
    assert_eq!(states(&node), [state(&second, "CURRENT"), state(&first, "ROTATED")]);
    let revocation_key = identity(&site, "pool")["revocationKey"].clone();
    assert_eq!(miner_info::known(&node, &second)["revocationKey"], revocation_key);
    assert_all_taken(&node);
}

/// The key that was passed over had been mined after all, so the next one follows that.
#[test]
fn a_forced_rotation_follows_what_the_node_has_seen() {
    let node = node();
    let site = Site::on(&node);
    let server = site.server();
    site.cli_ok(&["generateminerid", "--name", "pool", "--protocol", "1.0"]);
    mine(&node, &server);
    let first = miner_id(&server, "pool");
    assert_eq!(server.text("/opreturn/pool/rotate"), "OK");
    site.cli_ok(&["rotateminerid", "--name", "pool", "--force"]);
    let third = miner_id(&server, "pool");
    mine(&node, &server);
    assert_eq!(states(&node), [state(&third, "CURRENT"), state(&first, "ROTATED")]);
    await_acknowledgement(&site, "pool");

    assert_eq!(server.text("/opreturn/pool/rotate"), "OK");
    let fourth = miner_id(&server, "pool");
    mine(&node, &server);
    site.cli_ok(&["rotateminerid", "--name", "pool", "--force"]);
    let fifth = miner_id(&server, "pool");
    // The service has to see the fourth in its block before it can tell of the fifth.
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while identity(&site, "pool")["prevMinerId"] != json!(fourth) {
        assert!(std::time::Instant::now() < deadline, "{:#}", identity(&site, "pool"));
        node.mine(1);
        std::thread::sleep(std::time::Duration::from_millis(500));
    }
    mine(&node, &server);
    assert_eq!(states(&node)[0], state(&fifth, "CURRENT"));
    await_acknowledgement(&site, "pool");
    assert_all_taken(&node);
}
