//! Services, payers and payees lie to a shop without a node of its own. Nothing is lost, and a block decides.

use std::thread::sleep;
use std::time::Duration;

use bsv_tests::clock::Clock;
use bsv_tests::payee::{Answer, Payee, go_dpp_terms, output};
use bsv_tests::purse::{Coin, FEE, Purse, knows};
use bsv_tests::services::{Mood, Word};
use bsv_tests::{Node, Reply, Service};
use bsv_tx::{ExtendedTransaction, OutPoint, Transaction, TxOut, Txid};
use serde_json::json;

use super::stall::{Stall, site};
use crate::payments::counter::{Counter, check_problem};
use crate::payments::forms::post_transaction;
use crate::payments::merchant::wait_until;

impl Stall {
    /// Pays with a transaction whose sender claims that it spends a coin of this purse.
    fn post_claim(&self, id: &str, (transaction, coin): (&Transaction, Coin), of: &Purse) -> Reply {
        let claimed = TxOut { satoshis: coin.satoshis, locking_script: of.script() };
        let extended = ExtendedTransaction::new(transaction.clone(), vec![claimed]).unwrap();
        post_transaction(&self.counter, id, extended.to_bytes())
    }

    /// Waits until services were asked at the next tip what became of a transaction, and until the answer
    /// has had its effect.
    fn wait_for_look(&self, txid: &Txid) {
        let before = self.questions(txid);
        self.counter.node.mine(1);
        wait_until("services are asked", || self.questions(txid) > before);
        sleep(Duration::from_secs(2));
    }
}

fn says(status: &'static str) -> Mood {
    Mood { says: Some(Word::of(status)), relays: false, ..Mood::default() }
}

fn payee() -> Payee {
    let payee = Payee::asking(&go_dpp_terms(&[output(5_000)]));
    payee.on_post(Answer::accept);
    payee
}

#[test]
fn whoever_claims_a_coin_of_another_payer_contests_nothing() {
    let stall = Stall::new(1);
    let (first, transaction) = stall.payment();
    assert_eq!(stall.post(&first, &transaction).status, 201);
    let thief = Purse::filled(&stall.counter.node, 0, 0);
    let coin = Coin { outpoint: transaction.inputs[0].previous_output, satoshis: 1_000_000 };
    let (second, bill) = stall.counter.bill();
    let forged = thief.spend(&[coin], bill.outputs(), FEE);
    let reply = stall.post_claim(&second, (&forged, coin), &thief);
    check_problem(&reply, 422, "refused-by-network", "the node knows the coin");
    assert_eq!(stall.payment_state(&first), "accepted");
    assert_eq!(stall.state(&first), "paid");
}

#[test]
fn a_payment_with_a_rival_leaves_its_invoice_to_another_payer() {
    let stall = Stall::new(2);
    let (id, bill) = stall.counter.bill();
    let [first, second] = [0, 1].map(|_| stall.counter.purse.transaction_for(&bill));
    stall.service.be(says("DOUBLE_SPEND_ATTEMPTED"));
    let reply = stall.post(&id, &first);
    check_problem(&reply, 503, "payment-outcome-unknown", "a rival that was told");
    stall.service.be(Mood::default());
    assert_eq!(stall.post(&id, &second).status, 201);
    assert_eq!(stall.state(&id), "paid");
}

#[test]
fn silent_payments_of_claimed_coins_end() {
    let mut clock = None;
    let node = Node::start_with(&["disablesafemode=1"]);
    let service = Service::before(&node);
    let counter = Counter::on(node, 1, |node| {
        let mut site = site(node, &[&service], json!({}));
        clock = Some(Clock::install(&mut site));
        site
    });
    let (stall, clock) = (Stall { counter, service }, clock.unwrap());
    stall.service.be(says("RECEIVED"));
    let (proven, transaction) = stall.payment();
    let silence = stall.post(&proven, &transaction);
    check_problem(&silence, 503, "payment-outcome-unknown", "nobody says anything");
    let stranger = Purse::filled(&stall.counter.node, 0, 0);
    let coin = Coin {
        outpoint: OutPoint { txid: Txid::from_bytes([7; 32]), vout: 0 },
        satoshis: 1_000_000,
    };
    let (claimed, bill) = stall.counter.bill();
    let claim = stranger.spend(&[coin], bill.outputs(), FEE);
    let silence = stall.post_claim(&claimed, (&claim, coin), &stranger);
    check_problem(&silence, 503, "payment-outcome-unknown", "nobody knows the coin");
    // Refused ones are not listed.
    let listed = || [&proven, &claimed].map(|id| stall.counter.shop.payments(id).len());
    assert_eq!(listed(), [1, 1]);
    clock.set(&stall.counter.shop.site, 11 * 60);
    stall.counter.node.mine(1);
    wait_until("the claim ends", || listed() == [1, 0]);
}

#[test]
fn no_verdict_gives_back_what_a_payment_has_spent() {
    let stall = Stall::with_one_coin();
    let (node, shop) = (&stall.counter.node, &stall.counter.shop);
    let payee = payee();
    stall.service.be(says("SEEN_ON_NETWORK"));
    assert_eq!(shop.pay(&payee.url()).status, 200);
    wait_until("services have it", || shop.outgoing_states() == ["settled"]);
    let (balance, payment) = (shop.balance(), payee.paid_with());
    stall.service.restart_empty();
    stall.service.be(Mood { refuses: Some(465), relays: false, ..Mood::default() });
    for _ in 0..8 {
        stall.wait_for_look(&payment.txid());
    }
    assert_eq!((shop.outgoing_states(), shop.balance()), (vec!["contested".to_owned()], balance));
    stall.service.be(Mood::default());
    let told = shop.site.cli_ok(&["outgoing", "cancel", "1", "--yes"]);
    assert!(told.starts_with("Payment 1 is cancelling"), "{told}");
    node.mine(1);
    wait_until("a block holds the cancellation", || shop.outgoing_states() == ["cancelled"]);
    // A word does not bring back what a block has decided.
    let balance = shop.balance();
    let says_of = [(payment.txid(), Word::of("SEEN_ON_NETWORK"))].into();
    stall.service.be(Mood { says_of, ..Mood::default() });
    stall.wait_for_look(&payment.txid());
    assert_eq!((shop.outgoing_states(), shop.balance()), (vec!["cancelled".to_owned()], balance));
    shop.site.cli_ok(&["books", "verify"]);
}

#[test]
fn a_payment_is_sent_to_others_although_one_service_tells_of_a_rival() {
    let (stall, second) = Stall::with_second(1);
    let (id, transaction) = stall.payment();
    assert_eq!(stall.post(&id, &transaction).status, 201);
    stall.counter.node.mine(1);
    wait_until("a block holds the coin", || stall.confirmations(&id) == 1);
    stall.service.be(says("DOUBLE_SPEND_ATTEMPTED"));
    second.be(Mood { condition: Some((503, None)), ..Mood::default() });
    let payee = payee();
    stall.counter.shop.pay(&payee.url());
    let payment = payee.paid_with();
    assert!(!knows(&stall.counter.node, &payment));
    second.be(Mood::default());
    wait_until("the second one has it", || knows(&stall.counter.node, &payment));
}
