//! Revocations, and revocation keys that lie on another disk.

use std::thread;

use bsv_minerid::formats::{MinerInfo, MinerInfoScript};
use bsv_tests::{Gate, Hold, Node, Site, miner_info};
use bsv_tx::Script;
use serde_json::json;

use crate::minerid_1_0::scene::{
    assert_all_taken, await_acknowledgement, identity, miner_id, node, state,
};

#[test]
fn a_complete_revocation_is_announced_until_a_block_shows_it_and_then_closes_the_alias() {
    let node = node();
    let site = Site::on(&node);
    let server = site.server();
    let disk = site.data_dir().join("disk");
    let keys = ["--revocation-keystore", disk.to_str().unwrap()];
    let run = |arguments: &[&str]| site.cli(&[arguments, &keys].concat());
    let generated = run(&["generateminerid", "--name", "pool", "--protocol", "1.0"]);
    assert_eq!(generated.code, 0, "{generated:?}");
    miner_info::mine_from(&node, &server, "pool");
    let first = miner_id(&server, "pool");

    // The disk with the revocation keys is removed.
    let away = site.data_dir().join("away");
    std::fs::rename(&disk, &away).unwrap();
    for command in [&["revokemineridcompletely", "--yes"][..], &["rotaterevocationkey"]] {
        let refused = run(&[command, &["--name", "pool"]].concat());
        assert_eq!(refused.code, 1);
        assert!(refused.stderr.contains("there is no keystore of revocation keys"), "{refused:?}");
    }
    miner_info::mine_from(&node, &server, "pool");
    std::fs::rename(&away, &disk).unwrap();

    let refused = run(&["revokemineridpartially", "--yes", "--name", "pool", "--minerid", &first]);
    assert_eq!(
        (refused.code, refused.stderr.contains("it is the first")),
        (1, true),
        "{refused:?}"
    );
    let foreign = "02ae1d0f46e1b6c1a1c3dcfa3f2d8f5a6a0d4f1c0e9a3b7d5c2f8e6b4a1908172c";
    let refused = run(&["revokemineridpartially", "--yes", "--name", "pool", "--minerid", foreign]);
    assert_ne!(refused.code, 0);

    let done = run(&["revokemineridcompletely", "--yes", "--name", "pool"]);
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(miner_info::states(&node), [[state(&first, "REVOKED")]]);
    assert_eq!(server.text("/opreturn/pool/isvalid"), "false");
    assert_eq!(identity(&site, "pool")["announced"], json!(["completeRevocation"]));
    assert_eq!(server.get("/opreturn/pool/rotate").status, 409);
    // Blocks of other miners do not show the revocation.
    node.mine(1);
    thread::sleep(std::time::Duration::from_secs(3));
    assert_eq!(identity(&site, "pool")["announced"], json!(["completeRevocation"]));
    let height = miner_info::mine_from(&node, &server, "pool").height;
    await_acknowledgement(&site, "pool");
    assert_eq!(identity(&site, "pool")["state"], "closed");
    let refused = server.get(&format!("/opreturn/pool/{height}"));
    assert_eq!(refused.status, 422);
    assert_eq!(refused.body, "Alias \"pool\" is closed: all its miner ids are revoked");
    assert_eq!(run(&["rotaterevocationkey", "--name", "pool"]).code, 1);
    assert_all_taken(&node);
}

#[test]
fn a_revocation_that_did_not_reach_the_node_is_announced_and_sent_when_repeated() {
    let node = node();
    let gate = Gate::before(&node);
    let site = gate.site();
    let server = site.server();
    site.cli_ok(&["generateminerid", "--name", "pool", "--protocol", "1.0"]);
    miner_info::mine_from(&node, &server, "pool");
    site.cli_ok(&["rotateminerid", "--name", "pool"]);
    miner_info::mine_from(&node, &server, "pool");
    await_acknowledgement(&site, "pool");
    let second = miner_id(&server, "pool");

    let command = ["revokemineridpartially", "--yes", "--name", "pool", "--minerid", &second];
    gate.shut("revokeminerid", Hold::Call);
    let failed = thread::scope(|scope| {
        let failed = scope.spawn(|| site.cli(&command));
        gate.wait_for(1);
        gate.cut();
        failed.join().unwrap()
    });
    assert_eq!(failed.code, 1);
    assert!(failed.stderr.contains("is recorded"), "{}", failed.stderr);
    assert!(failed.stderr.contains("when the revocation is repeated"), "{}", failed.stderr);
    let third = miner_id(&server, "pool");
    assert_ne!(third, second);

    site.cli_ok(&command);
    assert_eq!(miner_info::known(&node, &second)["minerIdState"], "REVOKED");
    assert_eq!(miner_id(&server, "pool"), third);
    assert_eq!(identity(&site, "pool")["revocationTold"], json!(true));

    // While the node does not answer, documents are made from what the service knows.
    gate.shut("getmineridinfo", Hold::Call);
    let mined = miner_info::mine_from(&node, &server, "pool");
    gate.wait_for(1);
    let script = server.text(&format!("/opreturn/pool/{}", mined.height + 1));
    let script = MinerInfoScript::parse(&Script::from_hex(&script).unwrap()).unwrap();
    let document = std::str::from_utf8(&script.document).unwrap();
    let document = MinerInfo::from_json(document).unwrap();
    assert_eq!(document.revocation.unwrap().compromised.to_string(), second);
    // By now, blocks have shown the node the revocation. If it were told again, it would revoke the
    // new key.
    let told_again = thread::scope(|scope| {
        let told_again = scope.spawn(|| site.cli(&command));
        gate.wait_for(2);
        gate.open();
        told_again.join().unwrap()
    });
    await_acknowledgement(&site, "pool");
    assert_eq!(told_again.code, 0, "{told_again:?}");
    assert_eq!(miner_info::known(&node, &third)["minerIdState"], "CURRENT");
    assert_all_taken(&node);
}

#[test]
fn without_a_node_nothing_is_revoked() {
    let site = Site::new();
    site.cli_ok(&["generateminerid", "--name", "pool", "--protocol", "1.0"]);
    site.cli_ok(&["generateminerid", "--name", "old"]);
    let before = site.cli_json(&["miner", "list"]);
    for command in [
        &["revokemineridcompletely", "--yes", "--name", "pool"][..],
        &["miner", "revoke", "--yes", "--name", "old"],
    ] {
        let refused = site.cli(command);
        assert_eq!(refused.code, 1);
        assert!(refused.stderr.contains("no node is configured"), "{}", refused.stderr);
    }
    assert_eq!(site.cli_json(&["miner", "list"]), before);
    let server = site.server();
    site.cli_ok(&["rotateminerid", "--name", "pool"]);
    site.cli_ok(&["miner", "confirm", "--yes", "--name", "pool"]);
    assert_eq!(server.text("/opreturn/pool/rotate"), "OK");
}

#[test]
fn an_identity_of_0_2_ends_when_its_vctx_is_spent() {
    let node = Node::start();
    node.mine(101);
    let site = Site::on(&node);
    let server = site.server();
    site.cli_ok(&["generateminerid", "--name", "pool"]);
    assert_eq!(site.cli(&["miner", "revoke", "--yes", "--name", "pool"]).code, 1);
    site.cli_ok(&["generatevctx", "--name", "pool"]);
    let outpoint = identity(&site, "pool")["vctx"]["outpoint"].as_str().unwrap().to_owned();
    server.text("/opreturn/pool/200");
    site.cli_ok(&["miner", "revoke", "--yes", "--name", "pool"]);
    let refused = server.get("/opreturn/pool/200");
    let expected = format!("Alias \"pool\" is revoked: its VCTx {outpoint} is spent");
    assert_eq!((refused.status, refused.body), (422, expected));
    let (txid, index) = outpoint.split_once(':').unwrap();
    let unspent = json!([txid, index.parse::<u32>().unwrap(), true]);
    assert_eq!(node.call("gettxout", unspent), json!(null));
    let refused = site.cli(&["upgrademinerid", "--yes", "--name", "pool"]);
    assert_eq!((refused.code, refused.stderr.contains("is revoked")), (1, true), "{refused:?}");
    // The command can be repeated before and after a block holds the transaction.
    site.cli_ok(&["miner", "revoke", "--yes", "--name", "pool"]);
    node.mine(1);
    drop(server);
    site.cli_ok(&["miner", "revoke", "--yes", "--name", "pool"]);
}
