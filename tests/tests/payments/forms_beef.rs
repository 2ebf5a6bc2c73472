//! Payments in BEEF, with ancestors that the node does not have.

use std::thread;

use bsv_tests::ancestry::beef;
use bsv_tests::purse::{Coin, FEE, knows, send};
use bsv_tests::rival::{Rival, restart_empty};
use bsv_tests::{Bill, Gate, Hold, Node};
use bsv_tx::{Beef, BeefVersion, Transaction, TxOut};
use serde_json::json;

use super::counter::{Counter, PRICE, check_problem};
use super::forms::{check_taken, post_transaction};
use super::merchant::wait_until;

const SEND: &str = "sendrawtransaction";

/// A chain of transactions with this fee, each of which spends the one before, and the last one's
/// coin. They are not sent to anybody.
fn chain(counter: &Counter, mut coin: Coin, count: usize, fee: u64) -> (Vec<Transaction>, Coin) {
    let mut transactions = Vec::new();
    for _ in 0..count {
        let transaction = counter.purse.spend(&[coin], vec![], fee);
        coin = counter.purse.coins_of(&transaction)[0];
        transactions.push(transaction);
    }
    (transactions, coin)
}

/// A payment of an invoice, and its ancestors, none of which is sent to anybody.
struct Payment {
    id: String,
    bill: Bill,
    transaction: Transaction,
    ancestors: Vec<Transaction>,
}

impl Payment {
    fn on(counter: &Counter, ancestors: usize) -> Self {
        let (id, bill) = counter.bill();
        let (ancestors, coin) = chain(counter, counter.purse.coin(), ancestors, FEE);
        let transaction = counter.purse.spend(&[coin], bill.outputs(), FEE);
        Self { id, bill, transaction, ancestors }
    }

    fn beef(&self, counter: &Counter) -> Beef {
        beef(&counter.node, BeefVersion::V2, &self.transaction, &self.ancestors)
    }

    /// The Atomic BEEF, which is the form in which wallets return a payment.
    fn atomic(&self, counter: &Counter) -> Vec<u8> {
        self.beef(counter).into_atomic().unwrap().to_bytes()
    }

    fn is_known(&self, node: &Node) -> bool {
        knows(node, &self.transaction) && self.ancestors.iter().all(|each| knows(node, each))
    }

    fn is_unknown(&self, node: &Node) -> bool {
        !knows(node, &self.transaction) && !self.ancestors.iter().any(|each| knows(node, each))
    }
}

fn is_mined(counter: &Counter, transaction: &Transaction) -> bool {
    let params = json!([transaction.txid().to_string(), true]);
    let found = counter.node.try_call("getrawtransaction", params);
    found.is_ok_and(|found| found["confirmations"].as_u64().unwrap_or(0) > 0)
}

#[test]
fn the_node_gets_the_ancestors_of_a_payment_before_it() {
    let counter = Counter::new(9);
    for ancestors in [1, 3, 20] {
        for form in ["V1", "V2", "Atomic"] {
            let payment = Payment::on(&counter, ancestors);
            let Payment { id, bill, transaction, ancestors } = &payment;
            let what = format!("{form} on {} ancestors", ancestors.len());
            let raw = bill.post(transaction);
            check_problem(&raw, 422, "unknown-inputs", &format!("{what}, alone"));
            let bytes = match form {
                "V1" => beef(&counter.node, BeefVersion::V1, transaction, ancestors).to_bytes(),
                "V2" => payment.beef(&counter).to_bytes(),
                _ => payment.atomic(&counter),
            };
            assert!(payment.is_unknown(&counter.node), "{what}");
            check_taken(&post_transaction(&counter, id, bytes), transaction, "accepted", &what);
            counter.check_paid(id, transaction);
            assert!(payment.is_known(&counter.node), "{what}");
            // Now the payment is accepted without its ancestors, too.
            assert_eq!(bill.post(transaction).status, 201);
        }
    }
    assert_eq!(counter.shop.balance(), 9 * PRICE);
    counter.node.mine(1);
    assert_eq!(counter.mempool(), json!([]));
}

#[test]
fn some_ancestors_may_be_known_or_mined_already() {
    let counter = Counter::new(6);
    for (sent, blocks) in [(1, 0), (2, 0), (4, 0), (1, 1), (3, 1), (4, 1)] {
        let what = format!("{sent} of 4 sent before {blocks} blocks");
        let payment = Payment::on(&counter, 4);
        let bytes = payment.atomic(&counter);
        payment.ancestors[..sent].iter().for_each(|ancestor| send(&counter.node, ancestor));
        counter.node.mine(blocks);
        let reply = post_transaction(&counter, &payment.id, bytes);
        check_taken(&reply, &payment.transaction, "accepted", &what);
        counter.check_paid(&payment.id, &payment.transaction);
    }
    assert_eq!(counter.shop.balance(), 6 * PRICE);
}

#[test]
fn a_payment_pays_for_the_ancestors_that_come_with_it() {
    let node = Node::start_with(&["minminingtxfee=0.00000100"]);
    let mut gate = None;
    let counter = Counter::on(node, 3, |node| gate.insert(Gate::before(node)).site());
    let gate = gate.unwrap();
    let cost = |bytes: usize| bytes as u64 * 100 / 1000;
    for parents in [1, 10, 24] {
        let what = format!("{parents} parents");
        let (id, bill) = counter.bill();
        let (ancestors, coin) = chain(&counter, counter.purse.coin(), parents, 0);
        let free: usize = ancestors.iter().map(|each| each.to_bytes().len()).sum();
        let paying = |besides: usize| {
            let own = counter.purse.spend(&[coin], bill.outputs(), FEE).to_bytes().len();
            let fee = cost(own + besides + 2) + 1;
            let transaction = counter.purse.spend(&[coin], bill.outputs(), fee);
            let bytes = beef(&counter.node, BeefVersion::V1, &transaction, &ancestors).to_bytes();
            (transaction, bytes)
        };
        let sent = gate.heard(SEND, "");
        for besides in [0, free - 60] {
            let reply = post_transaction(&counter, &id, paying(besides).1);
            check_problem(&reply, 422, "fee-too-low", &what);
        }
        assert_eq!(gate.heard(SEND, ""), sent, "{what}");
        counter.check_unpaid(&id, &what);
        let (transaction, bytes) = paying(free);
        check_taken(&post_transaction(&counter, &id, bytes), &transaction, "accepted", &what);
        counter.node.mine(1);
        assert!(is_mined(&counter, &transaction), "{what}");
        assert_eq!(counter.mempool(), json!([]), "{what}");
    }
    assert_eq!(counter.shop.balance(), 3 * PRICE);
}

#[test]
fn a_hundred_cheap_ancestors_come_with_a_payment_at_most() {
    // The node takes this fee for a transaction of the chain, and the shop does not.
    const CHEAP: u64 = 2;
    // A fee that is enough for one transaction of the chain.
    const LITTLE: u64 = 30;
    let (counter, gate) = Counter::with_gate(3);
    let pay = |ancestors: usize, each: u64| {
        let (id, bill) = counter.bill();
        let (ancestors, coin) = chain(&counter, counter.purse.coin(), ancestors, each);
        let transaction = counter.purse.spend(&[coin], bill.outputs(), 3_000);
        let bytes = beef(&counter.node, BeefVersion::V1, &transaction, &ancestors).to_bytes();
        let reply = post_transaction(&counter, &id, bytes);
        (id, transaction, reply)
    };
    let (id, _, reply) = pay(101, CHEAP);
    check_problem(&reply, 422, "too-many-ancestors", "101");
    counter.check_unpaid(&id, "101");
    assert_eq!(gate.heard(SEND, ""), 0);
    for (ancestors, each) in [(100, CHEAP), (500, LITTLE)] {
        let (id, transaction, reply) = pay(ancestors, each);
        check_taken(&reply, &transaction, "accepted", &ancestors.to_string());
        counter.check_paid(&id, &transaction);
    }
}

#[test]
fn a_proof_that_a_reorganisation_has_overtaken_does_not_matter_if_the_node_has_the_parent() {
    let counter = Counter::new(2);
    let rival = Rival::of(&counter.node);
    let coins = [(); 2].map(|()| counter.purse.coin());
    let parents = coins.map(|coin| counter.purse.spend(&[coin], vec![], FEE));
    parents.iter().for_each(|parent| send(&counter.node, parent));
    counter.node.mine(1);
    let payments = parents.each_ref().map(|parent| {
        let (id, bill) = counter.bill();
        let coin = counter.purse.coins_of(parent)[0];
        let transaction = counter.purse.spend(&[coin], bill.outputs(), FEE);
        let bytes = beef(&counter.node, BeefVersion::V2, &transaction, &[]).to_bytes();
        (id, transaction, bytes)
    });
    // The other chain does not have the first parent, and spends the coin of the second one.
    let theft = counter.purse.spend(&[coins[1]], vec![], 2 * FEE);
    rival.mine(&[&theft], 2);
    rival.show_to(&counter.node);
    assert!(!is_mined(&counter, &parents[0]) && knows(&counter.node, &parents[0]));
    let [(first, transaction, bytes), (second, _, lost)] = payments;
    let reply = post_transaction(&counter, &second, lost);
    check_problem(&reply, 422, "bad-ancestry", "a parent that is gone");
    counter.check_unpaid(&second, "a parent that is gone");
    check_taken(&post_transaction(&counter, &first, bytes), &transaction, "accepted", "a parent");
    counter.check_paid(&first, &transaction);
}

#[test]
fn a_node_gets_the_ancestors_again_that_it_has_forgotten() {
    let mut counter = Counter::new(2);
    let payments = [3, 1].map(|ancestors| {
        let payment = Payment::on(&counter, ancestors);
        let reply = post_transaction(&counter, &payment.id, payment.atomic(&counter));
        check_taken(&reply, &payment.transaction, "accepted", "before");
        payment
    });
    restart_empty(&mut counter.node);
    wait_until("all is there again", || {
        payments.iter().all(|payment| payment.is_known(&counter.node))
    });
    assert_eq!(counter.shop.balance(), 2 * PRICE);
    counter.node.mine(1);
    for Payment { id, .. } in &payments {
        wait_until("it is mined", || counter.shop.payments(id)[0]["state"] == "mined");
    }
}

#[test]
fn a_payment_with_an_ancestor_that_spends_a_spent_coin_is_refused_before_anything_is_sent() {
    let (counter, gate) = Counter::with_gate(4);
    for (mined, ancestors) in [(false, 1), (false, 3), (true, 1), (true, 3)] {
        let what = format!("{ancestors} ancestors, mined: {mined}");
        let (id, bill) = counter.bill();
        let spent = counter.purse.coin();
        let (ancestors, coin) = chain(&counter, spent, ancestors, FEE);
        let transaction = counter.purse.spend(&[coin], bill.outputs(), FEE);
        let bytes = beef(&counter.node, BeefVersion::V1, &transaction, &ancestors).to_bytes();
        send(&counter.node, &counter.purse.spend(&[spent], vec![], 2 * FEE));
        counter.node.mine(u32::from(mined));
        let reply = post_transaction(&counter, &id, bytes);
        let detail = check_problem(&reply, 422, "unknown-inputs", &what);
        let ancestor = format!("ancestor {} spends {}", ancestors[0].txid(), spent.outpoint);
        assert!(detail.contains(&ancestor), "{what}: {detail}");
        counter.check_unpaid(&id, &what);
    }
    assert_eq!(gate.heard(SEND, ""), 0);
}

#[test]
fn an_ancestor_that_the_network_refuses_leaves_the_invoice_as_it_was() {
    let counter = Counter::new(2);
    let (id, bill) = counter.bill();
    let (mut ancestors, _) = chain(&counter, counter.purse.coin(), 2, FEE);
    ancestors[1].inputs[0].unlocking_script = bsv_tx::Script::from_bytes([0x51]);
    let coin = counter.purse.coins_of(&ancestors[1])[0];
    let transaction = counter.purse.spend(&[coin], bill.outputs(), FEE);
    let bytes = beef(&counter.node, BeefVersion::V1, &transaction, &ancestors).to_bytes();
    for _ in 0..2 {
        let reply = post_transaction(&counter, &id, &bytes);
        let detail = check_problem(&reply, 422, "refused-by-network", "an unsigned ancestor");
        let named = format!("ancestor {}", ancestors[1].txid());
        assert!(detail.contains(&named), "{detail}");
        counter.check_unpaid(&id, "an unsigned ancestor");
    }
    let transaction = counter.purse.transaction_for(&bill);
    assert_eq!(bill.post(&transaction).status, 201);
    counter.check_paid(&id, &transaction);
}

#[test]
fn a_payment_with_ancestors_is_completed_after_the_server_was_killed() {
    for hold in [Hold::Call, Hold::Answer] {
        let (counter, gate) = Counter::with_gate(1);
        let payment = Payment::on(&counter, 2);
        let bytes = payment.atomic(&counter);
        gate.shut(SEND, hold);
        let post = thread::spawn({
            let client = counter.shop.server.payments().clone();
            let path = format!("/pay/{}/transaction", payment.id);
            move || client.try_request("POST", &path, &bytes)
        });
        gate.wait_for(1);
        let counter = counter.restart_after_kill();
        assert!(post.join().unwrap().is_err());
        gate.cut();
        // The payment and its ancestors are not posted again.
        wait_until("the payment is resolved", || counter.shop.state(&payment.id) == "paid");
        counter.check_paid(&payment.id, &payment.transaction);
        assert!(payment.is_known(&counter.node));
        assert_eq!(counter.shop.balance(), PRICE, "{hold:?}");
    }
}

#[test]
fn the_id_is_enough_for_an_ancestor_that_has_paid_the_shop() {
    let counter = Counter::new(1);
    let (first_id, first_bill) = counter.bill();
    let first = counter.purse.transaction_for(&first_bill);
    assert_eq!(first_bill.post(&first).status, 201);
    let (id, bill) = counter.bill();
    let transaction = counter.purse.spend(&counter.purse.coins_of(&first), bill.outputs(), FEE);
    let ancestry = bsv_tx::Ancestry { held: vec![first.txid()], ..Default::default() };
    let by_id = Beef::new(BeefVersion::V2, transaction.clone(), ancestry).unwrap();
    let reply = post_transaction(&counter, &id, by_id.to_bytes());
    check_taken(&reply, &transaction, "accepted", "a parent by its id");
    counter.check_paid(&first_id, &first);

    // For a transaction that is none of the shop's, the id is not enough.
    let stranger = counter.purse.spend(&counter.purse.coins_of(&transaction), vec![], FEE);
    send(&counter.node, &stranger);
    let (id, bill) = counter.bill();
    let transaction = counter.purse.spend(&counter.purse.coins_of(&stranger), bill.outputs(), FEE);
    let ancestry = bsv_tx::Ancestry { held: vec![stranger.txid()], ..Default::default() };
    let by_id = Beef::new(BeefVersion::V2, transaction.clone(), ancestry).unwrap();
    let detail = check_problem(
        &post_transaction(&counter, &id, by_id.to_bytes()),
        422,
        "bad-ancestry",
        "a stranger's by its id",
    );
    assert!(detail.contains("is unknown here"), "{detail}");
    counter.check_unpaid(&id, "a stranger's by its id");
}

#[test]
fn transactions_that_are_no_ancestors_of_the_payment_are_not_sent() {
    let (counter, gate) = Counter::with_gate(3);
    let payment = Payment::on(&counter, 1);
    let stranger = counter.purse.spend(&[counter.purse.coin()], vec![], FEE);
    // A BEEF that is not Atomic may hold transactions that are not ancestors of its last one.
    let mut bytes = Vec::new();
    let both = counter.purse.spend(
        &[counter.purse.coins_of(&payment.ancestors[0])[0], counter.purse.coins_of(&stranger)[0]],
        vec![TxOut { satoshis: 1, locking_script: counter.purse.script() }],
        FEE,
    );
    let ancestors = [payment.ancestors.clone(), vec![stranger.clone()]].concat();
    let whole = beef(&counter.node, BeefVersion::V1, &both, &ancestors).to_bytes();
    // This replaces the last transaction, and its mark as unmined, by the payment.
    bytes.extend_from_slice(&whole[..whole.len() - both.to_bytes().len() - 1]);
    payment.transaction.encode(&mut bytes);
    bytes.push(0);
    let reply = post_transaction(&counter, &payment.id, &bytes);
    check_taken(&reply, &payment.transaction, "accepted", "with a stranger");
    assert!(payment.is_known(&counter.node) && !knows(&counter.node, &stranger));
    assert_eq!(gate.heard(SEND, &stranger.to_hex()), 0);

    let mut atomic = vec![1; 4];
    atomic.extend_from_slice(payment.transaction.txid().as_bytes());
    atomic.extend_from_slice(&bytes);
    let (id, _) = counter.bill();
    let reply = post_transaction(&counter, &id, atomic);
    let detail = check_problem(&reply, 400, "bad-transaction", "Atomic");
    assert!(detail.contains(&format!("{} is no ancestor", stranger.txid())), "{detail}");
}
