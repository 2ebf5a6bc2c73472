//! Several attempts to pay the same URL. Whatever was refused, cancelled and tried again, and
//! whichever attempt the payee sends to the network, the payee is paid once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bsv_tests::Node;
use bsv_tests::payee::{Answer, Payee, go_dpp_terms, output};
use bsv_tests::rival::{Rival, restart_empty_with};
use bsv_tx::Transaction;
use serde_json::{Value, json};

use super::merchant::{Merchant, wait_until};
use super::paying_scene::{buyer_with, check_problem, rich_node};

const COINS: [u64; 4] = [30_000, 30_000, 30_000, 30_000];
const PRICE: u64 = 10_000;

/// How an attempt ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// The payee refuses it.
    Refused,
    /// The payee does not answer, and the attempt is cancelled.
    Cancelled,
    /// The payee accepts the payment and keeps it, our node refuses it, and it is cancelled.
    TakenAndCancelled,
    /// The payee accepts the payment, and our node shows it.
    Paid,
}

use End::{Cancelled, Paid, Refused, TakenAndCancelled};

struct Scene {
    node: Node,
    rival: Rival,
    buyer: Merchant,
    payee: Payee,
    attempts: Vec<Transaction>,
}

impl Scene {
    fn new() -> Self {
        let node = rich_node();
        let buyer = buyer_with(&node, json!({}), &COINS);
        node.mine(1);
        wait_until("all is mined", || {
            let invoices = buyer.get("/api/v1/invoices");
            let mut ids = invoices.as_array().unwrap().iter().map(|it| it["id"].as_str().unwrap());
            ids.all(|id| buyer.payments(id)[0]["state"] == "mined")
        });
        let rival = Rival::of(&node);
        let payee = Payee::asking(&go_dpp_terms(&[output(PRICE)]));
        Self { node, rival, buyer, payee, attempts: Vec::new() }
    }

    /// Makes an attempt that ends in this way.
    fn attempt(&mut self, end: End) {
        let number = (self.attempts.len() + 1).to_string();
        let before = self.payee.requests("POST").len();
        self.payee.on_post(match end {
            Refused => |_: &_| Answer::text(400, "{}"),
            Cancelled => |_: &_| Answer::text(503, "{}"),
            TakenAndCancelled | Paid => Answer::accept,
        });
        if end == TakenAndCancelled {
            self.node.restart_with(&["maxscriptsizepolicy=20"]);
        }
        let reply = self.buyer.pay(&self.payee.url());
        match end {
            Refused => drop(check_problem(&reply, 422, "refused-by-payee")),
            Cancelled => drop(check_problem(&reply, 503, "payment-outcome-unknown")),
            TakenAndCancelled | Paid => assert_eq!(reply.status, 200, "{}", reply.body),
        }
        if end == TakenAndCancelled {
            assert_eq!(self.buyer.outgoing_states()[0], "unseen");
            restart_empty_with(&mut self.node, &["maxscriptsizepolicy=0"]);
        }
        if [Cancelled, TakenAndCancelled].contains(&end) {
            let _ = self.buyer.site.cli(&["outgoing", "cancel", &number, "--yes"]);
        }
        self.attempts.push(self.payee.requests("POST")[before].transaction());
    }

    /// Has the rival mine a transaction, and the ancestors that the rival does not have.
    fn mine_on_rival(&self, transaction: &Transaction) {
        let parents = transaction.inputs.iter().map(|input| input.previous_output.txid);
        for parent in parents {
            let known =
                |node: &Node| node.try_call("getrawtransaction", json!([parent.to_string()]));
            if known(&self.rival.node).is_err() {
                let hex = known(&self.node).unwrap();
                self.rival.node.call("sendrawtransaction", json!([hex]));
            }
        }
        self.rival.mine(&[transaction], 3);
    }

    fn confirmations(&self, transaction: &Transaction) -> u64 {
        let params = json!([transaction.txid().to_string(), true]);
        let found = self.node.try_call("getrawtransaction", params);
        found.map_or(0, |found| found["confirmations"].as_u64().unwrap_or(0))
    }

    /// The numbers of the attempts that are mined.
    fn mined(&self) -> Vec<usize> {
        let numbered = (1..).zip(&self.attempts);
        let mined = numbered.filter(|(_, attempt)| self.confirmations(attempt) > 0);
        mined.map(|(number, _)| number).collect()
    }

    fn states(&self) -> Vec<Value> {
        let payments = self.buyer.outgoing();
        payments.iter().rev().map(|payment| payment["state"].clone()).collect()
    }

    /// Has the rival mine one attempt, and checks that it is the only one that is mined.
    fn check_paid_once_by(&self, winner: usize) {
        let attempt = &self.attempts[winner - 1];
        self.mine_on_rival(attempt);
        self.rival.show_to(&self.node);
        assert_eq!(self.mined(), [winner]);
        wait_until("it is known", || self.states()[winner - 1] == "settled");
        for (number, other) in (1..).zip(&self.attempts).filter(|(number, _)| *number != winner) {
            let sent = self.node.try_call("sendrawtransaction", json!([other.to_hex()]));
            assert!(sent.is_err(), "attempt {number} besides {winner}: {sent:?}");
        }
        self.node.mine(1);
        assert_eq!(self.mined(), [winner]);
        wait_until("all others are lost", || {
            let states = self.states();
            let lost = ["refused", "cancelled", "displaced"];
            let others = states.iter().enumerate().filter(|(index, _)| index + 1 != winner);
            others.into_iter().all(|(_, state)| lost.contains(&state.as_str().unwrap()))
        });
        let fee = self.buyer.outgoing()[self.attempts.len() - winner]["fee"].as_u64().unwrap();
        let most = COINS.iter().sum::<u64>() - PRICE - fee;
        // Each cancellation among its ancestors has cost a fee of its own.
        let is_of_the_chain = |balance| (most - 24 * winner as u64..=most).contains(&balance);
        wait_until("the balance is that of the chain", || is_of_the_chain(self.buyer.balance()));
        let books = self.buyer.site.cli_json(&["books", "verify", "--from-height", "0"]);
        assert_eq!(books["differences"], json!([]), "{books}");
    }
}

fn check_order(ends: &[End]) {
    for winner in 1..=ends.len() {
        let mut scene = Scene::new();
        for end in ends {
            scene.attempt(*end);
        }
        let distinct: std::collections::HashSet<_> =
            scene.attempts.iter().map(Transaction::txid).collect();
        assert_eq!(distinct.len(), ends.len());
        scene.check_paid_once_by(winner);
    }
}

#[test]
fn refused_then_paid() {
    check_order(&[Refused, Paid]);
}

#[test]
fn cancelled_then_paid() {
    check_order(&[Cancelled, Paid]);
}

#[test]
fn taken_cancelled_then_paid() {
    check_order(&[TakenAndCancelled, Paid]);
}

#[test]
fn refused_cancelled_then_paid() {
    check_order(&[Refused, Cancelled, Paid]);
}

#[test]
fn cancelled_refused_then_paid() {
    check_order(&[Cancelled, Refused, Paid]);
}

#[test]
fn a_payee_that_broadcasts_an_earlier_attempt_is_paid_once() {
    let served = Arc::new(AtomicUsize::new(0));
    let mut scene = Scene::new();
    scene.attempt(Refused);
    let first = scene.attempts[0].clone();
    // The payee broadcasts the first attempt while it gets the second.
    let (rpc, its) = (scene.node.settings(), Arc::clone(&served));
    scene.payee.on_post(move |request| {
        let rpc = bsv_network::NodeRpc::new(rpc.clone());
        let sent = tokio::runtime::Runtime::new().unwrap().block_on(rpc.send_transaction(&first));
        assert!(sent.is_ok());
        its.fetch_add(1, Ordering::SeqCst);
        Answer::accept(request)
    });
    let reply = scene.buyer.pay(&scene.payee.url());
    assert_eq!(served.load(Ordering::SeqCst), 1, "{}", reply.body);
    scene.attempts.push(scene.payee.requests("POST")[1].transaction());
    wait_until("the first has paid", || scene.states()[0] == "settled");
    scene.node.mine(1);
    assert_eq!(scene.mined(), [1]);
    wait_until("the second is lost", || scene.states()[1] == "displaced");
}
