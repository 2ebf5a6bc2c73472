//! Payments that other libraries make, and proofs that they read: npm `@bsv/sdk` and PyPI
//! `bsv-sdk`.

use bsv_tests::ancestry::{bump, transaction};
use bsv_tests::jobs::ask;
use bsv_tests::purse::{FEE, knows};
use bsv_tx::Beef;
use serde_json::{Value, json};

use super::beef::{javascript, python};
use super::counter::{Counter, PRICE};
use super::forms::{check_taken, post_transaction};

#[test]
fn payments_of_other_libraries_are_accepted() {
    let counter = Counter::new(4);
    for (name, program) in [("JavaScript", javascript as fn() -> _), ("Python", python)] {
        for form in 0..2 {
            let what = format!("{name}, form {form}");
            let (id, bill) = counter.bill();
            let coin = counter.purse.coin();
            let outpoint = coin.outpoint;
            let output = &bill.outputs()[0];
            let job = json!({ "pay": {
                "wif": counter.purse.wif(),
                "source": transaction(&counter.node, &outpoint.txid).to_hex(),
                "vout": outpoint.vout,
                "bump": hex::encode(bump(&counter.node, &outpoint.txid).to_bytes()),
                "script": output.locking_script.to_hex(),
                "satoshis": output.satoshis,
                "fee": FEE,
            } });
            let answer = ask(program(), &[&job]).remove(0);
            let hex = answer["forms"][form].as_str().unwrap_or_else(|| panic!("{what}: {answer}"));
            let bytes = hex::decode(hex).unwrap();
            let beef = Beef::from_bytes(&bytes).unwrap();
            let payment = beef.subject();
            assert_eq!(answer["txid"], payment.txid().to_string(), "{what}");
            assert_eq!(beef.unmined_ancestors().count(), 1, "{what}");
            assert!(!knows(&counter.node, payment), "{what}");
            check_taken(&post_transaction(&counter, &id, &bytes), payment, "accepted", &what);
            counter.check_paid(&id, payment);
        }
    }
    assert_eq!(counter.shop.balance(), 4 * PRICE);
    counter.node.mine(1);
    assert_eq!(counter.mempool(), json!([]));
}

#[test]
fn libraries_read_the_proofs_that_payers_get() {
    let counter = Counter::new(3);
    let mut paths = Vec::new();
    let payments: Vec<_> = (0..3)
        .map(|_| {
            let (id, bill) = counter.bill();
            let payment = counter.purse.transaction_for(&bill);
            let reply = bill.post(&payment);
            assert_eq!(reply.status, 201, "{}", reply.body);
            let channel: Value = serde_json::from_str(&reply.body).unwrap();
            (id, payment, channel["peer_channel"].clone())
        })
        .collect();
    counter.node.mine(1);
    for (id, payment, channel) in payments {
        super::merchant::wait_until("it is mined", || {
            counter.shop.payments(&id)[0]["state"] == "mined"
        });
        let [channel, token] =
            ["channel_id", "token"].map(|name| channel[name].as_str().unwrap().to_owned());
        let path = format!("/api/v1/channel/{channel}");
        let bearer = format!("Bearer {token}");
        let client = counter.shop.server.payments();
        let reply = client.send("GET", &path, &[("Authorization", &bearer)], b"");
        let messages = bsv_invoicing::dpp::ChannelMessage::list_from_json(reply.body.as_bytes());
        let envelope: Value = serde_json::from_slice(&messages.unwrap()[0].payload).unwrap();
        let told: Value = serde_json::from_str(envelope["payload"].as_str().unwrap()).unwrap();
        let txid = payment.txid().to_string();
        paths.push(json!({ "path": { "bump": told["merklePath"], "txid": txid } }));
    }
    let tip = counter.node.call("getbestblockhash", json!([]));
    let header = counter.node.call("getblockheader", json!([tip]));
    let expected = json!({ "height": header["height"], "root": header["merkleroot"] });
    let jobs: Vec<_> = paths.iter().collect();
    for program in [javascript(), python()] {
        for answer in ask(program, &jobs) {
            assert_eq!(answer, expected);
        }
    }
}
