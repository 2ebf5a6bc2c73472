//! Many transactions in the mempool that pay one invoice.

use bsv_tests::purse::{Coin, send};
use bsv_tests::rival::Rival;
use bsv_tests::{Gate, Hold, Node, Template, free_port, repetitions};
use bsv_tx::Script;
use serde_json::json;

use super::counter::Counter;
use super::lossy_feed::LossyFeed;
use super::many_receipts::wait_long_until;
use super::merchant::{Merchant, wait_until};
use super::watching::{output, payment, publishing, script_of, settlement};

const LINKS: usize = 60;
/// A fee that is enough for one transaction.
const ENOUGH: u64 = 50;

/// A shop that reaches a node through a gate and hears what the node publishes.
fn counter_with_gate(coins: usize) -> (Counter, Gate) {
    let mut gate = None;
    let node = Node::start_with(&[&publishing()]);
    let counter = Counter::on(node, coins, |node| gate.insert(Gate::before(node)).site());
    (counter, gate.unwrap())
}

/// Sends a chain of transactions that pay a satoshi each, and answers the coin at its end.
fn send_chain(counter: &Counter, mut coin: Coin, script: &Script, fees: &[u64]) -> Coin {
    for fee in fees {
        let transaction = counter.purse.spend(&[coin], vec![output(1, script)], *fee);
        send(&counter.node, &transaction);
        coin = counter.purse.coins_of(&transaction).pop().unwrap();
    }
    coin
}

#[test]
fn a_chain_of_payments_does_not_take_a_call_for_each_ancestor_of_each() {
    let (counter, gate) = counter_with_gate(2);
    let Counter { node, shop, purse } = &counter;
    let [flooded, other] = [5_000, 1_000].map(|satoshis| shop.invoice(satoshis));
    let [script, other_script] = [&flooded, &other].map(|id| script_of(shop, id));
    let before = gate.heard("getmempoolentry", "");
    let coin = send_chain(&counter, purse.coin(), &script, &[ENOUGH; LINKS]);
    wait_until("all count", || settlement(shop, &flooded)["paidSatoshis"] == LINKS);
    let calls = gate.heard("getmempoolentry", "") - before;
    assert!(calls <= 3 * LINKS, "{calls} calls");

    // The ancestors of the next one are known, too.
    let before = gate.heard("getmempoolentry", "");
    let transaction = purse.spend(&[coin], vec![output(1_000, &other_script)], ENOUGH);
    send(node, &transaction);
    wait_until("it is seen", || shop.state(&other) == "paid");
    let calls = gate.heard("getmempoolentry", "") - before;
    assert!(calls <= 3, "{calls} calls");
    node.mine(1);
    wait_until("it is mined", || settlement(shop, &other)["confirmations"] == 1);
    let books = shop.site.cli_json(&["books", "verify"]);
    assert_eq!(books["differences"], json!([]), "{books}");
}

#[test]
fn the_ancestors_of_several_payments_are_asked_for_together() {
    const CHAINS: usize = 8;
    let (counter, gate) = counter_with_gate(CHAINS);
    let Counter { node, shop, purse } = &counter;
    let ids: Vec<_> = (0..CHAINS).map(|_| shop.invoice(1_000)).collect();
    let scripts: Vec<_> = ids.iter().map(|id| script_of(shop, id)).collect();
    let payments: Vec<_> = scripts
        .iter()
        .map(|script| {
            let coin = send_chain(&counter, purse.coin(), &purse.script(), &[ENOUGH; 20]);
            purse.spend(&[coin], vec![output(1_000, script)], ENOUGH)
        })
        .collect();
    let before = gate.heard("getmempoolentry", "");
    let batch: Vec<_> = payments.iter().map(|it| json!({ "hex": it.to_hex() })).collect();
    // While the watch waits for the first one, the others come.
    gate.shut("getmempoolentry", Hold::Answer);
    node.call("sendrawtransactions", json!([batch]));
    gate.wait_for(1);
    wait_until("all are in the mempool", || {
        counter.mempool().as_array().unwrap().len() == CHAINS * 21
    });
    gate.open();
    wait_until("all are seen", || ids.iter().all(|id| shop.state(id) == "paid"));
    let calls = gate.heard("getmempoolentry", "") - before;
    assert!(calls <= 3 * 21, "{calls} calls");
}

#[test]
fn what_was_read_of_ancestors_does_not_count_after_the_chain_has_changed() {
    let (counter, _gate) = counter_with_gate(1);
    let Counter { node, shop, purse } = &counter;
    let rival = Rival::of(node);
    let [first, second] = [100, 1_000].map(|satoshis| shop.invoice(satoshis));
    let [script, second_script] = [&first, &second].map(|id| script_of(shop, id));
    // This node mines the first one for a fee that the shop does not accept.
    let coin = send_chain(&counter, purse.coin(), &script, &[2]);
    wait_until("it waits", || {
        shop.payments(&first).first().is_some_and(|it| it["state"] == "waiting")
    });
    node.mine(1);
    wait_until("it is mined", || settlement(shop, &first)["confirmations"] == 1);
    // While its parent is mined, this one needs no more than its own fee.
    let coin = send_chain(&counter, coin, &script, &[25]);
    wait_until("it counts", || settlement(shop, &first)["paidSatoshis"] == 2);
    // Now the parent is unconfirmed again, and nobody has paid for it.
    rival.outgrow(node);
    rival.show_to(node);
    wait_until("both are back", || counter.mempool().as_array().unwrap().len() == 2);
    let next = purse.spend(&[coin], vec![output(1_000, &second_script)], 23);
    send(node, &next);
    wait_until("it waits", || {
        shop.payments(&second).first().is_some_and(|it| it["state"] == "waiting")
    });
    assert_eq!(shop.state(&second), "pending");
}

#[test]
fn a_reading_of_the_mempool_asks_once_about_what_does_not_concern_the_wallet() {
    const STRANGERS: usize = 100;
    let (counter, gate) = counter_with_gate(STRANGERS + 2);
    let Counter { node, shop, purse } = counter;
    let ids = [1_000, 2_000].map(|satoshis| shop.invoice(satoshis));
    let scripts = ids.each_ref().map(|id| script_of(&shop, id));
    let Merchant { site, server } = shop;
    server.stop();
    for _ in 0..STRANGERS {
        send(&node, &payment(&purse, Vec::new()));
    }
    send(&node, &payment(&purse, vec![output(1_000, &scripts[0])]));

    let before = gate.heard("getrawtransaction", "");
    let shop = Merchant { server: site.server(), site };
    wait_until("it is seen", || shop.state(&ids[0]) == "paid");
    // The watch hears of this one after it has read the mempool.
    send(&node, &payment(&purse, vec![output(2_000, &scripts[1])]));
    wait_until("it is seen", || shop.state(&ids[1]) == "paid");
    let calls = gate.heard("getrawtransaction", "") - before;
    assert!(calls <= STRANGERS + 20, "{calls} calls");
}

#[test]
fn descendants_of_a_payment_are_not_asked_about_with_each_reading_of_the_mempool() {
    let port = free_port();
    let node = Node::start_with(&[&format!("zmqpubrawtx2=tcp://127.0.0.1:{port}")]);
    let feed = LossyFeed::before(port);
    let mut gate = None;
    let counter = Counter::on(node, 1, |node| {
        let mut site = gate.insert(Gate::before(node)).site();
        site.set("wallet", json!({ "zmq": feed.address }));
        site
    });
    let Counter { node, shop, purse } = &counter;
    let id = shop.invoice(1_000);
    let transaction = payment(purse, vec![output(1_000, &script_of(shop, &id))]);
    send(node, &transaction);
    let change = purse.coins_of(&transaction).pop().unwrap();
    send_chain(&counter, change, &purse.script(), &[ENOUGH; LINKS]);
    wait_until("it is seen", || shop.state(&id) == "paid");

    let gate = gate.unwrap();
    let read_again = |times| {
        for _ in 0..times {
            let before = gate.heard("getrawmempool", "");
            feed.cut();
            wait_until("it is read again", || gate.heard("getrawmempool", "") >= before + 2);
        }
    };
    read_again(3);
    let before = gate.heard("getrawtransaction", "");
    read_again(3);
    let calls = gate.heard("getrawtransaction", "") - before;
    assert!(calls < LINKS, "{calls} calls");
}

#[test]
fn few_of_many_waiting_payments_are_looked_at_until_a_block_comes() {
    let count = repetitions("payments that wait", 2_000, 40);
    let (counter, gate) = counter_with_gate(count);
    let Counter { node, shop, purse } = &counter;
    let id = shop.invoice(5_000);
    let script = script_of(shop, &id);
    let mut txids = Vec::new();
    for _ in 0..count {
        let transaction = purse.spend(&[purse.coin()], vec![output(1, &script)], 2);
        send(node, &transaction);
        txids.push(transaction.txid().to_string());
    }
    wait_long_until("all wait", || shop.payments(&id).len() == count);
    let looks = |txid: &String| gate.heard("getmerkleproof2", txid);
    // One look at each may still be on its way.
    let first = looks(&txids[0]);
    wait_long_until("the first is looked at again", || looks(&txids[0]) >= first + 2);
    let first = looks(&txids[0]);
    let last: Vec<_> = txids[20..].iter().map(looks).collect();
    wait_long_until("the first is looked at again", || looks(&txids[0]) >= first + 2);
    assert_eq!(txids[20..].iter().map(looks).collect::<Vec<_>>(), last);

    Template::of(node, 1).mine_alone(node);
    wait_long_until("all are looked at", || {
        txids[20..].iter().map(looks).zip(&last).all(|(now, before)| now > *before)
    });
}
