//! Restored backups: everything that happened after the backup is only in the chain.

use std::path::Path;
use std::time::{Duration, Instant};

use bsv_tests::payee::{Payee, go_dpp_terms, output};
use bsv_tests::purse::{FEE, send};
use bsv_tests::{Bill, Gate, Node, Purse, Refusal, Site};
use bsv_tx::Script;
use serde_json::{Value, json};

use super::merchant::{Merchant, wait_until};

const PRICE: u64 = 30_000;

fn site(node: &Node) -> Site {
    let mut site = Site::on(node);
    site.set_env("BSV_LOG", "off");
    site.set_env("BSV_BACKUP_PASSPHRASE", "of the backup");
    site
}

/// A node, a purse and a shop of three mined coins.
fn scene() -> (Node, Purse, Merchant) {
    let node = Node::start();
    node.mine(110);
    let purse = Purse::filled(&node, 6, 100_000);
    let site = site(&node);
    let shop = Merchant { server: site.server(), site };
    let coins = [50_000, 20_000, 10_000].map(|satoshis| shop.fill(satoshis));
    node.mine(1);
    wait_until("all is mined", || coins.iter().all(|id| shop.payments(id)[0]["state"] == "mined"));
    (node, purse, shop)
}

fn script(shop: &Merchant, id: &str) -> Script {
    Bill::at(&shop.payment_url(id)).outputs().remove(0).locking_script
}

fn backup(shop: &Merchant, directory: &Path) -> String {
    let file = directory.join("backup").to_str().unwrap().to_owned();
    shop.site.cli_ok(&["backup", &file]);
    file
}

/// Stops a shop, and starts another one from a backup.
fn restored(shop: Merchant, node: &Node, file: &str) -> Merchant {
    assert_eq!(shop.server.stop(), 0);
    let site = site(node);
    site.cli_ok(&["restore", "--yes", file]);
    Merchant { server: site.server(), site }
}

/// Waits until a shop has caught up. It derives many keys, which takes long in a debug build.
fn wait_for_balance(shop: &Merchant, satoshis: u64) {
    let started = Instant::now();
    while shop.balance() != satoshis {
        let waited = started.elapsed();
        assert!(waited < Duration::from_secs(240), "{}, not {satoshis}", shop.balance());
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// Pays an invoice's script without posting the payment to the shop.
fn pay_silently(node: &Node, purse: &Purse, shop: &Merchant, id: &str) {
    let bill = Bill::at(&shop.payment_url(id));
    send(node, &purse.spend(&[purse.coin()], bill.outputs(), FEE));
}

fn pay(shop: &Merchant, purse: &Purse, id: &str) {
    let bill = Bill::at(&shop.payment_url(id));
    assert_eq!(bill.post(&purse.transaction_for(&bill)).status, 201);
}

fn verify(shop: &Merchant) -> Value {
    let done = shop.site.cli(&["books", "verify", "--from-height", "0", "--json"]);
    serde_json::from_str(&done.stdout).unwrap_or_else(|_| panic!("{}", done.stderr))
}

#[test]
fn no_key_is_given_out_twice() {
    let (node, _, shop) = scene();
    let shown = shop.invoice(PRICE);
    let mut scripts = vec![script(&shop, &shown)];
    let directory = tempfile::tempdir().unwrap();
    let file = backup(&shop, directory.path());
    scripts.extend((0..5).map(|_| script(&shop, &shop.invoice(PRICE))));
    let first = restored(shop, &node, &file);
    assert_eq!(script(&first, &shown), scripts[0], "an older invoice keeps its script");
    let mut later: Vec<_> = (0..5).map(|_| script(&first, &first.invoice(PRICE))).collect();
    // The backup is restored a second time, on the same day.
    let second = restored(first, &node, &file);
    later.extend((0..5).map(|_| script(&second, &second.invoice(PRICE))));
    let known: Vec<_> = later[..5].iter().filter(|script| scripts.contains(script)).collect();
    assert!(known.is_empty(), "{known:?}");
    let known: Vec<_> = later[5..].iter().filter(|script| scripts.contains(script)).collect();
    assert!(known.is_empty(), "{known:?}");
}

#[test]
fn the_balance_is_that_of_the_chain() {
    let (node, purse, shop) = scene();
    let early = shop.invoice(PRICE);
    script(&shop, &early);
    let unseen = shop.invoice(PRICE);
    let directory = tempfile::tempdir().unwrap();
    let file = backup(&shop, directory.path());
    // After the backup, five things happen: an older invoice is paid, one that nobody had seen is
    // paid, a newer invoice is paid, another one is paid without a message, and an older coin is
    // spent.
    pay(&shop, &purse, &early);
    pay(&shop, &purse, &unseen);
    let late = shop.invoice(PRICE);
    pay(&shop, &purse, &late);
    let silent = shop.invoice(PRICE);
    pay_silently(&node, &purse, &shop, &silent);
    let payee = Payee::asking(&go_dpp_terms(&[output(15_000)]));
    shop.pay_ok(&payee.url());
    let spent = payee.paid_with().inputs[0].previous_output;
    node.mine(1);
    // One more payment is still in the mempool.
    let last = shop.invoice(PRICE);
    pay(&shop, &purse, &last);
    let fee = shop.outgoing()[0]["fee"].as_u64().unwrap();
    let expected = 80_000 + 5 * PRICE - 15_000 - fee;

    let shop = restored(shop, &node, &file);
    wait_for_balance(&shop, expected);
    let books = verify(&shop);
    assert_eq!((&books["differences"], &books["balance"]), (&json!([]), &json!(expected)));
    assert_eq!(shop.payments(&unseen)[0]["state"], "mined");
    // A payment of almost the whole balance spends the coins that are left, and no spent one.
    let payee = Payee::asking(&go_dpp_terms(&[output(expected - 1_000)]));
    shop.pay_ok(&payee.url());
    let inputs: Vec<_> = payee.paid_with().inputs.iter().map(|it| it.previous_output).collect();
    assert!(!inputs.contains(&spent) && inputs.len() >= 6, "{inputs:?}");
    node.mine(1);
    wait_until("it is mined", || shop.outgoing()[0]["blockHash"].is_string());
    assert_eq!(verify(&shop)["differences"], json!([]));
}

#[test]
fn payments_that_the_books_do_not_have_are_reported() {
    let (node, purse, shop) = scene();
    assert_eq!(verify(&shop)["differences"], json!([]));
    let id = shop.invoice(PRICE);
    let bill = Bill::at(&shop.payment_url(&id));
    let Merchant { site, server } = shop;
    assert_eq!(server.stop(), 0);
    for (place, blocks) in [("the mempool", 0), ("block 113", 1)] {
        let transaction = purse.spend(&[purse.coin()], bill.outputs(), FEE);
        send(&node, &transaction);
        node.mine(blocks);
        let done = site.cli(&["books", "verify", "--from-height", "0", "--json"]);
        assert_eq!(done.code, 1, "{place}: {}", done.stdout);
        let books: Value = serde_json::from_str(&done.stdout).unwrap();
        let told = books["differences"].to_string();
        assert!(told.contains(&transaction.txid().to_string()), "{place}: {told}");
        assert!(told.contains("pays 30000 satoshis") && told.contains(place), "{place}: {told}");
    }
    let beyond = site.cli(&["books", "verify", "--from-height", "9999"]);
    assert_eq!(beyond.code, 1, "{}", beyond.stdout);
    assert!(
        beyond.stderr.contains("block 9999 is beyond the node's last one"),
        "{}",
        beyond.stderr
    );
    // If the command does not read the blocks, it cannot find the differences.
    assert_eq!(site.cli_json(&["books", "verify"])["differences"], json!([]));
}

#[test]
fn a_restored_wallet_pays_and_accepts_nothing_before_it_has_caught_up() {
    let (mut node, purse, shop) = scene();
    let id = shop.invoice(PRICE);
    let bill = Bill::at(&shop.payment_url(&id));
    let transaction = purse.transaction_for(&bill);
    let directory = tempfile::tempdir().unwrap();
    let file = backup(&shop, directory.path());
    let payee = Payee::asking(&go_dpp_terms(&[output(15_000)]));
    shop.pay_ok(&payee.url());
    let fee = shop.outgoing()[0]["fee"].as_u64().unwrap();
    node.mine(1);
    assert_eq!(shop.server.stop(), 0);
    node.stop();
    let site = site(&node);
    site.cli_ok(&["restore", "--yes", &file]);
    let shop = Merchant { server: site.server(), site };
    let bill = Bill::at(&shop.payment_url(&id));
    assert_eq!(bill.post(&transaction).status, 503);
    let other = Payee::asking(&go_dpp_terms(&[output(1_000)]));
    assert_eq!(shop.pay(&other.url()).status, 503);
    assert!(other.requests("POST").is_empty());
    node.restart();
    wait_for_balance(&shop, 65_000 - fee);
    wait_until("it is taken", || bill.post(&transaction).status == 201);
    shop.pay_ok(&other.url());
}

#[test]
fn a_refund_after_the_backup_is_found_and_not_known() {
    let (node, purse, shop) = scene();
    let id = shop.invoice(PRICE);
    pay(&shop, &purse, &id);
    node.mine(1);
    wait_until("it is mined", || shop.payments(&id)[0]["state"] == "mined");
    let directory = tempfile::tempdir().unwrap();
    let file = backup(&shop, directory.path());
    let body = json!({ "full": true, "to": purse.script().to_hex() }).to_string();
    let refunded = shop.server.wallet().post(&format!("/api/v1/invoices/{id}/refund"), body);
    assert_eq!(refunded.status, 201, "{}", refunded.body);
    let refund = shop.outgoing()[0].clone();
    node.mine(1);
    assert_eq!(shop.server.stop(), 0);
    let gate = Gate::before(&node);
    let mut site = gate.site();
    site.set_env("BSV_BACKUP_PASSPHRASE", "of the backup");
    let told = site.cli_ok(&["restore", "--yes", &file]);
    assert!(told.contains("what was paid or refunded after the backup"), "{told}");
    // The first attempt to catch up finds the refund in its block, and fails after that.
    let method = "getrawmempool";
    gate.refuse(Refusal { method, code: -28, message: "Loading block index..." });
    let log = directory.path().join("log");
    let shop = Merchant { server: site.server_logging_to(&log), site };
    wait_for_balance(&shop, 80_000 - refund["fee"].as_u64().unwrap());
    wait_until("an attempt has failed", || gate.heard(method, "") > 1);
    gate.accept();
    wait_until("the log tells how many were found", || {
        std::fs::read_to_string(&log).unwrap().contains("that its books do not know: 1. ")
    });
    assert_eq!(shop.get(&format!("/api/v1/invoices/{id}/settlement"))["refundedSatoshis"], 0);
    let found = shop.get("/api/v1/events?types=transaction.found");
    assert_eq!(found["events"][0]["data"]["txid"], refund["txid"]);
}
