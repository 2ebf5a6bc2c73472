//! The examples of the libraries, on a real node.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use bsv_minerid::node::{DataCache, GatheredBlock, gather};
use bsv_minerid::verify::{Verdict, verify};
use bsv_network::NodeRpc;
use bsv_tests::build::example_program;
use bsv_tests::{Node, Template};
use bsv_tx::{Address, Network, PrivateKey, Transaction};
use serde_json::json;
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// A node with coins.
fn node() -> Node {
    let node = Node::start();
    node.mine(101);
    node
}

fn pay(node: &Node, address: &str) -> Transaction {
    let txid = node.call("sendtoaddress", json!([address, 0.00001]));
    let hex = node.call("getrawtransaction", json!([txid]));
    Transaction::from_hex(hex.as_str().unwrap()).unwrap()
}

#[test]
fn the_example_of_a_pool_without_a_runtime_identifies_its_blocks() {
    let node = node();
    let key = PrivateKey::generate().unwrap();
    let address = Address::p2pkh(&key.public_key(), Network::Regtest);
    let vctx = pay(&node, &address.to_string());
    node.mine(1);
    let is_it = |output: &bsv_tx::TxOut| output.locking_script == address.locking_script();
    let vout = vctx.outputs.iter().position(is_it).unwrap();

    let template = Template::of(&node, 1);
    let request = template.coinbase2_request(&node, "pool");
    let job = format!("{} {} {}\n", template.height(), template.coinbase2, request["jobData"]);
    let dir = TempDir::new().unwrap();
    let mut pool = Command::new(example_program("pool"))
        .arg(dir.path())
        .args([format!("{}:{vout}", vctx.txid()), key.to_wif(Network::Regtest).to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    pool.stdin.take().unwrap().write_all(job.as_bytes()).unwrap();
    let output = pool.wait_with_output().unwrap();
    assert!(output.status.success());
    let coinbase2 = String::from_utf8(output.stdout).unwrap();

    let block = template.mine(&node, coinbase2.trim_end());
    let rpc = NodeRpc::new(node.settings());
    let gathered =
        Runtime::new().unwrap().block_on(gather(&rpc, &block, &DataCache::default())).unwrap();
    let GatheredBlock { proof, evidence, .. } = gathered.unwrap();
    let report = verify(&proof, &evidence);
    assert_eq!(report.verdict(), Verdict::Valid, "{report:?}");
}

#[test]
fn the_example_of_a_shop_is_paid() {
    let node = node();
    let dir = TempDir::new().unwrap();
    let mut shop = Command::new(example_program("shop"))
        .arg(dir.path())
        .args([&node.host, &node.port.to_string(), &node.user, &node.password])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(shop.stdout.take().unwrap()).lines();
    let request = lines.next().unwrap().unwrap();
    let address = request.strip_prefix("pay 1000 satoshis to ").unwrap();
    pay(&node, address);
    let paid = lines.next().unwrap().unwrap();
    assert!(paid.starts_with("invoice "), "{paid}");
    assert!(paid.ends_with(" is paid, the balance is 1000"), "{paid}");
    assert!(shop.wait().unwrap().success());
}
