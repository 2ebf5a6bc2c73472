//! Payments that no block may hold yet. A node answers such a transaction with its id as if it had
//! accepted it, keeps it outside the mempool, and lets others replace it until its time.

use bsv_invoicing::Timestamp;
use bsv_tests::purse::{Coin, FEE, send};
use bsv_tests::{Bill, Purse};
use bsv_tx::Transaction;
use serde_json::json;

use super::counter::{Counter, PRICE, check_problem};

const MINUTE: u32 = 60;
const TEN_YEARS: u32 = 10 * 365 * 24 * 60 * MINUTE;
const FINAL: u32 = u32::MAX;

/// A payment with a lock time. It spends one coin with each of the sequence numbers.
fn locked(
    purse: &Purse,
    coins: &[Coin],
    bill: &Bill,
    lock_time: u32,
    sequences: &[u32],
) -> Transaction {
    let mut transaction = purse.spend(coins, bill.outputs(), FEE);
    transaction.lock_time = lock_time;
    for (input, sequence) in transaction.inputs.iter_mut().zip(sequences) {
        input.sequence = *sequence;
    }
    purse.sign(&mut transaction, coins);
    transaction
}

/// The height of the last block, and its median time.
fn tip(counter: &Counter) -> (u32, u32) {
    let chain = counter.node.call("getblockchaininfo", json!([]));
    let number = |name: &str| u32::try_from(chain[name].as_u64().unwrap()).unwrap();
    (number("blocks"), number("mediantime"))
}

fn now() -> u32 {
    u32::try_from(Timestamp::of_system().as_micros() / 1_000_000).unwrap()
}

fn check_nothing_reached_the_node(counter: &Counter, what: &str) {
    assert_eq!(counter.node.call("getrawnonfinalmempool", json!([])), json!([]), "{what}");
    assert_eq!(counter.mempool(), json!([]), "{what}");
}

#[test]
fn a_lock_in_the_future_is_refused_and_the_node_never_sees_it() {
    let counter = Counter::new(2);
    let coins = [counter.purse.coin(), counter.purse.coin()];
    let (height, median) = tip(&counter);
    let (id, bill) = counter.bill();
    for (what, lock_time) in [
        ("the next block", height + 1),
        ("in 2 blocks", height + 2),
        ("in 100 blocks", height + 100),
        ("the highest height", 499_999_999),
        ("the median time itself", median),
        ("in a minute", now() + MINUTE),
        ("in ten years", now() + TEN_YEARS),
        ("the end of time", u32::MAX),
    ] {
        for sequences in [[0, 0], [FINAL - 1, FINAL - 1], [FINAL, 0], [FINAL - 1, FINAL]] {
            let what = format!("{what}, {sequences:?}");
            let transaction = locked(&counter.purse, &coins, &bill, lock_time, &sequences);
            check_problem(&bill.post(&transaction), 422, "not-final", &what);
            counter.check_unpaid(&id, &what);
            check_nothing_reached_the_node(&counter, &what);
        }
    }
    assert_eq!(counter.shop.balance(), 0);
    let transaction = counter.purse.spend(&coins, bill.outputs(), FEE);
    assert_eq!(bill.post(&transaction).status, 201);
    counter.check_paid(&id, &transaction);
}

#[test]
fn a_lock_that_is_reached_or_without_effect_is_accepted() {
    let counter = Counter::new(6);
    let (height, median) = tip(&counter);
    for (what, lock_time, sequence) in [
        ("the height of the tip", height, 0),
        ("the second before the median time", median - 1, 0),
        ("no lock", 0, 0),
        ("a later block, and no input heeds it", height + 100, FINAL),
        ("ten years, and no input heeds it", now() + TEN_YEARS, FINAL),
        ("the end of time, and no input heeds it", u32::MAX, FINAL),
    ] {
        let (id, bill) = counter.bill();
        let coin = counter.purse.coin();
        let transaction = locked(&counter.purse, &[coin], &bill, lock_time, &[sequence]);
        let reply = bill.post(&transaction);
        assert_eq!(reply.status, 201, "{what}: {}", reply.body);
        counter.check_paid(&id, &transaction);
    }
    assert_eq!(counter.mempool().as_array().unwrap().len(), 6);
    counter.node.mine(1);
    assert_eq!(counter.mempool(), json!([]));
    assert_eq!(counter.shop.balance(), 6 * PRICE);
}

#[test]
fn sending_it_to_the_node_first_does_not_help() {
    let counter = Counter::new(1);
    let coin = counter.purse.coin();
    let (height, _) = tip(&counter);
    let (id, bill) = counter.bill();
    let transaction = locked(&counter.purse, &[coin], &bill, height + 3, &[0]);
    send(&counter.node, &transaction);
    let kept = counter.node.call("getrawnonfinalmempool", json!([]));
    assert_eq!(kept, json!([transaction.txid().to_string()]));
    check_problem(&bill.post(&transaction), 422, "not-final", "the node keeps it");
    counter.check_unpaid(&id, "the node keeps it");
    // Before that time, its coin is spent otherwise.
    let elsewhere = counter.purse.spend(&[coin], vec![], 2 * FEE);
    send(&counter.node, &elsewhere);
    counter.node.mine(1);
    assert!(bill.post(&transaction).status >= 400);
    counter.node.mine(4);
    assert!(bill.post(&transaction).status >= 400);
    counter.check_unpaid(&id, "its coin is gone");
    assert_eq!(counter.shop.balance(), 0);
}
