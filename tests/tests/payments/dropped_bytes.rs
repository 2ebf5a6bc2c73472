//! Long transactions that nobody needs any more are kept without their bytes.

use bsv_tests::payee::{Payee, go_dpp_terms};
use bsv_tests::purse;
use bsv_tests::rival::restart_empty_with;
use bsv_tests::{Bill, Node, Purse};
use bsv_tx::{Ancestry, Beef, BeefVersion, Script, ScriptBuilder, Transaction, TxOut, opcode};
use serde_json::{Value, json};

use super::merchant::{Merchant, json_of, wait_until};
use super::paying_scene::{buyer_with, check_problem};
use super::watching::settlement;

/// More than the longest transaction whose bytes stay for ever.
const LEN: usize = 110_000;
/// A sufficient fee for a transaction of this length.
const FEE: u64 = 20_000;

/// A script that holds data.
fn data() -> Script {
    let script = ScriptBuilder::new().op(opcode::OP_0).op(opcode::OP_RETURN);
    script.push(&[7; LEN]).into_script()
}

/// Waits until the shop has followed the chain to a block that confirms a payment so many times.
fn wait_for_confirmations(shop: &Merchant, id: &str, count: u32) {
    wait_until("the shop follows", || settlement(shop, id)["confirmations"] == count);
}

fn mempool(node: &Node) -> usize {
    node.call("getrawmempool", json!([])).as_array().unwrap().len()
}

/// A shop that received a long payment of an invoice from a purse, spent it in a long payment, and
/// withdrew the change. Answers also the id of the invoice, the first transaction, and the txids of
/// the others.
fn spender(node: &Node, purse: &Purse) -> (Merchant, String, Transaction, [Value; 2]) {
    let shop = buyer_with(node, json!({}), &[]);
    let id = shop.invoice(50_000);
    let bill = Bill::at(&shop.payment_url(&id));
    let mut outputs = bill.outputs();
    outputs.push(TxOut { satoshis: 0, locking_script: data() });
    let received = purse.spend(&[purse.coin()], outputs, FEE);
    let reply = bill.post(&received);
    assert_eq!(reply.status, 201, "{}", reply.body);
    node.mine(1);
    wait_until("it is mined", || shop.payments(&id)[0]["state"] == "mined");
    let asked = [TxOut { satoshis: 1, locking_script: data() }];
    let paid = shop.pay_ok(&Payee::asking(&go_dpp_terms(&asked)).url());
    node.mine(1);
    wait_until("the payment is mined", || shop.outgoing()[0]["blockHash"].is_string());
    let to = node.call("getnewaddress", json!([]));
    let all = json!({ "address": to, "all": true }).to_string();
    let reply = shop.server.wallet().post("/api/v1/withdrawals", all);
    assert_eq!(reply.status, 201, "{}", reply.body);
    node.mine(1);
    wait_until("all is mined", || shop.outgoing().iter().all(|it| it["blockHash"].is_string()));
    assert_eq!(shop.balance(), 0);
    let withdrawn = json_of(&reply)["transactions"][0]["txid"].clone();
    (shop, id, received, [paid["tx_id"].clone(), withdrawn])
}

/// The transactions without bytes, according to an export.
fn dropped(shop: &Merchant) -> Vec<Value> {
    let rows = shop.get("/api/v1/export");
    let dropped = rows.as_array().unwrap().iter().filter(|row| row["bytesDropped"] == true);
    dropped.map(|row| row["txid"].clone()).collect()
}

#[test]
fn bytes_stay_until_no_reorganisation_can_need_them() {
    let mut node = Node::start();
    node.mine(110);
    let purse = Purse::filled(&node, 1, 100_000);
    let (shop, id, received, [paid, withdrawn]) = spender(&node, &purse);
    let number = |txid: &Value| {
        let outgoing = shop.outgoing();
        let payment = outgoing.iter().find(|payment| payment["txid"] == *txid);
        payment.unwrap()["id"].as_u64().unwrap()
    };
    let beef =
        |txid: &Value| shop.server.wallet().get(&format!("/api/v1/outgoing/{}/beef", number(txid)));
    let movements = || {
        let rows = shop.get("/api/v1/export");
        let rows = rows.as_array().unwrap()[..3].iter();
        rows.map(|row| json!([row["txid"], row["satoshis"], row["fee"]])).collect::<Vec<_>>()
    };
    let before = movements();

    // The blocks of all three leave the chain, and the node forgets the transactions.
    let height = node.call("getblockcount", json!([])).as_u64().unwrap();
    node.mine(97);
    let first = node.call("getblockhash", json!([height - 2]));
    wait_for_confirmations(&shop, &id, 100);
    node.call("invalidateblock", json!([first]));
    restart_empty_with(&mut node, &["disablesafemode=1"]);
    wait_until("the shop has sent all again", || mempool(&node) >= 3);
    assert_eq!(dropped(&shop), Vec::<Value>::new());
    node.mine(1);
    wait_until("all is mined", || shop.outgoing().iter().all(|it| it["blockHash"].is_string()));

    node.mine(99);
    wait_for_confirmations(&shop, &id, 100);
    assert_eq!(dropped(&shop), Vec::<Value>::new());
    assert_eq!((beef(&paid).status, beef(&withdrawn).status), (200, 200));
    node.mine(1);
    wait_for_confirmations(&shop, &id, 101);
    assert_eq!(dropped(&shop), [json!(received.txid().to_string()), paid.clone()]);
    assert_eq!(movements(), before);

    let detail = check_problem(&beef(&paid), 422, "bytes-dropped");
    let expected =
        format!("bytes dropped: the wallet keeps transaction {}", paid.as_str().unwrap());
    assert!(detail.starts_with(&expected), "{detail}");
    assert_eq!(beef(&withdrawn).status, 200);
    let show = shop.site.cli(&["outgoing", "show", &number(&paid).to_string(), "--beef"]);
    assert!(show.code != 0 && show.stderr.contains("bytes dropped"), "{}", show.stderr);
    let text = shop.site.cli_ok(&["books", "verify"]);
    assert!(text.contains("bytes dropped: 2 of the transactions"), "{text}");
    assert_eq!(shop.site.cli_json(&["books", "verify"])["bytesDropped"], 2);
    let header = shop.site.cli_ok(&["export"]);
    assert!(header.lines().next().unwrap().ends_with(",bytesDropped,network"), "{header}");

    // The shop asks the node for a transaction whose id is enough for its payer.
    let id = shop.invoice(1_000);
    let outputs = Bill::at(&shop.payment_url(&id)).outputs();
    let transaction = purse.spend(&purse.coins_of(&received), outputs, purse::FEE);
    let ancestry = Ancestry { held: vec![received.txid()], ..Ancestry::default() };
    let by_id = Beef::new(BeefVersion::V2, transaction, ancestry).unwrap();
    let path = format!("/pay/{id}/transaction");
    let reply = shop.server.payments().post(&path, by_id.to_bytes());
    assert_eq!(reply.status, 201, "{}", reply.body);
}
