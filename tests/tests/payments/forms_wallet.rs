//! A wallet of the kind that customers have today makes a payment, and returns the transaction to
//! the page.

use bsv_tests::{Brc100Wallet, Node, Site};
use bsv_tx::Transaction;
use serde_json::json;

use super::counter::{Counter, PRICE, check_problem};
use super::forms::{check_taken, post_transaction};
use super::merchant::wait_until;
use super::paying_scene::site_with;

/// A shop that accepts the fee of today's wallets, 1 satoshi per 1000 bytes.
fn cheap_counter() -> Counter {
    let cheap = |node: &Node| site_with(node, json!({ "payments": { "feeRate": 1 } }));
    Counter::on(Node::start(), 0, cheap)
}

fn is_in_mempool(counter: &Counter, transaction: &Transaction) -> bool {
    let txid = json!(transaction.txid().to_string());
    counter.mempool().as_array().unwrap().contains(&txid)
}

#[test]
fn the_payment_of_a_wallet_that_broadcasts_itself_is_accepted() {
    let counter = cheap_counter();
    let wallet = Brc100Wallet::start(&counter.node);
    wallet.fund(&counter.node, &[500_000]);
    for round in 1..=3 {
        let (id, bill) = counter.bill();
        let paid = wallet.pay(&bill.outputs()[0], &json!({ "acceptDelayedBroadcast": false }));
        let transaction = paid.beef().subject().clone();
        assert!(is_in_mempool(&counter, &transaction), "the wallet has broadcast it");
        let reply = post_transaction(&counter, &id, &paid.bytes);
        check_taken(&reply, &transaction, "accepted", "broadcast by the wallet");
        counter.check_paid(&id, &transaction);
        assert_eq!(counter.shop.balance(), round * PRICE);
    }
}

#[test]
fn the_payment_of_a_wallet_that_leaves_broadcasting_to_the_shop_is_accepted() {
    let counter = cheap_counter();
    let wallet = Brc100Wallet::start(&counter.node);
    wallet.fund(&counter.node, &[500_000]);
    let [(first_id, first_bill), (second_id, second_bill)] = [counter.bill(), counter.bill()];
    let first = wallet.pay(&first_bill.outputs()[0], &json!({ "noSend": true }));
    let options = json!({ "noSend": true, "noSendChange": first.change });
    let second = wallet.pay(&second_bill.outputs()[0], &options);
    let ancestors: Vec<_> = second.beef().unmined_ancestors().map(|(txid, _)| txid).collect();
    assert_eq!(ancestors, [first.beef().subject_txid()], "it builds on the one before");
    assert_eq!(counter.mempool(), json!([]), "nobody has broadcast them");

    let body = json!({ "rawTx": hex::encode(&second.bytes) }).to_string();
    let reply = post_transaction(&counter, &second_id, body);
    check_taken(&reply, second.beef().subject(), "accepted", "the second");
    let reply = post_transaction(&counter, &first_id, &first.bytes);
    check_taken(
        &reply,
        first.beef().subject(),
        "accepted",
        "the first, which came with the second",
    );
    for (id, paid) in [(&first_id, &first), (&second_id, &second)] {
        counter.check_paid(id, paid.beef().subject());
        assert!(is_in_mempool(&counter, paid.beef().subject()));
    }
    assert_eq!(counter.shop.balance(), 2 * PRICE);
    counter.node.mine(1);
    assert_eq!(counter.mempool(), json!([]));
}

#[test]
fn the_fees_of_todays_wallets_are_lower_than_a_shop_requires_by_default() {
    let counter = Counter::on(Node::start(), 0, Site::on);
    let wallet = Brc100Wallet::start(&counter.node);
    wallet.fund(&counter.node, &[500_000]);
    let (id, bill) = counter.bill();
    let paid = wallet.pay(&bill.outputs()[0], &json!({ "acceptDelayedBroadcast": false }));
    let reply = post_transaction(&counter, &id, &paid.bytes);
    check_problem(&reply, 422, "payment-waiting", "1 satoshi per 1000 bytes");
    counter.node.mine(1);
    wait_until("it counts once it is mined", || counter.shop.state(&id) == "paid");
    let reply = post_transaction(&counter, &id, &paid.bytes);
    check_taken(&reply, paid.beef().subject(), "mined", "in a block");
}
