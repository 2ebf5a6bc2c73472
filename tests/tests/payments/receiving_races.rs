//! Payments whose fate changes between a check and what follows from it.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use bsv_tests::purse::{knows, send};
use bsv_tests::{Bill, Hold};
use bsv_tx::{BlockHash, Script, Transaction, TxOut};
use serde_json::json;

use super::counter::{Counter, check_problem};
use super::merchant::wait_until;

const SEND: &str = "sendrawtransaction";

/// How often a payment without a fee is tried in the full test.
const FULL_TRIES: u64 = 400;
const TRIES: u64 = 60;
/// A wallet takes some time to read so long a transaction.
const LONG: usize = 4 << 20;

/// A payment without a fee, which takes long to read.
fn free(counter: &Counter, bill: &Bill) -> Transaction {
    let data = [&[0x00, 0x6a, 0x4e][..], &(LONG as u32).to_le_bytes(), &vec![7; LONG]].concat();
    let mut outputs = bill.outputs();
    outputs.push(TxOut { satoshis: 0, locking_script: Script::from_bytes(data) });
    counter.purse.spend(&[counter.purse.coin()], outputs, 0)
}

/// Again and again, another payment is on its way and is refused, while a payment arrives that would
/// not pass the checks.
#[test]
fn no_payment_slips_through_the_checks_while_another_one_is_refused() {
    let full = std::env::var_os("BSV_TEST_FULL").is_some_and(|value| value == "1");
    let tries = if full { FULL_TRIES } else { TRIES };
    eprintln!("tries: {tries} of {FULL_TRIES} (BSV_TEST_FULL=1 runs all)");
    let counter = Counter::new(2);
    let (_, bill) = counter.bill();
    let mut unsigned = counter.purse.transaction_for(&bill);
    unsigned.inputs[0].unlocking_script = Script::default();
    let free = free(&counter, &bill);
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                let status = bill.post(&unsigned).status;
                assert!([409, 422].contains(&status), "unsigned: {status}");
            }
        });
        let statuses: BTreeSet<_> = (0..tries).map(|_| bill.post(&free).status).collect();
        is_over.store(true, Ordering::Relaxed);
        assert!(statuses.is_subset(&BTreeSet::from([409, 422])), "{statuses:?}");
    });
    assert_eq!((counter.mempool(), counter.shop.balance()), (json!([]), 0));
}

/// A payment whose own fee suffices, and the block of its parent, whose fee miners take though the
/// shop asks for more.
fn after_a_cheap_parent(counter: &Counter, bill: &Bill) -> (Transaction, BlockHash) {
    let Counter { node, purse, .. } = counter;
    let parent = purse.spend(&[purse.coin()], vec![], 5);
    send(node, &parent);
    let block = node.mine(1)[0];
    (purse.spend(&purse.coins_of(&parent), bill.outputs(), 25), block)
}

/// The node's mempool says whether the fee suffices, after the node has taken the payment.
#[test]
fn a_payment_whose_parent_leaves_its_block_meanwhile_waits() {
    let (counter, gate) = Counter::with_gate(1);
    let Counter { node, shop, .. } = &counter;
    let (id, bill) = counter.bill();
    let (transaction, block) = after_a_cheap_parent(&counter, &bill);
    gate.shut(SEND, Hold::Call);
    thread::scope(|scope| {
        let post = scope.spawn(|| bill.post(&transaction));
        gate.wait_for(1);
        node.call("invalidateblock", json!([block.to_string()]));
        gate.open();
        check_problem(&post.join().unwrap(), 422, "payment-waiting", "an unpaid parent");
    });
    assert!(knows(node, &transaction));
    assert_eq!((shop.state(&id).as_str(), shop.balance()), ("pending", 0));
    check_problem(&bill.post(&transaction), 422, "payment-waiting", "the same payment again");
    node.mine(1);
    wait_until("a block holds both", || shop.state(&id) == "paid");
}

/// A payment with a sufficient fee does not wait when its parent returns to the mempool.
#[test]
fn a_payment_that_was_seen_does_not_wait_after_a_reorganisation() {
    let counter = Counter::new(1);
    let Counter { node, shop, .. } = &counter;
    let (id, bill) = counter.bill();
    let (transaction, block) = after_a_cheap_parent(&counter, &bill);
    assert_eq!(bill.post(&transaction).status, 201);
    let mined = node.mine(1)[0];
    let settlement = || shop.get(&format!("/api/v1/invoices/{id}/settlement"));
    wait_until("the shop has followed the block", || settlement()["confirmations"] == 1);
    for block in [mined, block] {
        node.call("invalidateblock", json!([block.to_string()]));
    }
    wait_until("it is in no block", || shop.payments(&id)[0]["state"] == "accepted");
    assert_eq!((shop.state(&id).as_str(), bill.post(&transaction).status), ("paid", 201));
}
