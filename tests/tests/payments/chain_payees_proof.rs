//! The proofs that payees leave in their channels.

use bsv_tests::payee::{Answer, Payee, go_dpp_terms};
use bsv_tests::purse::{FEE, knows, send};
use bsv_tests::rival::{Rival, restart_empty_with};
use bsv_tests::{Node, Purse};
use bsv_tx::TxOut;
use serde_json::{Value, json};

use super::merchant::{Merchant, wait_until};
use super::money_strict_node::{STRICT, data};
use super::paying_scene::buyer_with;

/// A message in a channel, as payees of go-dpp leave it.
fn message(proof: &Value, txid: &str, block: &str) -> Value {
    let payload = json!({
        "callbackPayload": proof, "blockHash": block, "blockHeight": 1, "callbackTxId": txid,
        "callbackReason": "merkleProof",
    });
    let envelope = json!({
        "payload": payload.to_string(), "signature": null, "publicKey": null,
        "encoding": "UTF-8", "mimetype": "application/json",
    });
    json!({
        "sequence": 1, "received": "2026-01-01T00:00:00Z", "content_type": "application/json",
        "payload": base64(envelope.to_string().as_bytes()),
    })
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for part in bytes.chunks(3) {
        let whole =
            part.iter().chain(&[0; 2]).take(3).fold(0, |sum, byte| sum << 8 | u32::from(*byte));
        for place in 0..4 {
            let digit = DIGITS[(whole >> (18 - 6 * place) & 63) as usize];
            text.push(if place > part.len() { '=' } else { char::from(digit) });
        }
    }
    text
}

/// A shop that has a coin, and a payee who asks for most of it.
fn scene(node: Node, satoshis: u64, more: Vec<TxOut>) -> (Node, Purse, Merchant, Payee) {
    node.mine(110);
    let purse = Purse::filled(&node, 1, 100_000);
    let shop = buyer_with(&node, json!({}), &[10_000]);
    node.mine(1);
    let asked = TxOut { satoshis, locking_script: purse.script() };
    let payee = Payee::asking(&go_dpp_terms(&[vec![asked], more].concat()));
    (node, purse, shop, payee)
}

#[test]
fn the_proof_of_a_payee_counts_for_nothing_until_our_node_has_the_block() {
    let (mut node, purse, shop, payee) = scene(Node::start(), 9_900, vec![data()]);
    let address = payee.address();
    payee.on_post(move |request| {
        let txid = request.transaction().txid().to_string();
        let channel = json!({ "host": address, "path": "/x", "channel_id": "c", "token": "t" });
        Answer::json(201, &json!({ "id": "", "tx_id": txid, "memo": "", "peer_channel": channel }))
    });
    let rival = Rival::of(&node);
    shop.pay_ok(&payee.url());
    let paid = payee.paid_with();
    let txid = paid.txid().to_string();
    let spent = purse.spend(&[purse.coin()], Vec::new(), FEE);
    let block = rival.mine(&[&paid, &spent], 2)[0].to_string();
    let proof = rival.node.call("getmerkleproof2", json!(["", txid]));
    let mut wrong = proof.clone();
    wrong["nodes"][0] = json!("00".repeat(32));
    let other = spent.txid().to_string();
    let messages = json!([
        message(&proof, &txid, &block),
        message(&wrong, &txid, &block),
        message(&rival.node.call("getmerkleproof2", json!(["", other])), &other, &block),
        { "sequence": 1, "received": "2026-01-01T00:00:00Z", "content_type": "", "payload": "" },
    ]);
    payee.on_get(move |_| Answer::json(200, &messages));

    // Once the node does not show the payment any more, the wallet asks the payee.
    restart_empty_with(&mut node, &STRICT);
    wait_until("the payee is asked", || payee.requests("GET").len() > 2);
    assert_eq!(shop.outgoing_states(), ["contested"]);
    let asked = payee.requests("GET").pop().unwrap();
    assert_eq!(asked.path, "/x/api/v1/channel/c?unread=true");
    assert_eq!(asked.header("authorization"), Some("Bearer t"));
    rival.show_to(&node);
    wait_until("the block is there", || shop.outgoing()[0]["blockHash"] == block);
    assert_eq!(shop.outgoing_states(), ["settled"]);
}

#[test]
fn a_node_without_an_index_does_not_say_that_a_payment_is_displaced() {
    let (node, purse, shop, payee) = scene(Node::start_with(&["txindex=0"]), 9_990, Vec::new());
    shop.pay_ok(&payee.url());
    let paid = payee.paid_with();
    send(&node, &purse.spend(&purse.coins_of(&paid), Vec::new(), FEE));
    let Merchant { site, server } = shop;
    assert_eq!(server.stop(), 0);
    let block = node.mine(8)[0].to_string();
    assert!(!knows(&node, &paid));
    let shop = Merchant { server: site.server(), site };
    wait_until("its block is read", || shop.outgoing()[0]["blockHash"] == block);
    assert_eq!(shop.outgoing_states(), ["settled"]);
    shop.pay_ok(&payee.url());
    assert_eq!(payee.requests("POST").len(), 1, "it is not paid again");
}
