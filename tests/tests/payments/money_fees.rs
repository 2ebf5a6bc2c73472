//! The fees of payments and their ancestors: a payment that is too cheap to be mined does not
//! count.

use bsv_tests::purse::{Coin, FEE, knows, send};
use bsv_tests::rival::Rival;
use bsv_tests::{Bill, Node, Site};
use bsv_tx::Transaction;
use serde_json::json;

use super::counter::{Counter, PRICE, check_problem};
use super::merchant::wait_until;
use super::paying_scene::site_with;

/// A shop on a node that requires the fee rate of public miners: 100 satoshis per 1000 bytes.
fn dear_counter(coins: usize) -> Counter {
    Counter::on(Node::start_with(&["minminingtxfee=0.00000100"]), coins, Site::on)
}

/// The fee for so many bytes.
fn cost(bytes: usize) -> u64 {
    bytes as u64 * 100 / 1000
}

fn size(transactions: &[Transaction]) -> usize {
    transactions.iter().map(|transaction| transaction.to_bytes().len()).sum()
}

/// Sends a chain of transactions with this fee, each of which spends the one before. Answers them,
/// and the last one's coin.
fn chain(counter: &Counter, mut coin: Coin, count: usize, fee: u64) -> (Vec<Transaction>, Coin) {
    let mut transactions = Vec::new();
    for _ in 0..count {
        let transaction = counter.purse.spend(&[coin], vec![], fee);
        send(&counter.node, &transaction);
        coin = counter.purse.coins_of(&transaction)[0];
        transactions.push(transaction);
    }
    (transactions, coin)
}

/// A payment that spends this coin, and whose fee is enough for itself and so many bytes more.
fn payment(counter: &Counter, coin: Coin, bill: &Bill, besides: usize) -> Transaction {
    let own = size(&[counter.purse.spend(&[coin], bill.outputs(), FEE)]);
    // The surcharge is for the two roundings of payers, and for a signature that is longer than the
    // first one.
    counter.purse.spend(&[coin], bill.outputs(), cost(own + besides + 2) + 1)
}

fn is_mined(counter: &Counter, transaction: &Transaction) -> bool {
    let params = json!([transaction.txid().to_string(), true]);
    let found = counter.node.try_call("getrawtransaction", params);
    found.is_ok_and(|found| found["confirmations"].as_u64().unwrap_or(0) > 0)
}

#[test]
fn a_payment_pays_for_its_ancestors() {
    let counter = dear_counter(3);
    for parents in [1, 10, 24] {
        let what = format!("{parents} parents");
        let (id, bill) = counter.bill();
        let (free, coin) = chain(&counter, counter.purse.coin(), parents, 0);
        let too_cheap = payment(&counter, coin, &bill, 0);
        let detail = check_problem(&bill.post(&too_cheap), 422, "fee-too-low", &what);
        assert!(detail.contains("satoshis"), "{detail}");
        let all_but_a_little = payment(&counter, coin, &bill, size(&free) - 60);
        check_problem(&bill.post(&all_but_a_little), 422, "fee-too-low", &what);
        counter.check_unpaid(&id, &what);
        assert!(!knows(&counter.node, &too_cheap), "{what}");
        counter.node.mine(1);
        assert!(!is_mined(&counter, &free[0]), "{what}");

        let sufficient = payment(&counter, coin, &bill, size(&free));
        let reply = bill.post(&sufficient);
        assert_eq!(reply.status, 201, "{what}: {}", reply.body);
        counter.check_paid(&id, &sufficient);
        counter.node.mine(1);
        assert!(is_mined(&counter, &sufficient), "{what}");
        assert_eq!(counter.mempool(), json!([]), "{what}");
    }
    assert_eq!(counter.shop.balance(), 3 * PRICE);
}

#[test]
fn a_satoshi_less_than_miners_ask_for_is_too_little() {
    let counter = dear_counter(1);
    let coin = counter.purse.coin();
    let (id, bill) = counter.bill();
    let with_fee = |fee| counter.purse.spend(&[coin], bill.outputs(), fee);
    // The length of signatures varies, and with it the least fee.
    let least = |fee: u64| cost(size(&[with_fee(fee)]));
    let fee = (10..40).find(|fee| fee + 1 == least(*fee)).unwrap();
    check_problem(&bill.post(&with_fee(fee)), 422, "fee-too-low", "a satoshi too little");
    counter.check_unpaid(&id, "a satoshi too little");
    let sufficient = with_fee((10..40).find(|fee| *fee == least(*fee)).unwrap());
    assert_eq!(bill.post(&sufficient).status, 201);
    counter.check_paid(&id, &sufficient);
    counter.node.mine(1);
    assert!(is_mined(&counter, &sufficient));
}

#[test]
fn the_least_fee_is_a_satoshi_even_at_a_tiny_fee_rate() {
    let node = Node::start();
    let counter =
        Counter::on(node, 1, |node| site_with(node, json!({ "payments": { "feeRate": 2 } })));
    let coin = counter.purse.coin();
    let (id, bill) = counter.bill();
    let with_fee = |fee| counter.purse.spend(&[coin], bill.outputs(), fee);
    check_problem(&bill.post(&with_fee(0)), 422, "fee-too-low", "nothing");
    assert_eq!(bill.post(&with_fee(1)).status, 201);
    counter.check_paid(&id, &with_fee(1));
    counter.node.mine(1);
    assert!(is_mined(&counter, &with_fee(1)));
}

#[test]
fn a_waiting_payment_counts_once_a_rival_has_mined_its_cheap_parent() {
    let counter = Counter::new(1);
    let rival = Rival::of(&counter.node);
    let (parents, coin) = chain(&counter, counter.purse.coin(), 1, 2);
    let (id, bill) = counter.bill();
    let transaction = payment(&counter, coin, &bill, 0);
    send(&counter.node, &transaction);
    check_problem(&bill.post(&transaction), 422, "payment-waiting", "a cheap parent");
    assert_eq!(counter.shop.balance(), 0);
    rival.mine(&[&parents[0]], 1);
    rival.show_to(&counter.node);
    assert_eq!(counter.mempool(), json!([transaction.txid().to_string()]));
    wait_until("it counts", || counter.shop.state(&id) == "paid");
    counter.check_paid(&id, &transaction);
    assert_eq!(bill.post(&transaction).status, 201);
}

#[test]
fn the_high_fee_of_an_ancestor_does_not_pay_for_its_descendants() {
    let counter = dear_counter(1);
    let (_, coin) = chain(&counter, counter.purse.coin(), 1, 20_000);
    let (free, coin) = chain(&counter, coin, 3, 0);
    let (id, bill) = counter.bill();
    let too_cheap = payment(&counter, coin, &bill, 0);
    check_problem(&bill.post(&too_cheap), 422, "fee-too-low", "a rich ancestor");
    counter.check_unpaid(&id, "a rich ancestor");
    assert_eq!(counter.shop.balance(), 0);
    // A miner does not mine it either.
    send(&counter.node, &too_cheap);
    counter.node.mine(2);
    assert!(!is_mined(&counter, &too_cheap) && !is_mined(&counter, &free[0]));
    check_problem(&bill.post(&too_cheap), 422, "payment-waiting", "sent by the payer");
    assert_eq!(counter.shop.balance(), 0);
}

#[test]
fn an_ancestor_that_another_ancestor_has_paid_for_need_not_be_paid_for_again() {
    let counter = dear_counter(1);
    let coin = counter.purse.coin();
    let half =
        bsv_tx::TxOut { satoshis: coin.satoshis / 2, locking_script: counter.purse.script() };
    let parent = counter.purse.spend(&[coin], vec![half], 0);
    send(&counter.node, &parent);
    let [one, other] = counter.purse.coins_of(&parent).try_into().unwrap();
    let (child, paid_for) = chain(&counter, one, 1, cost(size(&[parent]) + 250) + 1);
    let (id, bill) = counter.bill();
    // A payment that does not spend from the ancestor that paid may be mined before that one. It
    // has to pay itself.
    let alone = payment(&counter, other, &bill, 0);
    check_problem(&bill.post(&alone), 422, "fee-too-low", "not built on what has paid");
    let coins = [other, paid_for];
    let own = size(&[counter.purse.spend(&coins, bill.outputs(), FEE)]);
    let cheap = counter.purse.spend(&coins, bill.outputs(), cost(own + 4) + 1);
    assert_eq!(bill.post(&cheap).status, 201);
    counter.check_paid(&id, &cheap);
    counter.node.mine(1);
    assert!(is_mined(&counter, &cheap) && is_mined(&counter, &child[0]));
}

#[test]
fn a_payment_has_a_hundred_cheap_unconfirmed_ancestors_at_most() {
    // The node takes this fee for a transaction of the chain, and the shop does not.
    const CHEAP: u64 = 2;
    let counter = Counter::new(2);
    let (cheap, coin) = chain(&counter, counter.purse.coin(), 101, CHEAP);
    let (id, bill) = counter.bill();
    let long = payment(&counter, coin, &bill, size(&cheap));
    check_problem(&bill.post(&long), 422, "too-many-ancestors", "101");
    counter.check_unpaid(&id, "101 ancestors");
    assert!(!knows(&counter.node, &long));
    // If the payer sends it to the node, it may be mined some day.
    send(&counter.node, &long);
    check_problem(&bill.post(&long), 422, "payment-waiting", "sent by the payer");
    assert_eq!(counter.shop.balance(), 0);
    counter.node.mine(1);
    wait_until("it counts", || counter.shop.state(&id) == "paid");
    assert_eq!(bill.post(&long).status, 201);
    assert_eq!(counter.shop.balance(), PRICE);

    let (cheap, coin) = chain(&counter, counter.purse.coin(), 100, CHEAP);
    let (id, bill) = counter.bill();
    let transaction = payment(&counter, coin, &bill, size(&cheap));
    let reply = bill.post(&transaction);
    assert_eq!(reply.status, 201, "100 ancestors: {}", reply.body);
    counter.check_paid(&id, &transaction);
}

#[test]
fn a_payment_has_a_thousand_unconfirmed_ancestors_at_most() {
    // A fee that is enough for one transaction of the chain.
    const LITTLE: u64 = 30;
    let (counter, gate) = Counter::with_gate(1);
    let (_, coin) = chain(&counter, counter.purse.coin(), 1_000, LITTLE);
    let (id, bill) = counter.bill();
    let transaction = counter.purse.spend(&[coin], bill.outputs(), FEE);
    let asked = || gate.heard("getmempoolentry", "");
    let before = asked();
    let reply = bill.post(&transaction);
    assert_eq!(reply.status, 201, "1,000 ancestors: {}", reply.body);
    counter.check_paid(&id, &transaction);
    assert!(asked() - before < 20, "{} requests", asked() - before);

    let (id, bill) = counter.bill();
    let change = counter.purse.coins_of(&transaction)[0];
    let long = counter.purse.spend(&[change], bill.outputs(), FEE);
    check_problem(&bill.post(&long), 422, "too-many-ancestors", "1,001");
    counter.check_unpaid(&id, "1,001 ancestors");
}

#[test]
fn a_waiting_payment_counts_once_it_is_mined() {
    // This node mines transactions for a hundredth of the fee rate that the shop requires.
    let counter = Counter::new(1);
    let (id, bill) = counter.bill();
    let cheap = counter.purse.spend(&[counter.purse.coin()], bill.outputs(), 2);
    check_problem(&bill.post(&cheap), 422, "fee-too-low", "not sent yet");
    counter.check_unpaid(&id, "not sent yet");
    send(&counter.node, &cheap);
    for _ in 0..3 {
        check_problem(&bill.post(&cheap), 422, "payment-waiting", "sent by the payer");
        let [payment] = counter.shop.payments(&id).try_into().unwrap();
        assert_eq!((&payment["state"], &payment["satoshis"]), (&json!("waiting"), &json!(PRICE)));
        assert_eq!((counter.shop.state(&id).as_str(), counter.shop.balance()), ("pending", 0));
    }
    counter.node.mine(1);
    wait_until("it counts", || counter.shop.state(&id) == "paid");
    assert_eq!(counter.shop.payments(&id)[0]["state"], "mined");
    assert_eq!((bill.post(&cheap).status, counter.shop.balance()), (201, PRICE));
}

#[test]
fn a_waiting_payment_is_mined_if_its_child_pays_for_it() {
    let counter = dear_counter(1);
    let (id, bill) = counter.bill();
    let free = counter.purse.spend(&[counter.purse.coin()], bill.outputs(), 0);
    send(&counter.node, &free);
    check_problem(&bill.post(&free), 422, "payment-waiting", "sent by the payer");
    counter.node.mine(2);
    assert_eq!((counter.shop.state(&id).as_str(), counter.shop.balance()), ("pending", 0));
    chain(&counter, counter.purse.coins_of(&free)[0], 1, 1_000);
    counter.node.mine(1);
    assert!(is_mined(&counter, &free));
    wait_until("it counts", || counter.shop.state(&id) == "paid");
    assert_eq!((bill.post(&free).status, counter.shop.balance()), (201, PRICE));
}
