//! A server that is killed at every step of receiving and of making a payment.

use bsv_tests::ancestry::beef;
use bsv_tests::killer::Killer;
use bsv_tests::purse::{Bill, FEE, Purse};
use bsv_tests::{Node, Reply, Service, is_full_run};
use bsv_tx::BeefVersion;
use serde_json::{Value, json};

use super::shop::Shop;
use crate::payments::merchant::wait_until;
use crate::services::stall::settings;

/// Reduced runs skip so many steps after each step that they try.
const SKIPPED: u64 = 3;
const SATOSHIS: u64 = 3_000;

/// Tries one step after the other until an attempt ends without a kill. Prints the number of kills.
pub(crate) fn try_steps(what: &str, mut attempt: impl FnMut(u64) -> Harm) {
    let stride = if is_full_run() { 1 } else { SKIPPED + 1 };
    let mut kills = 0;
    // The server's own background work takes steps too, so that an attempt may be killed at an
    // earlier point of its work.
    for step in (1..).step_by(stride as usize) {
        match attempt(step) {
            Harm::Killed => kills += 1,
            Harm::None => break,
        }
    }
    eprintln!("{what}: killed at {kills} steps, 1 of {stride} (BSV_TEST_FULL=1 tries all)");
    assert!(kills >= 5, "{what}: fewer than 5 kills");
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Harm {
    Killed,
    None,
}

#[test]
fn a_received_payment_survives_every_kill() {
    let node = Node::start();
    node.mine(101);
    let purse = Purse::filled(&node, 400, 10_000);
    let (shop, killer) = Shop::with_killer(&node);
    let mut paid = 0;
    try_steps("receiving", |step| {
        let invoice = shop.create_invoice(SATOSHIS, step);
        let bill = Bill::at(&shop.payment_url(&invoice));
        let transaction = purse.transaction_for(&bill);
        killer.kill_at(step);
        let first = bill.try_post(&transaction);
        killer.spare();
        let harm = harm(&shop);
        if let Ok(reply) = &first {
            assert_eq!(reply.status, 201, "step {step}: {}", reply.body);
        }
        check_received(&shop, &invoice, first.is_ok());
        let again = bill.post(&transaction);
        assert_eq!(again.status, 201, "step {step}: {}", again.body);
        if let Ok(first) = first {
            assert_eq!(again.body, first.body);
        }
        paid += SATOSHIS;
        check_received(&shop, &invoice, true);
        assert_eq!(shop.balance(), paid, "step {step}");
        harm
    });
}

#[test]
fn a_payment_with_its_ancestors_survives_every_kill() {
    let node = Node::start();
    node.mine(101);
    let (shop, killer) = Shop::with_killer(&node);
    receive_with_ancestors("receiving with ancestors", &node, (&shop, &killer));
}

#[test]
fn a_payment_through_services_survives_every_kill() {
    let node = Node::start();
    node.mine(101);
    let service = Service::before(&node);
    let (shop, killer) = Shop::without_node(&node, &service);
    receive_with_ancestors("receiving through services", &node, (&shop, &killer));
}

fn receive_with_ancestors(what: &str, node: &Node, (shop, killer): (&Shop, &Killer)) {
    let purse = Purse::filled(node, 400, 10_000);
    let mut paid = 0;
    try_steps(what, |step| {
        let invoice = shop.create_invoice(SATOSHIS, step);
        let bill = Bill::at(&shop.payment_url(&invoice));
        let ancestor = purse.spend(&[purse.coin()], vec![], FEE);
        let transaction = purse.spend(&purse.coins_of(&ancestor), bill.outputs(), FEE);
        let beef = beef(node, BeefVersion::V2, &transaction, &[ancestor]);
        let body = beef.into_atomic().unwrap().to_bytes();
        let post = || shop.post_transaction(&invoice, &body);
        killer.kill_at(step);
        let first = post();
        killer.spare();
        let harm = harm(shop);
        if let Ok(reply) = &first {
            assert_eq!(reply.status, 201, "step {step}: {}", reply.body);
        }
        check_received(shop, &invoice, first.is_ok());
        post_until_taken(&post);
        paid += SATOSHIS;
        check_received(shop, &invoice, true);
        assert_eq!(shop.balance(), paid, "step {step}");
        harm
    });
}

/// Posts a payment until it is taken. Without a node, a server takes it only once it has the newest header
/// after its start.
fn post_until_taken(post: &dyn Fn() -> std::io::Result<Reply>) {
    wait_until("the payment is taken", || {
        let reply = post().unwrap();
        assert!([201, 503].contains(&reply.status), "{}", reply.body);
        reply.status == 201
    });
}

/// Checks that an invoice is paid once. A payment that was not acknowledged may also be unknown or
/// in flight.
fn check_received(shop: &Shop, invoice: &str, is_acknowledged: bool) {
    let payments = shop.payments(invoice);
    let states: Vec<_> =
        payments.iter().map(|payment| payment["state"].as_str().unwrap()).collect();
    if is_acknowledged {
        assert_eq!(states, ["accepted"]);
    } else {
        assert!(matches!(states[..], [] | ["in-flight"] | ["accepted"]), "{states:?}");
    }
}

#[test]
fn an_outgoing_payment_survives_every_kill() {
    let node = Node::start();
    node.mine(101);
    let (payer, killer) = Shop::with_killer(&node);
    for _ in 0..10 {
        payer.fill(100_000);
    }
    pay("paying", &node, (&payer, &killer));
}

#[test]
fn a_payment_that_services_take_survives_every_kill() {
    let node = Node::start();
    node.mine(101);
    let service = Service::before(&node);
    let (payer, killer) = Shop::without_node(&node, &service);
    let purse = Purse::filled(&node, 10, 100_000);
    for number in 0..10 {
        let invoice = payer.create_invoice(90_000, number);
        let transaction = purse.transaction_for(&Bill::at(&payer.payment_url(&invoice)));
        let body = beef(&node, BeefVersion::V2, &transaction, &[]).to_bytes();
        post_until_taken(&|| payer.post_transaction(&invoice, &body));
    }
    node.mine(1);
    let confirmed = || payer.get("/api/v1/balance/details")["confirmed"].as_u64().unwrap();
    wait_until("a block holds the coins", || confirmed() == 900_000);
    pay("paying through services", &node, (&payer, &killer));
}

fn pay(what: &str, node: &Node, (payer, killer): (&Shop, &Killer)) {
    let payee = Shop::on(node);
    let mut left = payer.balance();
    try_steps(what, |step| {
        let invoice = payee.create_invoice(SATOSHIS, step);
        let url = payee.payment_url(&invoice);
        let body = json!({ "payToURL": url }).to_string();
        killer.kill_at(step);
        let first = payer.post("/api/v1/pay", &body);
        killer.spare();
        let harm = harm(payer);
        let mut reply = payer.post("/api/v1/pay", &body).unwrap();
        while reply.status == 409 {
            // After its start, the server is sending the open payment at this moment.
            assert!(reply.body.contains("payment-running"), "{}", reply.body);
            reply = payer.post("/api/v1/pay", &body).unwrap();
        }
        assert_eq!(reply.status, 200, "step {step}: {}", reply.body);
        if let Some(first) = first {
            assert_eq!(first.body, reply.body, "step {step}");
        }
        let payments = payer.outgoing();
        let to_it: Vec<&Value> =
            payments.iter().filter(|payment| payment["url"] == url.as_str()).collect();
        assert_eq!(to_it.len(), 1, "step {step}: {to_it:?}");
        left -= SATOSHIS + to_it[0]["fee"].as_u64().unwrap();
        assert_eq!(payer.balance(), left, "step {step}");
        check_received(&payee, &invoice, true);
        harm
    });
}

/// Starts the server again if it was killed. Answers whether it was.
pub(crate) fn harm(shop: &Shop) -> Harm {
    if shop.start_if_killed() { Harm::Killed } else { Harm::None }
}

impl Shop {
    pub(crate) fn with_killer(node: &Node) -> (Self, Killer) {
        let mut killer = None;
        let shop = Self::prepared(node, |site| killer = Some(Killer::install(site)));
        (shop, killer.unwrap())
    }

    /// A shop that asks services in place of the node.
    fn without_node(node: &Node, service: &Service) -> (Self, Killer) {
        let mut killer = None;
        let wallet =
            json!({ "source": "services", "zeroConfLimitSatoshis": "none", "minedBlocks": 1 });
        let shop = Self::with(node, wallet, |site| {
            site.set("services", settings(node, &[service]));
            killer = Some(Killer::install(site));
        });
        (shop, killer.unwrap())
    }
}
