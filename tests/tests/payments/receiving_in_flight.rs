//! Payments that are being sent to the network, and what happens meanwhile.

use std::io::Write;
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use bsv_tests::clock::{Clock, DAY};
use bsv_tests::purse::{FEE, knows, send};
use bsv_tests::{Bill, Gate, Hold, Node, Reply};
use bsv_tx::{Script, Transaction, TxOut};
use serde_json::json;

use super::counter::{Counter, PRICE, check_problem};
use super::merchant::{Merchant, wait_until};

const SEND: &str = "sendrawtransaction";
const CHECK: &str = "gettxouts";

/// An otherwise good transaction without its signature.
fn unsigned(counter: &Counter, bill: &Bill) -> Transaction {
    let mut transaction = counter.purse.transaction_for(bill);
    transaction.inputs[0].unlocking_script = Script::default();
    transaction
}

/// A counter whose shop reaches the node through a gate, and whose clock the test sets.
fn with_clock(coins: usize) -> (Counter, Gate, Clock) {
    let node = Node::start();
    let gate = Gate::before(&node);
    let mut clock = None;
    let counter = Counter::on(node, coins, |_| {
        let mut site = gate.site();
        clock = Some(Clock::install(&mut site));
        site
    });
    (counter, gate, clock.unwrap())
}

fn delete(counter: &Counter, id: &str) -> Reply {
    let path = format!("/api/v1/invoices/{id}");
    counter.shop.server.wallet().request("DELETE", &path, b"")
}

#[test]
fn other_requests_are_answered_while_a_payment_is_in_flight() {
    let (counter, gate) = Counter::with_gate(3);
    let Counter { node, shop, purse } = &counter;
    let (id, bill) = counter.bill();
    let [transaction, other] = [(); 2].map(|()| purse.transaction_for(&bill));
    let (next_id, next) = counter.bill();
    gate.shut(SEND, Hold::Call);
    thread::scope(|scope| {
        let first = scope.spawn(|| bill.post(&transaction));
        gate.wait_for(1);
        let again = scope.spawn(|| bill.post(&transaction));
        let payments = shop.payments(&id);
        assert_eq!(payments[0]["state"], "in-flight");
        assert_eq!((payments.len(), shop.state(&id), shop.balance()), (1, "pending".to_owned(), 0));
        check_problem(&delete(&counter, &id), 409, "payment-in-flight", "deleted");
        check_problem(&bill.post(&other), 409, "payment-in-flight", "another transaction");
        assert!(!knows(node, &other));

        let [asked] = next.outputs().try_into().unwrap();
        let underpaid = TxOut { satoshis: asked.satoshis - 1, ..asked };
        let underpaid = purse.spend(&[purse.coin()], vec![underpaid], FEE);
        check_problem(&next.post(&underpaid), 400, "wrong-outputs", "another invoice");
        counter.check_unpaid(&next_id, "another invoice");
        counter.bill();
        assert_eq!(shop.server.wallet().post("/api/v1/users", r#"{"name":"a"}"#).status, 201);

        gate.open();
        let [first, again] = [first, again].map(|post| post.join().unwrap());
        assert_eq!((first.status, again.status), (201, 201), "{}", again.body);
        assert_eq!(first.body, again.body);
    });
    counter.check_paid(&id, &transaction);
    assert_eq!(shop.balance(), PRICE);
    check_problem(&bill.post(&other), 409, "invoice-paid", "another transaction");
}

#[test]
fn a_payment_is_taken_after_another_one_was_refused() {
    let (counter, gate) = Counter::with_gate(2);
    let (id, bill) = counter.bill();
    let [unsigned, good] = [unsigned(&counter, &bill), counter.purse.transaction_for(&bill)];
    gate.shut(SEND, Hold::Call);
    thread::scope(|scope| {
        let refused = scope.spawn(|| bill.post(&unsigned));
        gate.wait_for(1);
        let waiting = scope.spawn(|| bill.post(&good));
        // Meanwhile it comes and waits.
        thread::sleep(Duration::from_secs(1));
        gate.open();
        check_problem(&refused.join().unwrap(), 422, "refused-by-network", "unsigned");
        let reply = waiting.join().unwrap();
        assert_eq!(reply.status, 201, "{}", reply.body);
    });
    counter.check_paid(&id, &good);
}

#[test]
fn an_invoice_does_not_expire_while_its_payment_is_in_flight() {
    let (counter, gate, clock) = with_clock(4);
    let [(id, bill), (refused_id, refused_bill), (late_id, late_bill)] =
        [(); 3].map(|()| counter.bill());
    let transaction = counter.purse.transaction_for(&bill);
    let unsigned = unsigned(&counter, &refused_bill);
    gate.shut(SEND, Hold::Call);
    thread::scope(|scope| {
        let post = scope.spawn(|| bill.post(&transaction));
        let refused = scope.spawn(|| refused_bill.post(&unsigned));
        gate.wait_for(2);
        clock.set(&counter.shop.site, DAY + 60);
        // A sweep expires due invoices every second.
        wait_until("the third one expires", || counter.shop.state(&late_id) == "expired");
        thread::sleep(Duration::from_millis(1500));
        assert_eq!(counter.shop.state(&id), "pending");
        assert_eq!(counter.shop.state(&refused_id), "pending");
        // Whatever becomes of the payments, another one would be late.
        let terms = counter.shop.server.payments().get(&format!("/api/v1/payment/{id}"));
        check_problem(&terms, 422, "invoice-expired", "in flight");
        gate.open();
        assert_eq!(post.join().unwrap().status, 201);
        check_problem(&refused.join().unwrap(), 422, "refused-by-network", "unsigned");
    });
    counter.check_paid(&id, &transaction);
    assert_eq!(counter.shop.state(&refused_id), "expired");
    let client = counter.shop.server.payments();
    for (id, bill) in [(&refused_id, &refused_bill), (&late_id, &late_bill)] {
        let transaction = counter.purse.transaction_for(bill);
        check_problem(&bill.post(&transaction), 422, "invoice-expired", "late");
        let terms = client.get(&format!("/dpp/api/v1/payment/{id}"));
        check_problem(&terms, 422, "invoice-expired", "terms");
        assert_eq!(delete(&counter, id).status, 204);
    }
    assert_eq!(counter.shop.balance(), PRICE);
}

#[test]
fn one_of_three_simultaneous_good_payments_is_accepted() {
    let (counter, gate) = Counter::with_gate(6);
    for is_same in [false, true] {
        let before = counter.shop.balance();
        let (id, bill) = counter.bill();
        let mut transactions: Vec<_> =
            (0..3).map(|_| counter.purse.transaction_for(&bill)).collect();
        if is_same {
            transactions = vec![transactions[0].clone(); 3];
        }
        gate.shut(CHECK, Hold::Answer);
        let replies: Vec<_> = thread::scope(|scope| {
            let mut posts = Vec::new();
            for transaction in &transactions {
                let bill = &bill;
                posts.push(scope.spawn(move || bill.post(transaction)));
            }
            gate.wait_for(3);
            gate.open();
            posts.into_iter().map(|post| post.join().unwrap()).collect()
        });
        let accepted = || replies.iter().filter(|reply| reply.status == 201);
        let first = accepted().next().unwrap();
        assert!(accepted().all(|reply| reply.body == first.body));
        assert_eq!(accepted().count(), if is_same { 3 } else { 1 }, "{replies:?}");
        for (transaction, reply) in transactions.iter().zip(&replies) {
            assert!([201, 409].contains(&reply.status), "{}", reply.body);
            assert_eq!(knows(&counter.node, transaction), reply.status == 201);
            if reply.status == 201 {
                counter.check_paid(&id, transaction);
            }
        }
        assert_eq!(counter.shop.balance(), before + PRICE);
    }
}

#[test]
fn an_invoice_may_be_deleted_or_expire_while_its_payment_is_checked() {
    let (counter, gate, clock) = with_clock(2);
    let [(id, bill), (_, late_bill)] = [(); 2].map(|()| counter.bill());
    let [transaction, late] = [&bill, &late_bill].map(|bill| counter.purse.transaction_for(bill));
    gate.shut(CHECK, Hold::Answer);
    thread::scope(|scope| {
        let post = scope.spawn(|| bill.post(&transaction));
        let late_post = scope.spawn(|| late_bill.post(&late));
        gate.wait_for(2);
        assert_eq!(delete(&counter, &id).status, 204);
        clock.set(&counter.shop.site, DAY + 60);
        gate.open();
        check_problem(&post.join().unwrap(), 404, "unknown-invoice", "deleted");
        check_problem(&late_post.join().unwrap(), 422, "invoice-expired", "expired");
    });
    assert_eq!((counter.mempool(), counter.shop.balance()), (json!([]), 0));
}

#[test]
fn a_payment_is_completed_after_its_payer_has_hung_up() {
    let (counter, gate) = Counter::with_gate(1);
    let (id, bill) = counter.bill();
    let transaction = counter.purse.transaction_for(&bill);
    let body = bill.payment(&transaction);
    let address = counter.shop.server.payments().address();
    gate.shut(SEND, Hold::Call);
    let mut payer = TcpStream::connect(address).unwrap();
    let head = format!(
        "POST /dpp/api/v1/payment/{id} HTTP/1.1\r\nHost: {address}\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    payer.write_all(&[head.as_bytes(), &body].concat()).unwrap();
    gate.wait_for(1);
    drop(payer);
    gate.open();
    wait_until("the payment is completed", || counter.shop.state(&id) == "paid");
    counter.check_paid(&id, &transaction);
    assert_eq!(counter.shop.balance(), PRICE);
    assert_eq!(bill.post(&transaction).status, 201);
}

#[test]
fn a_payment_whose_coin_is_spent_meanwhile_is_refused() {
    let (counter, gate) = Counter::with_gate(1);
    let (id, bill) = counter.bill();
    let coin = counter.purse.coin();
    let transaction = counter.purse.spend(&[coin], bill.outputs(), FEE);
    let quicker = counter.purse.spend(&[coin], vec![], FEE);
    gate.shut(SEND, Hold::Call);
    thread::scope(|scope| {
        let post = scope.spawn(|| bill.post(&transaction));
        gate.wait_for(1);
        send(&counter.node, &quicker);
        gate.open();
        check_problem(&post.join().unwrap(), 422, "refused-by-network", "double spend");
    });
    counter.check_unpaid(&id, "double spend");
    assert_eq!(counter.shop.balance(), 0);
    let change = counter.purse.coins_of(&quicker)[0];
    assert_eq!(bill.post(&counter.purse.spend(&[change], bill.outputs(), FEE)).status, 201);
    assert_eq!(counter.shop.balance(), PRICE);
}

#[test]
fn a_payment_in_flight_is_completed_after_the_server_was_killed() {
    for hold in [Hold::Call, Hold::Answer] {
        let (counter, gate) = Counter::with_gate(1);
        let (id, bill) = counter.bill();
        let transaction = counter.purse.transaction_for(&bill);
        gate.shut(SEND, hold);
        let post = thread::spawn({
            let (bill, transaction) = (bill.clone(), transaction.clone());
            move || bill.try_post(&transaction)
        });
        gate.wait_for(1);
        let counter = counter.restart_after_kill();
        assert!(post.join().unwrap().is_err());
        gate.cut();
        wait_until("the payment is resolved", || counter.shop.state(&id) == "paid");
        counter.check_paid(&id, &transaction);
        assert_eq!(counter.shop.balance(), PRICE, "{hold:?}");
        assert_eq!(counter.mempool(), json!([transaction.txid().to_string()]));
        let [first, second] = [(); 2].map(|()| counter.post(&id, bill.payment(&transaction)));
        assert_eq!((first.status, &first.body), (201, &second.body));
    }
}

#[test]
fn repeating_a_payment_that_a_killed_server_left_open_tells_the_outcome() {
    let (mut counter, gate) = Counter::with_gate(2);
    for is_signed in [false, true] {
        let (id, bill) = counter.bill();
        let transaction = if is_signed {
            counter.purse.transaction_for(&bill)
        } else {
            unsigned(&counter, &bill)
        };
        gate.shut(SEND, Hold::Call);
        let post = thread::spawn({
            let (bill, transaction) = (bill.clone(), transaction.clone());
            move || bill.try_post(&transaction)
        });
        gate.wait_for(1);
        counter = counter.restart_after_kill();
        assert!(post.join().unwrap().is_err());
        gate.cut();
        gate.shut(SEND, Hold::Call);
        // The server sends the open payment again by itself.
        gate.wait_for(1);
        thread::scope(|scope| {
            let posts =
                [(); 4].map(|()| scope.spawn(|| counter.post(&id, bill.payment(&transaction))));
            assert_eq!(counter.shop.payments(&id)[0]["state"], "in-flight");
            gate.open();
            for post in posts {
                let reply = post.join().unwrap();
                match is_signed {
                    true => assert_eq!(reply.status, 201, "{}", reply.body),
                    false => drop(check_problem(&reply, 422, "refused-by-network", "unsigned")),
                }
            }
        });
        match is_signed {
            true => counter.check_paid(&id, &transaction),
            false => counter.check_unpaid(&id, "unsigned"),
        }
    }
    assert_eq!(counter.shop.balance(), PRICE);
}

#[test]
fn a_server_that_is_told_to_stop_completes_the_payment_in_flight() {
    let (counter, gate) = Counter::with_gate(1);
    let (id, bill) = counter.bill();
    let transaction = counter.purse.transaction_for(&bill);
    let Counter { node, shop, purse } = counter;
    let address = shop.server.payments().address().to_owned();
    gate.shut(SEND, Hold::Call);
    thread::scope(|scope| {
        let post = scope.spawn(|| bill.post(&transaction));
        gate.wait_for(1);
        let stop = scope.spawn(|| shop.server.stop());
        wait_until("nobody is let in", || TcpStream::connect(&address).is_err());
        gate.open();
        assert_eq!(post.join().unwrap().status, 201);
        assert_eq!(stop.join().unwrap(), 0);
    });
    let server = shop.site.server();
    let counter = Counter { node, shop: Merchant { server, ..shop }, purse };
    counter.check_paid(&id, &transaction);
    assert_eq!(counter.shop.balance(), PRICE);
}
