//! A second service at the tip: without one, no payment above the limit begins to count.

use std::thread::sleep;
use std::time::{Duration, Instant};

use bsv_tests::rival::Rival;
use bsv_tests::services::Mood;
use bsv_tests::{Node, Service};
use serde_json::{Value, json};

use super::stall::{Stall, site};
use crate::payments::counter::Counter;

impl Stall {
    /// A shop that counts only what has two confirmations, and asks this kind of broadcaster. Its headers
    /// come from the node, and from the service if `has_url`.
    fn careful(kind: &str, has_url: bool) -> Self {
        let node = Node::start_with(&["disablesafemode=1"]);
        let service = Service::before(&node);
        let counter = Counter::on(node, 1, |node| {
            let mut site = site(node, &[&service], json!({ "zeroConfLimitSatoshis": 0 }));
            site.change(
                "services",
                "broadcasters",
                json!([{ "kind": kind, "url": service.url() }]),
            );
            if has_url {
                let peer = format!("{}:{}", node.host, node.peer_port);
                let headers = json!({ "peers": [peer], "urls": [service.chaintracks_url()] });
                site.change("services", "headers", headers);
            }
            site
        });
        Self { counter, service }
    }

    /// A shop that gets its headers from two nodes with the same chain, and asks this kind of broadcaster.
    fn between(kind: &str) -> (Self, Rival) {
        let node = Node::start_with(&["disablesafemode=1"]);
        let service = Service::before(&node);
        let rival = Node::start();
        let peers = [&node, &rival].map(|it| format!("{}:{}", it.host, it.peer_port));
        let counter = Counter::on(node, 1, |node| {
            let mut site = site(node, &[&service], json!({ "zeroConfLimitSatoshis": 0 }));
            let broadcasters = json!([{ "kind": kind, "url": service.url() }]);
            site.change("services", "broadcasters", broadcasters);
            site.change("services", "headers", json!({ "peers": peers }));
            site
        });
        let rival = Rival::from(rival, &counter.node);
        (Self { counter, service }, rival)
    }

    /// A payment in a block that has another block above it.
    fn deep_payment(&self) -> String {
        let (id, transaction) = self.payment();
        assert_eq!(self.post(&id, &transaction).status, 201);
        self.counter.node.mine(2);
        self.wait_for_depth(&id);
        id
    }

    fn wait_for_depth(&self, id: &str) {
        let confirmations = |id: &str| {
            let settlement = self.counter.shop.get(&format!("/api/v1/invoices/{id}/settlement"));
            settlement["confirmations"].as_u64().unwrap_or(0)
        };
        wait("two confirmations", || confirmations(id) == 2);
    }

    fn attention(&self) -> String {
        // It exits with 1 if something needs attention.
        let status = self.counter.shop.site.cli(&["status", "--json"]).stdout;
        serde_json::from_str::<Value>(&status).unwrap()["attention"].to_string()
    }
}

/// Waits for as long as services are asked again at the latest.
fn wait(what: &str, holds: impl Fn() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_secs(45), "timed out, waiting for: {what}");
        sleep(Duration::from_millis(100));
    }
}

#[test]
fn a_deep_payment_counts_once_a_second_service_is_at_the_tip() {
    for (kind, has_url) in [("arcade", false), ("arc", true)] {
        let stall = Stall::careful(kind, has_url);
        stall.service.be(Mood { withheld: 1, ..Mood::default() });
        let id = stall.deep_payment();
        let shop = &stall.counter.shop;
        sleep(Duration::from_secs(3));
        assert_eq!(shop.state(&id), "pending", "{kind}");
        let shown = shop.site.cli_ok(&["invoice", "show", &id]);
        assert!(shown.contains("second service"), "{shown}");
        let page = shop.server.payments().get(&format!("/pay/{id}")).body;
        assert!(page.contains("heard of its block a second time"), "{page}");
        assert!(stall.attention().contains("only one service shows the newest block"));
        stall.service.be(Mood::default());
        wait("the second service", || shop.state(&id) == "paid");
        assert!(!stall.attention().contains("only one service"));
        // It stays paid when the second one falls behind.
        stall.service.be(Mood { withheld: 2, ..Mood::default() });
        stall.counter.node.mine(1);
        wait("the new block", || stall.attention().contains("only one service"));
        assert_eq!(shop.state(&id), "paid");
    }
}

#[test]
fn a_service_that_is_alone_needs_no_second_one() {
    let stall = Stall::careful("arc", false);
    stall.service.be(Mood { withheld: 1, ..Mood::default() });
    let id = stall.deep_payment();
    wait("two confirmations", || stall.counter.shop.state(&id) == "paid");
}

#[test]
fn a_source_on_another_branch_confirms_nothing() {
    for kind in ["arc", "arcade"] {
        let (stall, mut rival) = Stall::between(kind);
        // An Arcade tells its height only once there are two branches.
        stall.service.be(Mood { tells_no_height: true, ..Mood::default() });
        let id = stall.deep_payment();
        assert_eq!(stall.counter.shop.state(&id), "pending", "{kind}");
        // Its branch is as high, and has as much work.
        rival.mine(&[], 2);
        let begun = Instant::now();
        let peer = format!("{}:{}", rival.node.host, rival.node.peer_port);
        let answered = || {
            let status = stall.counter.shop.site.cli(&["status", "--json"]).stdout;
            let status: Value = serde_json::from_str(&status).unwrap();
            let services = status["services"].as_array().unwrap();
            let age = |it: &Value| it["lastAnswerAgeSeconds"].as_u64().unwrap_or(u64::MAX);
            services.iter().any(|it| it["host"] == peer && age(it) + 1 < begun.elapsed().as_secs())
        };
        wait("the headers of the other branch", answered);
        stall.service.be(Mood::default());
        // Arcade is asked again after half a minute.
        sleep(Duration::from_secs(if kind == "arcade" { 35 } else { 3 }));
        assert_eq!(stall.counter.shop.state(&id), "pending", "{kind}");
        stall.counter.node.mine(1);
        rival.follow(&stall.counter.node);
        wait("the same branch", || stall.counter.shop.state(&id) == "paid");
    }
}

#[test]
fn an_arcade_that_tells_no_height_still_counts_as_a_second_service() {
    let stall = Stall::careful("arcade", false);
    stall.service.be(Mood { tells_no_height: true, ..Mood::default() });
    let id = stall.deep_payment();
    sleep(Duration::from_secs(3));
    assert_eq!(stall.counter.shop.state(&id), "pending");
    assert!(stall.attention().contains("only one service shows the newest block"));
    stall.service.be(Mood::default());
    wait("its height", || stall.counter.shop.state(&id) == "paid");
}
