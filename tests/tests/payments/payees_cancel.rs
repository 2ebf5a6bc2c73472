//! Cancelling payments that their payees do not answer, and what such a payee can still do.

use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use bsv_tests::clock::{Clock, DAY};
use bsv_tests::payee::{Answer, Payee, go_dpp_terms, output};
use bsv_tests::purse::knows;
use bsv_tests::{Done, Node, repetitions};
use bsv_tx::Transaction;
use serde_json::json;

use super::merchant::{Merchant, wait_until};
use super::paying_scene::{broadcast, buyer, buyer_with, check_problem, node, site_with};

/// A payee that asks for this amount and never says whether it accepts the payment.
fn evasive(satoshis: u64) -> Payee {
    let payee = Payee::asking(&go_dpp_terms(&[output(satoshis)]));
    payee.on_post(|_| Answer::text(503, "{}"));
    payee
}

/// Makes a payment that stays open. Answers its transaction.
fn leave_open(buyer: &Merchant, payee: &Payee) -> Transaction {
    check_problem(&buyer.pay(&payee.url()), 503, "payment-outcome-unknown");
    payee.paid_with()
}

fn cancel(buyer: &Merchant) -> Done {
    buyer.site.cli(&["outgoing", "cancel", "1", "--yes"])
}

/// Checks that a transaction cannot be mined any more.
fn check_void(transaction: &Transaction) {
    let sent = node().try_call("sendrawtransaction", json!([transaction.to_hex()]));
    assert!(sent.is_err() && !knows(node(), transaction), "{sent:?}");
}

#[test]
fn a_cancellation_costs_only_its_fee() {
    let buyer = buyer(&[20_000, 30_000]);
    let payee = evasive(40_000);
    let transaction = leave_open(&buyer, &payee);
    assert_eq!(transaction.inputs.len(), 2);
    let done = cancel(&buyer);
    assert_eq!(
        (done.code, done.stdout.as_str()),
        (0, "Payment 1 is cancelled\n"),
        "{}",
        done.stderr
    );
    assert_eq!(buyer.outgoing_states(), ["cancelled"]);
    // The fee of a transaction with one input and one output at 100 satoshis per 1000 bytes.
    let cost = 50_000 - buyer.balance();
    assert!((19..=24).contains(&cost), "{cost}");
    check_void(&transaction);

    let posts = payee.requests("POST").len();
    payee.on_post(Answer::accept);
    buyer.pay_ok(&payee.url());
    assert_eq!(buyer.outgoing_states(), ["settled", "cancelled"]);
    let second = payee.requests("POST")[posts].transaction();
    assert!(second != transaction && knows(node(), &second));
    let fee = buyer.outgoing()[0]["fee"].as_u64().unwrap();
    assert_eq!(buyer.balance(), 10_000 - cost - fee);
}

#[test]
fn only_open_payments_can_be_cancelled() {
    let buyer = buyer(&[20_000, 30_000]);
    let refused = |done: Done, reason: &str| {
        let told = (done.code, done.stdout.as_str(), done.stderr.lines().next());
        assert_eq!(told, (1, "", Some(&*format!("bsv-cli: {reason}"))));
    };
    refused(cancel(&buyer), "there is no payment 1");
    buyer.pay_ok(&Payee::asking(&go_dpp_terms(&[output(10_000)])).url());
    refused(cancel(&buyer), "payment 1 is settled");
    let post = |number: u64| {
        buyer.server.wallet().post(&format!("/api/v1/outgoing/{number}/cancel"), "{}")
    };
    check_problem(&post(1), 409, "payment-not-open");
    let shop = Payee::asking(&go_dpp_terms(&[output(10_000)]));
    shop.on_post(|_| Answer::text(400, "{}"));
    check_problem(&buyer.pay(&shop.url()), 422, "refused-by-payee");
    refused(buyer.site.cli(&["outgoing", "cancel", "2", "--yes"]), "payment 2 is refused");
    leave_open(&buyer, &evasive(10_000));
    let cancelled = post(3);
    assert_eq!(cancelled.status, 200, "{}", cancelled.body);
    refused(buyer.site.cli(&["outgoing", "cancel", "3", "--yes"]), "payment 3 is cancelled");
}

#[test]
fn a_payment_that_the_payee_has_broadcast_is_settled_instead_of_cancelled() {
    let buyer = buyer(&[30_000]);
    let payee = evasive(10_000);
    let transaction = leave_open(&buyer, &payee);
    broadcast(&transaction);
    let done = cancel(&buyer);
    // The wallet may have seen the transaction before the command.
    let settled = [(0, "Payment 1 is settled\n".to_owned()), (1, String::new())];
    assert!(settled.contains(&(done.code, done.stdout)), "{}", done.stderr);
    assert_eq!(buyer.outgoing_states(), ["settled"]);
    assert_eq!(buyer.balance(), 20_000 - buyer.outgoing()[0]["fee"].as_u64().unwrap());
}

#[test]
fn a_payee_that_broadcasts_during_a_cancellation_is_either_paid_or_not() {
    let buyer = buyer(&[75_000, 75_000]);
    for round in 1..=repetitions("cancelling at once with the payee", 100, 8) {
        let payee = evasive(1_000);
        let transaction = leave_open(&buyer, &payee);
        let before = buyer.balance();
        let number = round.to_string();
        let (done, sent) = thread::scope(|scope| {
            let cancel = scope.spawn(|| buyer.site.cli(&["outgoing", "cancel", &number, "--yes"]));
            // The command takes about as long to start.
            thread::sleep(Duration::from_millis(10 * (round as u64 % 8)));
            let sent = node().try_call("sendrawtransaction", json!([transaction.to_hex()]));
            (cancel.join().unwrap(), sent)
        });
        let state = if sent.is_ok() { "settled" } else { "cancelled" };
        wait_until("the outcome is known", || buyer.outgoing()[0]["state"] == state);
        assert_eq!(knows(node(), &transaction), sent.is_ok());
        let spent = before - buyer.balance();
        let fee = buyer.outgoing()[0]["fee"].as_u64().unwrap();
        match sent {
            Ok(_) => assert_eq!(spent, 1_000 + fee, "{}", done.stderr),
            Err(_) => assert!((19..=24).contains(&spent), "{spent}"),
        }
    }
}

#[test]
fn a_cancellation_while_the_payment_is_being_sent_again_takes_effect_after_that() {
    let buyer = buyer(&[30_000]);
    let payee = evasive(10_000);
    let (arrive, arrived) = channel();
    leave_open(&buyer, &payee);
    payee.on_post(move |_| {
        let _ = arrive.send(());
        Answer::silence()
    });
    arrived.recv().unwrap();
    let done = cancel(&buyer);
    assert_eq!(done.stdout, "Payment 1 is cancelled\n", "{}", done.stderr);
}

#[test]
fn a_payment_whose_terms_have_long_expired_is_cancelled_by_itself() {
    let mut site = site_with(node(), json!({}));
    let clock = Clock::install(&mut site);
    let buyer = Merchant { server: site.server(), site };
    buyer.fill(30_000);
    let payee = evasive(10_000);
    let transaction = leave_open(&buyer, &payee);
    clock.set(&buyer.site, DAY + 3_000);
    let posts = payee.requests("POST").len();
    wait_until("it is sent again", || payee.requests("POST").len() > posts);
    assert_eq!(buyer.outgoing_states(), ["open"]);
    clock.shift(DAY + 3_700);
    // The wallet looks at open payments at least once per minute, and at its start.
    let buyer = restart(buyer);
    wait_until("it is cancelled", || buyer.outgoing_states() == ["cancelled"]);
    check_void(&transaction);
    let cost = 30_000 - buyer.balance();
    assert!((19..=24).contains(&cost), "{cost}");
}

fn restart(buyer: Merchant) -> Merchant {
    let Merchant { site, server } = buyer;
    assert_eq!(server.stop(), 0);
    Merchant { server: site.server(), site }
}

#[test]
fn without_a_node_no_payment_is_cancelled_or_begun() {
    let mut node = Node::start();
    node.mine(101);
    let buyer = buyer_with(&node, json!({}), &[30_000, 5_000]);
    let payee = evasive(10_000);
    leave_open(&buyer, &payee);
    node.stop();
    let done = cancel(&buyer);
    assert_eq!(done.code, 1);
    assert!(done.stderr.starts_with("bsv-cli: the network is not available: "), "{}", done.stderr);
    let other = Payee::asking(&go_dpp_terms(&[output(1_000)]));
    check_problem(&buyer.pay(&other.url()), 503, "network-unavailable");
    assert_eq!((buyer.outgoing_states(), buyer.balance()), (vec!["open".to_owned()], 35_000));
    assert_eq!(other.requests("GET").len(), 0);
    node.restart();
    let done = cancel(&buyer);
    assert_eq!(done.stdout, "Payment 1 is cancelled\n", "{}", done.stderr);
}
