//! A leader that stands still until the other server has taken over, and then goes on.

use std::sync::Mutex;
use std::sync::mpsc::channel;
use std::thread;

use bsv_tests::payee::{Answer, Payee, go_dpp_terms, output};
use bsv_tests::till::wait_until;
use bsv_tests::{Hold, Refusal};
use serde_json::json;

use super::{PRICE, Pair, check_books, check_paid};

const SEND: &str = "sendrawtransaction";
const REFUSAL: Refusal =
    Refusal { method: SEND, code: -26, message: "16: mandatory-script-verify-flag-failed" };

/// Has the leader stand still until the other server has removed it, and leads.
fn freeze_until_overtaken(pair: &Pair) {
    let before = pair.leader();
    pair.tills[0].freeze();
    wait_until("the other one leads", || ![String::new(), before.clone()].contains(&pair.leader()));
    pair.wait_for_processes(1);
}

/// Its node has refused a payment, which it does not know yet. The other server's node accepts it.
#[test]
fn a_leader_that_was_overtaken_refuses_no_payment_any_more() {
    let (pair, gates) = Pair::gated("frozen_refusing", 1);
    let (id, bills) = pair.bills(1);
    let transaction = pair.purse.transaction_for(&bills[0]);
    gates[0].refuse(REFUSAL);
    gates[0].shut(SEND, Hold::Answer);
    let successor = &pair.tills[1];
    thread::scope(|scope| {
        let post = scope.spawn(|| bills[0].try_post(&transaction));
        gates[0].wait_for(1);
        freeze_until_overtaken(&pair);
        wait_until("the payment is completed", || successor.state(&id) == "paid");
        gates[0].open();
        let events = successor.events();
        pair.tills[0].thaw();
        assert_eq!(pair.tills[0].wait_for_end(), 1);
        if let Ok(reply) = post.join().unwrap() {
            assert!([201, 503].contains(&reply.status), "{}", reply.body);
        }
        assert_eq!(successor.events(), events, "nothing was changed");
    });
    check_paid(successor, &id, &transaction);
    assert_eq!(successor.balance(), PRICE);
    check_books(successor);
}

/// A payee has refused its payment, which it does not know yet, and takes it from the other server.
#[test]
fn a_leader_that_was_overtaken_releases_no_coins_any_more() {
    let pair = Pair::start("frozen_paying", 0);
    pair.tills[1].fill(50_000);
    let payee = Payee::asking(&go_dpp_terms(&[output(1_000)]));
    let (arrive, arrived) = channel();
    let (open, gate) = channel::<()>();
    let gate = Mutex::new(Some(gate));
    payee.on_post(move |request| {
        let gate = gate.lock().unwrap().take();
        let Some(gate) = gate else { return Answer::accept(request) };
        arrive.send(()).unwrap();
        let _ = gate.recv();
        Answer::text(400, "{}")
    });
    let successor = &pair.tills[1];
    thread::scope(|scope| {
        let (payer, body) = (&pair.tills[0], json!({ "payToURL": payee.url() }));
        let pay = scope.spawn(move || payer.post_with_key("/api/v1/pay", "key", &body));
        arrived.recv().unwrap();
        freeze_until_overtaken(&pair);
        wait_until("the payment is settled", || successor.outgoing()[0]["state"] == "settled");
        drop(open);
        let events = successor.events();
        pair.tills[0].thaw();
        assert_eq!(pair.tills[0].wait_for_end(), 1);
        if let Ok(reply) = pay.join().unwrap() {
            assert_ne!(reply.status, 422, "{}", reply.body);
        }
        assert_eq!(successor.events(), events, "nothing was changed");
    });
    let outgoing = successor.outgoing();
    assert_eq!((outgoing.len(), &outgoing[0]["state"]), (1, &json!("settled")));
    check_books(successor);
}
