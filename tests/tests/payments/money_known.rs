//! Payments that the network has before anybody posts them to the shop: posting such a payment
//! never fails with the answer that it cannot be accepted.

use std::time::Duration;

use bsv_invoicing::Timestamp;
use bsv_tests::purse::{FEE, send};
use bsv_tests::{Bill, Reply};
use bsv_tx::{Transaction, TxOut};
use serde_json::{Value, json};

use super::counter::{Counter, PRICE, check_problem};
use super::merchant::{json_of, wait_until};

/// A payment of the invoice's script, with these amounts.
fn paying(counter: &Counter, bill: &Bill, amounts: &[u64]) -> Transaction {
    let output = |satoshis: &u64| TxOut { satoshis: *satoshis, ..bill.outputs()[0].clone() };
    let outputs = amounts.iter().map(output).collect();
    counter.purse.spend(&[counter.purse.coin()], outputs, FEE)
}

/// The messages in the channel of an acknowledged payment.
fn channel(counter: &Counter, acknowledgement: &Reply) -> Vec<Value> {
    let channel = &json_of(acknowledgement)["peer_channel"];
    let path = format!("/api/v1/channel/{}", channel["channel_id"].as_str().unwrap());
    let token = format!("Bearer {}", channel["token"].as_str().unwrap());
    let headers = [("Authorization", token.as_str())];
    let reply = counter.shop.server.payments().send("GET", &path, &headers, b"");
    assert_eq!(reply.status, 200, "{}", reply.body);
    serde_json::from_str(&reply.body).unwrap()
}

/// The state and the amount of each payment of an invoice.
fn listed(counter: &Counter, id: &str) -> Value {
    let payments = counter.shop.payments(id);
    json!(payments.iter().map(|it| json!([it["state"], it["satoshis"]])).collect::<Vec<_>>())
}

#[test]
fn a_payment_that_is_already_mined_is_proved() {
    let counter = Counter::new(1);
    let (id, bill) = counter.bill();
    let transaction = paying(&counter, &bill, &[PRICE]);
    send(&counter.node, &transaction);
    let block = counter.mine(1)[0].to_string();
    let reply = bill.post(&transaction);
    assert_eq!(reply.status, 201, "{}", reply.body);
    // The wallet may have seen it in the mempool first.
    wait_until("it is mined", || counter.shop.payments(&id)[0]["state"] == "mined");
    let [payment] = counter.shop.payments(&id).try_into().unwrap();
    assert_eq!((&payment["state"], &payment["blockHash"]), (&json!("mined"), &json!(block)));
    assert_eq!(counter.shop.state(&id), "paid");
    let messages = channel(&counter, &reply);
    assert_eq!(messages.len(), 1, "{messages:?}");
    assert_eq!(bill.post(&transaction).body, reply.body);
    assert_eq!((channel(&counter, &reply).len(), counter.shop.balance()), (1, PRICE));
}

#[test]
fn a_payment_that_is_mined_and_whose_outputs_are_spent_counts_too() {
    let counter = Counter::new(1);
    let (id, bill) = counter.bill();
    let transaction = paying(&counter, &bill, &[PRICE]);
    send(&counter.node, &transaction);
    // The change of the payment is spent again.
    let change = counter.purse.coins_of(&transaction)[0];
    send(&counter.node, &counter.purse.spend(&[change], vec![], FEE));
    counter.mine(6);
    assert_eq!(bill.post(&transaction).status, 201);
    wait_until("it is mined", || listed(&counter, &id) == json!([["mined", PRICE]]));
    assert_eq!(counter.shop.balance(), PRICE);
}

#[test]
fn a_payment_of_too_little_is_noted_and_the_rest_is_due() {
    let counter = Counter::new(4);
    for (blocks, state) in [(0, "accepted"), (1, "mined")] {
        let before = counter.shop.balance();
        let (id, bill) = counter.bill();
        let transaction = paying(&counter, &bill, &[PRICE - 1_000]);
        check_problem(&bill.post(&transaction), 400, "wrong-outputs", "not sent yet");
        send(&counter.node, &transaction);
        counter.mine(blocks);
        for _ in 0..2 {
            let reply = bill.post(&transaction);
            let detail = check_problem(&reply, 422, "underpaid", state);
            assert!(detail.contains("1000 satoshis"), "{detail}");
            assert_eq!(listed(&counter, &id), json!([[state, PRICE - 1_000]]));
            assert_eq!(counter.shop.state(&id), "pending");
            assert_eq!(counter.shop.balance(), before + PRICE - 1_000);
        }
        let rest = paying(&counter, &bill, &[1_000]);
        send(&counter.node, &rest);
        let reply = bill.post(&rest);
        assert_eq!(reply.status, 201, "the rest: {}", reply.body);
        assert_eq!(counter.shop.state(&id), "paid");
        assert_eq!(counter.shop.balance(), before + PRICE);
    }
}

#[test]
fn a_payment_of_too_much_or_in_parts_is_accepted() {
    let counter = Counter::new(4);
    let mut balance = 0;
    for (amounts, blocks) in [
        (&[PRICE + 5_000][..], 0),
        (&[PRICE / 2, PRICE / 2], 0),
        (&[PRICE, 1, 1], 1),
        (&[PRICE, PRICE], 1),
    ] {
        let (id, bill) = counter.bill();
        let transaction = paying(&counter, &bill, amounts);
        send(&counter.node, &transaction);
        counter.mine(blocks);
        let reply = bill.post(&transaction);
        assert_eq!(reply.status, 201, "{amounts:?}: {}", reply.body);
        balance += amounts.iter().sum::<u64>();
        assert_eq!((counter.shop.state(&id).as_str(), counter.shop.balance()), ("paid", balance));
    }
}

#[test]
fn a_late_payment_is_noted_and_the_invoice_stays_expired() {
    let counter = Counter::new(2);
    for blocks in [0, 1] {
        let before = counter.shop.balance();
        let until = Timestamp::of_system().after(Duration::from_secs(2));
        let body = json!({ "satoshis": PRICE, "expiresAt": until.to_string() }).to_string();
        let invoice = json_of(&counter.shop.server.wallet().post("/api/v1/invoices", body));
        let id = invoice["id"].as_str().unwrap();
        let bill = Bill::at(&counter.shop.payment_url(id));
        let transaction = paying(&counter, &bill, &[PRICE]);
        wait_until("it is late", || counter.shop.state(id) == "expired");
        check_problem(&bill.post(&transaction), 422, "invoice-expired", "not sent yet");
        send(&counter.node, &transaction);
        counter.mine(blocks);
        for _ in 0..2 {
            check_problem(&bill.post(&transaction), 422, "payment-late", "sent by the payer");
            assert_eq!(counter.shop.state(id), "expired");
            assert_eq!(counter.shop.payments(id).len(), 1);
            assert_eq!(counter.shop.balance(), before + PRICE);
        }
    }
}

#[test]
fn a_second_payment_is_noted_too() {
    let counter = Counter::new(2);
    let (id, bill) = counter.bill();
    assert_eq!(bill.post(&paying(&counter, &bill, &[PRICE])).status, 201);
    let again = paying(&counter, &bill, &[PRICE]);
    let detail = check_problem(&bill.post(&again), 409, "invoice-paid", "not sent yet");
    assert!(detail.contains("do not pay again"), "{detail}");
    send(&counter.node, &again);
    let reply = bill.post(&again);
    assert_eq!(reply.status, 201, "{}", reply.body);
    assert_eq!(counter.shop.payments(&id).len(), 2);
    assert_eq!(counter.shop.balance(), 2 * PRICE);
}
