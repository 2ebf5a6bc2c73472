//! Two copies of one identity, one of which is older than the other.

use std::thread;
use std::time::{Duration, Instant};

use bsv_tests::gate::{Gate, Refusal};
use bsv_tests::{Metrics, Node, Server, Site, Template, miner_info};
use serde_json::json;

use crate::minerid_1_0::scene::{await_acknowledgement, identity, node};

/// Commands that change the keys of an identity.
const COMMANDS: [&[&str]; 3] = [
    &["rotateminerid", "--name", "pool"],
    &["rotaterevocationkey", "--name", "pool"],
    &["revokemineridcompletely", "--yes", "--name", "pool"],
];

/// A service that ran `command` after its data directory was copied. Answers the copy, too.
fn scene(command: &[&str]) -> (Node, Site, Site) {
    let node = node();
    let site = Site::on(&node);
    let server = site.server();
    site.cli_ok(&["generateminerid", "--name", "pool", "--protocol", "1.0"]);
    miner_info::mine_from(&node, &server, "pool");
    site.cli_ok(&["rotateminerid", "--name", "pool"]);
    miner_info::mine_from(&node, &server, "pool");
    await_acknowledgement(&site, "pool");
    assert_eq!(server.stop(), 0);
    let copy = site.copy();
    let server = site.server();
    site.cli_ok(command);
    miner_info::mine_from(&node, &server, "pool");
    (node, site, copy)
}

fn await_stale(site: &Site) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while identity(site, "pool")["stale"] != json!(true) {
        assert!(Instant::now() < deadline, "{:#}", identity(site, "pool"));
        thread::sleep(Duration::from_millis(50));
    }
}

fn document(node: &Node, server: &Server) -> u16 {
    let height = Template::of(node, 1).height();
    server.get(&format!("/opreturn/pool/{height}")).status
}

#[test]
fn an_older_copy_is_found_out_and_changes_nothing() {
    for command in COMMANDS {
        let (node, site, copy) = scene(command);
        let server = copy.server();
        await_stale(&copy);
        let before = identity(&copy, "pool");
        assert_eq!(server.text("/opreturn/pool/isvalid"), "false");
        let ready = server.get("/readyz");
        assert_eq!(ready.status, 503, "{command:?}: {}", ready.body);
        assert_eq!(server.request("HEAD", "/readyz", b"").status, 503, "{command:?}");
        assert!(ready.body.contains(r#""staleAliases":["pool"]"#), "{}", ready.body);
        let stale = r#"bsv_minerid_state{alias="pool",state="stale"}"#;
        assert_eq!(Metrics::of(server.minerid()).value(stale), 1.0, "{command:?}");
        assert_eq!(server.get("/opreturn/pool/rotate").status, 409);
        for refused in COMMANDS {
            let done = copy.cli(refused);
            assert_eq!(done.code, 1, "{done:?}");
            assert!(done.stderr.contains("is an older copy"), "{done:?}");
        }
        assert_eq!(identity(&copy, "pool"), before);
        // The copy still hands out documents: an identity that nodes ignore costs nothing, but a
        // pool without a job may lose blocks.
        assert_eq!(document(&node, &server), 200);
        let _server = site.server();
        await_acknowledgement(&site, "pool");
        assert_eq!(identity(&site, "pool")["stale"], json!(false), "{command:?}");
    }
}

/// Every command asks the node first.
#[test]
fn an_older_copy_is_found_out_by_the_first_command() {
    let (_node, _site, copy) = scene(&["rotateminerid", "--name", "pool"]);
    for command in COMMANDS {
        let done = copy.copy().cli(command);
        assert_eq!(done.code, 1, "{done:?}");
        assert!(done.stderr.contains("is an older copy"), "{done:?}");
    }
}

/// If the older copy spent the VCTx, the newer copy would end too.
#[test]
fn an_older_copy_of_generation_0_2_is_found_out_by_the_first_command() {
    let node = node();
    let site = Site::on(&node);
    let server = site.server();
    site.cli_ok(&["generateminerid", "--name", "old"]);
    site.cli_ok(&["generatevctx", "--name", "old"]);
    miner_info::mine_coinbase_document(&node, &server, "old");
    assert_eq!(server.stop(), 0);
    let copy = site.copy();
    let server = site.server();
    site.cli_ok(&["rotateminerid", "--name", "old"]);
    miner_info::mine_coinbase_document(&node, &server, "old");
    for command in
        [&["rotateminerid"][..], &["miner", "revoke", "--yes"], &["upgrademinerid", "--yes"]]
    {
        let done = copy.copy().cli(&[command, &["--name", "old"]].concat());
        assert_eq!(done.code, 1, "{done:?}");
        assert!(done.stderr.contains("is an older copy"), "{done:?}");
    }
    await_acknowledgement(&site, "old");
    site.cli_ok(&["miner", "revoke", "--yes", "--name", "old"]);
}

/// A node with `minerid=0` refuses to tell what it knows of miner ids.
#[test]
fn a_node_that_tells_nothing_of_miner_ids_clears_no_alarm() {
    let (node, _site, mut copy) = scene(&["rotateminerid", "--name", "pool"]);
    let gate = Gate::before(&node);
    copy.set("rpcPort", json!(gate.port()));
    let _server = copy.server();
    await_stale(&copy);
    let method = "getmineridinfo";
    gate.refuse(Refusal { method, code: -1, message: "the node keeps no miner ids" });
    let heard = gate.heard(method, "");
    let done = copy.cli(&["rotateminerid", "--name", "pool"]);
    assert!(gate.heard(method, "") > heard, "nothing was refused");
    assert_eq!(done.code, 1, "{done:?}");
    assert!(done.stderr.contains("is an older copy"), "{done:?}");
    assert_eq!(identity(&copy, "pool")["stale"], json!(true));
}

#[test]
fn documents_of_an_older_copy_can_be_refused() {
    let (node, _site, mut copy) = scene(&["rotateminerid", "--name", "pool"]);
    copy.set("minerid", json!({ "staleCopy": "refuse" }));
    let server = copy.server();
    await_stale(&copy);
    assert_eq!(document(&node, &server), 409);
    assert_eq!(server.request("HEAD", "/opreturn/pool/1000", b"").status, 409);
    let job = r#"{"blockHeight":1000,"alias":"pool","coinbase2":"ffffffff0100f2052a01000000015100000000"}"#;
    let reply = server.post("/coinbase2", job);
    assert_eq!(reply.status, 409, "{}", reply.body);
    let reference = json!({
        "alias": "pool", "minerInfoTxId": "01".repeat(32), "prevhash": "02".repeat(32),
        "merkleProof": [], "coinbase2": "ffffffff0100f2052a01000000015100000000",
    });
    let reply = server.post("/coinbase2", reference.to_string());
    assert_eq!(reply.status, 409, "{}", reply.body);
    let ready = server.wallet().get("/readyz");
    assert!(ready.body.contains(r#""staleAliases":["pool"]"#), "{}", ready.body);
}
