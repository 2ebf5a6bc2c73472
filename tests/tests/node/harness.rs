//! Tests of this package's own harness.

use std::env;
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use bsv_network::{NodeError, NodeRpc, NodeSettings, Submitted};
use bsv_tests::{Gate, Node, Refusal};
use serde_json::json;

use crate::node::setup::{BSV, Payee, rich_node};

#[test]
fn a_node_waits_for_a_port_that_is_in_use() {
    let mut node = Node::start();
    node.stop();
    let squatter = TcpListener::bind((node.host.as_str(), node.port)).unwrap();
    let release = thread::spawn(move || {
        thread::sleep(Duration::from_secs(2));
        drop(squatter);
    });
    node.restart();
    assert!(release.is_finished());
    assert_eq!(node.call("getblockcount", json!([])), 0);
    assert!(node.log().contains("Shutdown"));
}

#[test]
fn a_node_stops_with_its_test() {
    let node = Node::start();
    let (settings, directory) = (node.settings(), node.directory().to_owned());
    let panicked = thread::spawn(move || {
        let _node = node;
        panic!("on purpose");
    });
    assert!(panicked.join().is_err());
    assert!(TcpStream::connect((settings.host, settings.port)).is_err());
    assert!(!directory.exists());
}

/// Runs in a process of its own, which the next test kills.
#[test]
#[ignore = "it runs for ever"]
fn run_a_node() {
    let node = Node::start();
    println!("\nnode {} {}", node.port, node.directory().display());
    loop {
        thread::park();
    }
}

#[test]
fn a_node_ends_when_its_process_is_killed() {
    let mut process = Command::new(env::current_exe().unwrap())
        .args(["--exact", "node::harness::run_a_node", "--ignored", "--nocapture"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let line = BufReader::new(process.stdout.take().unwrap())
        .lines()
        .map_while(Result::ok)
        .find(|line| line.starts_with("node "))
        .unwrap();
    let [_, port, directory] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
    let port: u16 = port.parse().unwrap();
    assert!(TcpStream::connect(("127.0.0.1", port)).is_ok());

    process.kill().unwrap();
    process.wait().unwrap();
    let deadline = Instant::now() + Duration::from_secs(10);
    while TcpStream::connect(("127.0.0.1", port)).is_ok() || fs::exists(directory).unwrap() {
        assert!(Instant::now() < deadline, "the node outlives its test");
        thread::sleep(Duration::from_millis(20));
    }
}

#[tokio::test]
async fn a_gate_refuses_in_the_place_of_its_node() {
    const SEND: &str = "sendrawtransaction";
    let node = rich_node();
    let payee = Payee::new();
    let coin = payee.receive(node.rpc(), BSV).await;
    let payment = payee.pay(&coin, &payee, 500);
    let gate = Gate::before(&node);
    let rpc = NodeRpc::new(NodeSettings { port: gate.port(), ..node.settings() });
    let refusal = |code, message| Refusal { method: SEND, code, message };
    gate.refuse(refusal(-28, "Loading block index..."));
    assert_eq!(rpc.submit_transaction(&payment).await, Err(NodeError::Starting));
    gate.refuse(refusal(-26, "257: txn-already-known"));
    assert_eq!(rpc.submit_transaction(&payment).await, Ok(Submitted::NotShown));
    assert_eq!(
        node.rpc().mempool_entry(&payment.txid()).await,
        Ok(None),
        "the node did not get it"
    );
    let submitted = node.rpc().submit_transaction(&payment).await.unwrap();
    assert_eq!(rpc.submit_transaction(&payment).await, Ok(submitted.clone()), "it shows it");
    gate.accept();
    assert_eq!(rpc.submit_transaction(&payment).await, Ok(submitted));
    assert_eq!(gate.heard(SEND, &payment.to_hex()), 4);
}
