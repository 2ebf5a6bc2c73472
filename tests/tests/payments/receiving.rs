use std::thread;

use bsv_tests::purse::{FEE, knows, send};
use bsv_tests::{Bill, Reply, source};
use bsv_tx::Transaction;
use serde_json::json;

use super::counter::{Counter, PRICE, check_problem};
use super::merchant::Merchant;

/// Posts transactions, all at the same time.
fn post_at_once(posts: &[(&Bill, &Transaction)]) -> Vec<Reply> {
    thread::scope(|scope| {
        let mut threads = Vec::new();
        for &(bill, transaction) in posts {
            threads.push(scope.spawn(move || bill.post(transaction)));
        }
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

#[test]
fn one_of_eight_simultaneous_transactions_is_accepted() {
    const ROUNDS: u64 = 5;
    let counter = Counter::new(8 * 5);
    let Counter { node, shop, purse } = &counter;
    for round in 1..=ROUNDS {
        let (id, bill) = counter.bill();
        let transactions: Vec<_> = (0..8).map(|_| purse.transaction_for(&bill)).collect();
        let posts: Vec<_> = transactions.iter().map(|transaction| (&bill, transaction)).collect();
        let replies = post_at_once(&posts);
        let (accepted, refused): (Vec<_>, Vec<_>) =
            transactions.iter().zip(&replies).partition(|(_, reply)| reply.status == 201);
        assert_eq!(accepted.len(), 1, "{replies:?}");
        counter.check_paid(&id, accepted[0].0);
        for (transaction, reply) in refused {
            assert_eq!(reply.status, 409, "{}", reply.body);
            check_problem(&bill.post(transaction), 409, "invoice-paid", "afterwards");
            assert!(!knows(node, transaction));
        }
        assert_eq!(shop.balance(), PRICE * round);
    }
    assert_eq!(counter.mempool().as_array().unwrap().len() as u64, ROUNDS);
}

#[test]
fn a_repeated_payment_gets_the_same_answer() {
    const ROUNDS: u64 = 5;
    let counter = Counter::new(5 + 1);
    for round in 1..=ROUNDS {
        let (id, bill) = counter.bill();
        let transaction = counter.purse.transaction_for(&bill);
        let mut replies = post_at_once(&[(&bill, &transaction); 8]);
        replies.push(bill.post(&transaction));
        for reply in &replies {
            assert_eq!((reply.status, &reply.body), (201, &replies[0].body));
        }
        counter.check_paid(&id, &transaction);
        assert_eq!(counter.shop.balance(), PRICE * round);
        if round == ROUNDS {
            let other = counter.purse.transaction_for(&bill);
            check_problem(&bill.post(&other), 409, "invoice-paid", "another transaction");
            for member in ["rawTx", "transaction"] {
                let body = json!({ member: source::hex(&other) }).to_string();
                let path = format!("/api/v1/payment/{id}");
                let reply = counter.shop.server.payments().post(&path, body);
                assert_eq!(reply.status, 409, "{member}: {}", reply.body);
            }
            counter.mine(1);
            assert_eq!(bill.post(&transaction).body, replies[0].body, "mined");
        }
    }
}

#[test]
fn one_transaction_pays_two_invoices() {
    let counter = Counter::new(2);
    let Counter { shop, purse, .. } = &counter;
    let mut ids = Vec::new();
    for at_once in [false, true] {
        let before = shop.balance();
        let [(id, bill), (other_id, other)] = [counter.bill(), counter.bill()];
        let outputs = [bill.outputs(), other.outputs()].concat();
        let transaction = purse.spend(&[purse.coin()], outputs, FEE);
        let posts = [(&bill, &transaction), (&other, &transaction)];
        let replies = if at_once {
            post_at_once(&posts)
        } else {
            posts.map(|(bill, transaction)| bill.post(transaction)).to_vec()
        };
        assert_eq!([replies[0].status, replies[1].status], [201; 2], "{replies:?}");
        counter.check_paid(&id, &transaction);
        counter.check_paid(&other_id, &transaction);
        assert_eq!(shop.balance(), before + 2 * PRICE);
        assert_eq!(bill.post(&transaction).body, replies[0].body);
        assert_eq!(other.post(&transaction).body, replies[1].body);
        ids.extend([id, other_id]);
    }
    counter.mine_all(&ids.iter().map(String::as_str).collect::<Vec<_>>());
    // The wallet can spend each of the two coins separately.
    let other_shop = Merchant::on(&counter.node);
    for satoshis in [PRICE * 2 - 100, PRICE * 2 - 100] {
        let bill = other_shop.invoice(satoshis);
        let reply = shop.pay(&other_shop.payment_url(&bill));
        assert_eq!(reply.status, 200, "{}", reply.body);
    }
    assert_eq!(other_shop.balance(), 2 * (PRICE * 2 - 100));
}

#[test]
fn a_payment_may_spend_unmined_change() {
    let counter = Counter::new(1);
    let Counter { shop, purse, .. } = &counter;
    let mut coin = purse.coin();
    for paid in 1..=3 {
        let (id, bill) = counter.bill();
        let transaction = purse.spend(&[coin], bill.outputs(), FEE);
        assert_eq!(bill.post(&transaction).status, 201);
        counter.check_paid(&id, &transaction);
        assert_eq!(shop.balance(), paid * PRICE);
        coin = purse.coins_of(&transaction)[0];
    }
}

#[test]
fn a_payment_that_its_payer_has_already_broadcast_is_acknowledged() {
    let counter = Counter::new(2);
    for blocks in [0, 1] {
        let (id, bill) = counter.bill();
        let transaction = counter.purse.transaction_for(&bill);
        send(&counter.node, &transaction);
        counter.mine(blocks);
        assert_eq!(bill.post(&transaction).status, 201);
        assert_eq!(counter.shop.state(&id), "paid");
    }
    assert_eq!(counter.shop.balance(), 2 * PRICE);
}

#[test]
fn the_fee_that_payers_compute_is_enough() {
    let counter = Counter::new(1);
    let (id, bill) = counter.bill();
    let coin = counter.purse.coin();
    let len = counter.purse.spend(&[coin], bill.outputs(), FEE).to_bytes().len() as u64;
    // If the signature is shorter than the first one, the transaction only pays more than it has
    // to.
    let least = len * 100 / 1000;
    let transaction = counter.purse.spend(&[coin], bill.outputs(), least);
    assert_eq!(bill.post(&transaction).status, 201);
    counter.check_paid(&id, &transaction);
    let block = counter.mine(1)[0];
    let place =
        counter.node.call("getrawtransaction", json!([transaction.txid().to_string(), true]));
    assert_eq!(place["blockhash"], block.to_string());
}
