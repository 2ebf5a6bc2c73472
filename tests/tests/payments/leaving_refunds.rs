//! Refunds: payments of an invoice are paid back, once, and only to those who may have them.

use std::time::Duration;

use bsv_invoicing::Timestamp;
use bsv_tests::purse::{FEE, send};
use bsv_tests::rival::Rival;
use bsv_tests::{Node, Reply, source};
use bsv_tx::{Transaction, TxOut};
use serde_json::{Value, json};

use super::counter::{Counter, PRICE, check_problem};
use super::merchant::{json_of, wait_until};
use super::paying_scene::site_with;

const ADDRESS: &str = "mrCDrCybB6J1vRfbwM5hemdJz73FwDBC8r";
const SCRIPT: &str = "76a914751e76e8199196d454941c45d1b3a323f1433bd688ac";

impl Counter {
    fn refund(&self, id: &str, body: Value) -> Reply {
        let path = format!("/api/v1/invoices/{id}/refund");
        self.shop.server.wallet().post(&path, body.to_string())
    }

    fn refund_with_key(&self, id: &str, key: &str, body: Value) -> Reply {
        let path = format!("/api/v1/invoices/{id}/refund");
        let headers = [("Content-Type", "application/json"), ("Idempotency-Key", key)];
        self.shop.server.wallet().send("POST", &path, &headers, body.to_string().as_bytes())
    }

    /// An invoice that is paid exactly, by a payer who gives this address for refunds.
    fn paid(&self, refund_to: Option<&str>) -> (String, Transaction) {
        let (id, bill) = self.bill();
        let transaction = self.purse.transaction_for(&bill);
        let body = json!({ "rawTx": source::hex(&transaction), "refundTo": refund_to });
        let reply = self.post(&id, body.to_string());
        assert_eq!(reply.status, 201, "{}", reply.body);
        (id, transaction)
    }

    /// Pays so many satoshis more to an invoice, to the script that `like` pays.
    fn pay_more(&self, id: &str, like: &Transaction, satoshis: u64) -> Transaction {
        let output = TxOut { satoshis, ..like.outputs[0].clone() };
        let transaction = self.purse.spend(&[self.purse.coin()], vec![output], FEE);
        send(&self.node, &transaction);
        let reply = self.post_bytes(id, &transaction.to_bytes());
        assert!([201, 422].contains(&reply.status), "{}", reply.body);
        transaction
    }

    fn transaction(&self, txid: &Value) -> Transaction {
        let hex = self.node.call("getrawtransaction", json!([txid]));
        Transaction::from_hex(hex.as_str().unwrap()).unwrap()
    }

    fn invoice(&self, id: &str) -> Value {
        self.shop.get(&format!("/api/v1/invoices/{id}"))
    }
}

fn made(reply: &Reply) -> Value {
    assert_eq!(reply.status, 201, "{}", reply.body);
    json_of(reply)
}

fn spends(refund: &Transaction, paid: &Transaction) -> bool {
    refund.inputs.iter().any(|input| input.previous_output.txid == paid.txid())
}

#[test]
fn a_full_refund_goes_once_to_the_address_that_the_payer_gave() {
    let counter = Counter::new(4);
    let (other, _) = counter.paid(None);
    let (id, paid) = counter.paid(Some(ADDRESS));
    counter.mine_all(&[&other, &id]);
    check_problem(&counter.refund(&id, json!({})), 422, "nothing-to-refund", "no surplus");
    let before = counter.shop.balance();
    let dry = counter.refund(&id, json!({ "full": true, "dryRun": true }));
    assert_eq!(dry.status, 200, "{}", dry.body);
    let dry = json_of(&dry);
    let refund = made(&counter.refund_with_key(&id, "k", json!({ "full": true })));
    let fee = refund["fee"].as_u64().unwrap();
    let shown = json!({ "invoice": id, "to": ADDRESS, "satoshis": PRICE, "fee": fee });
    assert_eq!(dry, shown);
    let members = ["purpose", "invoice", "to", "satoshis", "state", "url"];
    let expected =
        [json!("refund"), json!(id), json!(ADDRESS), json!(PRICE), json!("settled"), json!(null)];
    assert_eq!(members.map(|member| refund[member].clone()), expected);
    let outputs = counter.transaction(&refund["txid"]).outputs;
    assert!(outputs.iter().any(|it| it.locking_script.to_hex() == SCRIPT && it.satoshis == PRICE));
    assert_eq!(counter.shop.balance(), before - PRICE - fee);
    assert_eq!(
        made(&counter.refund_with_key(&id, "k", json!({ "full": true })))["id"],
        refund["id"]
    );
    let another = counter.refund_with_key(&id, "k", json!({ "satoshis": 1_000 }));
    check_problem(&another, 409, "idempotency-key-reused", "another body");
    for body in [json!({}), json!({ "full": true })] {
        check_problem(&counter.refund(&id, body), 422, "nothing-to-refund", "it is back");
    }
    check_problem(&counter.refund(&id, json!({ "satoshis": 15 })), 422, "refund-too-large", "15");
    let invoice = counter.invoice(&id);
    assert_eq!((&invoice["refundTo"], &invoice["state"]), (&json!(ADDRESS), &json!("paid")));
    assert_eq!(invoice["refundedAt"], refund["createdAt"]);
    assert_eq!(counter.invoice(&other)["refundedAt"], json!(null));
    assert!(paid.outputs[0].satoshis == PRICE);
    // With the same key, a refund of another invoice is another request.
    let elsewhere = counter.refund_with_key(&other, "k", json!({ "full": true }));
    check_problem(&elsewhere, 409, "idempotency-key-reused", "another invoice");
}

#[test]
fn the_surplus_is_refunded_in_parts_and_never_more_than_was_paid() {
    let counter = Counter::new(4);
    let (id, paid) = counter.paid(None);
    counter.pay_more(&id, &paid, 20_000);
    counter.mine_all(&[&id]);
    let to = |mut body: Value| {
        body["to"] = json!(counter.purse.script().to_hex());
        counter.refund(&id, body)
    };
    let part = made(&to(json!({ "satoshis": 5_000 })));
    let surplus = made(&to(json!({})));
    assert_eq!((&part["satoshis"], &surplus["satoshis"]), (&json!(5_000), &json!(15_000)));
    check_problem(&to(json!({})), 422, "nothing-to-refund", "no surplus is left");
    let detail = check_problem(&to(json!({ "satoshis": PRICE + 1 })), 422, "refund-too-large", "");
    assert!(detail.contains("30000 can"), "{detail}");
    // The wallet has no other coin to pay the fee from.
    check_problem(&to(json!({ "full": true })), 422, "insufficient-funds", "the fee is missing");
    assert_eq!(counter.invoice(&id)["refundedAt"], part["createdAt"], "the first sets it");
    let got: u64 = [&part, &surplus]
        .map(|it| counter.purse.coins_of(&counter.transaction(&it["txid"])))
        .iter()
        .flatten()
        .map(|coin| coin.satoshis)
        .sum();
    assert_eq!(got, 20_000);
}

#[test]
fn payments_of_an_expired_or_deleted_invoice_are_refunded_whole() {
    let counter = Counter::new(4);
    let (other, _) = counter.paid(None);
    for is_deleted in [true, false] {
        let expiry = Timestamp::of_system().after(Duration::from_secs(2));
        let body = json!({ "satoshis": PRICE, "expiresAt": expiry.to_string() }).to_string();
        let reply = counter.shop.server.wallet().post("/api/v1/invoices", body);
        let id = json_of(&reply)["id"].as_str().unwrap().to_owned();
        let bill = bsv_tests::Bill::at(&counter.shop.payment_url(&id));
        let like = Transaction { outputs: bill.outputs(), ..counter.purse.spend_all(&[], vec![]) };
        // A part of the amount, so that the invoice is not paid.
        counter.pay_more(&id, &like, 10_000);
        if is_deleted {
            let path = format!("/api/v1/invoices/{id}");
            assert_eq!(counter.shop.server.wallet().request("DELETE", &path, b"").status, 204);
        } else {
            let pending = counter.refund(&id, json!({ "to": ADDRESS }));
            check_problem(&pending, 422, "nothing-to-refund", "it may still be paid");
            wait_until("it is expired", || counter.shop.state(&id) == "expired");
        }
        let refused = counter.refund(&id, json!({}));
        check_problem(&refused, 422, "refund-to-needed", "nobody said where");
        let named = "nobody named an address: give --to ADDRESS";
        assert!(refused.body.contains(named), "{}", refused.body);
        let refund = made(&counter.refund(&id, json!({ "to": ADDRESS })));
        assert_eq!(refund["satoshis"], 10_000);
    }
    assert_eq!(counter.shop.state(&other), "paid");
}

#[test]
fn a_stranger_who_posts_somebody_elses_payment_gets_no_refund() {
    let counter = Counter::new(4);
    let (id, bill) = counter.bill();
    let paid = counter.purse.transaction_for(&bill);
    send(&counter.node, &paid);
    let body = json!({ "rawTx": source::hex(&paid), "refundTo": ADDRESS });
    assert_eq!(counter.post(&id, body.to_string()).status, 201);
    counter.mine_all(&[&id]);
    assert_eq!(counter.invoice(&id)["refundTo"], json!(null));
    check_problem(&counter.refund(&id, json!({ "full": true })), 422, "refund-to-needed", "");
    // A stranger who adds a little to another's payment gets nothing either.
    let (id, paid) = counter.paid(Some(ADDRESS));
    counter.pay_more(&id, &paid, 1_000);
    counter.mine_all(&[&id]);
    check_problem(&counter.refund(&id, json!({})), 422, "refund-to-needed", "two payers");
    // A paymail handle is no address.
    let (id, _) = counter.paid(Some("a@b.example"));
    check_problem(&counter.refund(&id, json!({ "full": true })), 422, "refund-to-needed", "");
}

#[test]
fn a_refund_is_lost_with_the_payment_that_it_pays_back() {
    let counter = Counter::new(3);
    let (first, _) = counter.paid(None);
    counter.mine_all(&[&first]);
    let rival = Rival::of(&counter.node);
    let (id, paid) = counter.paid(Some(ADDRESS));
    let before = counter.shop.balance();
    let refund = made(&counter.refund(&id, json!({ "full": true })));
    let transaction = counter.transaction(&refund["txid"]);
    assert!(spends(&transaction, &paid), "it spends what it pays back");
    // The payer has another transaction mined that spends the same coin.
    let coin = bsv_tests::purse::Coin {
        outpoint: paid.inputs[0].previous_output,
        satoshis: super::counter::COIN,
    };
    let twice = counter.purse.spend(&[coin], vec![], FEE);
    rival.mine(&[&twice], 3);
    rival.show_to(&counter.node);
    wait_until("both are lost", || {
        counter.shop.payments(&id)[0]["state"] == "displaced"
            && counter.shop.outgoing_states() == ["displaced"]
    });
    assert_eq!(counter.shop.balance(), before - PRICE, "what the shop had besides stays");
    let invoice = counter.invoice(&id);
    assert_eq!([&invoice["refundedAt"], &invoice["refundTo"]], [&json!(null), &json!(null)]);
    check_problem(
        &counter.refund(&id, json!({ "full": true, "to": ADDRESS })),
        422,
        "nothing-to-refund",
        "",
    );
}

#[test]
fn a_refund_of_a_spent_payment_waits_until_the_payment_is_mined() {
    let counter = Counter::new(3);
    let (id, paid) = counter.paid(Some(ADDRESS));
    let body = json!({ "address": ADDRESS, "satoshis": 1_000 }).to_string();
    let reply = counter.shop.server.wallet().post("/api/v1/withdrawals", body);
    assert_eq!(reply.status, 201, "{}", reply.body);
    let refused = counter.refund(&id, json!({ "satoshis": 5_000 }));
    let detail = check_problem(&refused, 422, "refund-must-wait", "its coin is spent");
    assert!(detail.contains(&paid.txid().to_string()), "{detail}");
    counter.mine_all(&[&id]);
    made(&counter.refund(&id, json!({ "satoshis": 5_000 })));
}

#[test]
fn the_command_line_refunds_what_a_dry_run_shows() {
    let counter = Counter::new(3);
    let (other, like) = counter.paid(None);
    let (id, _) = counter.paid(Some(ADDRESS));
    counter.pay_more(&other, &like, 7_000);
    counter.mine_all(&[&other, &id]);
    let site = &counter.shop.site;
    for asked in [
        &["invoice", "refund", other.as_str(), "--to", ADDRESS][..],
        &["invoice", "refund", &id, "--satoshis", "2500"],
        &["invoice", "refund", &id, "--full"],
    ] {
        let (balance, count) = (counter.shop.balance(), counter.shop.outgoing().len());
        let shown = site.cli_json(&[asked, &["--dry-run"]].concat());
        assert_eq!((counter.shop.balance(), counter.shop.outgoing().len()), (balance, count));
        assert!(site.cli(asked).stderr.contains("needs --yes"), "{asked:?}");
        let sent = site.cli_json(&[asked, &["--yes"]].concat());
        for member in ["satoshis", "fee", "to"] {
            assert_eq!(sent[member], shown[member], "{asked:?}");
        }
        let [satoshis, fee] = ["satoshis", "fee"].map(|member| shown[member].as_u64().unwrap());
        let outputs = counter.transaction(&sent["txid"]).outputs;
        let to_it = outputs.iter().filter(|it| it.locking_script.to_hex() == SCRIPT);
        assert_eq!(to_it.map(|it| it.satoshis).collect::<Vec<_>>(), [satoshis], "{asked:?}");
        assert_eq!(counter.shop.balance(), balance - satoshis - fee, "{asked:?}");
    }
}

#[test]
fn refunds_are_refused_by_name() {
    let counter = Counter::new(1);
    let (id, _) = counter.paid(None);
    counter.mine_all(&[&id]);
    for (body, status, code, words) in [
        (json!({ "amount": 1 }), 400, "invalid-fields", "amount is not known here"),
        (json!({ "satoshis": 1, "full": true }), 400, "invalid-fields", "must not be set"),
        (json!({ "full": "yes" }), 400, "invalid-fields", "true or false"),
        (json!({ "full": true, "to": "nowhere" }), 400, "invalid-fields", "mistyped"),
        (
            json!({ "full": true, "to": "2MzQwSSnBHWHqSAqtTVQ6v47XtaisrJa1Vc" }),
            422,
            "unpayable-terms",
            "P2SH",
        ),
        (json!({ "satoshis": 14, "to": ADDRESS }), 422, "too-small", "15 satoshis"),
        (json!({ "satoshis": 0, "to": ADDRESS }), 422, "nothing-to-refund", "name an amount"),
    ] {
        let detail = check_problem(&counter.refund(&id, body), status, code, words);
        assert!(detail.contains(words), "{detail}");
    }
    let path = "/api/v1/invoices/aaaaaaaaaaaa/refund";
    let unknown = counter.shop.server.wallet().post(path, "{}");
    check_problem(&unknown, 404, "unknown-invoice", "no such invoice");
    let site = &counter.shop.site;
    let shown = site.cli(&["invoice", "refund", &id, "--full", "--to", ADDRESS, "--dry-run"]);
    assert_eq!(shown.code, 1, "nothing is left for the fee: {}", shown.stdout);
    let shown =
        site.cli_ok(&["invoice", "refund", &id, "--satoshis", "500", "--to", ADDRESS, "--dry-run"]);
    assert!(shown.starts_with(&format!("500 satoshis are refunded to {ADDRESS}")), "{shown}");
    let refund = ["invoice", "refund", &id, "--satoshis", "500", "--to", ADDRESS, "--yes"];
    let done = site.cli_json(&refund);
    assert_eq!((&done["satoshis"], &done["to"]), (&json!(500), &json!(ADDRESS)));
    let shown = site.cli_ok(&["outgoing", "show", &done["id"].to_string()]);
    let line = format!("paid to      {ADDRESS}\nfor          refund of {id}\n");
    assert!(shown.contains(&line), "{shown}");
    assert_eq!(site.cli(&["invoice", "refund", &id, "--satoshis", "5", "--full"]).code, 2);
}

#[test]
fn a_refund_and_its_fee_cost_no_more_than_the_limit() {
    const LIMIT: u64 = 20_000;
    let settings = json!({ "wallet": { "payLimitSatoshis": LIMIT } });
    let counter = Counter::on(Node::start(), 2, |node| site_with(node, settings));
    let (id, _) = counter.paid(Some(ADDRESS));
    counter.mine_all(&[&id]);
    let dry = json_of(&counter.refund(&id, json!({ "satoshis": 1_000, "dryRun": true })));
    let most = LIMIT - dry["fee"].as_u64().unwrap();
    for (satoshis, dry) in [(most + 1, false), (most + 1, true)] {
        let body = json!({ "satoshis": satoshis, "dryRun": dry });
        check_problem(&counter.refund(&id, body), 422, "over-limit", "a satoshi too much");
    }
    let negative = counter.refund(&id, json!({ "satoshis": -1 }));
    check_problem(&negative, 400, "invalid-fields", "a negative amount");
    assert_eq!(counter.shop.get("/api/v1/balance/details")["reserved"], 0);
    made(&counter.refund(&id, json!({ "satoshis": most })));
}
