//! A node in safe mode, as after a long fork, accepts no transaction. Its refusals say nothing
//! about the transactions.

use bsv_tests::payee::{Payee, go_dpp_terms, output};
use bsv_tests::purse::knows;
use bsv_tests::rival::restart_empty_with;
use bsv_tests::{Bill, Peer};
use serde_json::json;

use super::counter::{Counter, PRICE, check_problem};
use super::merchant::wait_until;

/// Gives the node a payment as other nodes would, mines it, and waits until the shop has seen that.
fn mine_and_follow(counter: &Counter) {
    let Counter { node, shop, .. } = counter;
    let id = shop.invoice(1_000);
    let transaction = counter.purse.transaction_for(&Bill::at(&shop.payment_url(&id)));
    let mut peer = Peer::of(node);
    peer.give(&transaction);
    wait_until("the node has it", || knows(node, &transaction));
    assert_eq!(Bill::at(&shop.payment_url(&id)).post(&transaction).status, 201);
    node.mine(1);
    wait_until("the block is followed", || shop.payments(&id)[0]["state"] == "mined");
}

#[test]
fn a_payment_that_a_node_in_safe_mode_does_not_accept_is_neither_refused_nor_invalid() {
    let mut counter = Counter::new(12);
    let [(id, bill), (other_id, other_bill)] = [(); 2].map(|()| counter.bill());
    let [transaction, other] = [&bill, &other_bill].map(|it| counter.purse.transaction_for(it));
    assert_eq!(bill.post(&transaction).status, 201);
    restart_empty_with(&mut counter.node, &["testsafemode=1"]);
    let sent = counter.node.try_call("sendrawtransaction", json!([other.to_hex()]));
    assert!(sent.unwrap_err().to_string().contains("safe mode"));
    wait_until("it is contested", || counter.shop.payments(&id)[0]["state"] == "contested");
    check_problem(&other_bill.post(&other), 503, "payment-outcome-unknown", "safe mode");
    for blocks in 1..=8 {
        mine_and_follow(&counter);
        assert_eq!(counter.shop.payments(&id)[0]["state"], "contested");
        assert_eq!(counter.shop.state(&id), "paid");
        assert_eq!(counter.shop.balance(), PRICE + 1_000 * blocks);
        assert_eq!(counter.shop.payments(&other_id)[0]["state"], "in-flight");
    }
    counter.node.restart_with(&["testsafemode=0"]);
    wait_until("it is back", || counter.shop.payments(&id)[0]["state"] == "accepted");
    wait_until("the other one is taken", || counter.shop.state(&other_id) == "paid");
    counter.node.mine(1);
    for id in [&id, &other_id] {
        wait_until("it is mined", || counter.shop.payments(id)[0]["state"] == "mined");
    }
    assert_eq!(counter.shop.balance(), 2 * PRICE + 8_000);
}

#[test]
fn a_payment_that_the_payee_accepts_while_the_node_is_in_safe_mode_is_unseen() {
    let mut counter = Counter::new(0);
    counter.shop.fill(PRICE);
    counter.node.mine(1);
    counter.node.restart_with(&["testsafemode=1"]);
    let payee = Payee::asking(&go_dpp_terms(&[output(1_000)]));
    counter.shop.pay_ok(&payee.url());
    assert_eq!(counter.shop.outgoing_states(), ["unseen"]);
    counter.node.restart_with(&["testsafemode=0"]);
    wait_until("it is settled", || counter.shop.outgoing_states() == ["settled"]);
    assert!(knows(&counter.node, &payee.paid_with()));
}
