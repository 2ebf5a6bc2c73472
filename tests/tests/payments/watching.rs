//! Payments without a payment message, which payers broadcast themselves.

use std::time::Duration;

use bsv_invoicing::Timestamp;
use bsv_tests::clock::{Clock, DAY};
use bsv_tests::purse::{Coin, FEE, send};
use bsv_tests::rival::{Rival, restart_empty_with};
use bsv_tests::{Bill, Node, Purse, free_port};
use bsv_tx::{Address, Network, Script, Transaction, TxOut};
use serde_json::{Value, json};

use super::merchant::{Merchant, json_of, wait_until};
use super::paying_scene::{buyer_with, site_with};

/// The setting of a node that publishes the transactions of its mempool.
pub(crate) fn publishing() -> String {
    format!("zmqpubrawtx2=tcp://127.0.0.1:{}", free_port())
}

/// A node that publishes transactions, and a purse with coins of 100,000 satoshis.
pub(crate) fn publishing_node(coins: usize) -> (Node, Purse) {
    let node = Node::start_with(&[&publishing()]);
    node.mine(110);
    let purse = Purse::filled(&node, coins, 100_000);
    (node, purse)
}

/// The script of an invoice, read from its terms. From then on, the wallet watches it.
pub(crate) fn script_of(shop: &Merchant, id: &str) -> Script {
    Bill::at(&shop.payment_url(id)).outputs()[0].locking_script.clone()
}

pub(crate) fn output(satoshis: u64, script: &Script) -> TxOut {
    TxOut { satoshis, locking_script: script.clone() }
}

/// A transaction with these outputs and change, out of one coin of the purse.
pub(crate) fn payment(purse: &Purse, outputs: Vec<TxOut>) -> Transaction {
    purse.spend(&[purse.coin()], outputs, FEE)
}

pub(crate) fn settlement(shop: &Merchant, id: &str) -> Value {
    shop.get(&format!("/api/v1/invoices/{id}/settlement"))
}

/// An expired invoice whose terms somebody read in time.
fn expired_invoice(shop: &Merchant, satoshis: u64) -> (String, Script) {
    let soon = Timestamp::of_system().after(Duration::from_secs(2));
    let body = json!({ "satoshis": satoshis, "expiresAt": soon.to_string() }).to_string();
    let reply = shop.server.wallet().post("/api/v1/invoices", body);
    let id = json_of(&reply)["id"].as_str().unwrap().to_owned();
    let script = script_of(shop, &id);
    wait_until("it expires", || shop.state(&id) == "expired");
    (id, script)
}

#[test]
fn a_payment_that_the_payer_broadcasts_is_seen_in_the_mempool_and_in_blocks() {
    let (node, purse) = publishing_node(3);
    let shop = buyer_with(&node, json!({}), &[]);
    let id = shop.invoice(5_000);
    let bill = Bill::at(&shop.payment_url(&id));
    let transaction = payment(&purse, bill.outputs());
    send(&node, &transaction);
    wait_until("it is seen", || shop.state(&id) == "paid");
    let [payment_told] = shop.payments(&id).try_into().unwrap();
    assert_eq!(payment_told["txid"], transaction.txid().to_string());
    assert_eq!((payment_told["satoshis"].clone(), shop.balance()), (json!(5_000), 5_000));
    let expected = json!({
        "state": "paid", "satoshis": 5_000, "paidSatoshis": 5_000, "dueSatoshis": 0,
        "overpaidSatoshis": 0, "receivedSatoshis": 5_000, "countedSatoshis": 5_000,
        "refundedSatoshis": 0, "surplusSatoshis": 0, "next": "nothing: the invoice is paid",
        "late": false, "confirmations": 0, "contested": false, "marked": false, "refunds": [],
    });
    assert_eq!(settlement(&shop, &id), expected);
    node.mine(2);
    wait_until("it is mined", || settlement(&shop, &id)["confirmations"] == 2);
    assert_eq!(shop.payments(&id)[0]["state"], "mined");

    // Somebody posts the transaction that the network already has.
    let reply = bill.post(&transaction);
    assert_eq!(reply.status, 201, "{}", reply.body);
    assert_eq!((shop.payments(&id).len(), shop.balance()), (1, 5_000));
    let books = shop.site.cli_json(&["books", "verify"]);
    assert_eq!(books["differences"], json!([]), "{books}");
}

#[test]
fn a_payment_of_more_than_is_asked_for_is_accepted() {
    let (node, purse) = publishing_node(3);
    let shop = buyer_with(&node, json!({}), &[]);
    for (parts, overpaid) in
        [(vec![6_000], 1_000), (vec![5_000, 5_000], 5_000), (vec![2_000, 3_001], 1)]
    {
        let id = shop.invoice(5_000);
        let bill = Bill::at(&shop.payment_url(&id));
        let script = bill.outputs()[0].locking_script.clone();
        let outputs = parts.into_iter().map(|satoshis| output(satoshis, &script)).collect();
        let reply = bill.post(&payment(&purse, outputs));
        assert_eq!(reply.status, 201, "{}", reply.body);
        assert_eq!(settlement(&shop, &id)["overpaidSatoshis"], overpaid);
    }
}

#[test]
fn without_notifications_a_payment_is_seen_in_the_next_block() {
    let node = Node::start();
    node.mine(110);
    let purse = Purse::filled(&node, 1, 100_000);
    let shop = buyer_with(&node, json!({}), &[]);
    let id = shop.invoice(5_000);
    send(&node, &payment(&purse, vec![output(5_000, &script_of(&shop, &id))]));
    node.mine(1);
    wait_until("it is seen", || shop.state(&id) == "paid");
    assert_eq!(shop.payments(&id)[0]["state"], "mined");
}

#[test]
fn a_payment_while_the_server_is_down_is_seen_at_its_start() {
    let (node, purse) = publishing_node(2);
    let shop = buyer_with(&node, json!({}), &[]);
    let [mined, waiting] = [1_000, 2_000].map(|satoshis| shop.invoice(satoshis));
    let scripts = [&mined, &waiting].map(|id| script_of(&shop, id));
    let Merchant { site, server } = shop;
    server.stop();
    send(&node, &payment(&purse, vec![output(1_000, &scripts[0])]));
    node.mine(3);
    send(&node, &payment(&purse, vec![output(2_000, &scripts[1])]));
    let shop = Merchant { server: site.server(), site };
    wait_until("both are seen", || [&mined, &waiting].map(|id| shop.state(id)) == ["paid", "paid"]);
    assert_eq!(shop.balance(), 3_000);
    let states = [&mined, &waiting].map(|id| shop.payments(id)[0]["state"].clone());
    assert_eq!(states, ["mined", "accepted"]);
}

#[test]
fn a_payment_before_the_first_contact_with_a_node_is_seen() {
    let (node, purse) = publishing_node(1);
    let mut site = site_with(&node, json!({}));
    site.set("rpcPort", json!(free_port()));
    let shop = Merchant { server: site.server(), site };
    let id = shop.invoice(1_000);
    let script = script_of(&shop, &id);
    let Merchant { mut site, server } = shop;
    server.stop();
    send(&node, &payment(&purse, vec![output(1_000, &script)]));
    node.mine(3);
    site.set("rpcPort", json!(node.port));
    let shop = Merchant { server: site.server(), site };
    wait_until("it is seen", || shop.state(&id) == "paid");
    assert_eq!(shop.payments(&id)[0]["state"], "mined");
}

/// Checks that an invoice is the only one that needs a decision, everywhere.
fn check_listed(shop: &Merchant, id: &str) {
    let listed = shop.get("/api/v1/invoices?attention=true");
    assert_eq!(listed.as_array().unwrap().len(), 1, "{listed}");
    assert_eq!(listed[0]["id"], id);
    assert_eq!(shop.get("/api/v1/invoices?attention=true&state=paid"), json!([]));
    assert_eq!(shop.site.cli_json(&["invoice", "list", "--attention"])[0]["id"], id);
    let done = shop.site.cli(&["status"]);
    assert_eq!(done.code, 1, "{done:?}");
    assert!(done.stdout.contains("1 invoice needs a decision"), "{}", done.stdout);
    let shown = shop.site.cli_ok(&["invoice", "get", id]);
    assert!(shown.contains("received     6000\n"), "{shown}");
}

#[test]
fn status_counts_all_invoices_that_need_a_decision() {
    let (node, purse) = publishing_node(1);
    let shop = buyer_with(&node, json!({}), &[]);
    let ids: Vec<_> = (0..101).map(|_| shop.invoice(300)).collect();
    let outputs = ids.iter().map(|id| output(900, &script_of(&shop, id))).collect();
    send(&node, &purse.spend(&[purse.coin()], outputs, 1_000));
    wait_until("all are paid", || ids.iter().all(|id| shop.state(id) == "paid"));
    let done = shop.site.cli(&["status"]);
    assert!(done.stdout.contains("101 invoices need a decision"), "{}", done.stdout);
}

#[test]
fn a_receipt_says_how_many_transactions_it_does_not_name() {
    let (node, purse) = publishing_node(12);
    let shop = buyer_with(&node, json!({}), &[]);
    let id = shop.invoice(11_999);
    let script = script_of(&shop, &id);
    for _ in 0..12 {
        send(&node, &payment(&purse, vec![output(1_000, &script)]));
    }
    wait_until("it is paid", || shop.state(&id) == "paid");
    let page = shop.server.payments().get(&format!("/pay/{id}")).body;
    assert_eq!(page.matches("<dt>Transaction</dt>").count(), 10, "{page}");
    assert!(page.contains("<dt>Further transactions</dt>\n<dd>2</dd>"), "{page}");
    assert!(page.contains("asked for: <span>1</span> satoshi. "), "{page}");
}

#[test]
fn a_state_in_which_more_counts_has_another_tag() {
    let (node, purse) = publishing_node(1);
    let shop = buyer_with(&node, json!({ "wallet": { "zeroConfLimitSatoshis": 1_000 } }), &[]);
    let id = shop.invoice(5_000);
    send(&node, &payment(&purse, vec![output(2_000, &script_of(&shop, &id))]));
    let state = || shop.server.payments().get(&format!("/pay/{id}/state"));
    let sums = || {
        let state = json_of(&state());
        [&state["receivedSatoshis"], &state["countedSatoshis"]].map(|sum| sum.as_u64().unwrap())
    };
    wait_until("it is seen", || sums() == [2_000, 0]);
    let before = state();
    node.mine(1);
    wait_until("it counts", || sums() == [2_000, 2_000]);
    assert_ne!(state().header("etag"), before.header("etag"));
}

/// An invoice that is found by its reference and by its payment, and paid as its checkout says. The
/// wallet sees the payment, because it watches the address that it has shown.
#[test]
fn a_checkout_says_how_to_pay() {
    let (node, purse) = publishing_node(1);
    let shop = buyer_with(&node, json!({}), &[]);
    let body = json!({ "satoshis": 5_000, "reference": "order 7/ä" }).to_string();
    let reply = shop.server.wallet().post("/api/v1/invoices", body);
    let id = json_of(&reply)["id"].as_str().unwrap().to_owned();
    let checkout = || shop.get(&format!("/api/v1/invoices/{id}/checkout"));
    let told = checkout();
    let text = |member: &str| told[member].as_str().unwrap().to_owned();
    let (address, page) = (text("address"), text("pageUrl"));
    assert_eq!(text("paymentUrl"), shop.payment_url(&id));
    assert_eq!(text("qrUrl"), format!("{page}/qr.svg"));
    assert!(text("bip21").starts_with(&format!("bitcoin:{address}?sv&amount=0.00005&r=")));
    let script = Address::parse(&address, Network::Regtest).unwrap().locking_script();
    let transaction = payment(&purse, vec![output(5_000, &script)]);
    send(&node, &transaction);
    wait_until("it is seen", || shop.state(&id) == "paid");
    let told = checkout();
    let nulls = ["address", "bip21", "qrUrl"].map(|member| told[member].is_null());
    assert_eq!((nulls, &told["pageUrl"]), ([true; 3], &json!(page)));
    let txid = transaction.txid().to_string();
    for found in [["--reference", "order 7/ä"], ["--txid", txid.as_str()], ["--state", "paid"]] {
        let listed = shop.site.cli_json(&[&["invoice", "list"][..], &found].concat());
        assert_eq!(listed[0]["id"], id.as_str(), "{found:?}");
    }
    assert_eq!(shop.site.cli_json(&["invoice", "list", "--reference", "order"]), json!([]));
    let receipt = shop.server.payments().get(&format!("/pay/{id}")).body;
    assert!(receipt.contains(&txid) && receipt.contains("id=\"receipt\""), "{receipt}");
    assert!(!receipt.contains("order 7"), "payers do not see the reference");
}

#[test]
fn late_payments_are_held_until_somebody_decides_and_deleted_invoices_stay_deleted() {
    let (node, purse) = publishing_node(3);
    let shop = buyer_with(&node, json!({}), &[]);
    let (late, script) = expired_invoice(&shop, 5_000);
    send(&node, &payment(&purse, vec![output(6_000, &script)]));
    wait_until("it is seen", || shop.balance() == 6_000);
    assert_eq!(shop.state(&late), "expired");
    let told = settlement(&shop, &late);
    let members = ["paidSatoshis", "dueSatoshis", "overpaidSatoshis", "late", "marked"];
    let told = members.map(|member| told[member].clone());
    assert_eq!(json!(told), json!([6_000, 5_000, 1_000, true, false]));
    let told = settlement(&shop, &late);
    let members = ["receivedSatoshis", "countedSatoshis", "refundedSatoshis", "surplusSatoshis"];
    assert_eq!(json!(members.map(|member| &told[member])), json!([6_000, 0, 0, 6_000]));
    assert!(told["next"].as_str().unwrap().starts_with("decide: 6000 satoshis"), "{told}");
    check_listed(&shop, &late);
    let mark =
        |body: &str| shop.server.wallet().post(&format!("/api/v1/invoices/{late}/mark"), body);
    assert_eq!(mark(r#"{"state":"expired"}"#).status, 400);
    let reply = mark(r#"{"state":"paid"}"#);
    assert_eq!((reply.status, json_of(&reply)["state"].clone()), (200, json!("paid")));
    assert_eq!(settlement(&shop, &late)["marked"], true);
    assert_eq!(mark(r#"{"state":"paid"}"#).status, 200);
    let logs = shop.site.cli_json(&["audit", "list"]);
    let entries = logs["wallet"].as_array().unwrap().iter();
    let marked: Vec<_> = entries.filter(|entry| entry["event"] == "invoice-marked").collect();
    assert!(matches!(marked[..], [entry] if entry["subject"] == late.as_str()), "{logs}");

    // A part is paid before the invoice is deleted, and another part afterwards.
    let deleted = shop.invoice(1_000);
    let script = script_of(&shop, &deleted);
    let before = payment(&purse, vec![output(400, &script)]);
    send(&node, &before);
    wait_until("it is seen", || shop.balance() == 6_400);
    let unassigned = || shop.get("/api/v1/receipts?unassigned=true");
    assert_eq!(unassigned(), json!([]));
    let path = format!("/api/v1/invoices/{deleted}");
    assert_eq!(shop.server.wallet().request("DELETE", &path, b"").status, 204);
    let after = payment(&purse, vec![output(600, &script)]);
    send(&node, &after);
    wait_until("it is seen", || shop.balance() == 7_000);
    assert_eq!(shop.server.wallet().get(&path).status, 404);
    let receipts = unassigned();
    let receipts = receipts.as_array().unwrap().iter();
    let receipts: Vec<_> = receipts.map(|it| json!([it["txid"], it["satoshis"]])).collect();
    let expected = [(&after, 600), (&before, 400)];
    let expected = expected.map(|(it, satoshis)| json!([it.txid().to_string(), satoshis]));
    assert_eq!(receipts, expected);
}

#[test]
fn late_payments_are_accepted_where_the_owner_wants_it() {
    let (node, purse) = publishing_node(1);
    let shop = buyer_with(&node, json!({ "wallet": { "latePayments": "accept" } }), &[]);
    let (late, script) = expired_invoice(&shop, 5_000);
    send(&node, &payment(&purse, vec![output(5_000, &script)]));
    wait_until("it is paid", || shop.state(&late) == "paid");
}

#[test]
fn one_transaction_pays_five_invoices_and_seven_pay_one() {
    let (node, purse) = publishing_node(9);
    let settings = json!({ "wallet": { "underpaidTolerance": 10 } });
    let shop = buyer_with(&node, settings, &[]);
    let five = [1, 2, 3, 4, 5].map(|it| (shop.invoice(1_000 * it), 1_000 * it));
    let outputs = five.each_ref().map(|(id, satoshis)| output(*satoshis, &script_of(&shop, id)));
    send(&node, &payment(&purse, outputs.to_vec()));
    wait_until("all are paid", || five.iter().all(|(id, _)| shop.state(id) == "paid"));
    assert_eq!(shop.balance(), 15_000);

    let paid_by = |query: &str| -> Vec<Value> {
        let found = shop.get(&format!("/api/v1/invoices?{query}"));
        found.as_array().unwrap().iter().map(|invoice| invoice["id"].clone()).collect()
    };
    let txid = shop.payments(&five[0].0)[0]["txid"].as_str().unwrap().to_owned();
    assert_eq!(paid_by(&format!("txid={txid}")), five.each_ref().map(|(id, _)| json!(id)));
    assert!(paid_by(&format!("txid={}", "00".repeat(32))).is_empty());

    let parts = shop.invoice(7_000);
    let script = script_of(&shop, &parts);
    for part in 1..=7 {
        assert_eq!(shop.state(&parts), "pending");
        send(&node, &payment(&purse, vec![output(1_000, &script)]));
        wait_until("a part is seen", || settlement(&shop, &parts)["paidSatoshis"] == part * 1_000);
        let due = settlement(&shop, &parts)["dueSatoshis"].as_u64().unwrap();
        assert_eq!(due, 7_000 - part * 1_000);
        if due > 0 {
            let asked = Bill::at(&shop.payment_url(&parts)).outputs()[0].satoshis;
            assert_eq!(asked, due);
        }
    }
    assert_eq!((shop.state(&parts).as_str(), shop.payments(&parts).len()), ("paid", 7));

    // A few satoshis may be missing; of a small amount, at most 1 %.
    let [nearly, short] = [shop.invoice(2_000), shop.invoice(100)];
    let outputs =
        vec![output(1_990, &script_of(&shop, &nearly)), output(98, &script_of(&shop, &short))];
    send(&node, &payment(&purse, outputs));
    wait_until("the first is paid", || shop.state(&nearly) == "paid");
    assert_eq!(
        (shop.state(&short).as_str(), settlement(&shop, &short)["dueSatoshis"].clone()),
        ("pending", json!(2))
    );
    node.mine(1);
    wait_until("all are mined", || settlement(&shop, &parts)["confirmations"] == 1);
    let books = shop.site.cli_json(&["books", "verify"]);
    assert_eq!(books["differences"], json!([]), "{books}");
}

#[test]
fn a_payment_that_a_reorganisation_displaces_is_taken_back() {
    let (node, purse) = publishing_node(1);
    let shop = buyer_with(&node, json!({}), &[]);
    let rival = Rival::of(&node);
    let id = shop.invoice(5_000);
    let script = script_of(&shop, &id);
    let coin = purse.coin();
    let paying = purse.spend(&[coin], vec![output(5_000, &script)], FEE);
    send(&node, &paying);
    node.mine(1);
    wait_until("it is mined", || {
        shop.payments(&id).first().is_some_and(|it| it["state"] == "mined")
    });
    let Coin { outpoint, satoshis } = coin;
    let rivals = purse.spend(&[Coin { outpoint, satoshis }], Vec::new(), 2 * FEE);
    rival.mine(&[&rivals], 3);
    rival.show_to(&node);
    wait_until("it is taken back", || shop.payments(&id)[0]["state"] == "displaced");
    assert_eq!((shop.state(&id).as_str(), shop.balance()), ("pending", 0));
}

#[test]
fn above_the_limit_only_mined_payments_count() {
    let (node, purse) = publishing_node(2);
    let settings = json!({ "wallet": { "zeroConfLimitSatoshis": 5_000 } });
    let shop = buyer_with(&node, settings, &[]);
    let [small, large] = [shop.invoice(5_000), shop.invoice(5_001)];
    let memo = |id: &str| {
        let terms = shop.server.payments().get(&format!("/api/v1/payment/{id}"));
        json_of(&terms)["memo"].as_str().unwrap().to_owned()
    };
    let in_block = "(a payment counts once it is in a block)";
    assert_eq!([&small, &large].map(|id| memo(id).contains(in_block)), [false, true]);
    for (id, satoshis) in [(&small, 5_000), (&large, 5_001)] {
        send(&node, &payment(&purse, vec![output(satoshis, &script_of(&shop, id))]));
    }
    wait_until("both are seen", || shop.balance() == 10_001);
    assert_eq!([&small, &large].map(|id| shop.state(id)), ["paid", "pending"]);
    // The terms do not ask anybody to pay it again.
    let reply = shop.server.payments().get(&format!("/api/v1/payment/{large}"));
    assert_eq!((reply.status, json_of(&reply)["code"].clone()), (409, json!("payment-in-flight")));
    let block = node.mine(1)[0];
    let settlement = || shop.get(&format!("/api/v1/invoices/{large}/settlement"));
    wait_until("it counts", || settlement()["confirmations"] == 1);
    assert_eq!(shop.state(&large), "paid");
    // Nobody has to pay it again because a block has left the chain.
    node.call("invalidateblock", json!([block.to_string()]));
    wait_until("it is in no block", || shop.payments(&large)[0]["state"] == "accepted");
    let unmined = settlement();
    assert_eq!(unmined["confirmations"], 0);
    assert_eq!((&unmined["state"], &unmined["dueSatoshis"]), (&json!("paid"), &json!(0)));
    let events = json_of(&shop.server.wallet().get("/api/v1/events?types=invoice.unpaid"));
    assert_eq!(events["events"], json!([]));
    node.mine(1);
    wait_until("it is mined again", || settlement()["confirmations"] == 1);
}

#[test]
fn above_the_limit_a_payment_waits_for_its_confirmations() {
    let (node, purse) = publishing_node(1);
    let settings = json!({ "wallet": { "zeroConfLimitSatoshis": 5_000, "minedBlocks": 2 } });
    let shop = buyer_with(&node, settings, &[]);
    let id = shop.invoice(6_000);
    let bill = Bill::at(&shop.payment_url(&id));
    let terms = shop.server.payments().get(&format!("/api/v1/payment/{id}"));
    let memo = json_of(&terms)["memo"].as_str().unwrap().to_owned();
    assert!(memo.ends_with("(a payment counts once it has 2 confirmations)"), "{memo}");
    let page = || shop.server.payments().get(&format!("/pay/{id}")).body;
    assert!(page().contains("once 2 blocks have confirmed it"));
    assert_eq!(bill.post(&payment(&purse, bill.outputs())).status, 201);
    assert!(page().contains("It counts after 2 blocks"));
    let confirmations = || settlement(&shop, &id)["confirmations"].clone();
    let lost = node.mine(1)[0];
    wait_until("it is mined", || confirmations() == 1);
    assert_eq!(shop.state(&id), "pending");
    let told = settlement(&shop, &id);
    assert_eq!([&told["receivedSatoshis"], &told["countedSatoshis"]], [6_000, 0]);
    let next = "wait for blocks: everything was sent, and counts once it has 2 confirmations";
    assert_eq!(told["next"], next);
    // The block leaves the chain, and another one holds the payment.
    node.call("invalidateblock", json!([lost.to_string()]));
    wait_until("it is in no block", || confirmations() == 0);
    node.mine(1);
    wait_until("it is mined again", || confirmations() == 1);
    assert_eq!(shop.state(&id), "pending");
    node.mine(1);
    wait_until("it is paid", || shop.state(&id) == "paid");
    assert_eq!(settlement(&shop, &id)["countedSatoshis"], 6_000);
}

/// A shop with these settings of its wallet, and its clock.
fn shop_with_clock(node: &Node, wallet: Value) -> (Merchant, Clock) {
    let mut site = site_with(node, json!({ "wallet": wallet }));
    let clock = Clock::install(&mut site);
    (Merchant { server: site.server(), site }, clock)
}

#[test]
fn an_invoice_that_waits_for_a_block_takes_no_second_payment_and_becomes_a_case_after_a_day() {
    let (node, purse) = publishing_node(3);
    let (shop, clock) = shop_with_clock(&node, json!({ "zeroConfLimitSatoshis": 5_000 }));
    let id = shop.invoice(6_000);
    let bill = Bill::at(&shop.payment_url(&id));
    let [first, second] = [(); 2].map(|()| payment(&purse, bill.outputs()));
    assert_eq!(bill.post(&first).status, 201);
    clock.set(&shop.site, DAY + 60);
    assert_eq!(shop.state(&id), "pending");
    let terms = shop.server.payments().get(&format!("/api/v1/payment/{id}"));
    for reply in [terms, bill.post(&second)] {
        assert_eq!((reply.status, &json_of(&reply)["code"]), (422, &json!("invoice-expired")));
    }
    assert_eq!(bill.post(&first).status, 201, "the same payment again");
    check_listed(&shop, &id);
    let next = || settlement(&shop, &id)["next"].as_str().unwrap().to_owned();
    assert!(next().starts_with("decide: 6000 satoshis are here, and no block"), "{}", next());
    node.mine(1);
    wait_until("it is paid", || shop.state(&id) == "paid");
    assert_eq!(next(), "nothing: the invoice is paid");
}

#[test]
fn what_was_refunded_before_pays_no_invoice() {
    let (node, purse) = publishing_node(4);
    let (shop, clock) = shop_with_clock(&node, json!({ "latePayments": "accept" }));
    let [id, other] = [shop.invoice(5_000), shop.invoice(50_000)];
    let [script, fees] = [&id, &other].map(|id| script_of(&shop, id));
    send(&node, &payment(&purse, vec![output(4_000, &script)]));
    send(&node, &payment(&purse, vec![output(50_000, &fees)]));
    wait_until("both are seen", || shop.balance() == 54_000);
    node.mine(1);
    clock.set(&shop.site, DAY + 60);
    wait_until("it is mined", || settlement(&shop, &id)["confirmations"] == 1);
    assert_eq!(shop.state(&id), "expired");
    let body = json!({ "full": true, "to": purse.script().to_hex() }).to_string();
    let path = format!("/api/v1/invoices/{id}/refund");
    assert_eq!(shop.server.wallet().post(&path, body).status, 201);
    let pay = |satoshis, received| {
        send(&node, &payment(&purse, vec![output(satoshis, &script)]));
        wait_until("it is seen", || settlement(&shop, &id)["receivedSatoshis"] == received);
        let told = settlement(&shop, &id);
        ["state", "countedSatoshis", "refundedSatoshis", "dueSatoshis"].map(|it| told[it].clone())
    };
    assert_eq!(json!(pay(1_000, 5_000)), json!(["expired", 1_000, 4_000, 4_000]));
    assert_eq!(json!(pay(4_000, 9_000)), json!(["paid", 5_000, 4_000, 0]));
}

#[test]
fn payments_are_seen_after_notifications_have_ended_and_begun_again() {
    let (mut node, purse) = publishing_node(2);
    let shop = buyer_with(&node, json!({}), &[]);
    let [first, second] = [shop.invoice(1_000), shop.invoice(2_000)];
    let scripts = [&first, &second].map(|id| script_of(&shop, id));
    restart_empty_with(&mut node, &[]);
    send(&node, &payment(&purse, vec![output(1_000, &scripts[0])]));
    wait_until("it is seen", || shop.state(&first) == "paid");
    // The node now publishes at another address.
    restart_empty_with(&mut node, &[&publishing()]);
    send(&node, &payment(&purse, vec![output(2_000, &scripts[1])]));
    wait_until("it is seen", || shop.state(&second) == "paid");
}

#[test]
fn a_coinbase_can_pay_an_invoice_and_is_spent_a_hundred_blocks_later() {
    let node = Node::start();
    node.mine(2);
    let shop = buyer_with(&node, json!({}), &[]);
    let id = shop.invoice(1_000);
    let script = node.call("decodescript", json!([script_of(&shop, &id).to_hex()]));
    let address = &script["addresses"][0];
    node.call("generatetoaddress", json!([1, address]));
    wait_until("it is seen", || shop.state(&id) == "paid");
    let supplier = buyer_with(&node, json!({}), &[]);
    let bill = supplier.invoice(10_000);
    let reply = shop.pay(&supplier.payment_url(&bill));
    assert_eq!((reply.status, json_of(&reply)["code"].clone()), (422, json!("insufficient-funds")));
    node.mine(99);
    wait_until("it can be spent", || shop.pay(&supplier.payment_url(&bill)).status == 200);
}

#[test]
fn a_reward_is_invalid_while_its_block_is_not_in_the_chain() {
    let node = Node::start();
    node.mine(2);
    let shop = buyer_with(&node, json!({}), &[]);
    let id = shop.invoice(1_000);
    let script = node.call("decodescript", json!([script_of(&shop, &id).to_hex()]));
    let rival = Rival::of(&node);
    let blocks = node.call("generatetoaddress", json!([1, script["addresses"][0]]));
    wait_until("it is seen", || shop.state(&id) == "paid");
    let reward = shop.balance();
    // A node that has not come to the block's height knows no other block in its place.
    node.call("invalidateblock", json!([blocks[0]]));
    wait_until("it is contested", || shop.payments(&id)[0]["state"] == "contested");
    assert_eq!((shop.state(&id).as_str(), shop.balance()), ("paid", reward));
    node.call("reconsiderblock", json!([blocks[0]]));
    wait_until("it is mined", || shop.payments(&id)[0]["state"] == "mined");
    rival.mine(&[], 2);
    rival.show_to(&node);
    wait_until("it is invalid", || shop.payments(&id)[0]["state"] == "invalid");
    assert_eq!((shop.state(&id).as_str(), shop.balance()), ("pending", 0));
    let other = node.call("getblockhash", json!([3]));
    node.call("invalidateblock", json!([other]));
    assert_eq!(node.call("getblockhash", json!([3])), blocks[0]);
    wait_until("it is back", || shop.payments(&id)[0]["state"] == "mined");
    assert_eq!((shop.state(&id).as_str(), shop.balance()), ("paid", reward));
    let books = shop.site.cli_json(&["books", "verify", "--from-height", "0"]);
    assert_eq!(books["differences"], json!([]), "{books}");
}

#[test]
fn a_miner_may_post_a_reward_that_pays_an_invoice() {
    let node = Node::start();
    node.mine(2);
    let shop = buyer_with(&node, json!({}), &[]);
    let id = shop.invoice(1_000);
    let bill = Bill::at(&shop.payment_url(&id));
    let script = node.call("decodescript", json!([bill.outputs()[0].locking_script.to_hex()]));
    let blocks = node.call("generatetoaddress", json!([1, script["addresses"][0]]));
    let block = node.call("getblock", json!([blocks[0]]));
    let reward = node.call("getrawtransaction", json!([block["tx"][0]]));
    let reward = Transaction::from_hex(reward.as_str().unwrap()).unwrap();
    let reply = bill.post(&reward);
    assert_eq!(reply.status, 201, "{}", reply.body);
    assert_eq!((shop.state(&id).as_str(), shop.payments(&id).len()), ("paid", 1));
    let details = shop.get("/api/v1/balance/details");
    assert_eq!(details["immature"], shop.balance(), "{details}");
}

#[test]
fn an_address_that_a_user_was_given_is_watched() {
    let (node, purse) = publishing_node(1);
    let shop = buyer_with(&node, json!({}), &[]);
    let reply = shop.server.wallet().post("/api/v1/users", r#"{"name":"Ann"}"#);
    let pki = json_of(&reply)["extendedData"]["pki"].as_str().unwrap().to_owned();
    let key: bsv_tx::PublicKey = pki.parse().unwrap();
    send(&node, &payment(&purse, vec![output(4_000, &Script::p2pkh(&key.hash()))]));
    wait_until("it is seen", || shop.balance() == 4_000);
    // The key of the address can spend the coin.
    node.mine(1);
    let supplier = buyer_with(&node, json!({}), &[]);
    let bill = supplier.invoice(1_000);
    wait_until("it is spent", || shop.pay(&supplier.payment_url(&bill)).status == 200);
}
