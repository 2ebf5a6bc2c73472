//! Which coins are spent: those that nobody can take back come first, and those that may never
//! exist are not spent.

use bsv_tests::payee::{Payee, go_dpp_terms, output};
use bsv_tests::purse::{FEE, send};
use bsv_tests::rival::restart_empty_with;
use bsv_tests::{Bill, Node, Purse};
use bsv_tx::{OutPoint, Transaction, Txid};
use serde_json::json;

use super::counter::check_problem;
use super::merchant::{Merchant, wait_until};
use super::paying_scene::buyer_with;

/// A node, and a wallet that has mined coins of these amounts, paid by strangers.
fn scene(mined: &[u64]) -> (Node, Purse, Merchant) {
    let node = Node::start();
    node.mine(110);
    let purse = Purse::filled(&node, 3, 100_000);
    let wallet = buyer_with(&node, json!({}), mined);
    node.mine(1);
    wait_until("all is mined", || {
        wallet
            .get("/api/v1/invoices")
            .as_array()
            .unwrap()
            .iter()
            .all(|it| wallet.payments(it["id"].as_str().unwrap())[0]["state"] == "mined")
    });
    (node, purse, wallet)
}

/// Pays so much. Answers the coins that the payment spends.
fn spent_for(wallet: &Merchant, satoshis: u64) -> Vec<OutPoint> {
    let payee = Payee::asking(&go_dpp_terms(&[output(satoshis)]));
    wallet.pay_ok(&payee.url());
    payee.paid_with().inputs.iter().map(|input| input.previous_output).collect()
}

/// Checks that the wallet cannot pay so much.
fn lacks(wallet: &Merchant, satoshis: u64, what: &str) {
    let payee = Payee::asking(&go_dpp_terms(&[output(satoshis)]));
    check_problem(&wallet.pay(&payee.url()), 422, "insufficient-funds", what);
    assert!(payee.requests("POST").is_empty(), "{what}");
}

fn makers(outpoints: &[OutPoint]) -> Vec<Txid> {
    outpoints.iter().map(|outpoint| outpoint.txid).collect()
}

/// Creates an invoice of this amount. Answers a payment of it with this fee.
fn paying(
    wallet: &Merchant,
    purse: &Purse,
    satoshis: u64,
    fee: u64,
) -> (String, Bill, Transaction) {
    let id = wallet.invoice(satoshis);
    let bill = Bill::at(&wallet.payment_url(&id));
    let transaction = purse.spend(&[purse.coin()], bill.outputs(), fee);
    (id, bill, transaction)
}

#[test]
fn mined_coins_and_change_come_before_what_strangers_can_take_back() {
    let (node, purse, wallet) = scene(&[50_000]);
    let (id, bill, strangers) = paying(&wallet, &purse, 12_000, FEE);
    assert_eq!(bill.post(&strangers).status, 201);
    // The stranger's coin would fit the amount best.
    let first = spent_for(&wallet, 11_000);
    assert!(!makers(&first).contains(&strangers.txid()), "the mined coin");
    let second = spent_for(&wallet, 11_000);
    assert!(!makers(&second).contains(&strangers.txid()), "own change");
    let third = spent_for(&wallet, 30_000);
    assert!(makers(&third).contains(&strangers.txid()), "nothing else suffices");
    let fresh = paying(&wallet, &purse, 12_000, FEE);
    assert_eq!(fresh.1.post(&fresh.2).status, 201);
    node.mine(1);
    wait_until("both are mined", || {
        [&id, &fresh.0].iter().all(|id| wallet.payments(id)[0]["state"] == "mined")
    });
    assert_eq!(makers(&spent_for(&wallet, 11_000)), [fresh.2.txid()], "mined, it fits best");
}

#[test]
fn coins_that_may_never_be_mined_are_not_spent() {
    let (node, purse, wallet) = scene(&[]);
    let (id, bill, free) = paying(&wallet, &purse, 50_000, 0);
    send(&node, &free);
    check_problem(&bill.post(&free), 422, "payment-waiting", "no fee");
    lacks(&wallet, 10_000, "a waiting coin");
    let (_, bill, locked) = {
        let (id, bill, mut locked) = paying(&wallet, &purse, 50_000, FEE);
        locked.lock_time = 400_000_000;
        locked.inputs[0].sequence = 0;
        (id, bill, locked)
    };
    assert_eq!(bill.post(&locked).status, 422);
    lacks(&wallet, 10_000, "a locked coin");
    assert_eq!((wallet.balance(), wallet.state(&id).as_str()), (0, "pending"));
}

#[test]
fn coins_that_the_network_has_lost_are_not_spent() {
    let (mut node, purse, wallet) = scene(&[]);
    let (id, bill, transaction) = paying(&wallet, &purse, 50_000, FEE);
    assert_eq!(bill.post(&transaction).status, 201);
    restart_empty_with(&mut node, &["maxscriptsizepolicy=20"]);
    wait_until("it is contested", || wallet.payments(&id)[0]["state"] == "contested");
    lacks(&wallet, 10_000, "a contested coin");
    assert_eq!((wallet.balance(), wallet.state(&id).as_str()), (50_000, "paid"));
    node.restart_with(&["maxscriptsizepolicy=0"]);
    wait_until("it is back", || wallet.payments(&id)[0]["state"] == "accepted");
    assert_eq!(makers(&spent_for(&wallet, 10_000)), [transaction.txid()]);
}
