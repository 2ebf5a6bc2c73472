//! A wallet without a node of its own pays.

use std::sync::Mutex;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use bsv_invoicing::dpp::Payment;
use bsv_tests::ancestry::previous_outputs;
use bsv_tests::payee::{Answer, Payee, go_dpp_terms, output};
use bsv_tests::purse::{FEE, knows, send};
use bsv_tests::services::Mood;
use bsv_tests::{Bill, Client, Purse};
use bsv_tx::{Beef, ExtendedTransaction, Script, TxOut};
use serde_json::{Value, json};

use super::stall::Stall;
use crate::payments::counter::{PRICE, check_problem};
use crate::payments::merchant::{Merchant, json_of, wait_until};
use crate::payments::paying_scene::site_with;

#[test]
fn a_wallet_pays_through_services_with_what_blocks_hold() {
    let stall = Stall::with(1, json!({ "minedBlocks": 1 }));
    let (id, transaction) = stall.payment();
    assert_eq!(stall.post(&id, &transaction).status, 201);
    let payee = Merchant::on(&stall.counter.node);
    let bill = payee.invoice(5_000);
    let url = payee.payment_url(&bill);
    // Services give only their word that the coin exists.
    let early = stall.counter.shop.pay(&url);
    check_problem(&early, 422, "insufficient-funds", "no block holds the coin");
    stall.counter.node.mine(1);
    wait_until("a block holds the coin", || stall.confirmations(&id) == 1);
    let paid = stall.counter.shop.pay(&url);
    assert_eq!(paid.status, 200, "{}", paid.body);
    assert_eq!(payee.state(&bill), "paid");
    let state = || stall.counter.shop.server.wallet().list("/api/v1/outgoing")[0]["state"].clone();
    wait_until("services have taken the payment", || state() == "settled");
    // The change of a proven coin can be spent at once.
    let bill = payee.invoice(5_000);
    let paid = stall.counter.shop.pay(&payee.payment_url(&bill));
    assert_eq!(paid.status, 200, "{}", paid.body);
    assert_eq!(payee.state(&bill), "paid");
}

#[test]
fn a_payee_without_a_node_gets_the_ancestors_that_it_asks_for() {
    let stall = Stall::with(1, json!({ "minedBlocks": 1 }));
    let node = &stall.counter.node;
    let terms = |path: &str| json_of(&stall.counter.shop.server.payments().get(path));
    let id = stall.counter.shop.invoice(PRICE);
    assert_eq!(terms(&format!("/dpp/api/v1/payment/{id}"))["ancestryRequired"], true);
    let policies = "/modes/ef63d9775da5/choiceID0/transactions/0/policies/SPVRequired";
    let brc = terms(&format!("/api/v1/payment/{id}"));
    assert_eq!(brc.pointer(policies), Some(&Value::Bool(true)), "{brc}");

    // A wallet with a node, whose coins are not mined, pays in each dialect.
    let site = site_with(node, json!({}));
    let payer = Merchant { server: site.server(), site };
    node.mine(10);
    payer.fill(60_000);
    for url in [
        stall.counter.shop.payment_url(&id),
        stall.counter.shop.payment_url(&stall.counter.shop.invoice(PRICE / 2)).replace("/dpp", ""),
    ] {
        let paid = payer.pay(&url);
        assert_eq!(paid.status, 200, "{url}: {}", paid.body);
        assert_eq!(stall.state(url.rsplit_once('/').unwrap().1), "paid");
    }
    // What blocks hold goes on to another shop without a node. The proofs are the wallet's own.
    node.mine(1);
    wait_until("blocks hold the coins", || stall.confirmations(&id) == 1);
    let other = stall.beside();
    let bill = other.invoice(PRICE + 1_000);
    let paid = stall.counter.shop.pay(&other.payment_url(&bill));
    assert_eq!(paid.status, 200, "{}", paid.body);
    assert_eq!(other.state(&bill), "paid");
}

/// Gives a shop a coin that a block holds, from a transaction with so many further bytes.
fn give_coin(stall: &Stall, satoshis: u64, further: usize) {
    let (node, shop) = (&stall.counter.node, &stall.counter.shop);
    let purse = Purse::filled(node, 1, satoshis + FEE + 110 * (1_000 + further as u64) / 1_000);
    stall.wait_for_tip();
    let id = shop.invoice(satoshis);
    let mut outputs = Bill::at(&shop.payment_url(&id)).outputs();
    let data = [&[0x00, 0x6a][..], &vec![0x00; further]].concat();
    outputs.push(TxOut { satoshis: 0, locking_script: Script::from_bytes(data) });
    let transaction = purse.spend_all(&[purse.coin()], outputs);
    wait_until("services have taken it", || stall.post(&id, &transaction).status == 201);
    node.mine(1);
    wait_until("a block holds the coin", || stall.confirmations(&id) == 1);
}

fn asking_for_ancestors() -> Payee {
    let mut terms = go_dpp_terms(&[output(5_000)]);
    terms["ancestryRequired"] = json!(true);
    Payee::asking(&terms)
}

#[test]
fn what_is_too_long_for_a_payee_is_not_recorded_and_comes_last() {
    let stall = Stall::with(0, json!({ "minedBlocks": 1 }));
    let shop = &stall.counter.shop;
    give_coin(&stall, 20_000, 6_000_000);
    let payee = asking_for_ancestors();
    let detail = check_problem(&shop.pay(&payee.url()), 422, "no-beef", "a long ancestor");
    assert!(detail.contains("payees read 10000000 at most"), "{detail}");
    assert_eq!((shop.outgoing(), payee.requests("POST").len()), (vec![], 0));
    assert_eq!(shop.get("/api/v1/balance/details")["reserved"], 0);
    // The smallest coin that suffices is the long one's.
    give_coin(&stall, 25_000, 0);
    let paid = shop.pay(&payee.url());
    assert_eq!(paid.status, 200, "{}", paid.body);
}

#[test]
fn services_are_not_asked_about_own_payments_while_a_payee_waits() {
    let stall = Stall::with_one_coin();
    let shop = &stall.counter.shop;
    let payees = [(); 4].map(|()| asking_for_ancestors());
    for payee in &payees[..3] {
        let paid = shop.pay(&payee.url());
        assert_eq!(paid.status, 200, "{}", paid.body);
    }
    stall.service.be(Mood { delay: Duration::from_secs(60), ..Mood::default() });
    let paid = shop.pay(&payees[3].url());
    assert_eq!(paid.status, 200, "{}", paid.body);
    let posted = Payment::from_json(&payees[3].requests("POST")[0].body).unwrap();
    let beef = Beef::from_bytes(&posted.transaction).unwrap();
    assert_eq!(beef.unmined_ancestors().count(), 3);
}

fn payee() -> Payee {
    let payee = Payee::asking(&go_dpp_terms(&[output(5_000)]));
    payee.on_post(|_| Answer::json(422, &json!({ "error": 1, "memo": "sold out" })));
    payee
}

#[test]
fn a_refused_payment_is_taken_back_and_the_next_one_excludes_it() {
    let stall = Stall::with_one_coin();
    let (node, shop) = (&stall.counter.node, &stall.counter.shop);
    let payee = payee();
    let detail = check_problem(&shop.pay(&payee.url()), 422, "refused-by-payee", "it is sold out");
    assert!(detail.ends_with("sold out"), "{detail}");
    let first = payee.paid_with();
    assert_eq!(shop.outgoing_states(), ["cancelling"]);
    let shown = shop.site.cli_ok(&["outgoing", "show", "1"]);
    assert!(shown.contains("do not pay the payee by other means"), "{shown}");
    let cancellation = node.call("getrawmempool", json!([]));
    let cancellation = cancellation[0].as_str().expect("the wallet has cancelled it").to_owned();
    // It is sold again.
    payee.on_post(Answer::accept);
    let paid = shop.pay(&payee.url());
    assert_eq!(paid.status, 200, "{}", paid.body);
    let second = payee.requests("POST")[1].transaction();
    let spent: Vec<_> =
        second.inputs.iter().map(|it| it.previous_output.txid.to_string()).collect();
    assert_eq!(spent, [cancellation], "only one of the two can be mined");
    wait_until("services have taken it", || shop.outgoing_states() == ["waiting", "cancelling"]);
    assert!(knows(node, &second));
    assert!(node.try_call("sendrawtransaction", json!([first.to_hex()])).is_err());
    node.mine(1);
    wait_until("a block holds both", || shop.outgoing_states() == ["settled", "cancelled"]);
    shop.site.cli_ok(&["books", "verify"]);
}

#[test]
fn a_refused_payment_that_the_network_shows_a_moment_later_is_answered() {
    let stall = Stall::with_one_coin();
    let (node, shop, service) = (&stall.counter.node, &stall.counter.shop, &stall.service);
    let payee = payee();
    service.be(Mood { delay: Duration::from_millis(500), ..Mood::default() });
    thread::scope(|scope| {
        let paying = scope.spawn(|| shop.pay(&payee.url()));
        wait_until("the payment", || !payee.requests("POST").is_empty());
        let payment = payee.paid_with();
        let path = format!("/tx/{}", payment.txid());
        let questions =
            || service.requests("GET").iter().filter(|it| it.path.ends_with(&path)).count();
        // The wallet looks for it before it records the refusal, and again before it cancels it.
        wait_until("the second question", || questions() == 2);
        service.be(Mood::default());
        let extended = ExtendedTransaction::new(payment.clone(), previous_outputs(node, &payment));
        let headers = [("Content-Type", "application/octet-stream")];
        let client = Client::new(&service.address());
        let taken = client.send("POST", "/tx", &headers, &extended.unwrap().to_bytes());
        assert_eq!(taken.status, 202, "{}", taken.body);
        let paid = paying.join().unwrap();
        assert_eq!(paid.status, 200, "{}", paid.body);
        assert_eq!(shop.outgoing_states(), ["settled"]);
        assert_eq!(node.call("getrawmempool", json!([])), json!([payment.txid().to_string()]));
    });
}

#[test]
fn a_payee_that_refuses_and_broadcasts_is_not_paid_twice() {
    let stall = Stall::with_one_coin();
    let (node, shop) = (&stall.counter.node, &stall.counter.shop);
    let payee = payee();
    let (posted, transactions) = channel();
    let (broadcast, was_broadcast) = channel();
    let was_broadcast = Mutex::new(was_broadcast);
    payee.on_post(move |request| {
        posted.send(request.transaction()).unwrap();
        was_broadcast.lock().unwrap().recv().unwrap();
        Answer::json(422, &json!({ "error": 1, "memo": "sold out" }))
    });
    thread::scope(|scope| {
        let paying = scope.spawn(|| shop.pay(&payee.url()));
        send(node, &transactions.recv().unwrap());
        broadcast.send(()).unwrap();
        check_problem(&paying.join().unwrap(), 422, "refused-by-payee", "it lies");
    });
    assert!(knows(node, &payee.paid_with()));
    for blocks in [0, 1] {
        node.mine(blocks);
        stall.wait_for_tip();
        assert_eq!(shop.outgoing_states(), ["cancelling"]);
        check_problem(&shop.pay(&payee.url()), 409, "earlier-payment-open", "it may be mined");
    }
    assert_eq!(payee.requests("POST").len(), 1);
}

#[test]
fn a_payment_is_cancelled_once_a_block_holds_its_cancellation() {
    let stall = Stall::with_one_coin();
    let (node, shop) = (&stall.counter.node, &stall.counter.shop);
    let payee = payee();
    payee.on_post(|_| Answer::text(503, "{}"));
    check_problem(&shop.pay(&payee.url()), 503, "payment-outcome-unknown", "no answer");
    let told = shop.site.cli_ok(&["outgoing", "cancel", "1", "--yes"]);
    assert!(told.starts_with("Payment 1 is cancelling\nThe payee can still be paid"), "{told}");
    // Nothing is paid to the same URL meanwhile.
    check_problem(&shop.pay(&payee.url()), 409, "payment-not-open", "it may be mined");
    node.mine(1);
    wait_until("a block holds the cancellation", || shop.outgoing_states() == ["cancelled"]);
    payee.on_post(Answer::accept);
    let paid = shop.pay(&payee.url());
    assert_eq!(paid.status, 200, "{}", paid.body);
}
