//! Two wallets that pay each other while both are killed again and again.

mod books_equal_chain;
mod business;
mod chain_walk;
mod leaving;
mod shop;
mod steps;

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use bsv_tests::{Node, repetitions};
use serde_json::{Value, json};

use shop::Shop;

const THREADS: u64 = 8;
/// How many invoices the faucet pays each wallet in the beginning, each of the faucet's limit.
const FILLINGS: u64 = 12;
const FAUCET_LIMIT: u64 = 100_000;

/// A payment that was acknowledged.
#[derive(Debug)]
struct Paid {
    payee: usize,
    invoice: String,
    satoshis: u64,
    txid: String,
}

#[test]
fn two_wallets_pay_each_other_and_nothing_is_lost_or_paid_twice() {
    let count = repetitions("payments between wallets that are killed", 2_000, 160) as u64;
    let node = Node::start();
    node.mine(101);
    let shops = [Shop::on(&node), Shop::on(&node)];
    for _ in 0..FILLINGS {
        shops.iter().for_each(|shop| shop.fill(FAUCET_LIMIT));
        node.mine(1);
    }

    let (next, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
    let paid = Mutex::new(Vec::new());
    thread::scope(|scope| {
        let chaos = scope.spawn(|| kill_at_random(&shops, &node, &is_over));
        let payers: Vec<_> = (0..THREADS)
            .map(|_| {
                scope.spawn(|| {
                    loop {
                        let number = next.fetch_add(1, Ordering::Relaxed);
                        if number >= count {
                            return;
                        }
                        let acknowledged = pay(&shops, number);
                        paid.lock().unwrap().push(acknowledged);
                    }
                })
            })
            .collect();
        payers.into_iter().for_each(|payer| payer.join().unwrap());
        is_over.store(true, Ordering::Relaxed);
        eprintln!("{} kills", chaos.join().unwrap());
    });

    let paid = paid.into_inner().unwrap();
    assert_eq!(paid.len() as u64, count);
    settle(&node, &shops);
    check_chain(&node, &shops, &paid);
    let fees = check_outgoing(&shops, &paid);
    let total: u64 = shops.iter().map(Shop::balance).sum();
    assert_eq!(total + fees, 2 * FILLINGS * FAUCET_LIMIT);
    for (payer, payee) in [(&shops[0], &shops[1]), (&shops[1], &shops[0])] {
        all_can_be_spent(&node, payer, payee);
    }
}

/// Has one wallet pay an invoice of the other. Repeats the request until it succeeds.
fn pay(shops: &[Shop; 2], number: u64) -> Paid {
    let payee = (random() % 2) as usize;
    let satoshis = 100 + random() % 5_000;
    let invoice = shops[payee].create_invoice(satoshis, number);
    let url = shops[payee].payment_url(&invoice);
    let body = json!({ "payToURL": url }).to_string();
    loop {
        let Some(reply) = shops[1 - payee].post("/api/v1/pay", &body) else { continue };
        let answer: Value = serde_json::from_str(&reply.body).unwrap();
        if reply.status == 200 {
            let txid = answer["tx_id"].as_str().unwrap().to_owned();
            return Paid { payee, invoice, satoshis, txid };
        }
        let code = answer["code"].as_str().unwrap();
        let may_be_asked_again = [
            "payment-running",
            "payment-outcome-unknown",
            "payee-unavailable",
            "network-unavailable",
            "insufficient-funds",
            "payee-nonsense",
        ];
        assert!(may_be_asked_again.contains(&code), "{}", reply.body);
        thread::sleep(Duration::from_millis(20));
    }
}

/// Kills one wallet or the other now and then, and has blocks mined. Answers the number of kills.
fn kill_at_random(shops: &[Shop; 2], node: &Node, is_over: &AtomicBool) -> usize {
    let mut kills = 0;
    while !is_over.load(Ordering::Relaxed) {
        thread::sleep(Duration::from_millis(200 + random() % 800));
        shops[(random() % 2) as usize].kill_and_start();
        kills += 1;
        if random().is_multiple_of(4) {
            node.mine(1);
        }
    }
    kills
}

/// Waits until no payment is open any more, and all are mined.
fn settle(node: &Node, shops: &[Shop; 2]) {
    for _ in 0..120 {
        node.mine(1);
        let is_done = shops.iter().all(|shop| {
            let payments = shop.outgoing();
            payments.iter().all(|payment| payment["state"] != "open" && is_mined_or_over(payment))
        });
        if is_done {
            return;
        }
        thread::sleep(Duration::from_millis(500));
    }
    panic!("some payments stay open: {:?}", shops.each_ref().map(Shop::outgoing));
}

fn is_mined_or_over(payment: &Value) -> bool {
    payment["state"] != "settled" || payment["blockHeight"].is_u64()
}

/// Checks that every acknowledged payment is in the chain once, and has paid its invoice.
fn check_chain(node: &Node, shops: &[Shop; 2], paid: &[Paid]) {
    for Paid { payee, invoice, satoshis, txid } in paid {
        let payments = shops[*payee].payments(invoice);
        let accepted: Vec<_> =
            payments.iter().filter(|payment| payment["state"] == "mined").collect();
        assert_eq!(accepted.len(), 1, "{payments:?}");
        assert_eq!(accepted[0]["txid"], *txid);
        assert_eq!(accepted[0]["satoshis"], *satoshis);
        let found = node.call("getrawtransaction", json!([txid, true]));
        assert!(found["confirmations"].as_u64() > Some(0), "{found}");
    }
}

/// Checks that every acknowledged payment is listed once. Answers the sum of the fees.
fn check_outgoing(shops: &[Shop; 2], paid: &[Paid]) -> u64 {
    let settled: Vec<_> = shops
        .iter()
        .flat_map(Shop::outgoing)
        .filter(|payment| payment["state"] == "settled")
        .collect();
    let mut by_url = BTreeMap::new();
    for payment in &settled {
        let url = payment["url"].as_str().unwrap();
        assert!(by_url.insert(url, payment["txid"].as_str().unwrap()).is_none(), "{url}");
    }
    assert_eq!(settled.len(), paid.len());
    for Paid { payee, invoice, txid, .. } in paid {
        let url = shops[*payee].payment_url(invoice);
        assert_eq!(by_url.get(url.as_str()), Some(&txid.as_str()));
    }
    settled.iter().map(|payment| payment["fee"].as_u64().unwrap()).sum()
}

/// Checks that the whole balance can be spent, so that no coin stays reserved. A transaction can
/// spend only so many coins. Therefore, payments first combine many of them.
fn all_can_be_spent(node: &Node, payer: &Shop, payee: &Shop) {
    for round in 0.. {
        let spendable = payer.spendable(payee);
        if spendable == payer.balance() {
            return;
        }
        assert!(round < 20, "{spendable} of {} can be spent", payer.balance());
        for (from, to) in [(payer, payee), (payee, payer)] {
            // 500 coins cost less than 8000 satoshis to spend.
            let satoshis = from.spendable(to) - 8_000;
            let invoice = to.create_invoice(satoshis, u64::MAX);
            let body = json!({ "payToURL": to.payment_url(&invoice) }).to_string();
            let reply = from.post("/api/v1/pay", &body).unwrap();
            assert_eq!(reply.status, 200, "{}", reply.body);
            node.mine(1);
        }
    }
}

fn random() -> u64 {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).unwrap();
    u64::from_le_bytes(bytes)
}
