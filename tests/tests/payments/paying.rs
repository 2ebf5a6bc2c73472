//! What the wallet sends to payees, which coins it spends, and the answers that its owner gets.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::mpsc::channel;
use std::thread;

use bsv_tests::payee::{Answer, Payee, Request, bip270_terms, brc_terms, go_dpp_terms, output};
use bsv_tests::purse::knows;
use bsv_tests::{Node, Reply};
use bsv_tx::{ScriptBuilder, Transaction, TxOut};
use serde_json::{Value, json};

use super::merchant::{Merchant, json_of};
use super::paying_scene::{amounts, buyer, buyer_with, check_problem, node};

const PAY: &str = "/api/v1/pay";

/// Checks that the fee of a transaction with one input is the fee at this rate, and no more.
fn check_fee(fee: u64, rate: u64, transaction: &Transaction) {
    let bytes = transaction.to_bytes().len() as u64;
    // The wallet assumes the greatest length of counts and signatures.
    let most = (rate * (bytes + 7)).div_ceil(1000);
    let least = (rate * bytes).div_ceil(1000);
    assert!((least..=most).contains(&fee), "{fee} is not from {least} to {most}");
}

/// The only POST to a payee. Checks that the node has its transaction.
fn the_post(payee: &Payee) -> Request {
    let [post] = payee.requests("POST").try_into().unwrap();
    assert!(knows(node(), &post.transaction()));
    post
}

#[test]
fn a_go_dpp_payee_is_paid_in_its_dialect() {
    let buyer = buyer(&[50_000]);
    let asked = [output(20_000)];
    let mut terms = go_dpp_terms(&asked);
    terms["fees"]["standard"]["miningFee"] = json!({ "satoshis": 500, "bytes": 1000 });
    let merchant_data =
        r#"{"name" : "shop", "extendedData":{"b":1.50,"a":"\u00e9","paymentReference":"x"}}"#;
    terms["merchantData"] = json!("here");
    let terms = terms.to_string().replace("\"here\"", merchant_data);
    let payee = Payee::asking(&Value::Null);
    payee.on_get(move |_| Answer::text(200, &terms));
    let channel = json!({
        "host": "pay.example:8443", "path": "/shop", "channel_id": "chan-1", "token": "s3cret",
    });
    payee.on_post(move |request| {
        let txid = request.transaction().txid().to_string();
        let answer = json!({
            "id": "theirs", "tx_id": txid, "memo": "thanks", "peer_channel": channel,
        });
        Answer::json(201, &answer)
    });

    let reply = buyer.pay(&payee.url());
    let post = the_post(&payee);
    let transaction = post.transaction();
    let expected = format!(
        r#"{{"id":"order-1","tx_id":"{}","memo":"thanks","peer_channel":{{"host":"http://pay.example:8443","path":"/shop","id":"chan-1","token":"s3cret"}}}}"#,
        transaction.txid()
    );
    assert_eq!((reply.status, reply.body.as_str()), (200, expected.as_str()));
    assert_eq!(reply.header("content-type"), Some("application/json; charset=utf-8"));

    let body = format!(
        r#"{{"merchantData":{merchant_data},"refundTo":null,"memo":"","ancestry":"","rawTx":"{}","proofCallbacks":{{}}}}"#,
        transaction.to_hex()
    );
    assert_eq!(String::from_utf8(post.body.clone()).unwrap(), body);
    assert_eq!(post.path, "/api/v1/payment/order-1");
    assert_eq!(post.header("content-type"), Some("application/json"));
    assert_eq!(post.header("accept"), Some("application/json"));
    let [get] = payee.requests("GET").try_into().unwrap();
    assert_eq!(
        (get.path.as_str(), get.header("accept")),
        ("/api/v1/payment/order-1", Some("application/json"))
    );

    assert_eq!((transaction.inputs.len(), transaction.outputs.len()), (1, 2));
    assert_eq!(transaction.outputs[0], asked[0]);
    let fee = 50_000 - amounts(&transaction.outputs).iter().sum::<u64>();
    check_fee(fee, 500, &transaction);
    assert_eq!(buyer.balance(), 30_000 - fee);
    let [listed] = buyer.outgoing().try_into().unwrap();
    let members =
        ["id", "url", "txid", "satoshis", "fee", "state", "memo", "blockHash", "blockHeight"];
    let expected = json!([
        1,
        payee.url(),
        transaction.txid().to_string(),
        20_000,
        fee,
        "settled",
        "thanks",
        null,
        null
    ]);
    assert_eq!(json!(members.map(|member| &listed[member])), expected);
}

#[test]
fn a_brc_payee_is_paid_in_its_dialect() {
    let buyer = buyer(&[50_000]);
    let asked = [output(20_000)];
    let mut terms = brc_terms(&asked);
    terms["modes"]["ef63d9775da5"]["choiceID0"]["transactions"][0]["policies"]["fees"]["data"] =
        json!({ "satoshis": 1, "bytes": 5 });
    let payee = Payee::asking(&terms);
    payee.on_post(move |request| {
        let txid = request.transaction().txid().to_string();
        let channel = json!({ "host": "pay.example", "token": "s3cret", "channel_id": "chan-1" });
        let mode = json!({ "transactionIds": [txid] });
        let answer = json!({ "modeId": "ef63d9775da5", "mode": mode, "peerChannel": channel });
        Answer::json(201, &answer)
    });
    let result = buyer.pay_ok(&payee.url());
    let post = the_post(&payee);
    let transaction = post.transaction();
    let body = format!(
        r#"{{"modeId":"ef63d9775da5","mode":{{"optionId":"choiceID0","transactions":["{}"]}},"memo":""}}"#,
        transaction.to_hex()
    );
    assert_eq!(String::from_utf8(post.body).unwrap(), body);
    let channel = json!({
        "host": "http://pay.example", "path": "", "id": "chan-1", "token": "s3cret",
    });
    let expected = json!({
        "id": "order-1", "tx_id": transaction.txid().to_string(), "memo": "", "peer_channel": channel,
    });
    assert_eq!(result, expected);
    assert_eq!(transaction.outputs[0], asked[0]);
    let fee = 50_000 - amounts(&transaction.outputs).iter().sum::<u64>();
    check_fee(fee, 200, &transaction);
}

#[test]
fn a_bip270_payee_is_paid_in_its_dialect_at_its_rate_or_at_ours() {
    let buyer = buyer(&[50_000]);
    let asked = [output(20_000)];
    let payee = Payee::asking(&bip270_terms(&asked));
    let result = buyer.pay_ok(&payee.url());
    let post = the_post(&payee);
    let transaction = post.transaction();
    let body = format!(
        r#"{{"merchantData":"order-1","transaction":"{}","memo":""}}"#,
        transaction.to_hex()
    );
    assert_eq!(String::from_utf8(post.body.clone()).unwrap(), body);
    assert_eq!(post.header("content-type"), Some("application/bitcoinsv-payment"));
    assert_eq!(post.header("accept"), Some("application/bitcoinsv-paymentack"));
    let nowhere = json!({ "host": "", "path": "", "id": "", "token": "" });
    let expected = json!({
        "id": "order-1", "tx_id": transaction.txid().to_string(), "memo": "thanks",
        "peer_channel": nowhere,
    });
    assert_eq!(result, expected);
    let fee = 50_000 - amounts(&transaction.outputs).iter().sum::<u64>();
    check_fee(fee, 100, &transaction);

    let mut terms = bip270_terms(&asked);
    terms["feeRate"] = json!({ "satoshisPerByte": 0.25 });
    let payee = Payee::asking(&terms);
    let before = buyer.balance();
    buyer.pay_ok(&payee.url());
    check_fee(before - 20_000 - buyer.balance(), 250, &the_post(&payee).transaction());
}

#[test]
fn a_payment_has_all_outputs_in_order_and_the_change_last() {
    let buyer = buyer(&[50_000]);
    let script = ScriptBuilder::new().op(0x00).op(0x6a).push(&[7; 300]).into_script();
    let asked =
        [output(3_000), output(1), TxOut { satoshis: 5, locking_script: script }, output(3_000)];
    let payee = Payee::asking(&go_dpp_terms(&asked));
    buyer.pay_ok(&payee.url());
    let transaction = the_post(&payee).transaction();
    assert_eq!(transaction.outputs[..4], asked);
    assert_eq!(transaction.outputs.len(), 5);
    assert_eq!(buyer.balance(), transaction.outputs[4].satoshis);
    check_fee(50_000 - 6_006 - buyer.balance(), 50, &transaction);
}

#[test]
fn data_is_paid_nothing_in_every_dialect_and_nothing_else_is() {
    let buyer = buyer(&[50_000; 3]);
    let script = ScriptBuilder::new().op(0x00).op(0x6a).push(b"order 1").into_script();
    let data = TxOut { satoshis: 0, locking_script: script };
    let asked = [data.clone(), output(2_000)];
    for terms in [go_dpp_terms, brc_terms, bip270_terms] {
        let payee = Payee::asking(&terms(&asked));
        buyer.pay_ok(&payee.url());
        assert_eq!(the_post(&payee).transaction().outputs[..2], asked);

        let bare = ScriptBuilder::new().op(0x6a).push(b"order 1").into_script();
        for other in [output(0), TxOut { satoshis: 0, locking_script: bare }] {
            let payee = Payee::asking(&terms(&[output(2_000), other]));
            let detail = check_problem(&buyer.pay(&payee.url()), 422, "unpayable-terms");
            assert!(detail.contains("output 1 of the terms asks for 0 satoshis"), "{detail}");
        }
        for nothing in [vec![data.clone()], vec![data.clone(), output(0)]] {
            let payee = Payee::asking(&terms(&nothing));
            check_problem(&buyer.pay(&payee.url()), 502, "payee-nonsense");
        }
    }
    assert_eq!(buyer.outgoing_states(), ["settled"; 3]);
}

#[test]
fn one_coin_is_spent_if_one_is_enough_and_otherwise_few() {
    let buyer = buyer(&[1_000, 5_000, 20_000, 90_000]);
    let pay = |satoshis: u64| {
        let payee = Payee::asking(&go_dpp_terms(&[output(satoshis)]));
        let before = buyer.balance();
        buyer.pay_ok(&payee.url());
        let transaction = the_post(&payee).transaction();
        let change = transaction.outputs.get(1).map_or(0, |output| output.satoshis);
        let spent = buyer.outgoing()[0]["fee"].as_u64().unwrap() + satoshis + change;
        assert_eq!(buyer.balance(), before + change - spent);
        (transaction.inputs.len(), spent)
    };
    assert_eq!(pay(4_000), (1, 5_000));
    assert_eq!(pay(15_000), (1, 20_000));
    assert_eq!(pay(60_000), (1, 90_000));
    let (inputs, spent) = pay(32_000);
    assert_eq!(inputs, 2);
    assert!((34_000..35_000).contains(&spent), "{spent}");
    let rest = buyer.balance();
    let (inputs, spent) = pay(rest - 30);
    assert_eq!((inputs, spent, buyer.balance()), (3, rest, 0));
}

#[test]
fn change_that_costs_more_than_it_is_worth_is_left_to_the_miner() {
    // Change makes the transaction at most 232 bytes long, at 50 satoshis per 1000 bytes. Spending
    // the change usually costs 15 satoshis.
    for (left, outputs) in [(10, 1), (27, 1), (28, 2)] {
        let buyer = buyer(&[10_000]);
        let payee = Payee::asking(&go_dpp_terms(&[output(10_000 - left)]));
        buyer.pay_ok(&payee.url());
        let transaction = the_post(&payee).transaction();
        assert_eq!(transaction.outputs.len(), outputs, "{left}");
        assert_eq!(buyer.balance(), transaction.outputs.get(1).map_or(0, |o| o.satoshis));
    }
}

#[test]
fn the_higher_of_the_payees_and_the_nodes_rate_is_paid_but_no_more_than_allowed() {
    let node = Node::start_with(&["minminingtxfee=0.00000300"]);
    node.mine(101);
    let payee = |rate: u64| {
        let mut terms = go_dpp_terms(&[output(5_000)]);
        terms["fees"]["standard"]["miningFee"] = json!({ "satoshis": rate, "bytes": 1000 });
        Payee::asking(&terms)
    };
    let buyer = buyer_with(&node, json!({ "wallet": { "maxFeeRate": 400 } }), &[50_000]);
    let mut balance = 50_000;
    for (quoted, paid) in [(0, 300), (299, 300), (301, 301), (400, 400)] {
        let payee = payee(quoted);
        buyer.pay_ok(&payee.url());
        check_fee(balance - 5_000 - buyer.balance(), paid, &payee.paid_with());
        balance = buyer.balance();
    }
    let greedy = payee(401);
    let detail = check_problem(&buyer.pay(&greedy.url()), 422, "fee-too-high");
    assert!(detail.contains("401") && detail.contains("400"), "{detail}");
    let sly = Payee::asking(&go_dpp_terms(&[output(5_000)]));
    let mut terms = go_dpp_terms(&[output(5_000)]);
    terms["fees"]["data"]["miningFee"] = json!({ "satoshis": 1, "bytes": 2 });
    sly.on_get(move |_| Answer::json(200, &terms));
    check_problem(&buyer.pay(&sly.url()), 422, "fee-too-high");
    assert_eq!((buyer.balance(), buyer.outgoing().len()), (balance, 4));
    assert_eq!((greedy.requests("POST").len(), sly.requests("POST").len()), (0, 0));

    let modest = buyer_with(&node, json!({ "wallet": { "maxFeeRate": 299 } }), &[]);
    check_problem(&modest.pay(&payee(0).url()), 422, "fee-too-high");
}

#[test]
fn the_callers_limit_includes_the_fee_and_a_refusal_reserves_no_coin() {
    let buyer = buyer_with(node(), json!({}), &[50_000]);
    let payee = Payee::asking(&go_dpp_terms(&[output(10_000)]));
    let pay = |max: u64| {
        let body = json!({ "payToURL": payee.url(), "maxSatoshis": max }).to_string();
        buyer.server.wallet().post("/api/v1/pay", &body)
    };
    for max in [1, 9_999, 10_000] {
        check_problem(&pay(max), 422, "over-limit");
        assert_eq!(payee.requests("POST").len(), 0);
    }
    let preview = buyer.site.cli_json(&["pay", &payee.url(), "--dry-run"]);
    let cost = 10_000 + preview["fee"].as_u64().unwrap();
    check_problem(&pay(cost - 1), 422, "over-limit");
    assert_eq!(pay(cost).status, 200);
    assert_eq!(buyer.outgoing()[0]["fee"], preview["fee"]);
    assert_eq!(buyer.balance(), 50_000 - cost);
}

#[test]
fn the_owners_limit_applies_to_every_payment() {
    let settings = json!({ "wallet": { "payLimitSatoshis": 10_000 } });
    let buyer = buyer_with(node(), settings, &[50_000]);
    for asked in [vec![output(10_001)], vec![output(5_001), output(5_000)]] {
        let payee = Payee::asking(&go_dpp_terms(&asked));
        let detail = check_problem(&buyer.pay(&payee.url()), 422, "over-limit");
        assert!(detail.ends_with("the limit is 10000"), "{detail}");
        assert_eq!(payee.requests("POST").len(), 0);
    }
    // The fee counts too: with change it is 12 satoshis, and without change 10.
    for satoshis in [10_000, 9_990, 9_989] {
        let payee = Payee::asking(&go_dpp_terms(&[output(satoshis)]));
        check_problem(&buyer.pay(&payee.url()), 422, "over-limit");
        assert_eq!(buyer.site.cli(&["pay", &payee.url(), "--dry-run"]).code, 1);
        assert_eq!(payee.requests("POST").len(), 0);
    }
    assert_eq!((buyer.balance(), buyer.outgoing().len()), (50_000, 0));
    buyer.pay_ok(&Payee::asking(&go_dpp_terms(&[output(9_988)])).url());
    assert_eq!(buyer.outgoing()[0]["fee"], 12);

    let bulky = ScriptBuilder::new().op(0x00).op(0x6a).push(&[7; 250_000]).into_script();
    let payee = Payee::asking(&go_dpp_terms(&[TxOut { satoshis: 1, locking_script: bulky }]));
    check_problem(&buyer.pay(&payee.url()), 422, "over-limit");
    assert_eq!(payee.requests("POST").len(), 0);
}

#[test]
fn a_refusal_for_lack_of_money_has_the_figures_and_reserves_nothing() {
    let buyer = buyer(&[7_000, 3_000]);
    let dear = Payee::asking(&go_dpp_terms(&[output(10_000)]));
    let detail = check_problem(&buyer.pay(&dear.url()), 422, "insufficient-funds");
    let figures = "10010 satoshis are needed, fee included, and 10000 can be spent";
    assert_eq!(detail, figures);
    assert_eq!((buyer.balance(), buyer.outgoing().len()), (10_000, 0));
    let cheap = Payee::asking(&go_dpp_terms(&[output(9_980)]));
    buyer.pay_ok(&cheap.url());
    assert_eq!(the_post(&cheap).transaction().inputs.len(), 2);

    let broke = buyer_with(node(), json!({}), &[]);
    let detail = check_problem(&broke.pay(&dear.url()), 422, "insufficient-funds");
    assert!(detail.ends_with("and 0 can be spent"), "{detail}");
    buyer.fill(20_000);
    buyer.pay_ok(&dear.url());
}

#[test]
fn a_wallet_pays_an_invoice_of_its_own() {
    let buyer = buyer(&[30_000]);
    let id = buyer.invoice(10_000);
    let result = buyer.pay_ok(&buyer.payment_url(&id));
    assert_eq!(buyer.state(&id), "paid");
    assert_eq!(buyer.payments(&id)[0]["txid"], result["tx_id"]);
    let fee = buyer.outgoing()[0]["fee"].as_u64().unwrap();
    assert_eq!(buyer.balance(), 30_000 - fee);
}

#[test]
fn a_body_without_a_valid_payment_url_is_refused() {
    let buyer = buyer(&[]);
    let long = format!("http://127.0.0.1/{}", "x".repeat(2048));
    for body in [
        r#"{}"#.to_owned(),
        r#"{"payToURL":null}"#.to_owned(),
        r#"{"payToURL":1}"#.to_owned(),
        r#"{"payToURL":["http://127.0.0.1/x"]}"#.to_owned(),
        r#"{"payToURL":{"url":"http://127.0.0.1/x"}}"#.to_owned(),
    ]
    .into_iter()
    .chain(
        [
            "",
            " ",
            "x",
            "127.0.0.1/x",
            "127.0.0.1:80/x",
            "/api/v1/payment/x",
            "//127.0.0.1/x",
            "http://",
            "http:///",
            "http://?x",
            "http://:80/x",
            "http://127.0.0.1:65536/x",
            "http://[::1/x",
            "http://a b/x",
            "file:///etc/passwd",
            "file://127.0.0.1/x",
            "ftp://127.0.0.1/x",
            "data:text/plain,x",
            "javascript:x",
            "unix:/run/x",
            "bitcoin:1BitcoinEaterAddressDontSendf59kuE",
            "bitcoin:1BitcoinEaterAddressDontSendf59kuE?sv&amount=1",
            "bitcoin:?sv&r=",
            "pay:?r=pay:?r=http://127.0.0.1/x",
            "pay:?r=http://127.0.0.1/",
            "http://user@127.0.0.1/x",
            "http://user:password@127.0.0.1/x",
            "http://:password@127.0.0.1/x",
            "http://127.0.0.1",
            "http://127.0.0.1/",
            "http://127.0.0.1/x/",
            "http://127.0.0.1/?id=x",
            "http://127.0.0.1/#x",
            &long,
        ]
        .map(|url| json!({ "payToURL": url }).to_string()),
    ) {
        let reply = buyer.server.wallet().post(PAY, &body);
        check_problem(&reply, 400, "invalid-fields");
        let errors = &json_of(&reply)["errors"];
        assert!(errors["payToURL"][0].is_string(), "{body}: {}", reply.body);
        assert_eq!(errors.as_object().unwrap().len(), 1, "{body}: {}", reply.body);
    }
    let negative = json!({ "payToURL": "http://127.0.0.1/x", "maxSatoshis": -1 }).to_string();
    let negative = buyer.server.wallet().post(PAY, &negative);
    check_problem(&negative, 400, "invalid-fields");
    let told = json_of(&negative)["errors"].clone();
    assert_eq!(told, json!({ "maxSatoshis": ["must not be negative"] }));
    let unknown = buyer.server.wallet().post(PAY, r#"{"paytourl":"http://127.0.0.1/x"}"#);
    check_problem(&unknown, 400, "invalid-fields");
    let told = json_of(&unknown)["errors"].clone();
    assert_eq!(told, json!({ "payToURL": ["is required"], "paytourl": ["is not known here"] }));
    for body in ["", "[]", "\"http://127.0.0.1/x\"", "{", "payToURL=http://127.0.0.1/x"] {
        check_problem(&buyer.server.wallet().post(PAY, body), 400, "malformed-body");
    }
    let body = json!({ "payToURL": "http://127.0.0.1/x" }).to_string();
    for content_type in ["text/plain", "application/x-www-form-urlencoded", "application/jsonx", ""]
    {
        let headers = [("Content-Type", content_type)];
        let reply = buyer.server.wallet().send("POST", PAY, &headers, body.as_bytes());
        check_problem(&reply, 415, "not-json");
    }
    check_problem(&buyer.server.wallet().send("POST", PAY, &[], body.as_bytes()), 415, "not-json");
    let reply = buyer.server.wallet().get(PAY);
    assert_eq!((reply.status, reply.header("allow")), (405, Some("POST, OPTIONS")));
    assert_eq!(buyer.outgoing(), Vec::<Value>::new());
}

#[test]
fn a_payment_is_the_same_however_its_url_is_written() {
    let buyer = buyer(&[30_000]);
    let payee = Payee::asking(&go_dpp_terms(&[output(1_000)]));
    let first = buyer.pay(&payee.url());
    assert_eq!(first.status, 200, "{}", first.body);
    let url = payee.url();
    for url in [
        url.replace("http://", "HTTP://"),
        url.replace("http://", " http:\\\\"),
        url.replace("/api/", "/api/x/../"),
        format!("{url}#fragment"),
    ] {
        assert_eq!(buyer.pay(&url).body, first.body, "{url}");
    }
    assert_eq!(payee.requests("POST").len(), 1);
    assert_eq!(buyer.pay(&format!("{url}?again")).status, 200);
    assert_eq!((payee.requests("POST").len(), buyer.outgoing().len()), (2, 2));
}

fn pay_with_key(buyer: &Merchant, key: &str, url: &str) -> Reply {
    let headers = [("Content-Type", "application/json"), ("Idempotency-Key", key)];
    let body = json!({ "payToURL": url }).to_string();
    buyer.server.wallet().send("POST", PAY, &headers, body.as_bytes())
}

#[test]
fn a_key_stands_for_one_payment() {
    let buyer = buyer(&[30_000, 30_000]);
    let [one, other, away] = [(); 3].map(|()| Payee::asking(&go_dpp_terms(&[output(1_000)])));
    away.on_get(|_| Answer::Bytes(Vec::new()));
    check_problem(&pay_with_key(&buyer, "a", &away.url()), 503, "payee-unavailable");
    let first = pay_with_key(&buyer, "a", &one.url());
    assert_eq!(first.status, 200, "{}", first.body);
    assert_eq!(pay_with_key(&buyer, "a", &one.url()).body, first.body);
    assert_eq!(pay_with_key(&buyer, "b", &one.url()).body, first.body);
    for payee in [&other, &away] {
        let reply = pay_with_key(&buyer, "a", &payee.url());
        check_problem(&reply, 409, "idempotency-key-reused");
    }
    assert_eq!(other.requests("GET").len(), 0);
    buyer.pay_ok(&other.url());
    check_problem(&pay_with_key(&buyer, "a", &other.url()), 409, "idempotency-key-reused");
    check_problem(&pay_with_key(&buyer, "b", &other.url()), 409, "idempotency-key-reused");
    check_problem(&pay_with_key(&buyer, "", &other.url()), 400, "bad-idempotency-key");
    assert_eq!(buyer.outgoing().len(), 2);
}

#[test]
fn a_key_of_a_payment_that_was_refused_is_free_again() {
    let buyer = buyer(&[30_000]);
    let payee = Payee::asking(&go_dpp_terms(&[output(1_000)]));
    payee.on_post(|_| Answer::text(400, "{}"));
    check_problem(&pay_with_key(&buyer, "a", &payee.url()), 422, "refused-by-payee");
    check_problem(&pay_with_key(&buyer, "a", &payee.url()), 422, "refused-by-payee");
    payee.on_post(Answer::accept);
    let paid = pay_with_key(&buyer, "a", &payee.url());
    assert_eq!(paid.status, 200, "{}", paid.body);
    assert_eq!(pay_with_key(&buyer, "a", &payee.url()).body, paid.body);
    let states: Vec<_> = buyer.outgoing().iter().map(|payment| payment["state"].clone()).collect();
    assert_eq!(states, ["settled", "refused", "refused"]);
}

#[test]
fn of_two_calls_for_one_url_one_pays() {
    let buyer = buyer(&[30_000, 30_000]);
    let payee = Payee::asking(&go_dpp_terms(&[output(1_000)]));
    let (arrive, arrived) = channel();
    let (open, gate) = channel::<()>();
    let gate = Mutex::new(gate);
    payee.on_post(move |request| {
        arrive.send(()).unwrap();
        let _ = gate.lock().unwrap().recv();
        Answer::accept(request)
    });
    thread::scope(|scope| {
        let first = scope.spawn(|| pay_with_key(&buyer, "a", &payee.url()));
        arrived.recv().unwrap();
        check_problem(&buyer.pay(&payee.url()), 409, "payment-running");
        check_problem(&pay_with_key(&buyer, "a", &payee.url()), 409, "payment-running");
        drop(open);
        let first = first.join().unwrap();
        assert_eq!(first.status, 200, "{}", first.body);
        assert_eq!(buyer.pay(&payee.url()).body, first.body);
    });
    assert_eq!((payee.requests("POST").len(), buyer.outgoing().len()), (1, 1));
}

#[test]
fn payments_at_once_share_no_coin() {
    let buyer = buyer(&[20_000, 30_000]);
    let payees: Vec<_> = (0..8).map(|_| Payee::asking(&go_dpp_terms(&[output(1_000)]))).collect();
    // While all coins are reserved, a payment is refused. It is then tried again.
    let pay = |payee: &Payee| {
        loop {
            let reply = buyer.pay(&payee.url());
            if reply.status == 200 {
                return;
            }
            check_problem(&reply, 422, "insufficient-funds");
        }
    };
    thread::scope(|scope| {
        for payee in &payees {
            scope.spawn(|| pay(payee));
        }
    });
    let mut spent = BTreeSet::new();
    for payee in &payees {
        let transaction = the_post(payee).transaction();
        for input in &transaction.inputs {
            assert!(spent.insert(input.previous_output.to_string()), "a coin was spent twice");
        }
    }
    let payments = buyer.outgoing();
    let fees: u64 = payments.iter().map(|payment| payment["fee"].as_u64().unwrap()).sum();
    assert_eq!((payments.len(), buyer.balance()), (8, 42_000 - fees));
}
