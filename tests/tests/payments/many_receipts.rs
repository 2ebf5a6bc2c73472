//! Far more receipts than one payment can spend.

use std::collections::BTreeSet;
use std::thread;
use std::time::{Duration, Instant};

use bsv_tests::purse::send;
use bsv_tests::{Node, Purse, repetitions};
use bsv_tx::{Script, TxOut};
use serde_json::{Value, json};

use super::merchant::{Merchant, json_of};
use super::paying_scene::{buyer_with, check_problem};
use super::watching::{publishing_node, script_of, settlement};

/// An address whose key nobody has.
const ADDRESS: &str = "mrCDrCybB6J1vRfbwM5hemdJz73FwDBC8r";

/// Waits longer than usual, since many receipts take long.
pub(super) fn wait_long_until(what: &str, holds: impl Fn() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < Duration::from_secs(3_600), "timed out, waiting for: {what}");
        thread::sleep(Duration::from_millis(200));
    }
    eprintln!("{what} after {:?}", started.elapsed());
}

/// Pays a script with one transaction that has many equal outputs.
fn pay_in_parts(node: &Node, purse: &Purse, script: &Script, parts: usize, satoshis: u64) {
    let output = TxOut { satoshis, locking_script: script.clone() };
    let fee = 200 + 4 * parts as u64;
    send(node, &purse.spend(&[purse.coin()], vec![output; parts], fee));
}

fn refund(shop: &Merchant, id: &str, mut body: Value) -> bsv_tests::Reply {
    body["to"] = json!(ADDRESS);
    let path = format!("/api/v1/invoices/{id}/refund");
    shop.server.wallet().post(&path, body.to_string())
}

fn check_books(shop: &Merchant) {
    let books = shop.site.verified_books();
    assert_eq!(books["balance"], shop.balance());
}

#[test]
fn an_invoice_of_many_receipts_is_listed_and_refunded() {
    const PARTS: usize = 10;
    const SATOSHIS: u64 = 300;
    const PRICE: u64 = 5_000;
    let count = repetitions("receipts of one invoice", 20_000, 500);
    let paid = count as u64 * SATOSHIS;
    let (node, purse) = publishing_node(count / PARTS);
    let shop = buyer_with(&node, json!({}), &[]);
    let id = shop.invoice(PRICE);
    let script = script_of(&shop, &id);
    for _ in 0..count / PARTS {
        pay_in_parts(&node, &purse, &script, PARTS, SATOSHIS);
    }
    wait_long_until("all are seen", || settlement(&shop, &id)["paidSatoshis"] == paid);
    check_problem(&refund(&shop, &id, json!({})), 422, "refund-must-wait");
    node.mine(1);
    wait_long_until("all are mined", || settlement(&shop, &id)["confirmations"] == 1);

    let payments = shop.payments(&id);
    let places = payments.iter().map(|it| (it["txid"].to_string(), it["vout"].as_u64()));
    assert_eq!(places.collect::<BTreeSet<_>>().len(), count);
    assert!(payments.iter().all(|it| it["state"] == "mined" && it["satoshis"] == SATOSHIS));
    assert_eq!((shop.state(&id).as_str(), shop.balance()), ("paid", paid));
    assert_eq!(settlement(&shop, &id)["overpaidSatoshis"], paid - PRICE);

    // The surplus is more than the coins that one payment can spend.
    let surplus = refund(&shop, &id, json!({}));
    let mut left = paid;
    if count > 500 {
        check_problem(&surplus, 422, "insufficient-funds");
    }
    let rich = Purse::filled(&node, 1, paid + 10_000);
    let other = shop.invoice(paid);
    pay_in_parts(&node, &rich, &script_of(&shop, &other), 1, paid);
    node.mine(1);
    wait_long_until("another one is paid", || shop.state(&other) == "paid");
    left += paid;
    for (body, satoshis) in [(json!({}), paid - PRICE), (json!({ "full": true }), PRICE)] {
        let reply = refund(&shop, &id, body);
        assert_eq!(reply.status, 201, "{}", reply.body);
        let refund = json_of(&reply);
        assert_eq!(refund["satoshis"], satoshis);
        left -= satoshis + refund["fee"].as_u64().unwrap();
        assert_eq!(shop.balance(), left);
    }
    let refunds = settlement(&shop, &id)["refunds"].clone();
    let refunded = refunds.as_array().unwrap().iter().map(|it| it["satoshis"].as_u64().unwrap());
    assert_eq!(refunded.sum::<u64>(), paid, "{refunds}");
    check_problem(&refund(&shop, &id, json!({ "full": true })), 422, "nothing-to-refund");
    node.mine(1);
    check_books(&shop);
}

#[test]
fn receipts_too_small_to_be_spent_are_consolidated() {
    const SATOSHIS: u64 = 5;
    let count = repetitions("small receipts", 1_000_000, 2_000);
    // At most 100 transactions pay the receipts.
    let parts = (count / 100).max(500);
    let node = Node::start();
    node.mine(110);
    let purse = Purse::filled(&node, count / parts, 100_000);
    let [shop, supplier] = [(); 2].map(|()| buyer_with(&node, json!({}), &[]));
    let scripts = [(); 4].map(|()| script_of(&shop, &shop.invoice(100)));
    for (_, script) in (0..count / parts).zip(scripts.iter().cycle()) {
        pay_in_parts(&node, &purse, script, parts, SATOSHIS);
        node.mine(1);
    }
    let paid = count as u64 * SATOSHIS;
    wait_long_until("all are seen", || shop.balance() == paid);
    let nearly_all = supplier.payment_url(&supplier.invoice(paid - 1_000));
    check_problem(&shop.pay(&nearly_all), 422, "insufficient-funds");

    let mut made = Vec::new();
    loop {
        node.mine(6);
        wait_long_until("all is mined", || {
            shop.outgoing().iter().all(|payment| payment["blockHeight"].is_u64())
        });
        let started = Instant::now();
        let payments = shop.site.cli_json(&["wallet", "consolidate"]);
        let payments = payments.as_array().unwrap();
        eprintln!("{} transactions after {:?}", payments.len(), started.elapsed());
        assert!(payments.iter().all(|payment| payment["state"] == "settled"), "{payments:?}");
        made.push(payments.len());
        if payments.is_empty() {
            break;
        }
    }
    assert_eq!(made[0], count / 500, "{made:?}");
    assert_eq!(shop.balance(), paid, "nothing is lost on the way");
    shop.pay_ok(&nearly_all);
    let fee = shop.outgoing()[0]["fee"].as_u64().unwrap();
    assert_eq!((shop.balance(), supplier.balance()), (1_000 - fee, paid - 1_000));
    node.mine(1);
    check_books(&shop);
}
