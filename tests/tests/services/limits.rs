//! Limits on what services are asked, and what a shop is told of them.

use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

use bsv_tests::ancestry::beef;
use bsv_tests::purse::{Coin, FEE};
use bsv_tests::services::Mood;
use bsv_tests::{Node, Reply, Service};
use bsv_tx::{BeefVersion, Transaction};
use serde_json::{Value, json};

use super::stall::{Stall, site};
use crate::payments::counter::{Counter, check_problem};
use crate::payments::forms::post_transaction;
use crate::payments::merchant::wait_until;

impl Stall {
    /// A shop that asks an Arcade at most so often in a second.
    fn at_pace(coins: usize, requests_per_second: u32) -> Self {
        let node = Node::start_with(&["disablesafemode=1"]);
        let service = Service::before(&node);
        let counter = Counter::on(node, coins, |node| {
            let mut site = site(node, &[&service], json!({ "minedBlocks": 1 }));
            let arcade = json!([{
                "kind": "arcade", "url": service.url(), "requestsPerSecond": requests_per_second,
            }]);
            site.change("services", "broadcasters", arcade);
            site.change("services", "acceptTimeoutSeconds", json!(30));
            site
        });
        Self { counter, service }
    }

    /// Pays a new invoice with a transaction and so many ancestors in a line, none of which is in a block.
    fn post_with_ancestors(&self, count: usize) -> (String, Reply) {
        let (id, bill) = self.counter.bill();
        let purse = &self.counter.purse;
        let mut coin: Coin = purse.coin();
        let mut ancestors: Vec<Transaction> = Vec::new();
        for _ in 0..count {
            let ancestor = purse.spend(&[coin], Vec::new(), FEE);
            coin = purse.coins_of(&ancestor)[0];
            ancestors.push(ancestor);
        }
        let transaction = purse.spend(&[coin], bill.outputs(), FEE);
        let beef = beef(&self.counter.node, BeefVersion::V1, &transaction, &ancestors);
        let reply = post_transaction(&self.counter, &id, beef.to_bytes());
        (id, reply)
    }
}

#[test]
fn a_payment_has_at_most_100_ancestors_in_no_block() {
    let stall = Stall::at_pace(2, 1_000);
    let (id, reply) = stall.post_with_ancestors(101);
    let detail = check_problem(&reply, 422, "too-many-ancestors", "101 ancestors");
    assert!(detail.contains("more than 100 ancestors that are in no block yet"), "{detail}");
    assert_eq!((stall.state(&id), stall.service.requests("POST").len()), ("pending".to_owned(), 0));
    let (id, reply) = stall.post_with_ancestors(100);
    assert_eq!(reply.status, 201, "{}", reply.body);
    assert_eq!((stall.state(&id), stall.service.requests("POST").len()), ("paid".to_owned(), 101));
}

#[test]
fn a_broadcaster_is_asked_as_often_as_the_settings_say() {
    for (requests_per_second, least, most) in [(1, 3, 20), (100, 0, 3)] {
        let stall = Stall::at_pace(1, requests_per_second);
        // What is asked at the start is over.
        wait_until("the fee is known", || !stall.service.requests("GET").is_empty());
        let begun = Instant::now();
        // Four requests.
        let (_, reply) = stall.post_with_ancestors(3);
        assert_eq!(reply.status, 201, "{}", reply.body);
        let took = begun.elapsed();
        let expected = Duration::from_secs(least)..Duration::from_secs(most);
        assert!(expected.contains(&took), "{requests_per_second}: {took:?}");
    }
}

#[test]
fn broadcasters_that_cannot_be_used_are_told_in_the_status() {
    let node = Node::start_with(&["disablesafemode=1"]);
    let (service, second) = (Service::before(&node), Service::before(&node));
    // Above wallet.maxFeeRate.
    service.be(Mood { fee: (1_001, 1_000), ..Mood::default() });
    second.be(Mood { api_key: Some("key".to_owned()), ..Mood::default() });
    let counter =
        Counter::on(node, 0, |node| site(node, &[&service, &second], json!({ "minedBlocks": 1 })));
    let stall = Stall { counter, service };
    let attention = || -> String {
        // It exits with 1 if something needs attention.
        let status = stall.counter.shop.site.cli(&["status", "--json"]).stdout;
        serde_json::from_str::<Value>(&status).unwrap()["attention"].to_string()
    };
    let (expensive, locked) = (stall.service.address(), second.address());
    let told = [
        format!("the arcade service {expensive} asks for a higher fee than wallet.maxFeeRate"),
        format!("the arcade service {locked} refuses its API key: check apiKeyFile"),
    ];
    wait_until("both are told", || told.iter().all(|it| attention().contains(it)));
}

#[test]
fn a_broadcaster_that_hangs_does_not_hold_up_the_proofs() {
    let (stall, second) = Stall::with_second(20);
    let paid = (0..20).map(|_| {
        let (id, transaction) = stall.payment();
        assert_eq!(stall.post(&id, &transaction).status, 201);
        id
    });
    let paid: Vec<_> = paid.collect();
    second.be(Mood { delay: Duration::from_secs(30), ..Mood::default() });
    stall.counter.node.mine(1);
    let begun = Instant::now();
    while paid.iter().any(|id| stall.confirmations(id) == 0) {
        assert!(begun.elapsed() < Duration::from_secs(60), "some have no proof");
        sleep(Duration::from_millis(500));
    }
}

#[test]
fn payments_that_stay_open_cost_two_requests_a_second_in_all() {
    let stall = Stall::new(12);
    stall.service.be(Mood { relays: false, ..Mood::default() });
    let payments: Vec<_> = (0..12).map(|_| stall.payment()).collect();
    scope(|scope| {
        for (id, transaction) in &payments {
            scope.spawn(|| assert_eq!(stall.post(id, transaction).status, 503));
        }
    });
    let requests = || {
        let asked = stall.service.requests("GET");
        let asked = asked.iter().filter(|it| it.path.contains("/tx/")).count();
        asked + stall.service.requests("POST").len()
    };
    let (before, begun) = (requests(), Instant::now());
    for _ in 0..5 {
        // All are looked at again.
        stall.counter.node.mine(1);
        sleep(Duration::from_secs(4));
    }
    let (requests, seconds) = (requests() - before, begun.elapsed().as_secs() as usize);
    // Some may be saved up, and some owed.
    assert!((seconds..=2 * seconds + 24).contains(&requests), "{requests} in {seconds} s");
}
