//! A node that stops, hangs and comes back.

use std::fs;
use std::thread;

use bsv_tests::{Bill, Hold, Node, Site};
use bsv_tx::{OutPoint, Script, Transaction, TxIn, Txid};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use super::counter::{Counter, PRICE, check_problem};
use super::merchant::{Merchant, json_of, wait_until};

const SEND: &str = "sendrawtransaction";

/// Stops the process of a node, which answers nobody until this is dropped.
struct Stopped(Pid);

impl Stopped {
    fn of(node: &Node) -> Self {
        let pid = fs::read_to_string(node.directory().join("regtest/bitcoind.pid")).unwrap();
        let pid = Pid::from_raw(pid.trim().parse().unwrap()).unwrap();
        kill_process(pid, Signal::STOP).unwrap();
        wait_until("all of the node has stopped", || {
            let tasks = format!("/proc/{}/task", pid.as_raw_nonzero());
            fs::read_dir(tasks).unwrap().all(|task| {
                let stat = fs::read_to_string(task.unwrap().path().join("stat"));
                // The state comes after the name, which is in parentheses.
                stat.is_ok_and(|stat| stat.rsplit_once(") ").unwrap().1.starts_with('T'))
            })
        });
        Self(pid)
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        kill_process(self.0, Signal::CONT).unwrap();
    }
}

/// Checks that requests which need no node are answered.
fn check_serves(shop: &Merchant, balance: u64) {
    let wallet = shop.server.wallet();
    let id = shop.invoice(PRICE);
    assert_eq!(shop.state(&id), "pending");
    let terms = shop.server.payments().get(&format!("/dpp/api/v1/payment/{id}"));
    assert_eq!(terms.status, 200, "{}", terms.body);
    assert_eq!(wallet.request("DELETE", &format!("/api/v1/invoices/{id}"), b"").status, 204);
    let user = wallet.post("/api/v1/users", r#"{"name":"a"}"#);
    assert_eq!(user.status, 201);
    assert_eq!(shop.get(&format!("/api/v1/users/{}", json_of(&user)["id"]))["name"], "a");
    assert!(shop.get("/api/v1/invoices").is_array());
    assert_eq!(shop.balance(), balance);
}

#[test]
fn the_server_starts_while_its_node_is_down() {
    let mut counter = Counter::new(2);
    let (id, bill) = counter.bill();
    assert_eq!(bill.post(&counter.purse.transaction_for(&bill)).status, 201);
    counter.node.stop();
    let mut counter = counter.restart_after_kill();
    check_serves(&counter.shop, PRICE);
    assert_eq!(counter.shop.payments(&id)[0]["state"], "accepted");
    let (unpaid, bill) = counter.bill();
    let transaction = counter.purse.transaction_for(&bill);
    for _ in 0..2 {
        check_problem(&bill.post(&transaction), 503, "network-unavailable", "no node");
        counter.check_unpaid(&unpaid, "no node");
    }
    counter.node.restart();
    assert_eq!(bill.post(&transaction).status, 201);
    assert_eq!(counter.shop.balance(), 2 * PRICE);
    counter.node.mine(1);
    for id in [&id, &unpaid] {
        wait_until("the proof is found", || counter.shop.payments(id)[0]["state"] == "mined");
    }
}

#[test]
fn the_server_works_without_a_node() {
    let site = Site::new();
    let shop = Merchant { server: site.server(), site };
    check_serves(&shop, 0);
    let id = shop.invoice(PRICE);
    let bill = Bill::at(&shop.payment_url(&id));
    let input = TxIn {
        previous_output: OutPoint { txid: Txid::from_bytes([1; 32]), vout: 0 },
        unlocking_script: Script::default(),
        sequence: u32::MAX,
    };
    let outputs = bill.outputs();
    let transaction = Transaction { version: 1, inputs: vec![input], outputs, lock_time: 0 };
    check_problem(&bill.post(&transaction), 503, "network-unavailable", "no node");
    assert_eq!((shop.state(&id), shop.payments(&id).len()), ("pending".to_owned(), 0));
}

#[test]
fn a_node_that_hangs_before_a_payment() {
    let counter = Counter::new(1);
    let (id, bill) = counter.bill();
    let transaction = counter.purse.transaction_for(&bill);
    let stopped = Stopped::of(&counter.node);
    thread::scope(|scope| {
        let post = scope.spawn(|| bill.post(&transaction));
        check_serves(&counter.shop, 0);
        check_problem(&post.join().unwrap(), 503, "network-unavailable", "it hangs");
    });
    counter.check_unpaid(&id, "it hangs");
    drop(stopped);
    assert_eq!(bill.post(&transaction).status, 201);
    counter.check_paid(&id, &transaction);
    assert_eq!(counter.shop.balance(), PRICE);
}

#[test]
fn a_node_that_hangs_during_a_payment() {
    let (counter, gate) = Counter::with_gate(2);
    let Counter { node, shop, purse } = &counter;
    let (id, bill) = counter.bill();
    let [transaction, other] = [(); 2].map(|()| purse.transaction_for(&bill));
    gate.shut(SEND, Hold::Call);
    let stopped = thread::scope(|scope| {
        let post = scope.spawn(|| bill.post(&transaction));
        gate.wait_for(1);
        let stopped = Stopped::of(node);
        gate.open();
        check_serves(shop, 0);
        check_problem(&post.join().unwrap(), 503, "payment-outcome-unknown", "it hangs");
        stopped
    });
    assert_eq!(shop.payments(&id)[0]["state"], "in-flight");
    assert_eq!(shop.state(&id), "pending");
    check_problem(&bill.post(&other), 409, "payment-in-flight", "another transaction");
    check_problem(&bill.post(&transaction), 503, "payment-outcome-unknown", "once more");
    let delete = shop.server.wallet().request("DELETE", &format!("/api/v1/invoices/{id}"), b"");
    check_problem(&delete, 409, "payment-in-flight", "deleted");
    drop(stopped);
    wait_until("the payment is resolved", || shop.state(&id) == "paid");
    counter.check_paid(&id, &transaction);
    assert_eq!(counter.mempool(), json!([transaction.txid().to_string()]));
    assert_eq!(shop.balance(), PRICE);
    let [first, second] = [(); 2].map(|()| bill.post(&transaction));
    assert_eq!((first.status, first.body), (201, second.body));
    check_problem(&bill.post(&other), 409, "invoice-paid", "another transaction");
}

#[test]
fn a_node_that_stops_during_payments() {
    let (mut counter, gate) = Counter::with_gate(3);
    let [(id, bill), (refused_id, refused_bill)] = [(); 2].map(|()| counter.bill());
    let transaction = counter.purse.transaction_for(&bill);
    let mut unsigned = counter.purse.transaction_for(&refused_bill);
    unsigned.inputs[0].unlocking_script = Script::default();
    gate.shut(SEND, Hold::Call);
    thread::scope(|scope| {
        let posts =
            [scope.spawn(|| bill.post(&transaction)), scope.spawn(|| refused_bill.post(&unsigned))];
        gate.wait_for(2);
        counter.node.stop();
        gate.open();
        for post in posts {
            check_problem(&post.join().unwrap(), 503, "payment-outcome-unknown", "it stopped");
        }
    });
    check_serves(&counter.shop, 0);
    for id in [&id, &refused_id] {
        assert_eq!(counter.shop.payments(id)[0]["state"], "in-flight");
    }
    counter.node.restart();
    wait_until("the payment is resolved", || counter.shop.state(&id) == "paid");
    wait_until("the other one is, too", || counter.shop.payments(&refused_id).is_empty());
    counter.check_paid(&id, &transaction);
    counter.check_unpaid(&refused_id, "unsigned");
    assert_eq!(refused_bill.post(&counter.purse.transaction_for(&refused_bill)).status, 201);
    assert_eq!(counter.shop.balance(), 2 * PRICE);
}

#[test]
fn a_node_whose_answer_is_lost() {
    let (counter, gate) = Counter::with_gate(1);
    let (id, bill) = counter.bill();
    let transaction = counter.purse.transaction_for(&bill);
    gate.shut(SEND, Hold::Answer);
    thread::scope(|scope| {
        let post = scope.spawn(|| bill.post(&transaction));
        gate.wait_for(1);
        gate.cut();
        assert_eq!(post.join().unwrap().status, 201);
    });
    counter.check_paid(&id, &transaction);
    assert_eq!(counter.shop.balance(), PRICE);
}
