//! The same requests to both servers at the same moment.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use bsv_tests::payee::{Answer, Payee, go_dpp_terms, output};
use bsv_tests::purse::knows;
use bsv_tests::{Hold, Reply, Till, repetitions};
use serde_json::{Value, json};

use super::{PRICE, Pair, at_once, problem};

const SEND: &str = "sendrawtransaction";
const WITHDRAWALS: &str = "/api/v1/withdrawals";
const ADDRESS: &str = "mrCDrCybB6J1vRfbwM5hemdJz73FwDBC8r";

fn rounds() -> usize {
    repetitions("requests to two servers at the same moment", 100, 8)
}

/// Lets the other server come to the point at which it waits.
fn meanwhile() {
    thread::sleep(Duration::from_secs(1));
}

/// What a payer is told, except where the server listens.
fn acknowledged(reply: &Reply) -> Value {
    let mut told: Value = serde_json::from_str(&reply.body).unwrap();
    told["peer_channel"]["host"].take();
    told
}

#[test]
fn a_payment_posted_to_both_servers_counts_once() {
    let rounds = rounds();
    let pair = Pair::start("same_payment", rounds);
    for round in 0..rounds {
        let (id, bills) = pair.bills(round % 2);
        let transaction = pair.purse.transaction_for(&bills[0]);
        let [first, second] = at_once(|which| bills[which].post(&transaction));
        assert_eq!((first.status, second.status), (201, 201), "{} {}", first.body, second.body);
        assert_eq!(acknowledged(&first), acknowledged(&second));
        pair.check_paid(&id, &transaction);
    }
    let balances = pair.tills.each_ref().map(Till::balance);
    assert_eq!(balances, [rounds as u64 * PRICE; 2]);
    pair.check_books();
}

#[test]
fn of_two_payments_of_an_invoice_at_two_servers_one_is_accepted() {
    let rounds = rounds();
    let pair = Pair::start("two_payments", 2 * rounds);
    for round in 0..rounds {
        let (id, bills) = pair.bills(round % 2);
        let transactions = [(); 2].map(|()| pair.purse.transaction_for(&bills[0]));
        let replies = at_once(|which| bills[which].post(&transactions[which]));
        let [(winner, accepted)] = Vec::from_iter(
            transactions.iter().zip(&replies).filter(|(_, reply)| reply.status == 201),
        )
        .try_into()
        .unwrap_or_else(|_| panic!("one is accepted, not {replies:?}"));
        pair.check_paid(&id, winner);
        for (transaction, reply) in transactions.iter().zip(&replies) {
            assert_eq!(knows(&pair.node, transaction), reply.status == 201);
            if reply != accepted {
                let (status, code) = problem(reply);
                let may_be = ["payment-in-flight", "invoice-paid"];
                assert!(status == 409 && may_be.contains(&code.as_str()), "{}", reply.body);
            }
        }
    }
    pair.check_books();
}

#[test]
fn a_server_waits_for_the_payment_that_the_other_one_is_sending() {
    let (pair, gates) = Pair::gated("awaited", 4);
    for which in [0, 1] {
        let other = 1 - which;
        let (id, bills) = pair.bills(other);
        let [transaction, rival] = [(); 2].map(|()| pair.purse.transaction_for(&bills[0]));
        gates[which].shut(SEND, Hold::Call);
        thread::scope(|scope| {
            let first = scope.spawn(|| bills[which].post(&transaction));
            gates[which].wait_for(1);
            let second = scope.spawn(|| bills[other].post(&transaction));
            let in_flight = (409, "payment-in-flight".to_owned());
            assert_eq!(problem(&bills[other].post(&rival)), in_flight);
            let path = format!("/api/v1/invoices/{id}");
            let deletion = pair.tills[other].wallet().request("DELETE", &path, b"");
            assert_eq!(problem(&deletion), in_flight);
            assert_eq!(pair.tills[other].state(&id), "pending");
            meanwhile();
            let hex = transaction.to_hex();
            assert_eq!(gates[other].heard(SEND, &hex), 0, "the other one leaves it alone");
            gates[which].open();
            let [first, second] = [first, second].map(|post| post.join().unwrap());
            assert_eq!((first.status, second.status), (201, 201));
            assert_eq!(acknowledged(&first), acknowledged(&second));
        });
        pair.check_paid(&id, &transaction);
    }
    pair.check_books();
}

#[test]
fn of_two_servers_that_are_to_pay_one_url_one_pays() {
    let pair = Pair::start("same_url", 0);
    pair.tills.iter().for_each(|till| till.fill(30_000));
    for which in [0, 1] {
        let payee = Payee::asking(&go_dpp_terms(&[output(1_000)]));
        let (arrive, arrived) = channel();
        let (open, gate) = channel::<()>();
        let gate = Mutex::new(gate);
        payee.on_post(move |request| {
            arrive.send(()).unwrap();
            let _ = gate.lock().unwrap().recv();
            Answer::accept(request)
        });
        let [payer, other] = [&pair.tills[which], &pair.tills[1 - which]];
        thread::scope(|scope| {
            let first = scope.spawn(|| payer.pay(&payee.url()));
            arrived.recv().unwrap();
            let running = (409, "payment-running".to_owned());
            assert_eq!(problem(&other.pay(&payee.url())), running);
            drop(open);
            let first = first.join().unwrap();
            assert_eq!(first.status, 200, "{}", first.body);
            assert_eq!(other.pay(&payee.url()).body, first.body);
        });
        assert_eq!(payee.requests("POST").len(), 1);
    }
    for _ in 0..rounds() {
        let payee = Payee::asking(&go_dpp_terms(&[output(100)]));
        let replies = at_once(|which| pair.tills[which].pay(&payee.url()));
        let paid = pair.tills[0].pay(&payee.url());
        assert_eq!(paid.status, 200, "{}", paid.body);
        for reply in &replies {
            match reply.status {
                200 => assert_eq!(reply.body, paid.body),
                _ => assert_eq!(problem(reply), (409, "payment-running".to_owned())),
            }
        }
        assert!(replies.iter().any(|reply| reply.status == 200), "{replies:?}");
        let txid = payee.paid_with().txid().to_string();
        let of_it = |payment: &&Value| payment["url"] == payee.url();
        let [payment] = Vec::from_iter(pair.tills[1].outgoing().iter().filter(of_it).cloned())
            .try_into()
            .expect("one payment");
        assert_eq!((&payment["txid"], &payment["state"]), (&json!(txid), &json!("settled")));
    }
    pair.check_books();
}

#[test]
fn a_withdrawal_asked_for_at_both_servers_is_made_once() {
    let pair = Pair::start("same_withdrawal", 0);
    let rounds = rounds();
    let fillings = rounds.div_ceil(50) as u64;
    (0..fillings).for_each(|_| pair.tills[0].fill(100_000));
    let body = json!({ "address": ADDRESS, "satoshis": 1_000 });
    for round in 0..rounds {
        let key = format!("withdrawal {round}");
        let ask = |which: usize| pair.tills[which].post_with_key(WITHDRAWALS, &key, &body).unwrap();
        let replies = at_once(ask);
        let made = ask(round % 2);
        assert_eq!(made.status, 201, "{}", made.body);
        let id = |reply: &Reply| -> Value {
            serde_json::from_str::<Value>(&reply.body).unwrap()["id"].clone()
        };
        for reply in &replies {
            match reply.status {
                201 => assert_eq!(id(reply), id(&made)),
                _ => assert_eq!(problem(reply), (409, "payment-running".to_owned())),
            }
        }
        assert!(replies.iter().any(|reply| reply.status == 201), "{replies:?}");
    }
    let payments = pair.tills[1].outgoing();
    assert_eq!(payments.len(), rounds);
    let fees: u64 = payments.iter().map(|payment| payment["fee"].as_u64().unwrap()).sum();
    assert_eq!(pair.tills[1].balance(), 100_000 * fillings - 1_000 * rounds as u64 - fees);
    pair.check_books();
}

#[test]
fn payments_of_two_servers_at_once_share_no_coin() {
    let pair = Pair::start("own_coins", 0);
    (0..3).for_each(|_| pair.tills[0].fill(30_000));
    let payees: Vec<_> = (0..8).map(|_| Payee::asking(&go_dpp_terms(&[output(1_000)]))).collect();
    let pay = |(number, payee): (usize, &Payee)| {
        loop {
            let reply = pair.tills[number % 2].pay(&payee.url());
            if reply.status == 200 {
                return;
            }
            // While all coins are reserved, a payment is refused.
            assert_eq!(problem(&reply), (422, "insufficient-funds".to_owned()));
        }
    };
    thread::scope(|scope| {
        for payee in payees.iter().enumerate() {
            scope.spawn(move || pay(payee));
        }
    });
    let mut spent = BTreeSet::new();
    for payee in &payees {
        for input in payee.paid_with().inputs {
            assert!(spent.insert(input.previous_output.to_string()), "a coin was spent twice");
        }
    }
    let payments = pair.tills[0].outgoing();
    assert_eq!(payments, pair.tills[1].outgoing());
    let fees: u64 = payments.iter().map(|payment| payment["fee"].as_u64().unwrap()).sum();
    assert_eq!((payments.len(), pair.tills[1].balance()), (8, 82_000 - fees));
    pair.check_books();
}
