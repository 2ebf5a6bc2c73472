//! Making, recording, watching and spending validity check transactions (VCTx) on a real node.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use bsv_minerid::formats::{Document, IdentityScript};
use bsv_tests::{Node, Server, Site, Template};
use bsv_tx::{
    Address, ExtendedPrivateKey, Network, OutPoint, PrivateKey, Script, SighashCache, Transaction,
    TxIn, TxOut, Txid,
};
use serde_json::{Value, json};

/// Has the node's wallet pay an address. Answers the output.
fn pay(node: &Node, address: &Value, satoshis: u64) -> OutPoint {
    let amount = format!("{}.{:08}", satoshis / 100_000_000, satoshis % 100_000_000);
    let txid: Txid =
        node.call("sendtoaddress", json!([address, amount])).as_str().unwrap().parse().unwrap();
    let script =
        Address::parse(address.as_str().unwrap(), Network::Regtest).unwrap().locking_script();
    let vout = transaction(node, txid)
        .outputs
        .iter()
        .position(|output| output.locking_script == script)
        .unwrap();
    OutPoint { txid, vout: vout as u32 }
}

fn transaction(node: &Node, txid: Txid) -> Transaction {
    let hex = node.call("getrawtransaction", json!([txid.to_string()]));
    Transaction::from_hex(hex.as_str().unwrap()).unwrap()
}

fn document(server: &Server, alias: &str, height: u32) -> Document {
    let script = Script::from_hex(&server.text(&format!("/opreturn/{alias}/{height}"))).unwrap();
    let script = IdentityScript::parse(&script).unwrap();
    Document::from_json(std::str::from_utf8(&script.document).unwrap()).unwrap()
}

fn unspent(node: &Node, outpoint: OutPoint) -> Value {
    node.call("gettxout", json!([outpoint.txid.to_string(), outpoint.vout, true]))
}

/// Waits until the service has noticed a change at the node.
fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !condition() {
        assert!(Instant::now() < deadline, "timed out, waiting for: {what}");
        thread::sleep(Duration::from_millis(100));
    }
}

fn vctx_state(site: &Site, alias: &str) -> Value {
    let identities = site.cli_json(&["miner", "list"]);
    let identity =
        identities.as_array().unwrap().iter().find(|identity| identity["alias"] == alias);
    identity.unwrap()["vctx"]["state"].clone()
}

#[test]
fn on_regtest_a_vctx_is_funded_confirmed_and_recorded_in_one_step() {
    let node = Node::start();
    let site = Site::on(&node);
    site.cli_ok(&["generateminerid", "--name", "pool"]);
    // This runs without a server, and on a chain without any coins.
    let made = site.cli_json(&["generatevctx", "--name", "pool"]);
    assert_eq!(made["state"], "done");
    let outpoint: OutPoint = made["outpoint"].as_str().unwrap().parse().unwrap();
    assert_eq!(unspent(&node, outpoint)["confirmations"], 1);
    assert_eq!(vctx_state(&site, "pool"), "unspent");

    let server = site.server();
    assert_eq!(document(&server, "pool", 200).vctx, outpoint);
    // Repeated, the command names the same VCTx.
    assert_eq!(site.cli_json(&["generatevctx", "--name", "pool"]), made);
    let text = site.cli_ok(&["generatevctx", "--name", "pool"]);
    assert!(text.contains(&outpoint.to_string()), "{text}");
}

/// Addresses of testnet and regtest look the same. Therefore, a regtest node can stand in for one
/// of testnet.
#[test]
fn on_other_networks_the_owner_funds_the_vctx() {
    let node = Node::start();
    node.mine(101);
    let mut settings = json!({
        "network": "testnet", "rpcHost": node.host, "rpcPort": node.port,
        "rpcUser": node.user, "rpcPassword": node.password,
    });
    settings["port"] = json!(0);
    let site = Site::with(settings);
    let server = site.server();
    site.cli_ok(&["generateminerid", "--name", "pool"]);
    let asked = site.cli_json(&["generatevctx", "--name", "pool"]);
    assert_eq!((&asked["state"], &asked["foundSatoshis"]), (&json!("fundingNeeded"), &json!(0)));
    let least = asked["leastSatoshis"].as_u64().unwrap();
    let refused = server.get("/opreturn/pool/1");
    assert_eq!(
        (refused.status, refused.body.as_str()),
        (422, r#"Alias "pool" has no VCTx, run generatevctx"#)
    );

    pay(&node, &asked["address"], least - 100);
    let asked_again = site.cli_json(&["generatevctx", "--name", "pool"]);
    assert_eq!(asked_again["address"], asked["address"]);
    assert_eq!(asked_again["foundSatoshis"], least - 100);
    let text = site.cli_ok(&["generatevctx", "--name", "pool"]);
    assert!(text.contains(asked["address"].as_str().unwrap()), "{text}");

    // Two coins together are enough. The output holds their sum less the fee.
    pay(&node, &asked["address"], 5_000);
    let made = site.cli_json(&["generatevctx", "--name", "pool"]);
    let outpoint: OutPoint = made["outpoint"].as_str().unwrap().parse().unwrap();
    let vctx = transaction(&node, outpoint.txid);
    assert_eq!((vctx.inputs.len(), vctx.outputs.len(), outpoint.vout), (2, 1, 0));
    let paid = vctx.outputs[0].satoshis;
    assert!((least + 4_000..least + 4_900).contains(&paid), "{paid} of {}", least + 4_900);
    assert_eq!(document(&server, "pool", 1).vctx, outpoint);
    assert_eq!(vctx_state(&site, "pool"), "notSeen");
    node.mine(1);
    wait_until("the VCTx in the chain", || vctx_state(&site, "pool") == "unspent");
}

#[test]
fn a_funding_output_can_be_named_and_is_checked() {
    let node = Node::start();
    node.mine(101);
    let site = Site::with(json!({
        "network": "testnet", "rpcHost": node.host, "rpcPort": node.port,
        "rpcUser": node.user, "rpcPassword": node.password,
    }));
    site.cli_ok(&["generateminerid", "--name", "pool"]);
    let asked = site.cli_json(&["generatevctx", "--name", "pool"]);
    let right = pay(&node, &asked["address"], 10_000);
    let elsewhere = pay(&node, &node.call("getnewaddress", json!([])), 10_000);
    let unknown = OutPoint { vout: 99, ..right };
    for (outpoint, reason) in
        [(unknown, "no such unspent output"), (elsewhere, "does not pay to the VCTx address")]
    {
        let refused =
            site.cli(&["generatevctx", "--name", "pool", "--outpoint", &outpoint.to_string()]);
        assert_eq!(refused.code, 1);
        assert!(refused.stderr.contains(reason), "{}", refused.stderr);
    }
    let made = site.cli_json(&["generatevctx", "--name", "pool", "--outpoint", &right.to_string()]);
    let outpoint: OutPoint = made["outpoint"].as_str().unwrap().parse().unwrap();
    assert_eq!(transaction(&node, outpoint.txid).inputs[0].previous_output, right);
}

#[test]
fn a_vctx_that_may_have_been_broadcast_is_broadcast_again_and_not_made_anew() {
    let node = Node::start();
    node.mine(101);
    let is_swallowing = Arc::new(AtomicBool::new(true));
    let proxy = swallowing_proxy(&node, Arc::clone(&is_swallowing));
    let site = Site::with(json!({
        "rpcHost": "127.0.0.1", "rpcPort": proxy,
        "rpcUser": node.user, "rpcPassword": node.password,
    }));
    site.cli_ok(&["generateminerid", "--name", "pool"]);
    let unknown = site.cli(&["generatevctx", "--name", "pool"]);
    assert_eq!(unknown.code, 1, "{}", unknown.stdout);
    assert_eq!(vctx_state(&site, "pool"), "broadcasting");
    let mempool = node.call("getrawmempool", json!([]));
    let txid = mempool[0].as_str().unwrap();

    is_swallowing.store(false, Ordering::Relaxed);
    let made = site.cli_json(&["generatevctx", "--name", "pool"]);
    assert_eq!(made["outpoint"], format!("{txid}:0"));
    assert_eq!(vctx_state(&site, "pool"), "unspent");
}

/// A proxy before the node. While `is_swallowing` is set, it forwards `sendrawtransaction` and
/// withholds the answer, as a broken connection would.
fn swallowing_proxy(node: &Node, is_swallowing: Arc<AtomicBool>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let node = (node.host.clone(), node.port);
    thread::spawn(move || {
        for client in listener.incoming() {
            let (node, is_swallowing) = (node.clone(), Arc::clone(&is_swallowing));
            thread::spawn(move || {
                let _ = relay(client.unwrap(), &node, &is_swallowing);
            });
        }
    });
    port
}

fn relay(
    mut client: TcpStream,
    node: &(String, u16),
    is_swallowing: &AtomicBool,
) -> std::io::Result<()> {
    let mut server = TcpStream::connect((node.0.as_str(), node.1))?;
    let mut buffer = [0; 1 << 16];
    loop {
        // Requests are small. Each comes in one piece, or in two: head and body.
        let mut request = Vec::new();
        while !request.ends_with(b"}") && !request.ends_with(b"]") {
            let len = client.read(&mut buffer)?;
            if len == 0 {
                return Ok(());
            }
            request.extend_from_slice(&buffer[..len]);
        }
        server.write_all(&request)?;
        let is_broadcast = request.windows(18).any(|window| window == b"sendrawtransaction");
        let mut answer = Vec::new();
        while !answer.ends_with(b"\n") {
            let len = server.read(&mut buffer)?;
            answer.extend_from_slice(&buffer[..len]);
        }
        if is_broadcast && is_swallowing.load(Ordering::Relaxed) {
            return Ok(());
        }
        client.write_all(&answer)?;
    }
}

/// An identity as the older generator makes it, whose VCTx is output 0 of a transaction on the
/// chain. Answers its home, the VCTx, and the key that spends it.
fn older_identity(node: &Node, dir: &Path) -> (PathBuf, OutPoint, PrivateKey) {
    let key = PrivateKey::generate().unwrap();
    let address = Address::p2pkh(&key.public_key(), Network::Regtest);
    let coin = pay(node, &json!(address.to_string()), 50_000);
    let vctx = spend(node, coin, &key, 40_000);
    node.mine(1);
    let home = dir.join("home");
    let files = [
        (".minerid-client/pool/aliases", r#"[{"name":"pool_1"}]"#.to_owned()),
        (
            ".minerid-client/pool/vctx",
            json!({ "prv": *key.to_wif(Network::Regtest), "txid": vctx.txid.to_string() })
                .to_string(),
        ),
        (
            ".keystore/pool_1.key",
            ExtendedPrivateKey::generate(Network::Regtest).unwrap().as_text().to_owned(),
        ),
    ];
    for (path, content) in files {
        let path = home.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    (home, vctx, key)
}

/// Spends a P2PKH output of `key` to itself.
fn spend(node: &Node, coin: OutPoint, key: &PrivateKey, satoshis: u64) -> OutPoint {
    let spent = transaction(node, coin.txid).outputs[coin.vout as usize].clone();
    let mut spending = Transaction {
        version: 1,
        inputs: vec![TxIn {
            previous_output: coin,
            unlocking_script: Script::default(),
            sequence: u32::MAX,
        }],
        outputs: vec![TxOut { satoshis, locking_script: spent.locking_script.clone() }],
        lock_time: 0,
    };
    let script = SighashCache::new(&spending).sign_p2pkh(0, &spent, key);
    spending.inputs[0].unlocking_script = script.unwrap();
    node.call("sendrawtransaction", json!([spending.to_hex()]));
    OutPoint { txid: spending.txid(), vout: 0 }
}

#[test]
fn documents_stop_six_blocks_after_the_vctx_is_spent_and_resume_if_the_chain_changes() {
    let mut node = Node::start();
    node.mine(101);
    let site = Site::on(&node);
    let (home, vctx, key) = older_identity(&node, site.data_dir());
    site.cli_ok(&["importminerid", "--from", home.to_str().unwrap()]);
    let server = site.server();
    wait_until("the VCTx in the chain", || vctx_state(&site, "pool") == "unspent");
    assert_eq!(document(&server, "pool", 200).vctx, vctx);

    // A spending transaction that is only in the mempool does not count.
    spend(&node, vctx, &key, 30_000);
    let block = node.mine(1)[0];
    wait_until("the VCTx gone", || vctx_state(&site, "pool") == "beingSpent");
    node.mine(4);
    // The service asks every two seconds. After this time, it has seen the fifth block.
    thread::sleep(Duration::from_secs(5));
    assert_eq!(vctx_state(&site, "pool"), "beingSpent");
    server.text("/opreturn/pool/201");
    node.mine(1);
    wait_until("the VCTx spent", || vctx_state(&site, "pool") == "spent");
    let revoked = format!(r#"Alias "pool" is revoked: its VCTx {vctx} is spent"#);
    let is_refused = |server: &Server| {
        let coinbase2 = json!({
            "blockHeight": 202, "alias": "pool",
            "coinbase2": "ffffffff0100f2052a01000000015100000000",
        });
        for reply in
            [server.get("/opreturn/pool/202"), server.post("/coinbase2", coinbase2.to_string())]
        {
            assert_eq!((reply.status, reply.body.as_str()), (422, revoked.as_str()));
        }
        // The key is still available.
        server.text("/minerid/pool");
    };
    is_refused(&server);
    let refused = site.cli(&["generatevctx", "--name", "pool"]);
    assert!(refused.code == 1 && refused.stderr.contains("is revoked"), "{}", refused.stderr);

    // The refusal remains without the node, and after a crash.
    node.stop();
    server.kill();
    let server = site.server();
    is_refused(&server);

    // In this longer chain, nobody mines the spending transaction, so that the VCTx is unspent.
    node.restart();
    let first =
        node.call("getblockheader", json!([block.to_string()]))["previousblockhash"].clone();
    node.call("invalidateblock", json!([block.to_string()]));
    assert_eq!(node.call("getbestblockhash", json!([])), first);
    for _ in 0..8 {
        Template::of(&node, 1).mine_alone(&node);
    }
    wait_until("the VCTx back", || vctx_state(&site, "pool") == "unspent");
    assert_eq!(document(&server, "pool", 203).vctx, vctx);
}

#[test]
fn documents_do_not_depend_on_the_node() {
    let mut node = Node::start();
    node.mine(101);
    let site = Site::on(&node);
    site.cli_ok(&["generateminerid", "--name", "pool"]);
    site.cli_ok(&["generatevctx", "--name", "pool"]);
    let server = site.server();
    wait_until("the VCTx in the chain", || vctx_state(&site, "pool") == "unspent");
    node.stop();
    assert_eq!(document(&server, "pool", 500).height, 500);
    drop(server);
    let server = site.server();
    assert_eq!(document(&server, "pool", 501).height, 501);
    let refused = site.cli(&["generatevctx", "--name", "pool"]);
    assert_eq!(refused.code, 0, "what is recorded needs no node: {}", refused.stderr);
    site.cli_ok(&["generateminerid", "--name", "other"]);
    let refused = site.cli(&["generatevctx", "--name", "other"]);
    assert_eq!(refused.code, 1);
    assert!(refused.stderr.contains(&node.port.to_string()), "{}", refused.stderr);
}
