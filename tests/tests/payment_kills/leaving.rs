//! A server that is killed at every step of a withdrawal and of a refund.

use std::thread;
use std::time::{Duration, Instant};

use bsv_tests::purse::{Bill, FEE, Purse, send};
use bsv_tests::{Node, Reply, is_full_run};
use bsv_tx::{Transaction, TxOut};
use serde_json::{Value, json};

use super::shop::Shop;
use super::steps::{harm, try_steps};

const ADDRESS: &str = "mrCDrCybB6J1vRfbwM5hemdJz73FwDBC8r";
const SCRIPT: &str = "76a914751e76e8199196d454941c45d1b3a323f1433bd688ac";
/// The most coins that a transaction spends.
const MAX_INPUTS: usize = 500;
const WORTH: u64 = 300;

/// Repeats a request until the answer says that the payments were made.
fn ask_until_made(shop: &Shop, path: &str, key: &str, body: &Value) -> Value {
    loop {
        let reply = shop.post_with_key(path, key, &body.to_string());
        match reply {
            Some(Reply { status: 201, body, .. }) => return serde_json::from_str(&body).unwrap(),
            Some(Reply { status: 409 | 503, .. }) | None => {
                thread::sleep(Duration::from_millis(20));
            }
            Some(reply) => panic!("{}", reply.body),
        }
    }
}

/// Waits until all payments by the shop are settled. Answers them, the newest first.
fn all_settled(shop: &Shop) -> Vec<Value> {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let payments = shop.outgoing();
        if payments.iter().all(|payment| payment["state"] == "settled") {
            return payments;
        }
        assert!(Instant::now() < deadline, "some stay open: {payments:?}");
        thread::sleep(Duration::from_millis(50));
    }
}

/// The sum that the transactions of these payments pay to the address, according to the node.
fn arrived(node: &Node, payments: &[Value]) -> u64 {
    let outputs = payments.iter().flat_map(|payment| {
        let hex = node.call("getrawtransaction", json!([payment["txid"]]));
        Transaction::from_hex(hex.as_str().unwrap()).unwrap().outputs
    });
    let to_it = outputs.filter(|output| output.locking_script.to_hex() == SCRIPT);
    to_it.map(|output| output.satoshis).sum()
}

#[test]
fn a_withdrawal_of_all_survives_every_kill() {
    let node = Node::start();
    node.mine(101);
    let coins = if is_full_run() { 1_200 } else { MAX_INPUTS + 1 };
    eprintln!("{coins} of 1200 coins");
    let purse = Purse::filled(&node, 200, coins as u64 * WORTH + 20_000);
    let (shop, killer) = Shop::with_killer(&node);
    let mut made = 0;
    try_steps("withdrawing all", |step| {
        let id = shop.create_invoice(1, step);
        let bill = Bill::at(&shop.payment_url(&id));
        let output = TxOut { satoshis: WORTH, ..bill.outputs()[0].clone() };
        let funding = purse.spend(&[purse.coin()], vec![output; coins], FEE + 4 * coins as u64);
        send(&node, &funding);
        node.mine(1);
        assert_eq!(bill.post(&funding).status, 201);
        let deadline = Instant::now() + Duration::from_secs(60);
        while shop.payments(&id).iter().any(|payment| payment["state"] != "mined") {
            assert!(Instant::now() < deadline, "step {step}: the coins are not mined");
            thread::sleep(Duration::from_millis(50));
        }
        let before = shop.balance();

        let (path, key) = ("/api/v1/withdrawals", format!("all {step}"));
        let body = json!({ "address": ADDRESS, "all": true });
        killer.kill_at(step);
        let first = shop.post_with_key(path, &key, &body.to_string());
        killer.spare();
        let harm = harm(&shop);
        let withdrawal = ask_until_made(&shop, path, &key, &body);
        if let Some(first) = first {
            let first: Value = serde_json::from_str(&first.body).unwrap();
            assert_eq!(first["id"], withdrawal["id"], "step {step}");
        }
        let payments = all_settled(&shop);
        let new = &payments[..payments.len() - made];
        made = payments.len();
        assert_eq!(new.len(), coins.div_ceil(MAX_INPUTS), "step {step}: {new:?}");
        assert!(new.iter().all(|payment| payment["withdrawal"] == withdrawal["id"]));
        let [satoshis, fee] = ["satoshis", "fee"].map(|it| withdrawal[it].as_u64().unwrap());
        assert_eq!(arrived(&node, new), satoshis, "step {step}");
        assert_eq!((satoshis + fee, shop.balance()), (before, 0), "step {step}");
        harm
    });
}

#[test]
fn a_refund_survives_every_kill() {
    let node = Node::start();
    node.mine(101);
    let (shop, killer) = Shop::with_killer(&node);
    shop.fill(100_000);
    let purse = Purse::filled(&node, 400, 10_000);
    let mut made = 0;
    try_steps("refunding", |step| {
        let invoice = shop.create_invoice(3_000, step);
        let bill = Bill::at(&shop.payment_url(&invoice));
        assert_eq!(bill.post(&purse.transaction_for(&bill)).status, 201);
        let before = shop.balance();
        let (path, key) = (format!("/api/v1/invoices/{invoice}/refund"), format!("refund {step}"));
        let body = json!({ "full": true, "to": ADDRESS });
        killer.kill_at(step);
        let first = shop.post_with_key(&path, &key, &body.to_string());
        killer.spare();
        let harm = harm(&shop);
        let refund = ask_until_made(&shop, &path, &key, &body);
        if let Some(first) = first {
            let first: Value = serde_json::from_str(&first.body).unwrap();
            assert_eq!(first["id"], refund["id"], "step {step}");
        }
        let payments = all_settled(&shop);
        let new = &payments[..payments.len() - made];
        made = payments.len();
        assert_eq!(new.len(), 1, "step {step}: {new:?}");
        assert_eq!(arrived(&node, new), 3_000, "step {step}");
        assert_eq!(shop.balance(), before - 3_000 - refund["fee"].as_u64().unwrap());
        harm
    });
}
