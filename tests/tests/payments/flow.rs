use bsv_tests::Node;
use serde_json::Value;

use super::merchant::{Merchant, json_of, wait_until};

/// The flow on a test network from the specification, and a step more: the wallet pays another
/// wallet with what it received.
#[test]
fn the_faucet_pays_and_the_wallet_pays_another_one() {
    let node = Node::start();
    node.mine(101);
    let [shop, supplier] = [Merchant::on(&node), Merchant::on(&node)];

    let id = shop.be_paid(50_000);
    assert_eq!((shop.balance(), shop.state(&id)), (50_000, "paid".to_owned()));
    let invoice = shop.get(&format!("/api/v1/invoices/{id}"));
    assert!(invoice["paymentReceivedAt"].is_string(), "{invoice}");
    assert_eq!(shop.payments(&id)[0]["state"], "accepted");
    let link = shop.server.wallet().get(&format!("/api/v1/invoices/{id}"));
    let payment_url = format!("<{}>; rel=\"payment\"", shop.payment_url(&id));
    assert_eq!(link.header("link"), Some(payment_url.as_str()));

    let block = node.mine(1)[0].to_string();
    wait_until("the proof is found", || shop.payments(&id)[0]["state"] == "mined");
    assert_eq!(shop.payments(&id)[0]["blockHash"], block);

    let bill = supplier.invoice(20_000);
    let reply = shop.pay(&supplier.payment_url(&bill));
    assert_eq!(reply.status, 200, "{}", reply.body);
    let result = json_of(&reply);
    assert_eq!(result["id"], bill);
    assert_eq!((supplier.balance(), supplier.state(&bill)), (20_000, "paid".to_owned()));
    let fee = 50_000 - 20_000 - shop.balance();
    assert!((1..200).contains(&fee), "{fee}");
    assert_eq!(supplier.payments(&bill)[0]["txid"], result["tx_id"]);
    assert_eq!(shop.pay(&supplier.payment_url(&bill)).body, reply.body, "paid once");

    let block = node.mine(1)[0].to_string();
    wait_until("the proof is found", || supplier.payments(&bill)[0]["state"] == "mined");
    assert_eq!(supplier.payments(&bill)[0]["blockHash"], block);
    let channel = &result["peer_channel"];
    let text = |name: &str| channel[name].as_str().unwrap();
    let path = format!("/api/v1/channel/{}", text("id"));
    let token = format!("Bearer {}", text("token"));
    assert_eq!(text("host"), format!("http://{}", supplier.server.payments().address()));
    let messages = supplier.server.payments().send("GET", &path, &[("Authorization", &token)], b"");
    let messages: Value = serde_json::from_str(&messages.body).unwrap();
    assert_eq!(messages[0]["sequence"], 1, "{messages}");
}
