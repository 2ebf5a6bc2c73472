//! Sweeping the coins in the VCTx of an upgraded identity.

use bsv_tests::gate::{Gate, Hold};
use bsv_tests::killer::Killer;
use bsv_tests::rival::Rival;
use bsv_tests::{Done, Node, Server, Site, miner_info, repetitions};
use serde_json::{Value, json};

use crate::minerid_1_0::kills::silent;
use crate::minerid_1_0::scene::{assert_all_taken, identity, node};

/// The output of a VCTx, and the address that it pays.
struct Left {
    outpoint: String,
    address: String,
}

/// Gives a site an identity of generation 0.2 that a block has shown.
fn older(node: &Node, site: &Site) -> (Server, Left) {
    let server = site.server();
    site.cli_ok(&["miner", "create", "--name", "pool"]);
    let made = site.cli_json(&["miner", "vctx", "--name", "pool"]);
    let outpoint = made["outpoint"].as_str().unwrap().to_owned();
    let address = unspent(node, &outpoint)["scriptPubKey"]["addresses"][0].clone();
    miner_info::mine_coinbase_document(node, &server, "pool");
    (server, Left { outpoint, address: address.as_str().unwrap().to_owned() })
}

/// Upgrades the identity, and mines a block that shows the upgrade.
fn upgrade(node: &Node, site: &Site, server: &Server) {
    site.cli_ok(&["miner", "upgrade", "--name", "pool", "--yes"]);
    miner_info::mine_from(node, server, "pool");
}

fn unspent(node: &Node, outpoint: &str) -> Value {
    let (txid, vout) = outpoint.split_once(':').unwrap();
    node.call("gettxout", json!([txid, vout.parse::<u32>().unwrap(), true]))
}

/// What a transaction pays to an address, in satoshis.
fn paid(node: &Node, txid: &Value, address: &str) -> u64 {
    let transaction = node.call("getrawtransaction", json!([txid, true]));
    let outputs = transaction["vout"].as_array().unwrap().iter();
    let theirs = outputs.filter(|it| it["scriptPubKey"]["addresses"] == json!([address]));
    theirs.map(|it| (it["value"].as_f64().unwrap() * 1e8).round() as u64).sum()
}

fn new_address(node: &Node) -> String {
    node.call("getnewaddress", json!([])).as_str().unwrap().to_owned()
}

fn sweep(site: &Site, to: &str, further: &[&str]) -> Done {
    let arguments = ["miner", "vctx", "--name", "pool", "--json", "--sweep", to];
    site.cli(&[&arguments, further].concat())
}

fn swept(site: &Site, to: &str, further: &[&str]) -> Value {
    let done = sweep(site, to, further);
    assert_eq!(done.code, 0, "{}", done.stderr);
    serde_json::from_str(&done.stdout).unwrap()
}

/// Runs a sweep that must be refused, and answers the code of the refusal.
fn refused(site: &Site, to: &str, further: &[&str]) -> String {
    let Done { code, stderr, .. } = sweep(site, to, further);
    assert_eq!(code, 1, "{stderr}");
    let told: Value = serde_json::from_str(&stderr).unwrap();
    told["code"].as_str().unwrap().to_owned()
}

#[test]
fn the_coins_of_an_upgraded_identity_can_be_swept() {
    let node = node();
    let site = Site::on(&node);
    let (server, left) = older(&node, &site);
    let to = new_address(&node);
    // An identity of protocol 0.2 needs its VCTx. It still needs it after the upgrade, until a
    // block has shown the upgrade.
    assert_eq!(refused(&site, &to, &["--yes"]), "vctx-needed");
    site.cli_ok(&["miner", "upgrade", "--name", "pool", "--yes"]);
    assert_eq!(identity(&site, "pool")["leftVctx"]["outpoint"], json!(left.outpoint));
    assert_eq!(refused(&site, &to, &["--yes"]), "upgrade-unseen");
    let shown = miner_info::mine_from(&node, &server, "pool").block;
    // A block that has left the chain does not count.
    node.call("invalidateblock", json!([shown.to_string()]));
    assert_eq!(refused(&site, &to, &["--yes"]), "upgrade-unseen");
    node.call("reconsiderblock", json!([shown.to_string()]));
    let holds = (unspent(&node, &left.outpoint)["value"].as_f64().unwrap() * 1e8).round() as u64;

    // Without `--yes`, nothing is sent.
    let planned = swept(&site, &to, &["--dry-run"]);
    assert_eq!((&planned["state"], &planned["address"]), (&json!("planned"), &json!(to)));
    assert_eq!(planned["spent"], json!([left.outpoint]));
    let [satoshis, fee] = ["satoshis", "fee"].map(|name| planned[name].as_u64().unwrap());
    assert_eq!(satoshis + fee, holds);
    assert!((19..=40).contains(&fee), "{fee}");
    assert_eq!(refused(&site, &to, &[]), "needs-yes");
    assert_eq!(refused(&site, "nobody", &["--yes"]), "bad-request");
    assert!(!unspent(&node, &left.outpoint).is_null());

    let sent = swept(&site, &to, &["--yes"]);
    assert_eq!((&sent["state"], &sent["txid"]), (&json!("inMempool"), &planned["txid"]));
    assert!(unspent(&node, &left.outpoint).is_null());
    assert_eq!(paid(&node, &sent["txid"], &to), satoshis);
    // Repeated, the command names the same transaction, whatever address it is given.
    let again = swept(&site, &new_address(&node), &["--yes"]);
    assert_eq!([&again["txid"], &again["address"]], [&sent["txid"], &json!(to)]);
    node.mine(1);
    let again = swept(&site, &to, &["--yes"]);
    assert_eq!((&again["state"], &again["txid"]), (&json!("mined"), &sent["txid"]));

    // Coins that come to the address later can be swept too.
    node.call("sendtoaddress", json!([left.address, 0.0005]));
    let other = new_address(&node);
    let further = swept(&site, &other, &["--yes"]);
    assert_ne!(further["txid"], sent["txid"]);
    assert_eq!(paid(&node, &further["txid"], &other), further["satoshis"].as_u64().unwrap());
    let logs = site.cli_json(&["audit", "list"]);
    let entries = logs["minerid"].as_array().unwrap().iter();
    let swept: Vec<_> = entries.filter(|entry| entry["event"] == "vctx-swept").collect();
    let by = |sweep: &Value| json!(format!("pool by {}", sweep["txid"].as_str().unwrap()));
    assert_eq!(swept.len(), 2, "{swept:#?}");
    assert_eq!([&swept[0]["subject"], &swept[1]["subject"]], [&by(&sent), &by(&further)]);
    // The identity is still valid.
    miner_info::mine_from(&node, &server, "pool");
    assert_eq!(miner_info::states(&node).len(), 1);
    assert_all_taken(&node);
}

#[test]
fn a_sweep_that_was_killed_at_the_node_can_be_completed() {
    for hold in [Hold::Call, Hold::Answer] {
        let node = node();
        let gate = Gate::before(&node);
        let site = gate.site();
        let (server, _left) = older(&node, &site);
        upgrade(&node, &site, &server);
        assert_eq!(server.stop(), 0);
        let to = new_address(&node);
        gate.shut("sendrawtransaction", hold);
        let arguments = ["miner", "vctx", "--name", "pool", "--yes", "--sweep", to.as_str()];
        let mut killed = site.cli_command(&arguments).spawn().unwrap();
        gate.wait_for(1);
        killed.kill().unwrap();
        killed.wait().unwrap();
        gate.cut();
        let recorded = identity(&site, "pool")["leftVctx"]["sweep"].clone();
        assert!(recorded.is_string(), "{:#}", identity(&site, "pool"));
        // The recorded transaction may be on its way. It is sent again, whatever address the
        // command is given now.
        let sent = swept(&site, &new_address(&node), &["--yes"]);
        assert_eq!((&sent["txid"], &sent["state"]), (&recorded, &json!("inMempool")));
        assert_eq!(sent["address"], json!(to));
        assert_eq!(paid(&node, &recorded, &to), sent["satoshis"].as_u64().unwrap());
    }
}

#[test]
fn a_sweep_killed_at_any_step_can_be_repeated() {
    let node = node();
    let site = silent(Site::on(&node));
    let (server, left) = older(&node, &site);
    upgrade(&node, &site, &server);
    assert_eq!(server.stop(), 0);
    let [to, other] = [(); 2].map(|()| new_address(&node));
    // Each attempt has a copy of the site and a node of its own.
    let attempt = |step: u64| {
        let rival = Rival::of(&node).node;
        let mut copy = silent(site.copy());
        copy.move_to(&rival);
        let killer = Killer::install(&mut copy);
        killer.kill_at(step);
        let done = sweep(&copy, &to, &["--yes"]);
        let steps = killer.steps();
        killer.spare();
        let recorded = identity(&copy, "pool")["leftVctx"]["sweep"].clone();
        // The transaction that may be on its way is sent again, and nothing else.
        let is_spent = unspent(&rival, &left.outpoint).is_null();
        assert!(recorded.is_string() || !is_spent, "{step}: spent without a record: {done:?}");
        let again = swept(&copy, &other, &["--yes"]);
        assert_eq!(again["state"], "inMempool", "{step}");
        match recorded.is_string() {
            true => assert_eq!([&again["txid"], &again["address"]], [&recorded, &json!(to)]),
            false => assert_eq!(again["address"], json!(other)),
        }
        assert!(unspent(&rival, &left.outpoint).is_null(), "{step}");
        (steps, done.code)
    };
    let (steps, code) = attempt(u64::MAX);
    assert_eq!(code, 0);
    let kills = repetitions("kills of a sweep", steps as usize, 4) as u64;
    let killed =
        (1..=steps).step_by(steps.div_ceil(kills) as usize).filter(|step| attempt(*step).1 == -1);
    assert!(killed.count() >= 3, "of {steps} steps");
}

#[test]
fn a_sweep_that_the_node_does_not_have_is_sent_again() {
    let node = node();
    let mut site = Site::on(&node);
    let (server, left) = older(&node, &site);
    upgrade(&node, &site, &server);
    assert_eq!(server.stop(), 0);
    let to = new_address(&node);
    let other = Rival::of(&node).node;
    let sent = swept(&site, &to, &["--yes"]);
    site.move_to(&other);
    assert!(!unspent(&other, &left.outpoint).is_null());
    let planned = swept(&site, &to, &["--dry-run"]);
    assert_eq!((&planned["txid"], &planned["state"]), (&sent["txid"], &json!("unseen")));
    assert!(!unspent(&other, &left.outpoint).is_null());
    let again = swept(&site, &to, &["--yes"]);
    assert_eq!((&again["txid"], &again["state"]), (&sent["txid"], &json!("inMempool")));
    assert!(unspent(&other, &left.outpoint).is_null());

    // A coin that the node's wallet does not watch is found if the command names it.
    other.mine(1);
    let txid = node.call("sendtoaddress", json!([left.address, 0.0005]));
    let coin = node.call("getrawtransaction", json!([txid]));
    assert_eq!(other.call("sendrawtransaction", json!([coin])), txid);
    other.mine(1);
    let mut third = Rival::of(&other).node;
    site.move_to(&third);
    let before = swept(&site, &to, &["--yes"]);
    assert_eq!((&before["txid"], &before["state"]), (&sent["txid"], &json!("mined")));
    let transaction = third.call("getrawtransaction", json!([txid, true]));
    let mut outputs = transaction["vout"].as_array().unwrap().iter();
    let theirs = |it: &&Value| it["scriptPubKey"]["addresses"] == json!([left.address]);
    let vout = outputs.find(theirs).unwrap()["n"].as_u64().unwrap();
    let outpoint = format!("{}:{vout}", txid.as_str().unwrap());
    let named = swept(&site, &to, &["--yes", "--outpoint", &outpoint]);
    assert_eq!((&named["spent"], &named["state"]), (&json!([outpoint]), &json!("inMempool")));
    // Without a node, the command does not claim success.
    third.stop();
    assert_eq!(refused(&site, &to, &["--yes"]), "network-unavailable");
}

#[test]
fn an_alias_without_a_former_vctx_has_nothing_to_sweep() {
    let node = node();
    let site = Site::on(&node);
    let server = site.server();
    site.cli_ok(&["miner", "create", "--name", "pool", "--protocol", "1.0"]);
    miner_info::mine_from(&node, &server, "pool");
    assert_eq!(refused(&site, &new_address(&node), &["--yes"]), "nothing-to-sweep");
    let text = site.cli_ok(&["miner", "vctx", "--help"]);
    assert!(text.contains("--sweep <ADDRESS>"), "{text}");
}
