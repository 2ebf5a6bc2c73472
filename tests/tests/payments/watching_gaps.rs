//! Payments that are seen late, because the node was down or its messages were lost.

use std::thread;
use std::time::Duration;

use bsv_tests::purse::{FEE, send};
use bsv_tests::rival::tip;
use bsv_tests::{Bill, Node, Purse, free_port};
use bsv_tx::Transaction;
use serde_json::json;

use super::lossy_feed::LossyFeed;
use super::merchant::{Merchant, wait_until};
use super::paying_scene::buyer_with;

/// A payment of an invoice, which is not posted to the shop.
fn payment_of(shop: &Merchant, purse: &Purse, id: &str) -> Transaction {
    purse.spend(&[purse.coin()], Bill::at(&shop.payment_url(id)).outputs(), FEE)
}

/// Has a node connect to another one, and waits until both have the same blocks.
fn connect(node: &Node, other: &Node) {
    let address = format!("{}:{}", other.host, other.peer_port);
    node.call("addnode", json!([address, "onetry"]));
    wait_until("both have the same blocks", || tip(node) == tip(other));
}

#[test]
fn a_payment_at_another_node_while_the_shops_node_is_down_is_seen_when_it_is_back() {
    let zmq = format!("zmqpubrawtx2=tcp://127.0.0.1:{}", free_port());
    let mut node = Node::start_with(&[&zmq]);
    let payers = Node::start();
    payers.mine(110);
    let purse = Purse::filled(&payers, 3, 100_000);
    connect(&node, &payers);
    let shop = buyer_with(&node, json!({}), &[]);
    let [relayed, mined, last] = [1_000, 2_000, 3_000].map(|satoshis| shop.invoice(satoshis));
    send(&payers, &payment_of(&shop, &purse, &relayed));
    wait_until("it is seen in the mempool", || shop.state(&relayed) == "paid");

    node.stop();
    send(&payers, &payment_of(&shop, &purse, &mined));
    payers.mine(2);
    send(&payers, &payment_of(&shop, &purse, &last));
    assert_eq!([&mined, &last].map(|id| shop.state(id)), ["pending", "pending"]);
    node.restart();
    connect(&node, &payers);
    wait_until("it is seen in its block", || shop.state(&mined) == "paid");
    assert_eq!(shop.payments(&mined)[0]["state"], "mined");
    // Nodes do not send each other transactions from before they were connected.
    payers.mine(1);
    wait_until("it is seen in its block", || shop.state(&last) == "paid");
    assert_eq!(shop.balance(), 6_000);
    let books = shop.site.cli_json(&["books", "verify", "--from-height", "0"]);
    assert_eq!(books["differences"], json!([]), "{books}");
}

#[test]
fn payments_of_lost_messages_are_seen_when_the_next_message_comes() {
    let port = free_port();
    let node = Node::start_with(&[&format!("zmqpubrawtx2=tcp://127.0.0.1:{port}")]);
    node.mine(110);
    let purse = Purse::filled(&node, 5, 100_000);
    let feed = LossyFeed::before(port);
    let shop = buyer_with(&node, json!({ "wallet": { "zmq": feed.address } }), &[]);
    let ids = [1_000, 2_000, 3_000, 4_000].map(|satoshis| shop.invoice(satoshis));
    let [told, lost, lost_too, next] = ids.each_ref().map(|id| (id, payment_of(&shop, &purse, id)));
    let is_paid = |id: &String| shop.state(id) == "paid";
    send(&node, &told.1);
    wait_until("it is seen", || is_paid(told.0));

    feed.lose(true);
    for (number, transaction) in [(1, &lost.1), (2, &lost_too.1)] {
        send(&node, transaction);
        wait_until("the message is lost", || feed.lost() == number);
    }
    feed.lose(false);
    assert_eq!([lost.0, lost_too.0].map(|id| shop.state(id)), ["pending", "pending"]);
    // The message about a stranger's transaction shows that messages before it are missing.
    send(&node, &purse.spend(&[purse.coin()], Vec::new(), FEE));
    wait_until("what was lost is seen", || is_paid(lost.0) && is_paid(lost_too.0));
    send(&node, &next.1);
    wait_until("the next one is seen", || is_paid(next.0));
    assert_eq!((shop.balance(), feed.lost()), (10_000, 2));
    let states = ids.each_ref().map(|id| shop.payments(id)[0]["state"].clone());
    assert_eq!(states, ["accepted"; 4], "no block has come");
}

/// A node begins to publish to a subscriber some time after the subscriber has connected.
#[test]
fn a_transaction_published_before_the_subscription_has_reached_the_node_is_seen() {
    let port = free_port();
    let node = Node::start_with(&[&format!("zmqpubrawtx2=tcp://127.0.0.1:{port}")]);
    node.mine(110);
    let purse = Purse::filled(&node, 2, 100_000);
    let feed = LossyFeed::before(port);
    let shop = buyer_with(&node, json!({ "wallet": { "zmq": feed.address } }), &[]);
    let [told, early] = [1_000, 2_000].map(|satoshis| shop.invoice(satoshis));
    send(&node, &payment_of(&shop, &purse, &told));
    wait_until("it is seen", || shop.state(&told) == "paid");

    let payment = payment_of(&shop, &purse, &early);
    feed.lose(true);
    feed.cut();
    wait_until("the shop has connected again", || feed.connections() == 2);
    // The shop reads the mempool right after it has connected, and thus before this payment.
    thread::sleep(Duration::from_millis(300));
    send(&node, &payment);
    wait_until("it is seen", || shop.state(&early) == "paid");
    assert_eq!(shop.payments(&early)[0]["state"], "accepted", "no block has come");
}
