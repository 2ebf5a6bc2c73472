//! Payments whose outcome is open. They stay open until the network shows them, and are not sent to
//! the node again once they are decided.

use bsv_tests::purse::{FEE, knows, send};
use bsv_tests::{Gate, Hold, Node, Refusal, Site};
use bsv_tx::{Script, Transaction};
use serde_json::json;

use super::counter::{Counter, PRICE, check_problem};
use super::merchant::wait_until;

const SEND: &str = "sendrawtransaction";
const LOOK: &str = "getmerkleproof2";

/// A node gives this answer both for transactions that it is still checking and for ones that it
/// has refused.
const HEARD_OF: Refusal = Refusal { method: SEND, code: -26, message: "257: txn-already-known" };
const STARTING: Refusal = Refusal { method: SEND, code: -28, message: "Loading block index..." };

fn check_in_flight(counter: &Counter, id: &str) {
    let Counter { shop, .. } = counter;
    assert_eq!(shop.payments(id)[0]["state"], "in-flight");
    assert_eq!((shop.state(id).as_str(), shop.balance()), ("pending", 0));
}

#[test]
fn a_payment_that_the_node_has_only_heard_of_is_neither_paid_nor_refused() {
    let (counter, gate) = Counter::with_gate(2);
    let (id, bill) = counter.bill();
    let [transaction, other] = [(); 2].map(|()| counter.purse.transaction_for(&bill));
    gate.refuse(HEARD_OF);
    for _ in 0..2 {
        check_problem(&bill.post(&transaction), 503, "payment-outcome-unknown", "heard of");
        check_in_flight(&counter, &id);
        check_problem(&bill.post(&other), 409, "payment-in-flight", "another transaction");
    }
    assert!(!knows(&counter.node, &transaction));
    // Now the node has checked the transaction.
    send(&counter.node, &transaction);
    wait_until("it counts", || counter.shop.state(&id) == "paid");
    counter.check_paid(&id, &transaction);
    assert_eq!(counter.shop.balance(), PRICE);
    assert_eq!(bill.post(&transaction).status, 201);
}

#[test]
fn a_payment_whose_proof_is_gone_when_it_is_asked_for_is_neither_paid_nor_underpaid() {
    let (counter, gate) = Counter::with_gate(1);
    let (id, bill) = counter.bill();
    let transaction = counter.purse.transaction_for(&bill);
    gate.shut("getblock", Hold::Call);
    gate.refuse(Refusal { method: LOOK, code: -5, message: "not found" });
    send(&counter.node, &transaction);
    counter.node.mine(1);
    check_problem(&bill.post(&transaction), 503, "payment-outcome-unknown", "does not show it");
    check_in_flight(&counter, &id);
    gate.accept();
    gate.open();
    wait_until("it counts", || counter.shop.state(&id) == "paid");
}

/// Leaves a payment open, and waits until the shop has found that the network does not show it and
/// is about to send it again.
fn about_to_be_resumed(gate: &Gate, counter: &Counter, id: &str, transaction: &Transaction) {
    let has_looked = || gate.heard("getrawtransaction", "") > 0;
    wait_until("the shop has looked whether the node has an index", has_looked);
    gate.refuse(STARTING);
    let reply = counter.post_bytes(id, &transaction.to_bytes());
    check_problem(&reply, 503, "payment-outcome-unknown", "starting");
    check_in_flight(counter, id);
    gate.shut(LOOK, Hold::Answer);
    gate.wait_for(1);
    gate.let_pass();
    gate.accept();
}

/// Lets the shop continue, and waits until it has followed another block.
fn resume(gate: &Gate, counter: &Counter) {
    gate.open();
    let (id, bill) = counter.bill();
    assert_eq!(bill.post(&counter.purse.transaction_for(&bill)).status, 201);
    counter.node.mine(1);
    wait_until("the block is followed", || counter.shop.payments(&id)[0]["state"] == "mined");
}

#[test]
fn a_payment_that_the_network_shows_meanwhile_is_not_sent_again() {
    let (counter, gate) = Counter::with_gate(2);
    let (id, bill) = counter.bill();
    let transaction = counter.purse.transaction_for(&bill);
    about_to_be_resumed(&gate, &counter, &id, &transaction);
    assert_eq!(bill.post(&transaction).status, 201);
    counter.check_paid(&id, &transaction);
    let offered = gate.heard(SEND, &transaction.to_hex());
    resume(&gate, &counter);
    assert_eq!(gate.heard(SEND, &transaction.to_hex()), offered);
    assert_eq!(counter.shop.balance(), 2 * PRICE);
}

#[test]
fn a_payment_that_is_refused_meanwhile_is_not_sent_again() {
    let (counter, gate) = Counter::with_gate(2);
    let (id, bill) = counter.bill();
    let mut transaction = counter.purse.transaction_for(&bill);
    transaction.inputs[0].unlocking_script = Script::default();
    about_to_be_resumed(&gate, &counter, &id, &transaction);
    check_problem(&bill.post(&transaction), 422, "refused-by-network", "unsigned");
    counter.check_unpaid(&id, "unsigned");
    let offered = gate.heard(SEND, &transaction.to_hex());
    resume(&gate, &counter);
    assert_eq!(gate.heard(SEND, &transaction.to_hex()), offered);
    counter.check_unpaid(&id, "unsigned");
    assert_eq!((counter.shop.balance(), counter.mempool()), (PRICE, json!([])));
}

#[test]
fn a_payment_for_which_the_mempool_has_no_room_is_neither_paid_nor_refused() {
    let (counter, gate) = Counter::with_gate(2);
    let (id, bill) = counter.bill();
    let transaction = counter.purse.transaction_for(&bill);
    for message in ["66: mempool min fee not met", "66: mempool full"] {
        gate.refuse(Refusal { method: SEND, code: -26, message });
        check_problem(&bill.post(&transaction), 503, "payment-outcome-unknown", message);
        check_in_flight(&counter, &id);
    }
    gate.accept();
    wait_until("it is sent again", || counter.shop.state(&id) == "paid");
    counter.check_paid(&id, &transaction);
}

#[test]
fn a_payment_whose_chain_is_too_long_for_the_mempool_does_not_hold_the_invoice() {
    let node = Node::start_with(&["limitancestorcount=2"]);
    let counter = Counter::on(node, 1, Site::on);
    let (id, bill) = counter.bill();
    let mut coin = counter.purse.coin();
    for _ in 0..2 {
        let parent = counter.purse.spend(&[coin], Vec::new(), FEE);
        send(&counter.node, &parent);
        coin = counter.purse.coins_of(&parent)[0];
    }
    let transaction = counter.purse.spend(&[coin], bill.outputs(), FEE);
    check_problem(&bill.post(&transaction), 422, "refused-by-network", "a long chain");
    counter.check_unpaid(&id, "a long chain");
    counter.node.mine(1);
    assert_eq!(bill.post(&transaction).status, 201);
    counter.check_paid(&id, &transaction);
}
