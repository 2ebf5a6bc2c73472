//! Consolidations: small coins are combined without a fee.

use bsv_tx::Transaction;
use serde_json::{Value, json};

use super::leaving_withdrawals::{with_coins, with_settings};
use super::merchant::wait_until;

#[test]
fn small_coins_are_consolidated_without_a_fee_and_mined() {
    // This node mines other transactions only with a fee. Therefore, a mined transaction without a
    // fee counts as a consolidation.
    let counter =
        with_coins(&["minminingtxfee=0.00000100"], &[[3_u64; 1050].as_slice(), &[70_000]].concat());
    let site = &counter.shop.site;
    let before = counter.shop.balance();
    let consolidate = || site.cli_json(&["wallet", "consolidate"]).as_array().unwrap().clone();
    counter.node.mine(4);
    assert_eq!(consolidate(), Vec::<Value>::new(), "5 confirmations are too few");
    counter.node.mine(1);
    let made = consolidate();
    let inputs = |payment: &Value| {
        let hex = counter.node.call("getrawtransaction", json!([payment["txid"]]));
        let transaction = Transaction::from_hex(hex.as_str().unwrap()).unwrap();
        assert_eq!(transaction.outputs.len(), 1);
        transaction.inputs.len()
    };
    assert_eq!(made.iter().map(inputs).collect::<Vec<_>>(), [500, 500, 51]);
    for payment in &made {
        let members = ["purpose", "satoshis", "fee", "state"].map(|it| payment[it].clone());
        assert_eq!(members, [json!("consolidation"), json!(0), json!(0), json!("settled")]);
    }
    assert_eq!(counter.shop.balance(), before, "nothing leaves");
    // The coin of a transaction without a fee cannot be spent until that one is mined.
    let body = json!({ "address": "mrCDrCybB6J1vRfbwM5hemdJz73FwDBC8r", "all": true });
    let reply = counter.shop.server.wallet().post("/api/v1/withdrawals", body.to_string());
    assert_eq!(reply.status, 422, "{}", reply.body);
    counter.node.mine(1);
    wait_until("all is mined", || {
        counter.shop.outgoing().iter().all(|payment| payment["blockHeight"].is_u64())
    });
    let reply = counter.shop.server.wallet().post("/api/v1/withdrawals", body.to_string());
    assert_eq!(reply.status, 201, "{}", reply.body);
    let books = site.cli_json(&["books", "verify", "--from-height", "0"]);
    assert_eq!(books["differences"], json!([]), "{books}");
    assert_eq!(consolidate(), Vec::<Value>::new(), "too few are left");
}

#[test]
fn a_wallet_consolidates_coins_by_itself_if_it_is_set_to() {
    let settings = json!({ "wallet": { "consolidate": true } });
    let counter = with_settings(settings, &[], &[[1_000_u64; 20].as_slice(), &[5_000]].concat());
    counter.node.mine(4);
    counter.node.mine(1);
    wait_until("they are brought together", || counter.shop.outgoing_states() == ["settled"]);
    assert_eq!(counter.shop.outgoing()[0]["purpose"], "consolidation");
    assert_eq!(counter.shop.balance(), 25_000);
}

#[test]
fn a_consolidation_costs_no_more_than_the_limit() {
    // This node takes no consolidation without a fee.
    let node = ["minconsolidationfactor=0"];
    let settings = json!({ "wallet": { "payLimitSatoshis": 100 } });
    let counter = with_settings(settings, &node, &[1_000; 20]);
    counter.node.mine(5);
    let refused = counter.shop.site.cli(&["wallet", "consolidate"]);
    assert_eq!(refused.code, 1, "{}", refused.stdout);
    assert!(refused.stderr.contains("the limit is 100"), "{}", refused.stderr);
    assert_eq!(counter.shop.outgoing(), Vec::<Value>::new());
    assert_eq!(counter.shop.get("/api/v1/balance/details")["reserved"], 0);
}
