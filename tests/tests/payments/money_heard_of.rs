//! Transactions that the node has heard of and does not accept: such a transaction is no payment.

use std::thread;
use std::time::Duration;

use bsv_tests::purse::{Coin, knows};
use bsv_tests::{Peer, Purse};
use bsv_tx::{Script, Transaction, TxOut};
use serde_json::json;

use super::counter::Counter;
use super::merchant::wait_until;

const INPUTS: usize = 3_000;
const SATOSHIS: u64 = 1_000;
const FEE: u64 = 80_000;

/// A transaction that takes a node long to check, and whose last signature is bad.
fn almost_good(purse: &Purse, coins: &[Coin], outputs: &[TxOut], round: u64) -> Transaction {
    let mut transaction = purse.spend(coins, outputs.to_vec(), FEE + round);
    let last = transaction.inputs.last_mut().unwrap();
    let mut script = last.unlocking_script.as_bytes().to_vec();
    script[20] ^= 1;
    last.unlocking_script = Script::from_bytes(script);
    transaction
}

/// A transaction from a peer waits while the node checks the transactions before it. Each round
/// posts the payment a little later than the one before, to hit another moment of the check.
#[test]
fn a_peers_transaction_that_the_node_has_not_checked_is_never_counted_as_paid() {
    let counter = Counter::new(0);
    let purse = Purse::filled(&counter.node, INPUTS + 1_000, SATOSHIS);
    let coins: Vec<_> = (0..INPUTS + 1_000).map(|_| purse.coin()).collect();
    let (slow, coins) = coins.split_at(INPUTS);
    let (id, bill) = counter.bill();
    for round in 0..10 {
        let before = almost_good(&purse, slow, &[], round);
        let transaction = almost_good(&purse, coins, &bill.outputs(), round);
        // The node has banned the peers of the round before.
        counter.node.call("clearbanned", json!([]));
        let mut peers = [(); 2].map(|()| Peer::of(&counter.node));
        peers[0].give(&before);
        thread::sleep(Duration::from_millis(20));
        peers[1].give(&transaction);
        thread::sleep(Duration::from_millis(20 * round));
        let reply = bill.post(&transaction);
        assert!([422, 503].contains(&reply.status), "round {round}: {}", reply.body);
        assert_eq!(counter.shop.state(&id), "pending", "round {round}");
        wait_until("it is refused", || counter.shop.payments(&id).is_empty());
        assert_eq!((counter.shop.state(&id).as_str(), counter.shop.balance()), ("pending", 0));
        assert!(!knows(&counter.node, &transaction));
    }
    assert_eq!(counter.mempool(), json!([]));
    let good = purse.spend(coins, bill.outputs(), FEE);
    counter.node.call("clearbanned", json!([]));
    let mut peer = Peer::of(&counter.node);
    peer.give(&good);
    assert_eq!(bill.post(&good).status, 201);
    counter.check_paid(&id, &good);
}

/// Payers may broadcast a payment at the moment at which they post it.
#[test]
fn a_good_payment_that_the_node_is_still_checking_is_not_refused() {
    const ROUNDS: u64 = 10;
    const EACH: usize = 400;
    let counter = Counter::new(0);
    let purse = Purse::filled(&counter.node, EACH * ROUNDS as usize, SATOSHIS);
    let mut peer = Peer::of(&counter.node);
    for round in 0..ROUNDS {
        let (id, bill) = counter.bill();
        let coins: Vec<_> = (0..EACH).map(|_| purse.coin()).collect();
        let transaction = purse.spend(&coins, bill.outputs(), FEE);
        peer.give(&transaction);
        thread::sleep(Duration::from_millis(10 * round));
        let reply = bill.post(&transaction);
        assert_eq!(reply.status, 201, "round {round}: {}", reply.body);
        counter.check_paid(&id, &transaction);
    }
}
