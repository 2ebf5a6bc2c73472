//! Transactions that pay several keys of a wallet. The node publishes nothing, so that the wallet
//! learns of a transaction only from the message that brings it.

use bsv_tests::ancestry::beef;
use bsv_tests::purse::FEE;
use bsv_tx::{BeefVersion, Script, TxOut};
use serde_json::{Value, json};

use super::counter::{Counter, PRICE};
use super::forms::{check_taken, post_transaction};
use super::merchant::json_of;

/// The script of a new user's key.
fn user_script(counter: &Counter) -> Script {
    let reply = counter.shop.server.wallet().post("/api/v1/users", r#"{"name":"Ann"}"#);
    let pki = json_of(&reply)["extendedData"]["pki"].as_str().unwrap().to_owned();
    Script::p2pkh(&pki.parse::<bsv_tx::PublicKey>().unwrap().hash())
}

fn unassigned(counter: &Counter) -> Value {
    let receipts = counter.shop.get("/api/v1/receipts?unassigned=true");
    let receipts = receipts.as_array().unwrap().iter();
    receipts.map(|it| json!([it["txid"], it["satoshis"], it["state"]])).collect()
}

fn check_books(counter: &Counter) {
    counter.shop.site.verified_books();
}

#[test]
fn all_that_a_posted_transaction_pays_is_booked_with_it() {
    let counter = Counter::new(2);
    let [(first, one), (second, other)] = [(); 2].map(|()| counter.bill());
    let user = TxOut { satoshis: 700, locking_script: user_script(&counter) };
    let outputs = [one.outputs(), other.outputs(), vec![user.clone()]].concat();
    let transaction = counter.purse.spend(&[counter.purse.coin()], outputs, FEE);
    let reply = one.post(&transaction);
    assert_eq!(reply.status, 201, "{}", reply.body);
    counter.check_paid(&first, &transaction);
    counter.check_paid(&second, &transaction);
    assert_eq!(counter.shop.balance(), 2 * PRICE + 700);
    let txid = transaction.txid().to_string();
    assert_eq!(unassigned(&counter), json!([[txid, 700, "accepted"]]));
    for bill in [&one, &other] {
        assert_eq!(bill.post(&transaction).status, 201);
    }
    check_books(&counter);

    // The network refuses one, and nothing of it is left.
    let [(_, one), (_, other)] = [(); 2].map(|()| counter.bill());
    let outputs = [one.outputs(), other.outputs(), vec![user]].concat();
    let mut wrong = counter.purse.spend(&[counter.purse.coin()], outputs, FEE);
    wrong.inputs[0].unlocking_script = Script::from_bytes([0x51]);
    for _ in 0..2 {
        assert_eq!(one.post(&wrong).status, 422);
        assert_eq!(unassigned(&counter), json!([[txid, 700, "accepted"]]));
    }
    assert_eq!(counter.shop.balance(), 2 * PRICE + 700);
    check_books(&counter);
}

#[test]
fn what_the_ancestors_of_a_payment_pay_is_booked_with_it() {
    let counter = Counter::new(1);
    let [(first, one), (second, other)] = [(); 2].map(|()| counter.bill());
    let parent = counter.purse.spend(&[counter.purse.coin()], one.outputs(), FEE);
    let change = counter.purse.coins_of(&parent)[0];
    let child = counter.purse.spend(&[change], other.outputs(), FEE);
    let bytes =
        beef(&counter.node, BeefVersion::V2, &child, std::slice::from_ref(&parent)).to_bytes();
    check_taken(&post_transaction(&counter, &second, bytes), &child, "accepted", "a child");
    counter.check_paid(&second, &child);
    counter.check_paid(&first, &parent);
    check_books(&counter);
}

#[test]
fn a_withdrawal_to_an_invoice_of_the_wallet_pays_it() {
    let counter = Counter::new(1);
    let (paid, bill) = counter.bill();
    assert_eq!(bill.post(&counter.purse.transaction_for(&bill)).status, 201);
    counter.mine_all(&[&paid]);
    let id = counter.shop.invoice(5_000);
    let bill = bsv_tests::Bill::at(&counter.shop.payment_url(&id));
    let script = bill.outputs()[0].locking_script.to_hex();
    let body = json!({ "script": script, "satoshis": 5_000 }).to_string();
    let reply = counter.shop.server.wallet().post("/api/v1/withdrawals", body);
    assert_eq!(reply.status, 201, "{}", reply.body);
    let withdrawal = json_of(&reply);
    assert_eq!(counter.shop.state(&id), "paid");
    let fee = withdrawal["fee"].as_u64().unwrap();
    assert_eq!(counter.shop.balance(), PRICE - fee);
    check_books(&counter);
}
