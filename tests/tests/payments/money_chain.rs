//! Chains that the wallet did not watch: long chains that displace others, and entirely different
//! chains.

use std::fs;
use std::time::{Duration, Instant};

use bsv_invoicing::Timestamp;
use bsv_tests::payee::{Payee, go_dpp_terms, output};
use bsv_tests::purse::{Coin, FEE, send};
use bsv_tests::rival::{Rival, tip};
use bsv_tests::{Bill, Node, Purse};
use bsv_tx::Transaction;
use serde_json::json;

use super::merchant::{Merchant, json_of, wait_until};
use super::paying_scene::buyer_with;

const COIN: u64 = 100_000;
const DEPTH: u32 = 150;

fn scene() -> (Node, Purse, Merchant) {
    let node = Node::start();
    node.mine(110);
    let purse = Purse::filled(&node, 4, COIN);
    let shop = buyer_with(&node, json!({}), &[]);
    (node, purse, shop)
}

fn pay(shop: &Merchant, id: &str, purse: &Purse) -> Transaction {
    let bill = Bill::at(&shop.payment_url(id));
    let transaction = purse.transaction_for(&bill);
    let reply = bill.post(&transaction);
    assert_eq!(reply.status, 201, "{}", reply.body);
    transaction
}

fn double_spend(purse: &Purse, transaction: &Transaction) -> Transaction {
    let coin = Coin { outpoint: transaction.inputs[0].previous_output, satoshis: COIN };
    purse.spend(&[coin], vec![], 2 * FEE)
}

fn wait_for(shop: &Merchant, id: &str, state: &str) {
    wait_until(state, || shop.payments(id)[0]["state"] == state);
}

#[test]
fn a_long_chain_that_came_while_the_server_was_away_is_followed() {
    let (mut node, purse, shop) = scene();
    let rival = Rival::of(&node);
    let until = Timestamp::of_system().after(Duration::from_secs(5));
    let body = json!({ "satoshis": 30_000, "expiresAt": until.to_string() }).to_string();
    let late = json_of(&shop.server.wallet().post("/api/v1/invoices", body));
    let late = late["id"].as_str().unwrap();
    let [lost, kept] = [50_000, 20_000].map(|satoshis| shop.invoice(satoshis));
    let gone = [&lost, late].map(|id| double_spend(&purse, &pay(&shop, id, &purse)));
    pay(&shop, &kept, &purse);
    node.mine(1);
    for id in [&lost, &kept, late] {
        wait_for(&shop, id, "mined");
    }
    let before = node.mine(DEPTH - 1).pop().unwrap();
    assert_eq!(shop.balance(), 100_000);
    let Merchant { site, server } = shop;
    assert_eq!(server.stop(), 0);
    let blocks = rival.mine(&gone.iter().collect::<Vec<_>>(), DEPTH + 1);
    rival.show_to(&node);
    assert_eq!(tip(&node), blocks.last().unwrap().to_string());
    assert_ne!(tip(&node), before.to_string());

    wait_until("it is late", || Timestamp::of_system() > until);
    let shop = Merchant { server: site.server(), site };
    wait_for(&shop, &lost, "displaced");
    wait_for(&shop, late, "displaced");
    wait_until("the other one is not in a block", || shop.payments(&kept)[0]["state"] != "mined");
    assert_eq!((shop.state(&lost).as_str(), shop.state(late).as_str()), ("pending", "expired"));
    assert_eq!((shop.state(&kept).as_str(), shop.balance()), ("paid", 20_000));
    wait_for(&shop, &kept, "accepted");
    node.mine(1);
    wait_for(&shop, &kept, "mined");
    assert_eq!((shop.state(&kept).as_str(), shop.balance()), ("paid", 20_000));
    // After such a fork, the node is in safe mode and accepts no transaction.
    node.restart_with(&["disablesafemode=1"]);
    let bill = Bill::at(&shop.payment_url(&lost));
    let second = purse.transaction_for(&bill);
    wait_until("it is paid again", || bill.post(&second).status == 201);
    assert_eq!(shop.balance(), 70_000);
    let books = shop.site.cli_json(&["books", "verify", "--from-height", "0"]);
    assert_eq!(books["differences"], json!([]), "{books}");
}

/// Puts the node's directory away, so that the node begins a chain of its own.
fn begin_anew(node: &mut Node, blocks: u32) {
    node.stop();
    let directory = node.directory().join("regtest");
    fs::rename(&directory, node.directory().join("away")).unwrap();
    node.restart();
    node.mine(blocks);
}

/// Puts the node's directory back.
fn return_to_the_first(node: &mut Node) {
    node.stop();
    let directory = node.directory().join("regtest");
    fs::remove_dir_all(&directory).unwrap();
    fs::rename(node.directory().join("away"), &directory).unwrap();
    node.restart();
}

struct Followed {
    node: Node,
    shop: Merchant,
    /// An invoice whose payment is in a block, and one whose payment is in the mempool.
    mined: String,
    seen: String,
    balance: u64,
}

impl Followed {
    fn new() -> Self {
        let (node, purse, shop) = scene();
        let [mined, seen] = [50_000, 20_000].map(|satoshis| shop.invoice(satoshis));
        pay(&shop, &mined, &purse);
        node.mine(1);
        wait_for(&shop, &mined, "mined");
        pay(&shop, &seen, &purse);
        shop.pay_ok(&Payee::asking(&go_dpp_terms(&[output(5_000)])).url());
        let balance = shop.balance();
        Self { node, shop, mined, seen, balance }
    }

    /// Restarts the shop so that it logs into a file. Answers the file.
    fn logging(self) -> (Self, std::path::PathBuf) {
        let Merchant { mut site, server } = self.shop;
        assert_eq!(server.stop(), 0);
        site.set_env("BSV_LOG", "warn");
        let log = site.data_dir().join("log");
        let shop = Merchant { server: site.server_logging_to(&log), site };
        (Self { shop, ..self }, log)
    }

    fn check_nothing_is_taken_back(&self) {
        let Self { shop, mined, seen, balance, .. } = self;
        assert_eq!([shop.state(mined), shop.state(seen)], ["paid", "paid"]);
        assert_eq!(shop.balance(), *balance);
        let states = [mined, seen].map(|id| shop.payments(id)[0]["state"].clone());
        assert!(!json!(states).to_string().contains("displaced"), "{states:?}");
        let outgoing = shop.outgoing_states();
        assert!(["settled", "contested"].contains(&outgoing[0].as_str()), "{outgoing:?}");
    }

    fn check_all_is_as_before(&self) {
        wait_for(&self.shop, &self.mined, "mined");
        wait_for(&self.shop, &self.seen, "accepted");
        wait_until("the payment is back", || self.shop.outgoing_states() == ["settled"]);
        self.check_nothing_is_taken_back();
        let books = self.shop.site.cli_json(&["books", "verify", "--from-height", "0"]);
        assert_eq!(books["differences"], json!([]), "{books}");
        self.node.mine(1);
        wait_for(&self.shop, &self.seen, "mined");
    }
}

#[test]
fn a_block_that_was_read_just_before_a_crash_may_leave_the_chain_after_it() {
    // So many blocks follow the block of the payment that the crash comes before all are read.
    const BLOCKS: u32 = 80;
    let (node, purse, shop) = scene();
    let rival = Rival::of(&node);
    let id = shop.invoice(30_000);
    let bill = Bill::at(&shop.payment_url(&id));
    let transaction = purse.transaction_for(&bill);
    let Merchant { site, server } = shop;
    server.kill();
    send(&node, &transaction);
    node.mine(BLOCKS);
    let shop = Merchant { server: site.server(), site };
    let deadline = Instant::now() + Duration::from_secs(30);
    while shop.payments(&id).is_empty() {
        assert!(Instant::now() < deadline, "the payment's block is not read");
    }
    let Merchant { site, server } = shop;
    server.kill();
    rival.mine(&[&double_spend(&purse, &transaction)], BLOCKS + 1);
    rival.show_to(&node);
    let shop = Merchant { server: site.server(), site };
    wait_for(&shop, &id, "displaced");
    assert_eq!((shop.state(&id).as_str(), shop.balance()), ("pending", 0));
}

#[test]
fn no_payment_is_taken_back_for_a_node_with_a_longer_chain_of_its_own() {
    let (mut followed, log) = Followed::new().logging();
    begin_anew(&mut followed.node, 150);
    let said = || fs::read_to_string(&log).unwrap();
    wait_until("the log says so", || said().contains("follows another chain than before"));
    for id in [&followed.mined, &followed.seen] {
        wait_for(&followed.shop, id, "contested");
    }
    for _ in 0..10 {
        let lines = said().matches("follows another chain than before").count();
        followed.node.mine(1);
        wait_until("it looks again", || {
            said().matches("follows another chain than before").count() > lines
        });
        followed.check_nothing_is_taken_back();
    }
    // A restarted shop takes nothing back either.
    let Merchant { site, server } = followed.shop;
    assert_eq!(server.stop(), 0);
    let log = site.data_dir().join("log2");
    let shop = Merchant { server: site.server_logging_to(&log), site };
    let mut followed = Followed { shop, ..followed };
    let said = || fs::read_to_string(&log).unwrap();
    wait_until("it says so again", || said().contains("follows another chain than before"));
    followed.node.mine(7);
    followed.check_nothing_is_taken_back();
    return_to_the_first(&mut followed.node);
    followed.check_all_is_as_before();
}

#[test]
fn no_payment_is_taken_back_for_a_node_that_has_not_loaded_its_chain_yet() {
    let (mut followed, log) = Followed::new().logging();
    begin_anew(&mut followed.node, 10);
    let said = || fs::read_to_string(&log).unwrap();
    wait_until("the log says so", || said().contains("has not come to the block"));
    for _ in 0..10 {
        let lines = said().matches("has not come to the block").count();
        followed.node.mine(1);
        wait_until("it looks again", || {
            said().matches("has not come to the block").count() > lines
        });
        followed.check_nothing_is_taken_back();
    }
    return_to_the_first(&mut followed.node);
    followed.check_all_is_as_before();
}

#[test]
fn no_payment_is_taken_back_in_a_shop_that_is_moved_to_a_node_of_another_chain() {
    let Followed { node, shop, mined, seen, balance } = Followed::new();
    let other = Node::start();
    other.mine(200);
    let Merchant { mut site, server } = shop;
    assert_eq!(server.stop(), 0);
    site.move_to(&other);
    let shop = Merchant { server: site.server(), site };
    for id in [&mined, &seen] {
        wait_for(&shop, id, "contested");
    }
    other.mine(8);
    let followed = Followed { node, shop, mined, seen, balance };
    followed.check_nothing_is_taken_back();
    let Merchant { mut site, server } = followed.shop;
    assert_eq!(server.stop(), 0);
    site.move_to(&followed.node);
    let shop = Merchant { server: site.server(), site };
    Followed { shop, ..followed }.check_all_is_as_before();
}
