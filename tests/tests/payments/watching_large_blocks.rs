//! Blocks with much that concerns the wallet.

use bsv_tests::metrics::Metrics;
use bsv_tests::purse::send;
use bsv_tests::{Node, Purse, repetitions};
use bsv_tx::{Script, ScriptBuilder, TxOut, opcode};
use serde_json::{Value, json};

use super::many_receipts::wait_long_until;
use super::merchant::{Merchant, wait_until};
use super::paying_scene::buyer_with;
use super::watching::{output, payment, script_of, settlement};

const SATOSHIS: u64 = 10;
/// The length of a large transaction. The node takes 2 satoshis for each thousand bytes.
const LEN: usize = 100_000;
const FEE: u64 = 10_000;

/// A node that mines blocks of any size and publishes nothing.
fn node_of_large_blocks() -> Node {
    let node = Node::start_with(&["blockmaxsize=1000000000"]);
    node.mine(110);
    node
}

/// An output that holds data.
fn data(len: usize) -> TxOut {
    let script = ScriptBuilder::new().op(opcode::OP_0).op(opcode::OP_RETURN).push(&vec![7; len]);
    TxOut { satoshis: 0, locking_script: script.into_script() }
}

/// Puts large transactions that pay a script into one block.
fn mine_large(node: &Node, purse: &Purse, script: &Script, count: usize) {
    for _ in 0..count {
        let outputs = vec![output(SATOSHIS, script), data(LEN)];
        send(node, &purse.spend(&[purse.coin()], outputs, FEE));
    }
    node.mine(1);
    assert_eq!(node.call("getrawmempool", json!([])), json!([]));
}

#[test]
fn a_large_block_that_pays_in_each_transaction_takes_little_memory() {
    let count = repetitions("large transactions in a block", 2_000, 800);
    let node = node_of_large_blocks();
    let purse = Purse::filled(&node, count, 20_000);
    // The cache of the store grows to its limit, whatever fills it.
    let cache = json!({ "wallet": { "cacheMegabytes": 16 } });
    let shop = buyer_with(&node, cache, &[]);
    let id = shop.invoice(5_000);
    let script = script_of(&shop, &id);
    let before = shop.server.peak_memory();
    let Merchant { site, server } = shop;
    server.stop();
    let behind = site.copy();
    mine_large(&node, &purse, &script, count);

    let shop = Merchant { server: site.server(), site };
    wait_long_until("all are mined", || {
        settlement(&shop, &id)["paidSatoshis"] == count as u64 * SATOSHIS
    });
    let added = shop.server.peak_memory().saturating_sub(before);
    assert!(added <= 64 << 20, "{} MiB", added >> 20);
    let books = shop.site.cli_json(&["books", "verify", "--from-height", "0"]);
    assert_eq!(books["differences"], json!([]), "{books}");
    // A search finds all of it, too.
    let told = behind.cli(&["books", "verify", "--from-height", "0", "--json"]).stdout;
    let books: Value = serde_json::from_str(&told).unwrap();
    let further = books["furtherDifferences"].as_u64().unwrap();
    assert_eq!(books["differences"].as_array().unwrap().len() as u64 + further, count as u64);
}

#[test]
fn the_payments_of_a_block_share_a_commit() {
    const COUNT: usize = 300;
    let node = node_of_large_blocks();
    let purse = Purse::filled(&node, COUNT, 20_000);
    let shop = buyer_with(&node, json!({}), &[]);
    let id = shop.invoice(5_000);
    let script = script_of(&shop, &id);
    let Merchant { site, server } = shop;
    server.stop();
    for _ in 0..COUNT {
        send(&node, &payment(&purse, vec![output(SATOSHIS, &script)]));
    }
    node.mine(1);

    let shop = Merchant { server: site.server(), site };
    let paid = COUNT as u64 * SATOSHIS;
    wait_until("all are mined", || settlement(&shop, &id)["paidSatoshis"] == paid);
    let metrics = Metrics::of(shop.server.wallet());
    let commits = metrics.value("bsv_store_commit_duration_seconds_count");
    assert!(commits <= 50.0, "{commits} commits");
    let books = shop.site.cli_json(&["books", "verify", "--from-height", "0"]);
    assert_eq!(books["differences"], json!([]), "{books}");
}

#[test]
fn a_coin_that_is_paid_and_spent_in_one_block_is_spent() {
    let node = node_of_large_blocks();
    let purse = Purse::filled(&node, 1, 100_000);
    let [shop, supplier] = [(); 2].map(|()| buyer_with(&node, json!({}), &[]));
    let id = shop.invoice(50_000);
    let script = script_of(&shop, &id);
    let bill = supplier.payment_url(&supplier.invoice(20_000));
    let Merchant { site, server } = shop;
    server.stop();
    send(&node, &payment(&purse, vec![output(50_000, &script)]));
    // Only the copy knows that the coin is spent.
    let copied = site.copy();
    let copy = Merchant { server: copied.server(), site: copied };
    wait_until("the coin is there", || copy.balance() == 50_000);
    let paid = copy.pay(&bill);
    assert_eq!(paid.status, 200, "{}", paid.body);
    copy.server.stop();
    node.mine(1);

    let shop = Merchant { server: site.server(), site };
    wait_until("it is mined", || settlement(&shop, &id)["confirmations"] == 1);
    assert_eq!(shop.balance(), 0);
}
