//! A node that gets stricter rules after it has accepted a payment. The payment still counts for a
//! while after the node refuses it, and then no more.

use bsv_tests::payee::{Payee, go_dpp_terms, output};
use bsv_tests::purse::{FEE, knows, send};
use bsv_tests::rival::restart_empty_with;
use bsv_tx::{Script, Transaction, TxOut};
use serde_json::json;

use super::counter::{Counter, PRICE};
use super::merchant::{Merchant, wait_until};
use super::paying_scene::check_problem;

/// Settings with which a node refuses transactions with more than 10 bytes of data.
pub(crate) const STRICT: [&str; 2] = ["acceptnonstdoutputs=0", "datacarriersize=10"];
/// Settings with which a node accepts them again.
pub(crate) const LENIENT: [&str; 2] = ["acceptnonstdoutputs=1", "datacarriersize=1000000"];

/// A hundred bytes of data, with a satoshi.
pub(crate) fn data() -> TxOut {
    let script = [&[0x00, 0x6a, 0x4c, 100][..], &[7; 100]].concat();
    TxOut { satoshis: 1, locking_script: Script::from_bytes(script) }
}

/// An invoice, and the transaction that paid it before the node became strict. The node now refuses
/// the transaction.
fn refused_afterwards() -> (Counter, String, Transaction) {
    let mut counter = Counter::new(1);
    let (id, bill) = counter.bill();
    let outputs = [bill.outputs(), vec![data()]].concat();
    let transaction = counter.purse.spend(&[counter.purse.coin()], outputs, FEE);
    assert_eq!(bill.post(&transaction).status, 201);
    restart_empty_with(&mut counter.node, &STRICT);
    wait_until("it is contested", || state_of(&counter.shop, &id) == "contested");
    (counter, id, transaction)
}

fn state_of(shop: &Merchant, id: &str) -> String {
    shop.payments(id)[0]["state"].as_str().unwrap().to_owned()
}

/// Mines a block, and waits until the shop has looked at it.
fn mine_and_follow(counter: &Counter) {
    let probe = counter.shop.fill(1_000);
    counter.node.mine(1);
    wait_until("the block is followed", || state_of(&counter.shop, &probe) == "mined");
}

fn check_stands(counter: &Counter, id: &str) {
    let Counter { shop, .. } = counter;
    assert_eq!((state_of(shop, id).as_str(), shop.state(id).as_str()), ("contested", "paid"));
}

#[test]
fn a_payment_that_the_node_refuses_at_six_tips_is_taken_back_and_counts_again_once_mined() {
    let (mut counter, id, transaction) = refused_afterwards();
    check_stands(&counter, &id);
    assert_eq!(counter.shop.balance(), PRICE);
    let payee = Payee::asking(&go_dpp_terms(&[output(1_000)]));
    check_problem(&counter.shop.pay(&payee.url()), 422, "insufficient-funds");
    let mut probes = 0;
    for _ in 0..5 {
        mine_and_follow(&counter);
        probes += 1_000;
        check_stands(&counter, &id);
        assert_eq!(counter.shop.balance(), PRICE + probes);
    }
    wait_until("it is invalid", || {
        counter.node.mine(1);
        state_of(&counter.shop, &id) == "invalid"
    });
    let Counter { node, shop, .. } = &mut counter;
    assert_eq!((shop.state(&id).as_str(), shop.balance()), ("pending", probes));

    node.restart_with(&LENIENT);
    send(node, &transaction);
    node.mine(1);
    wait_until("it counts again", || shop.state(&id) == "paid");
    assert_eq!((state_of(shop, &id).as_str(), shop.balance()), ("mined", PRICE + probes));
}

#[test]
fn a_payment_that_the_node_accepts_again_before_that_is_not_taken_back() {
    let (mut counter, id, transaction) = refused_afterwards();
    for _ in 0..3 {
        mine_and_follow(&counter);
    }
    check_stands(&counter, &id);
    // Only the shop sends the transaction to the node again.
    counter.node.restart_with(&LENIENT);
    wait_until("it is back", || state_of(&counter.shop, &id) == "accepted");
    assert!(knows(&counter.node, &transaction));
    counter.node.mine(1);
    wait_until("it is mined", || state_of(&counter.shop, &id) == "mined");
    assert_eq!((counter.shop.state(&id).as_str(), counter.shop.balance()), ("paid", PRICE + 3_000));
    assert_eq!(counter.node.call("getrawmempool", json!([])), json!([]));
}
