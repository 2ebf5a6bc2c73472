//! Payees whose answers differ from what the network shows.

use std::sync::{Arc, Mutex, MutexGuard};

use bsv_tests::payee::{Answer, Payee, go_dpp_terms, output};
use bsv_tests::purse::knows;
use bsv_tests::rival::restart_empty_with;
use bsv_tests::{Node, Reply};
use bsv_tx::{Script, TxOut};
use serde_json::json;

use super::merchant::{Merchant, wait_until};
use super::money_strict_node::{LENIENT, STRICT, data};
use super::paying_scene::{amounts, buyer_with, check_problem, rich_node};

const COIN: u64 = 50_000;
const PRICE: u64 = 10_000;

/// A wallet with one mined coin, a payee that asks for a data output, and a node whose rules
/// change.
struct Scene {
    node: Arc<Mutex<Node>>,
    buyer: Merchant,
    payee: Payee,
}

impl Scene {
    fn new() -> Self {
        let node = rich_node();
        let buyer = buyer_with(&node, json!({}), &[COIN]);
        node.mine(1);
        let payee = Payee::asking(&go_dpp_terms(&[output(PRICE), data()]));
        Self { node: Arc::new(Mutex::new(node)), buyer, payee }
    }

    fn node(&self) -> MutexGuard<'_, Node> {
        self.node.lock().unwrap()
    }

    /// Pays while the node gets these settings. The payee accepts the payment, and does not send it
    /// to the network.
    fn pay_while(&self, settings: &'static [&'static str]) -> Reply {
        let node = Arc::clone(&self.node);
        self.payee.on_post(move |request| {
            restart_empty_with(&mut node.lock().unwrap(), settings);
            Answer::accept(request)
        });
        self.buyer.pay(&self.payee.url())
    }

    /// A payment that the payee has accepted and the node refuses.
    fn unseen() -> Self {
        let scene = Self::new();
        let reply = scene.pay_while(&STRICT);
        assert_eq!(reply.status, 200, "{}", reply.body);
        scene.check_unseen();
        scene
    }

    fn check_unseen(&self) {
        assert_eq!(self.buyer.outgoing_states(), ["unseen"]);
        assert!(!knows(&self.node(), &self.payee.paid_with()));
        let other = Payee::asking(&go_dpp_terms(&[output(1_000)]));
        check_problem(&self.buyer.pay(&other.url()), 422, "insufficient-funds");
    }

    /// Mines a block, and waits until the wallet has looked at it.
    fn mine_and_follow(&self, probe: u64) {
        let id = self.buyer.fill(probe);
        self.node().mine(1);
        wait_until("it is followed", || self.buyer.payments(&id)[0]["state"] == "mined");
    }
}

#[test]
fn a_payment_that_the_payee_accepts_and_keeps_stays_unseen_until_it_is_cancelled() {
    let scene = Scene::unseen();
    // Repeated, the request makes and posts nothing new.
    let [first, again] = [(); 2].map(|()| scene.buyer.pay_ok(&scene.payee.url()));
    assert_eq!(first["tx_id"], scene.payee.paid_with().txid().to_string());
    assert_eq!(first["tx_id"], again["tx_id"]);
    assert_eq!(scene.payee.requests("POST").len(), 1);
    for _ in 0..8 {
        // One satoshi is too little to pay anything with.
        scene.mine_and_follow(1);
    }
    scene.check_unseen();
    let transaction = scene.payee.paid_with();
    assert_eq!(
        scene.buyer.site.cli_ok(&["outgoing", "cancel", "1", "--yes"]),
        "Payment 1 is cancelled"
    );
    assert_eq!(scene.buyer.outgoing_states(), ["cancelled"]);
    scene.node().restart_with(&LENIENT);
    let sent = scene.node().try_call("sendrawtransaction", json!([transaction.to_hex()]));
    assert!(sent.is_err(), "{sent:?}");
    let cost = COIN + 8 - scene.buyer.balance();
    assert!((19..=24).contains(&cost), "{cost}");
}

#[test]
fn a_payment_that_the_node_accepts_later_is_settled() {
    let scene = Scene::unseen();
    scene.node().restart_with(&LENIENT);
    wait_until("it is settled", || scene.buyer.outgoing_states() == ["settled"]);
    assert!(knows(&scene.node(), &scene.payee.paid_with()));
    scene.node().mine(1);
    wait_until("it is mined", || scene.buyer.outgoing()[0]["blockHash"].is_string());
    let fee = scene.buyer.outgoing()[0]["fee"].as_u64().unwrap();
    assert_eq!(scene.buyer.balance(), COIN - PRICE - 1 - fee);
}

#[test]
fn a_payment_that_the_payee_accepts_while_the_node_restarts_is_sent_to_the_node() {
    let scene = Scene::new();
    let reply = scene.pay_while(&[]);
    assert_eq!(reply.status, 200, "{}", reply.body);
    wait_until("it is settled", || scene.buyer.outgoing_states() == ["settled"]);
    assert!(knows(&scene.node(), &scene.payee.paid_with()));
}

#[test]
fn a_payment_that_the_payee_accepts_while_the_node_is_down_is_unseen() {
    let scene = Scene::new();
    let node = Arc::clone(&scene.node);
    scene.payee.on_post(move |request| {
        node.lock().unwrap().stop();
        Answer::accept(request)
    });
    let reply = scene.buyer.pay(&scene.payee.url());
    assert_eq!(reply.status, 200, "{}", reply.body);
    assert_eq!(scene.buyer.outgoing_states(), ["unseen"]);
    scene.node().restart();
    wait_until("it is settled", || scene.buyer.outgoing_states() == ["settled"]);
    assert_eq!(scene.payee.requests("POST").len(), 1);
}

#[test]
fn a_payment_stays_unseen_while_the_node_refuses_everything() {
    let scene = Scene::new();
    assert_eq!(scene.pay_while(&["maxscriptsizepolicy=20"]).status, 200);
    scene.check_unseen();
    let done = scene.buyer.site.cli(&["outgoing", "cancel", "1", "--yes"]);
    assert_eq!(done.code, 1, "{}", done.stdout);
    assert!(!knows(&scene.node(), &scene.payee.paid_with()));
    scene.node().restart_with(&["maxscriptsizepolicy=0"]);
    // Whichever transaction the network shows first decides.
    let states = || scene.buyer.outgoing_states().remove(0);
    wait_until("it is decided", || ["settled", "cancelled"].contains(&states().as_str()));
    let is_paid = states() == "settled";
    assert_eq!(knows(&scene.node(), &scene.payee.paid_with()), is_paid);
}

#[test]
fn outputs_that_no_node_accepts_are_not_paid() {
    let node = rich_node();
    let buyer = buyer_with(&node, json!({}), &[COIN]);
    let script = [&[0xa9, 20][..], &[9; 20], &[0x87]].concat();
    let p2sh = TxOut { satoshis: PRICE, locking_script: Script::from_bytes(script) };
    for outputs in [vec![p2sh.clone()], vec![output(1_000), p2sh.clone()], vec![p2sh, data()]] {
        let payee = Payee::asking(&go_dpp_terms(&outputs));
        check_problem(&buyer.pay(&payee.url()), 422, "unpayable-terms");
        assert!(payee.requests("POST").is_empty(), "{:?}", amounts(&outputs));
    }
    assert_eq!((buyer.outgoing(), buyer.balance()), (vec![], COIN));
    // No coin is reserved.
    buyer.pay_ok(&Payee::asking(&go_dpp_terms(&[output(COIN - 1_000)])).url());
}

#[test]
fn outputs_that_our_node_does_not_accept_are_not_paid() {
    let mut node = rich_node();
    node.restart_with(&STRICT);
    let buyer = buyer_with(&node, json!({}), &[COIN]);
    let payee = Payee::asking(&go_dpp_terms(&[output(PRICE), data()]));
    check_problem(&buyer.pay(&payee.url()), 422, "unpayable-terms");
    assert!(payee.requests("POST").is_empty());
    assert_eq!((buyer.outgoing(), buyer.balance()), (vec![], COIN));
    node.restart_with(&LENIENT);
    buyer.pay_ok(&payee.url());
}
