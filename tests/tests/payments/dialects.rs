//! The same invoice in three dialects.

use bsv_invoicing::dpp::Dialect;
use bsv_tests::purse::FEE;
use bsv_tests::{Bill, Reply, source};
use bsv_tx::{Script, Transaction, TxOut};
use serde_json::{Value, json};

use super::counter::{Counter, PRICE, check_problem};
use super::merchant::json_of;

const PATHS: [&str; 2] = ["/dpp/api/v1/payment/", "/api/v1/payment/"];
/// The types of BIP270: what a payer accepts, and the type of the terms.
const REQUEST: &str = "application/bitcoinsv-paymentrequest";
const TYPE: &str = "application/json; charset=utf-8";

/// The URL of an invoice at one of the two paths.
fn url(counter: &Counter, path: &str, id: &str) -> String {
    format!("http://{}{path}{id}", counter.shop.server.payments().address())
}

fn terms(counter: &Counter, path: &str, accept: Option<&str>) -> Reply {
    let headers: Vec<_> = accept.map(|accept| ("Accept", accept)).into_iter().collect();
    counter.shop.server.payments().send("GET", path, &headers, b"")
}

/// A time in whole seconds, as some dialects write it.
fn seconds(time: &Value) -> u64 {
    let time: bsv_invoicing::Timestamp = time.as_str().unwrap().parse().unwrap();
    time.as_micros() / 1_000_000
}

#[test]
fn terms_have_the_form_of_each_dialect() {
    let counter = Counter::new(0);
    let body = json!({ "satoshis": PRICE, "description": "two \"cups\"" }).to_string();
    let invoice = json_of(&counter.shop.server.wallet().post("/api/v1/invoices", body));
    let id = invoice["id"].as_str().unwrap();
    let url = url(&counter, PATHS[0], id);
    let script = Bill::at(&url).outputs()[0].locking_script.to_hex();
    assert_eq!((script.len(), &script[..6], &script[46..]), (50, "76a914", "88ac"));
    let [created, expires] = ["createdAt", "expiresAt"].map(|name| &invoice[name]);
    let outputs =
        format!(r#"[{{"amount":{PRICE},"script":"{script}","description":"invoice {id}"}}]"#);
    let memo = r#""two \"cups\"""#;
    let rate = r#"{"satoshis":100,"bytes":1000}"#;
    let quote = format!(r#"{{"miningFee":{rate},"relayFee":{rate}}}"#);
    let go_dpp = format!(
        "{{\"network\":\"regtest\",\"ancestryRequired\":false,\
         \"destinations\":{{\"outputs\":{outputs}}},\
         \"creationTimestamp\":{created},\"expirationTimestamp\":{expires},\
         \"paymentUrl\":\"{url}\",\"memo\":{memo},\
         \"merchantData\":{{\"avatar\":\"\",\"name\":\"\",\"email\":\"\",\"address\":\"\",\
         \"extendedData\":{{\"paymentReference\":\"{id}\"}}}},\
         \"fees\":{{\"data\":{quote},\"standard\":{quote}}}}}"
    );
    let times = format!(
        "\"creationTimestamp\":{},\"expirationTimestamp\":{}",
        seconds(created),
        seconds(expires)
    );
    let brc = format!(
        "{{\"network\":\"regtest\",\"version\":\"1.0\",{times},\"memo\":{memo},\
         \"paymentUrl\":\"{url}\",\"beneficiary\":{{\"name\":\"\",\"email\":\"\",\
         \"address\":\"\",\"paymentReference\":\"{id}\"}},\
         \"modes\":{{\"ef63d9775da5\":{{\"choiceID0\":{{\"transactions\":[{{\
         \"outputs\":{{\"native\":{outputs}}},\
         \"policies\":{{\"fees\":{{\"data\":{rate},\"standard\":{rate}}},\
         \"SPVRequired\":false}}}}]}}}}}}}}"
    );
    let bip270 = format!(
        "{{\"network\":\"test\",\"outputs\":{outputs},{times},\"memo\":{memo},\
         \"paymentUrl\":\"{url}\",\"merchantData\":\"{id}\",\
         \"feeRate\":{{\"satoshisPerByte\":0.1}}}}"
    );
    let many = format!("application/json;q=0.5, {REQUEST} ; q=0.9");
    let loud = REQUEST.to_uppercase();
    for (path, json) in PATHS.into_iter().zip([&go_dpp, &brc]) {
        let path = [path, id].concat();
        for (accept, content_type, text) in [
            (None, "application/json", json),
            (Some("application/json"), "application/json", json),
            (Some("*/*"), "application/json", json),
            (Some("text/html, */*;q=0.8"), "application/json", json),
            (Some(REQUEST), TYPE, &bip270),
            (Some(&many), TYPE, &bip270),
            (Some(&loud), TYPE, &bip270),
        ] {
            let reply = terms(&counter, &path, accept);
            assert_eq!((reply.status, &reply.body), (200, text), "{path} {accept:?}");
            assert_eq!(reply.header("content-type"), Some(content_type), "{path} {accept:?}");
            assert_eq!(reply.header("vary"), Some("accept"), "{path} {accept:?}");
        }
        let client = counter.shop.server.payments();
        let head = client.send("HEAD", &path, &[("Accept", REQUEST)], b"");
        assert_eq!((head.status, head.body.as_str()), (200, ""));
        assert_eq!(head.header("content-type"), Some(TYPE));
    }
    counter.check_unpaid(id, "asking for terms");
}

/// Checks an acknowledgement to the byte, except for the channel's token.
fn check_acknowledgement(
    counter: &Counter,
    dialect: Dialect,
    reply: &Reply,
    bill: &Bill,
    (id, transaction): (&str, &Transaction),
) {
    assert_eq!(reply.status, 201, "{}", reply.body);
    let txid = transaction.txid();
    let answer = json_of(reply);
    let channel = [&answer["peer_channel"], &answer["peerChannel"]];
    let token = channel.iter().find_map(|channel| channel["token"].as_str()).unwrap_or_default();
    let host = counter.shop.server.payments().address();
    let (content_type, text) = match dialect {
        Dialect::GoDpp => (
            "application/json",
            format!(
                "{{\"id\":\"{id}\",\"tx_id\":\"{txid}\",\"memo\":\"\",\"peer_channel\":\
                 {{\"host\":\"{host}\",\"path\":\"\",\"channel_id\":\"{id}{txid}\",\
                 \"token\":\"{token}\"}}}}"
            ),
        ),
        Dialect::Brc => (
            "application/json",
            format!(
                "{{\"modeId\":\"ef63d9775da5\",\"mode\":{{\"transactionIds\":[\"{txid}\"]}},\
                 \"peerChannel\":{{\"host\":\"{host}\",\"token\":\"{token}\",\
                 \"channel_id\":\"{id}{txid}\"}}}}"
            ),
        ),
        Dialect::Bip270 => {
            let posted = String::from_utf8(bill.payment(transaction)).unwrap();
            ("application/bitcoinsv-paymentack", format!("{{\"payment\":{posted},\"memo\":\"\"}}"))
        }
    };
    assert_eq!(reply.body, text);
    assert_eq!(reply.header("content-type"), Some(content_type));
    assert_eq!(token.is_empty(), dialect == Dialect::Bip270);
}

#[test]
fn the_dialect_of_a_payment_follows_from_its_keys_on_either_path() {
    let counter = Counter::new(6);
    for (dialect, terms_path) in
        [(Dialect::GoDpp, PATHS[0]), (Dialect::Brc, PATHS[1]), (Dialect::Bip270, PATHS[0])]
    {
        for path in PATHS {
            let id = counter.shop.invoice(PRICE);
            let bill = Bill::in_dialect(&url(&counter, terms_path, &id), dialect);
            let transaction = counter.purse.transaction_for(&bill);
            let body = bill.payment(&transaction);
            let post = || counter.shop.server.payments().post(&[path, &id].concat(), &body);
            let reply = post();
            check_acknowledgement(&counter, dialect, &reply, &bill, (&id, &transaction));
            counter.check_paid(&id, &transaction);
            assert_eq!(post().body, reply.body);
            assert_eq!(bill.post(&transaction).body, reply.body);
        }
    }
    assert_eq!(counter.shop.balance(), 6 * PRICE);
}

/// Sends the requests of ElectrumSV 1.3, and checks what it reads in the answers.
#[test]
fn electrumsv_gets_its_terms_and_its_acknowledgement() {
    let counter = Counter::new(1);
    let id = counter.shop.invoice(PRICE);
    let client = counter.shop.server.payments();
    let path = [PATHS[0], &id].concat();
    let agent = ("User-Agent", "ElectrumSV");
    let reply = client.send("GET", &path, &[agent, ("Accept", REQUEST)], b"");
    assert_eq!(reply.status, 200);
    assert!(reply.header("content-type").unwrap().contains("application/json"));
    let terms = json_of(&reply);
    let output = &terms["outputs"][0];
    let script = Script::from_bytes(hex::decode(output["script"].as_str().unwrap()).unwrap());
    let asked = TxOut { satoshis: output["amount"].as_u64().unwrap(), locking_script: script };
    let transaction = counter.purse.spend(&[counter.purse.coin()], vec![asked], FEE);
    let refund = json!([{ "amount": 1, "script": counter.purse.script().to_hex() }]);
    let payment = json!({
        "merchantData": terms["merchantData"],
        "transaction": source::hex(&transaction),
        "refundTo": refund,
        "memo": "",
    });
    let headers = [
        agent,
        ("Content-Type", "application/bitcoinsv-payment"),
        ("Accept", "application/bitcoinsv-paymentack"),
    ];
    let url = terms["paymentUrl"].as_str().unwrap();
    assert!(url.ends_with(&path), "{url}");
    let reply = client.send("POST", &path, &headers, payment.to_string().as_bytes());
    assert_eq!(reply.status, 201, "{}", reply.body);
    let answer = json_of(&reply);
    assert_eq!(
        (&answer["payment"], &answer["memo"], answer.get("error")),
        (&payment, &json!(""), None)
    );
    counter.check_paid(&id, &transaction);
}

#[test]
fn a_payment_repeated_in_another_dialect_is_answered_in_that_dialect() {
    let counter = Counter::new(1);
    let id = counter.shop.invoice(PRICE);
    let [go_dpp, brc] = PATHS.map(|path| Bill::at(&url(&counter, path, &id)));
    let bip270 = Bill::in_dialect(&url(&counter, PATHS[0], &id), Dialect::Bip270);
    let transaction = counter.purse.transaction_for(&go_dpp);
    let mut tokens = Vec::new();
    for (dialect, bill) in
        [(Dialect::GoDpp, &go_dpp), (Dialect::Brc, &brc), (Dialect::Bip270, &bip270)]
    {
        let reply = bill.post(&transaction);
        check_acknowledgement(&counter, dialect, &reply, bill, (&id, &transaction));
        tokens.push(json_of(&reply)["peer_channel"]["token"].clone());
        tokens.push(json_of(&reply)["peerChannel"]["token"].clone());
    }
    assert_eq!(tokens[0], tokens[3]);
    counter.check_paid(&id, &transaction);
    assert_eq!(counter.shop.balance(), PRICE);
}

#[test]
fn the_invoice_says_where_refunds_go_and_when_it_was_paid() {
    let counter = Counter::new(8);
    let hundred = "é".repeat(100);
    let mode = |hex: &str| json!({ "optionId": "choiceID0", "transactions": [hex] });
    type Body<'a> = &'a dyn Fn(&str) -> Value;
    let script = "76a914222222222222222222222222222222222222222288ac";
    let bodies: [(Body<'_>, Value); 8] = [
        (&|hex| json!({ "rawTx": hex, "refundTo": "a@b.example" }), json!("a@b.example")),
        (&|hex| json!({ "rawTx": hex, "refundTo": hundred }), json!(hundred)),
        (&|hex| json!({ "rawTx": hex, "refundTo": null }), Value::Null),
        (&|hex| json!({ "rawTx": hex, "refundTo": "" }), Value::Null),
        (
            &|hex| {
                let originator = json!({ "return_address": "mxyz" });
                json!({ "modeId": "ef63d9775da5", "mode": mode(hex), "originator": originator })
            },
            json!("mxyz"),
        ),
        (&|hex| json!({ "transaction": hex, "refundTo": "x\"y" }), json!("x\"y")),
        (
            &|hex| json!({ "transaction": hex, "refundTo": [{ "amount": 7, "script": script }] }),
            json!(script),
        ),
        (
            &|hex| json!({ "modeId": "ef63d9775da5", "mode": mode(hex), "transaction": hex }),
            Value::Null,
        ),
    ];
    for (body, refund_to) in bodies {
        let (id, bill) = counter.bill();
        let path = format!("/api/v1/invoices/{id}");
        let before = counter.shop.get(&path);
        assert_eq!([&before["refundTo"], &before["paymentReceivedAt"]], [&Value::Null; 2]);
        let transaction = counter.purse.transaction_for(&bill);
        let hex = source::hex(&transaction);
        assert_eq!(counter.post(&id, body(&hex).to_string()).status, 201);
        let mut other = body(&hex);
        other["refundTo"] = json!("somewhere else");
        assert_eq!(counter.post(&id, other.to_string()).status, 201);

        let after = counter.shop.get(&path);
        let received = after["paymentReceivedAt"].as_str().unwrap();
        let arrived = counter.shop.payments(&id)[0]["receivedAt"].clone();
        assert!(arrived.as_str().unwrap() <= received, "{arrived} {after}");
        assert!(received > before["createdAt"].as_str().unwrap(), "{after}");
        let mut expected = before.clone();
        expected["state"] = json!("paid");
        expected["refundTo"] = refund_to;
        expected["paymentReceivedAt"] = json!(received);
        expected["updatedAt"] = json!(format!("{}Z", &received[..19]));
        assert_eq!(after, expected);
    }
    let unpaid = counter.shop.invoice(PRICE);
    let list = |state: &str| counter.shop.get(&format!("/api/v1/invoices?state={state}"));
    assert_eq!(list("paid").as_array().unwrap().len(), 8);
    assert_eq!(list("pending")[0]["id"], unpaid);
    assert_eq!(counter.shop.balance(), 8 * PRICE);
}

#[test]
fn bip270_refuses_in_its_own_words() {
    let counter = Counter::new(1);
    let id = counter.shop.invoice(PRICE);
    let bill = Bill::in_dialect(&url(&counter, PATHS[1], &id), Dialect::Bip270);
    let transaction = counter.purse.transaction_for(&bill);
    let mut underpaid = transaction.clone();
    underpaid.outputs[0].satoshis -= 1;
    let unsigned = {
        let mut unsigned = transaction.clone();
        unsigned.inputs[0].unlocking_script = Default::default();
        unsigned
    };
    let payment = |transaction: &Transaction| String::from_utf8(bill.payment(transaction)).unwrap();
    let headers = [("Content-Type", "application/bitcoinsv-payment")];
    let client = counter.shop.server.payments();
    let garbage = r#"{"transaction":"zz"}"#.to_owned();
    for (status, id, body, repeated, reason) in [
        (400, &*id, payment(&underpaid), true, "29999 satoshis"),
        (422, &*id, payment(&unsigned), true, "the network refuses the transaction"),
        (404, "000000000000", payment(&transaction), true, "there is no invoice"),
        (400, &*id, garbage, true, "cannot be read"),
        (400, &*id, "{}".to_owned(), true, "has no transaction"),
        (400, &*id, "rubbish".to_owned(), false, "cannot be read"),
    ] {
        let path = format!("/api/v1/payment/{id}");
        let reply = client.send("POST", &path, &headers, body.as_bytes());
        assert_eq!(reply.status, status, "{}", reply.body);
        assert_eq!(reply.header("content-type"), Some("application/bitcoinsv-paymentack"));
        let memo = json_of(&reply)["memo"].clone();
        let posted = if repeated { &body } else { "null" };
        assert_eq!(reply.body, format!("{{\"payment\":{posted},\"memo\":{memo},\"error\":1}}"));
        assert!(memo.as_str().unwrap().contains(reason), "{memo}");
    }
    counter.check_unpaid(&id, "refused");
    assert_eq!(bill.post(&transaction).status, 201);
    assert_eq!(counter.shop.balance(), PRICE);
}

/// Payers of go-dpp show only the message.
#[test]
fn refusals_of_payers_carry_their_detail_as_a_message() {
    let counter = Counter::new(0);
    let id = counter.shop.invoice(PRICE);
    let client = counter.shop.server.payments();
    let path = |id: &str| format!("{}{id}", PATHS[0]);
    let too_long = vec![b' '; 10_000_001];
    for (reply, status) in [
        (client.get("/nowhere"), 404),
        (client.get(&path("000000000000")), 404),
        (client.request("DELETE", &path(&id), b""), 405),
        (client.post(&path(&id), "{}"), 400),
        (client.post(&path(&id), r#"{"rawTx":"00"}"#), 400),
        (client.post(&path(&id), &too_long), 413),
        (client.get(&format!("/api/v1/channel/{id}")), 401),
    ] {
        let problem = json_of(&reply);
        assert_eq!((reply.status, &problem["message"]), (status, &problem["detail"]));
        assert!(problem["message"].is_string(), "{problem}");
    }
    let owners = counter.shop.server.wallet().get("/api/v1/invoices/000000000000");
    assert!(json_of(&owners).get("message").is_none(), "{}", owners.body);
}

#[test]
fn payers_are_not_told_where_the_node_is() {
    let mut counter = Counter::new(1);
    let id = counter.shop.invoice(PRICE);
    let url = url(&counter, PATHS[0], &id);
    let bills = [Bill::at(&url), Bill::in_dialect(&url, Dialect::Bip270)];
    let transaction = counter.purse.transaction_for(&bills[0]);
    counter.node.stop();
    for bill in bills {
        let reply = bill.post(&transaction);
        check_problem(&reply, 503, "network-unavailable", "no node");
        assert!(!reply.body.contains("127.0.0.1"), "{}", reply.body);
    }
}
