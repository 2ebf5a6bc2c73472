//! Merkle proofs, and what happens to payments when blocks leave the chain.

use std::time::Duration;

use bsv_invoicing::Timestamp;
use bsv_tests::payee::{Answer, Payee, go_dpp_terms, output};
use bsv_tests::purse::{Coin, FEE, knows, send};
use bsv_tests::rival::{Rival, restart_empty, tip};
use bsv_tests::{Bill, Node, Purse};
use bsv_tx::Transaction;
use serde_json::{Value, json};

use super::merchant::{Merchant, json_of, wait_until};
use super::paying_scene::{buyer_with, check_problem};

/// A node, a purse with coins of 100,000 satoshis, and a shop.
fn scene(coins: usize) -> (Node, Purse, Merchant) {
    let node = Node::start();
    node.mine(110);
    let purse = Purse::filled(&node, coins, 100_000);
    let shop = quiet(&node);
    (node, purse, shop)
}

fn quiet(node: &Node) -> Merchant {
    buyer_with(node, json!({}), &[])
}

/// Pays an invoice from the purse, and answers the transaction.
fn pay(shop: &Merchant, id: &str, purse: &Purse) -> Transaction {
    let bill = Bill::at(&shop.payment_url(id));
    let transaction = purse.transaction_for(&bill);
    let reply = bill.post(&transaction);
    assert_eq!(reply.status, 201, "{}", reply.body);
    transaction
}

/// A transaction that spends the first coin of another transaction, and pays it back to the purse.
fn double_spend(purse: &Purse, transaction: &Transaction, satoshis: u64) -> Transaction {
    let outpoint = transaction.inputs[0].previous_output;
    let coin = Coin { outpoint, satoshis };
    purse.spend(&[coin], Vec::new(), 2 * FEE)
}

fn block_of(payment: &Value) -> [&Value; 3] {
    ["state", "blockHash", "blockHeight"].map(|member| &payment[member])
}

fn wait_for_state(shop: &Merchant, id: &str, state: &str) {
    wait_until(state, || shop.payments(id).iter().any(|payment| payment["state"] == state));
}

#[test]
fn proofs_follow_the_chain() {
    let (node, purse, shop) = scene(1);
    let supplier = quiet(&node);
    let id = shop.invoice(50_000);
    pay(&shop, &id, &purse);
    let bill = supplier.invoice(20_000);
    let result = shop.pay_ok(&supplier.payment_url(&bill));
    let channel = |name: &str| result["peer_channel"][name].as_str().unwrap().to_owned();
    let read = |query: &str| -> Vec<Value> {
        let path = format!("/api/v1/channel/{}{query}", channel("id"));
        let token = format!("Bearer {}", channel("token"));
        let headers = [("Authorization", token.as_str())];
        let reply = supplier.server.payments().send("GET", &path, &headers, b"");
        serde_json::from_str(&reply.body).unwrap()
    };
    let [accepted] = shop.payments(&id).try_into().unwrap();
    assert_eq!(json!(block_of(&accepted)), json!(["accepted", null, null]));
    assert_eq!(read(""), Vec::<Value>::new());
    let balances = (shop.balance(), supplier.balance());

    let mut blocks = Vec::new();
    for sequence in 1..=3 {
        let block = node.mine(1)[0].to_string();
        let height = node.call("getblockcount", json!([]));
        wait_for_state(&shop, &id, "mined");
        wait_for_state(&supplier, &bill, "mined");
        wait_until("the payer knows", || shop.outgoing()[0]["blockHash"] == block);
        let expected = json!(["mined", block, height]);
        assert_eq!(json!(block_of(&shop.payments(&id)[0])), expected);
        assert_eq!(json!(block_of(&supplier.payments(&bill)[0])), expected);
        assert_eq!(json!(block_of(&shop.outgoing()[0])), json!(["settled", block, height]));
        let messages = read("");
        assert_eq!(messages.len(), sequence);
        assert_eq!(messages[sequence - 1]["sequence"], sequence);
        assert_eq!(read("?unread=true").len(), sequence);
        blocks.push(block.clone());

        node.call("invalidateblock", json!([block]));
        wait_for_state(&shop, &id, "accepted");
        wait_for_state(&supplier, &bill, "accepted");
        wait_until("the payer knows", || shop.outgoing()[0]["blockHash"].is_null());
        assert_eq!(json!(block_of(&shop.payments(&id)[0])), json!(["accepted", null, null]));
        assert_eq!((shop.balance(), supplier.balance()), balances);
        assert_eq!((shop.state(&id), supplier.state(&bill)), ("paid".into(), "paid".into()));
    }
    node.call("reconsiderblock", json!([blocks[1]]));
    wait_for_state(&shop, &id, "mined");
    assert_eq!(shop.payments(&id)[0]["blockHash"], blocks[1]);
    wait_until("the fourth message", || read("").len() == 4);
    assert_eq!((shop.balance(), supplier.balance()), balances);
}

#[test]
fn payments_that_another_chain_displaces_are_undone_and_redone_when_their_chain_returns() {
    let (node, purse, shop) = scene(1);
    let supplier = quiet(&node);
    let rival = Rival::of(&node);
    shop.fill(3_000);
    let id = shop.invoice(50_000);
    let displaced = pay(&shop, &id, &purse);
    let bill = supplier.invoice(51_000);
    // This payment spends both coins.
    let payment = shop.pay_ok(&supplier.payment_url(&bill));
    let balance = shop.balance();
    let fee = 53_000 - 51_000 - balance;
    node.mine(1);
    wait_for_state(&shop, &id, "mined");
    wait_for_state(&supplier, &bill, "mined");
    wait_until("the payer knows", || shop.outgoing()[0]["blockHash"].is_string());

    let first_block = tip(&node);
    let rivals = rival.mine(&[&double_spend(&purse, &displaced, 100_000)], 2);
    rival.show_to(&node);
    assert_eq!(tip(&node), rivals[1].to_string());
    wait_for_state(&shop, &id, "displaced");
    // The supplier does not know the displaced transaction. It only sees that the network does not
    // know the payment any more.
    wait_until("it gives up", || {
        node.mine(1);
        supplier.payments(&bill)[0]["state"] == "displaced"
    });
    let invoice = shop.get(&format!("/api/v1/invoices/{id}"));
    let members = ["state", "paymentReceivedAt", "refundTo"].map(|member| &invoice[member]);
    assert_eq!(json!(members), json!(["pending", null, null]));
    assert_eq!(json!(block_of(&shop.payments(&id)[0])), json!(["displaced", null, null]));
    assert_eq!(shop.outgoing_states(), ["displaced"]);
    assert!(shop.outgoing()[0]["blockHash"].is_null());
    assert_eq!((shop.balance(), supplier.balance()), (3_000, 0));
    assert_eq!(supplier.state(&bill), "pending");
    // The coin of the payment's other input is spendable again.
    shop.pay_ok(&Payee::asking(&go_dpp_terms(&[output(1_000)])).url());
    let left = shop.balance();

    node.call("invalidateblock", json!([rivals[0].to_string()]));
    assert_eq!(tip(&node), first_block);
    wait_for_state(&shop, &id, "mined");
    wait_for_state(&supplier, &bill, "mined");
    wait_until("it follows", || shop.outgoing_states() == ["displaced", "settled"]);
    assert_eq!(shop.state(&id), "paid");
    assert!(shop.get(&format!("/api/v1/invoices/{id}"))["paymentReceivedAt"].is_string());
    assert_eq!((shop.payments(&id).len(), supplier.payments(&bill).len()), (1, 1));
    assert_eq!(shop.outgoing()[1]["txid"], payment["tx_id"]);
    assert_eq!((shop.balance(), supplier.balance()), (2_000 - fee, 51_000));
    assert!(left < 2_000, "{left}");
}

#[test]
fn an_invoice_whose_payment_was_displaced_is_paid_by_another_one() {
    let (node, purse, shop) = scene(2);
    let rival = Rival::of(&node);
    let id = shop.invoice(50_000);
    let displaced = pay(&shop, &id, &purse);
    rival.mine(&[&double_spend(&purse, &displaced, 100_000)], 1);
    rival.show_to(&node);
    wait_for_state(&shop, &id, "displaced");
    assert_eq!((shop.state(&id).as_str(), shop.balance()), ("pending", 0));
    let bill = Bill::at(&shop.payment_url(&id));
    assert_eq!(bill.post(&displaced).status, 422);
    let second = pay(&shop, &id, &purse);
    assert_eq!((shop.state(&id).as_str(), shop.balance()), ("paid", 50_000));
    node.mine(1);
    wait_for_state(&shop, &id, "mined");
    let payments = shop.payments(&id);
    let told = payments.iter().map(|payment| [&payment["txid"], &payment["state"]]);
    let expected =
        json!([[displaced.txid().to_string(), "displaced"], [second.txid().to_string(), "mined"],]);
    assert_eq!(json!(told.collect::<Vec<_>>()), expected);
}

#[test]
fn an_invoice_stays_paid_while_one_of_its_payments_stands() {
    let (node, purse, shop) = scene(1);
    let rival = Rival::of(&node);
    let id = shop.invoice(50_000);
    let bill = Bill::at(&shop.payment_url(&id));
    let first = purse.transaction_for(&bill);
    assert_eq!(bill.post(&first).status, 201);
    node.mine(1);
    wait_for_state(&shop, &id, "mined");
    let outpoint = first.inputs[0].previous_output;
    let coin = Coin { outpoint, satoshis: 100_000 };
    let second = purse.spend(&[coin], bill.outputs(), FEE + 1);
    let rivals = rival.mine(&[&second], 2);
    rival.show_to(&node);
    wait_for_state(&shop, &id, "displaced");
    assert_eq!(bill.post(&second).status, 201);
    node.mine(1);
    wait_for_state(&shop, &id, "mined");
    node.call("invalidateblock", json!([rivals[0].to_string()]));
    let states = || shop.payments(&id).iter().map(|it| it["state"].clone()).collect::<Vec<_>>();
    wait_until("the first is back", || states() == ["mined", "displaced"]);
    assert_eq!((shop.state(&id).as_str(), shop.balance()), ("paid", 50_000));
}

#[test]
fn a_transaction_that_comes_again_after_it_was_displaced_is_credited_once() {
    let (mut node, purse, shop) = scene(1);
    let [rival, third] = [(); 2].map(|()| Rival::of(&node));
    let id = shop.invoice(50_000);
    let bill = Bill::at(&shop.payment_url(&id));
    let transaction = purse.transaction_for(&bill);
    assert_eq!(bill.post(&transaction).status, 201);
    rival.mine(&[&double_spend(&purse, &transaction, 100_000)], 1);
    rival.show_to(&node);
    wait_for_state(&shop, &id, "displaced");
    third.mine(&[], 2);
    third.show_to(&node);
    restart_empty(&mut node);
    assert_eq!((shop.state(&id).as_str(), shop.balance()), ("pending", 0));
    wait_until("it is paid again", || bill.post(&transaction).status == 201);
    assert_eq!((shop.state(&id).as_str(), shop.balance()), ("paid", 50_000));
    node.mine(1);
    wait_for_state(&shop, &id, "mined");
    node.mine(1);
    shop.fill(1_000);
    let [payment] = shop.payments(&id).try_into().unwrap();
    assert_eq!((payment["state"].as_str(), shop.balance()), (Some("mined"), 51_000));
    shop.pay_ok(&Payee::asking(&go_dpp_terms(&[output(50_500)])).url());
}

#[test]
fn an_invoice_whose_payment_is_displaced_too_late_is_expired() {
    let (node, purse, shop) = scene(1);
    let rival = Rival::of(&node);
    let until = Timestamp::of_system().after(Duration::from_secs(3));
    let body = json!({ "satoshis": 50_000, "expiresAt": until.to_string() }).to_string();
    let reply = shop.server.wallet().post("/api/v1/invoices", body);
    let id = json_of(&reply)["id"].as_str().unwrap().to_owned();
    let displaced = pay(&shop, &id, &purse);
    wait_until("it is late", || Timestamp::of_system() > until);
    assert_eq!(shop.state(&id), "paid");
    rival.mine(&[&double_spend(&purse, &displaced, 100_000)], 1);
    rival.show_to(&node);
    wait_for_state(&shop, &id, "displaced");
    assert_eq!((shop.state(&id).as_str(), shop.balance()), ("expired", 0));
}

#[test]
fn changes_of_the_chain_while_the_server_is_down_are_noticed_at_its_start() {
    let (node, purse, shop) = scene(2);
    let rival = Rival::of(&node);
    let [displaced_id, id] = [50_000, 20_000].map(|satoshis| shop.invoice(satoshis));
    let displaced = pay(&shop, &displaced_id, &purse);
    pay(&shop, &id, &purse);
    node.mine(1);
    wait_for_state(&shop, &displaced_id, "mined");
    wait_for_state(&shop, &id, "mined");
    let Merchant { site, server } = shop;
    assert_eq!(server.stop(), 0);
    let blocks = rival.mine(&[&double_spend(&purse, &displaced, 100_000)], 2);
    rival.show_to(&node);
    let shop = Merchant { server: site.server(), site };
    wait_for_state(&shop, &displaced_id, "displaced");
    wait_for_state(&shop, &id, "accepted");
    assert_eq!((shop.state(&displaced_id).as_str(), shop.balance()), ("pending", 20_000));
    assert_eq!(tip(&node), blocks[1].to_string());
    node.mine(1);
    wait_for_state(&shop, &id, "mined");
}

#[test]
fn a_node_gets_the_transactions_again_that_it_has_lost() {
    let (mut node, purse, shop) = scene(1);
    let id = shop.invoice(50_000);
    let received = pay(&shop, &id, &purse);
    let payee = Payee::asking(&go_dpp_terms(&[output(20_000)]));
    shop.pay_ok(&payee.url());
    let paid = payee.paid_with();
    let balance = shop.balance();
    restart_empty(&mut node);
    wait_until("both are there", || knows(&node, &received) && knows(&node, &paid));
    assert_eq!(shop.balance(), balance);
    node.mine(1);
    wait_for_state(&shop, &id, "mined");
    wait_until("both are mined", || shop.outgoing()[0]["blockHash"].is_string());
}

#[test]
fn a_payment_that_spends_an_unknown_coin_for_six_blocks_is_displaced() {
    let (node, purse, shop) = scene(1);
    let rival = Rival::of(&node);
    let parent = purse.spend(&[purse.coin()], Vec::new(), FEE);
    send(&node, &parent);
    let id = shop.invoice(50_000);
    let bill = Bill::at(&shop.payment_url(&id));
    let orphan = purse.spend(&purse.coins_of(&parent), bill.outputs(), FEE);
    assert_eq!(bill.post(&orphan).status, 201);
    rival.mine(&[&double_spend(&purse, &parent, 100_000)], 1);
    rival.show_to(&node);
    assert!(!knows(&node, &orphan) && !knows(&node, &parent));
    let probe = shop.fill(1_000);
    node.mine(1);
    wait_for_state(&shop, &probe, "mined");
    wait_for_state(&shop, &id, "contested");
    assert_eq!((shop.state(&id).as_str(), shop.balance()), ("paid", 51_000));
    wait_until("it is given up", || {
        node.mine(1);
        shop.payments(&id)[0]["state"] == "displaced"
    });
    assert_eq!((shop.state(&id).as_str(), shop.balance()), ("pending", 1_000));
}

#[test]
fn a_payment_that_is_being_cancelled_can_be_displaced() {
    let (mut node, purse, shop) = scene(1);
    let id = shop.invoice(50_000);
    let received = pay(&shop, &id, &purse);
    let payee = Payee::asking(&go_dpp_terms(&[output(20_000)]));
    payee.on_post(|_| Answer::text(503, "{}"));
    check_problem(&shop.pay(&payee.url()), 503, "payment-outcome-unknown");
    let Merchant { site, server } = shop;
    assert_eq!(server.stop(), 0);
    restart_empty(&mut node);
    let done = site.cli(&["outgoing", "cancel", "1", "--yes"]);
    assert_eq!(done.code, 1, "{}", done.stdout);
    let done = site.cli(&["pay", &payee.url(), "--yes"]);
    assert_eq!((done.code, done.stderr.as_str()), (1, "bsv-cli: payment 1 is cancelling\n"));
    send(&node, &double_spend(&purse, &received, 100_000));
    node.mine(1);
    let shop = Merchant { server: site.server(), site };
    wait_for_state(&shop, &id, "displaced");
    assert_eq!((shop.outgoing_states(), shop.balance()), (vec!["displaced".to_owned()], 0));
    shop.fill(30_000);
    payee.on_post(Answer::accept);
    shop.pay_ok(&payee.url());
    assert_eq!(shop.outgoing_states(), ["settled", "displaced"]);
}

#[test]
fn while_the_node_is_down_requests_that_need_none_are_answered() {
    let (mut node, purse, shop) = scene(1);
    let bills = [20_000, 30_000].map(|satoshis| shop.invoice(satoshis));
    let bill = Bill::at(&shop.payment_url(&bills[0]));
    let transaction = purse.transaction_for(&bill);
    node.stop();
    assert_eq!(bill.post(&transaction).status, 503);
    let payee = Payee::asking(&go_dpp_terms(&[output(1_000)]));
    check_problem(&shop.pay(&payee.url()), 503, "network-unavailable");
    assert_eq!((shop.balance(), shop.state(&bills[0])), (0, "pending".to_owned()));
    let other = shop.invoice(1_000);
    Bill::at(&shop.payment_url(&other));
    assert_eq!(shop.outgoing(), Vec::<Value>::new());
    node.restart();
    assert_eq!(bill.post(&transaction).status, 201);
    shop.pay_ok(&payee.url());
    node.mine(1);
    wait_for_state(&shop, &bills[0], "mined");
    wait_until("both are mined", || shop.outgoing()[0]["blockHash"].is_string());
}
