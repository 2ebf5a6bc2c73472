//! The proofs that payees leave in their channels.

use bsv_tests::payee::{Answer, Payee, go_dpp_terms};
use bsv_tests::purse::{FEE, knows, send};
use bsv_tests::{Node, Purse};
use bsv_tx::TxOut;
use serde_json::{Value, json};

use super::chain_rival::Rival;
use super::merchant::{Merchant, wait_until};
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

/// A shop that has coins, and a payee who asks it for most of them.
struct Scene {
    /// It keeps no index, so that it does not find a transaction again of which nothing is unspent.
    node: Node,
    purse: Purse,
    shop: Merchant,
    payee: Payee,
}

fn scene() -> Scene {
    let node = Node::start_with(&["txindex=0"]);
    node.mine(110);
    let purse = Purse::filled(&node, 1, 100_000);
    let shop = buyer_with(&node, json!({}), &[10_000]);
    let asked = TxOut { satoshis: 9_990, locking_script: purse.script() };
    let payee = Payee::asking(&go_dpp_terms(&[asked]));
    Scene { node, purse, shop, payee }
}

#[test]
fn the_proof_of_a_payee_is_taken_if_it_holds() {
    let Scene { node, purse, shop, payee } = scene();
    let address = payee.address();
    payee.on_post(move |request| {
        let txid = request.transaction().txid().to_string();
        let channel = json!({ "host": address, "path": "/x", "channel_id": "c", "token": "t" });
        Answer::json(201, &json!({ "id": "", "tx_id": txid, "memo": "", "peer_channel": channel }))
    });
    shop.pay_ok(&payee.url());
    let paid = payee.paid_with();
    let spent = purse.spend(&purse.coins_of(&paid), Vec::new(), FEE);
    send(&node, &spent);
    let txid = paid.txid().to_string();
    let Merchant { site, server } = shop;
    assert_eq!(server.stop(), 0);
    let block = node.mine(1)[0].to_string();
    let indexed = Rival::of(&node).node;
    let proof = indexed.call("getmerkleproof2", json!(["", txid]));
    assert!(!knows(&node, &paid));

    let mut wrong = proof.clone();
    wrong["nodes"][0] = json!("00".repeat(32));
    let other = spent.txid().to_string();
    let messages = json!([
        message(&proof, &txid, &block),
        message(&wrong, &txid, &block),
        message(&indexed.call("getmerkleproof2", json!(["", other])), &other, &block),
        { "sequence": 1, "received": "2026-01-01T00:00:00Z", "content_type": "", "payload": "" },
    ]);
    payee.on_get(move |_| Answer::json(200, &messages));
    let shop = Merchant { server: site.server(), site };
    wait_until("the proof is found", || shop.outgoing()[0]["blockHash"] == block);
    assert_eq!(shop.outgoing_states(), ["settled"]);
    let asked = payee.requests("GET").pop().unwrap();
    assert_eq!(asked.path, "/x/api/v1/channel/c?unread=true");
    assert_eq!(asked.header("authorization"), Some("Bearer t"));
}

#[test]
fn a_node_without_an_index_does_not_say_that_a_payment_is_displaced() {
    let Scene { node, purse, shop, payee } = scene();
    shop.pay_ok(&payee.url());
    let paid = payee.paid_with();
    send(&node, &purse.spend(&purse.coins_of(&paid), Vec::new(), FEE));
    let Merchant { site, server } = shop;
    assert_eq!(server.stop(), 0);
    node.mine(8);
    assert!(!knows(&node, &paid));
    let shop = Merchant { server: site.server(), site };
    // When this is mined, the payment has been looked at.
    let invoice = shop.fill(1_000);
    node.mine(1);
    wait_until("another proof is found", || shop.payments(&invoice)[0]["state"] == "mined");
    wait_until("it is contested", || shop.outgoing_states() == ["contested"]);
    shop.pay_ok(&payee.url());
    assert_eq!(payee.requests("POST").len(), 1, "it is not paid again");
}
