//! Withdrawals: the owner sends money to an address or a script.

use bsv_tests::purse::{FEE, send};
use bsv_tests::terminal::Terminal;
use bsv_tests::{Node, Refusal, Reply};
use bsv_tx::{Transaction, TxOut};
use serde_json::{Value, json};

use super::counter::{Counter, check_problem};
use super::merchant::{Merchant, json_of, wait_until};
use super::paying_scene::{buyer, buyer_with, node, site_with};

const WITHDRAWALS: &str = "/api/v1/withdrawals";
/// An address whose key nobody has.
const ADDRESS: &str = "mrCDrCybB6J1vRfbwM5hemdJz73FwDBC8r";
const SCRIPT: &str = "76a914751e76e8199196d454941c45d1b3a323f1433bd688ac";

fn withdraw(wallet: &Merchant, body: &Value) -> Reply {
    wallet.server.wallet().post(WITHDRAWALS, body.to_string())
}

fn with_key(wallet: &Merchant, key: &str, body: &Value) -> Reply {
    let headers = [("Content-Type", "application/json"), ("Idempotency-Key", key)];
    wallet.server.wallet().send("POST", WITHDRAWALS, &headers, body.to_string().as_bytes())
}

fn made(reply: &Reply) -> Value {
    assert_eq!(reply.status, 201, "{}", reply.body);
    json_of(reply)
}

/// The transaction of this id, from the shared node.
fn transaction(txid: &Value) -> Transaction {
    let hex = node().call("getrawtransaction", json!([txid]));
    Transaction::from_hex(hex.as_str().unwrap()).unwrap()
}

fn outputs_to(transaction: &Transaction, script: &str) -> Vec<u64> {
    let to_it = transaction.outputs.iter().filter(|it| it.locking_script.to_hex() == script);
    to_it.map(|output| output.satoshis).collect()
}

#[test]
fn a_withdrawal_pays_an_address_or_a_script_once_per_key() {
    let wallet = buyer(&[50_000]);
    let asked = json!({ "address": ADDRESS, "satoshis": 10_000, "reference": "rent" });
    let first = with_key(&wallet, "k", &asked);
    let withdrawal = made(&first);
    assert_eq!(first.header("location"), Some("/api/v1/withdrawals/1"));
    let fee = withdrawal["fee"].as_u64().unwrap();
    let txid = &withdrawal["transactions"][0]["txid"];
    let expected = json!({
        "id": 1, "to": ADDRESS, "reference": "rent", "satoshis": 10_000, "fee": fee,
        "createdAt": withdrawal["createdAt"],
        "transactions": [
            { "id": 1, "txid": txid, "satoshis": 10_000, "fee": fee, "state": "settled" }
        ],
    });
    assert_eq!(withdrawal, expected);
    assert_eq!(outputs_to(&transaction(txid), SCRIPT), [10_000]);
    assert!((10..=30).contains(&fee), "{fee}");
    assert_eq!(wallet.balance(), 40_000 - fee);

    assert_eq!(made(&with_key(&wallet, "k", &asked)), withdrawal, "the same again");
    let other = json!({ "address": ADDRESS, "satoshis": 10_001 });
    check_problem(&with_key(&wallet, "k", &other), 409, "idempotency-key-reused", "another body");
    let second = made(&withdraw(&wallet, &json!({ "script": SCRIPT, "satoshis": 5_000 })));
    assert_eq!((&second["id"], &second["to"]), (&json!(2), &json!(SCRIPT)));
    let paid = transaction(&second["transactions"][0]["txid"]);
    assert_eq!(outputs_to(&paid, SCRIPT), [5_000]);

    assert_eq!(wallet.get(WITHDRAWALS), json!([second, withdrawal]));
    assert_eq!(wallet.get("/api/v1/withdrawals/1"), withdrawal);
    let page = wallet.server.wallet().get("/api/v1/withdrawals?limit=1");
    let next = "</api/v1/withdrawals?limit=1&before=2>; rel=\"next\"";
    assert_eq!((page.header("link"), json_of(&page)), (Some(next), json!([second])));
    assert_eq!(wallet.get("/api/v1/withdrawals?before=2&limit=1"), json!([withdrawal]));
    let outgoing = wallet.outgoing();
    let members = ["purpose", "withdrawal", "url", "invoice", "to", "expiresAt", "state"];
    let listed = members.map(|member| outgoing[0][member].clone());
    let nothing = Value::Null;
    let expected = [
        json!("withdrawal"),
        json!(2),
        nothing.clone(),
        nothing.clone(),
        json!(SCRIPT),
        nothing,
        json!("settled"),
    ];
    assert_eq!(listed, expected);
    assert_eq!(wallet.get("/api/v1/outgoing/2"), outgoing[0]);
    let page = wallet.server.wallet().get("/api/v1/outgoing?limit=1");
    let next = "</api/v1/outgoing?limit=1&before=2>; rel=\"next\"";
    assert_eq!((page.header("link"), json_of(&page)), (Some(next), json!([outgoing[0]])));
    for path in ["/api/v1/withdrawals/1", "/api/v1/outgoing/2"] {
        assert_eq!(wallet.server.wallet().request("HEAD", path, b"").status, 200, "{path}");
    }
}

#[test]
fn withdrawals_that_cannot_be_made_are_refused_by_code_and_cost_nothing() {
    let settings = json!({ "wallet": { "payLimitSatoshis": 30_000 } });
    let wallet = buyer_with(node(), settings, &[50_000]);
    let p2sh = format!("a914{}87", "ab".repeat(20));
    let reference = "x".repeat(129);
    for (body, status, code, words) in [
        (json!({ "satoshis": 1_000 }), 400, "invalid-fields", "address or script is required"),
        (json!({ "address": ADDRESS }), 400, "invalid-fields", "satoshis or all is required"),
        (
            json!({ "address": ADDRESS, "satoshis": 1, "all": true }),
            400,
            "invalid-fields",
            "not both",
        ),
        (
            json!({ "address": ADDRESS, "script": SCRIPT, "all": true }),
            400,
            "invalid-fields",
            "not both",
        ),
        (
            json!({ "address": ADDRESS, "satoshis": 1_000, "maxfee": 1 }),
            400,
            "invalid-fields",
            "maxfee is not known here",
        ),
        (json!({ "address": ADDRESS, "all": 1 }), 400, "invalid-fields", "true or false"),
        (json!({ "address": ADDRESS, "satoshis": 0 }), 400, "invalid-fields", "from 1 to"),
        (
            json!({ "address": ADDRESS, "satoshis": 1_000, "reference": reference }),
            400,
            "invalid-fields",
            "at most 128",
        ),
        (json!({ "address": "nowhere", "all": true }), 400, "invalid-fields", "mistyped"),
        (
            json!({ "address": "1BgGZ9tcN4rm9KBzDn7KprQz87SZ26SAMH", "all": true }),
            400,
            "invalid-fields",
            "another network than regtest",
        ),
        (
            json!({ "address": "2MzQwSSnBHWHqSAqtTVQ6v47XtaisrJa1Vc", "all": true }),
            422,
            "unpayable-terms",
            "P2SH",
        ),
        (json!({ "script": p2sh, "all": true }), 422, "unpayable-terms", "P2SH"),
        (json!({ "script": "xy", "all": true }), 400, "invalid-fields", "hexadecimal"),
        (json!({ "script": "006a0101", "all": true }), 400, "invalid-fields", "OP_RETURN"),
        (
            json!({ "address": ADDRESS, "satoshis": -1 }),
            400,
            "invalid-fields",
            "satoshis must not be negative",
        ),
        (
            json!({ "address": ADDRESS, "all": true, "maxFee": -1 }),
            400,
            "invalid-fields",
            "maxFee must not be negative",
        ),
        (json!({ "address": ADDRESS, "satoshis": 14 }), 422, "too-small", "15 satoshis"),
        (json!({ "address": ADDRESS, "satoshis": 30_000 }), 422, "over-limit", "limit is 30000"),
        (
            json!({ "address": ADDRESS, "satoshis": 1_000, "maxFee": 5 }),
            422,
            "over-limit",
            "limit is 5",
        ),
        // This is more than the limit, but not more than the balance.
        (json!({ "address": ADDRESS, "all": true }), 422, "insufficient-funds", "0 can be spent"),
    ] {
        let mut bodies = vec![body.clone()];
        bodies.push(body);
        bodies[1]["dryRun"] = json!(true);
        for body in bodies {
            let detail = check_problem(&withdraw(&wallet, &body), status, code, &body.to_string());
            assert!(detail.contains(words), "{body}: {detail}");
        }
    }
    let empty = buyer(&[1_000]);
    let body = json!({ "address": ADDRESS, "satoshis": 1_000 });
    check_problem(&withdraw(&empty, &body), 422, "insufficient-funds", "no fee is left");
    assert_eq!((wallet.balance(), empty.balance()), (50_000, 1_000));
    assert_eq!(wallet.get(WITHDRAWALS), json!([]));
    // The refusals have left no coin reserved.
    let fee = |satoshis: u64| {
        let asked = json!({ "address": ADDRESS, "satoshis": satoshis, "dryRun": true });
        json_of(&withdraw(&wallet, &asked))["fee"].as_u64().unwrap()
    };
    let most = 30_000 - fee(20_000);
    let body = json!({ "address": ADDRESS, "satoshis": most + 1 });
    check_problem(&withdraw(&wallet, &body), 422, "over-limit", "amount and fee together");
    made(&withdraw(&wallet, &json!({ "address": ADDRESS, "satoshis": most })));
    made(&withdraw(&empty, &json!({ "address": ADDRESS, "satoshis": 900 })));
    for query in
        ["limit=0", "limit=101", "limit=x", "before=", "before=-1", "after=1", "limit=1&limit=2"]
    {
        for path in [WITHDRAWALS, "/api/v1/outgoing"] {
            let reply = wallet.server.wallet().get(&format!("{path}?{query}"));
            check_problem(&reply, 400, "invalid-query", query);
            let name = query.split('=').next().unwrap();
            assert!(json_of(&reply)["errors"][name].is_array(), "{}", reply.body);
        }
    }
    for path in ["/api/v1/withdrawals/9", "/api/v1/withdrawals/x"] {
        check_problem(&wallet.server.wallet().get(path), 404, "unknown-withdrawal", path);
    }
    for path in ["/api/v1/outgoing/9", "/api/v1/outgoing/x"] {
        check_problem(&wallet.server.wallet().get(path), 404, "unknown-payment", path);
    }
}

/// A wallet with mined coins of these amounts, all from one transaction, on a node with these
/// settings.
pub(crate) fn with_coins(node: &[&str], amounts: &[u64]) -> Counter {
    with_settings(json!({}), node, amounts)
}

/// Such a wallet with these settings of its own.
pub(crate) fn with_settings(settings: Value, node: &[&str], amounts: &[u64]) -> Counter {
    let site = |node: &Node| site_with(node, settings);
    let counter = Counter::on(Node::start_with(node), 20, site);
    let (id, bill) = counter.bill();
    let output = |satoshis: &u64| TxOut { satoshis: *satoshis, ..bill.outputs()[0].clone() };
    let coins: Vec<_> = (0..20).map(|_| counter.purse.coin()).collect();
    let fee = 40 * amounts.len() as u64 + 10 * FEE;
    let funding = counter.purse.spend(&coins, amounts.iter().map(output).collect(), fee);
    send(&counter.node, &funding);
    counter.node.mine(1);
    assert_ne!(bill.post(&funding).status, 404);
    wait_until("the coins are mined", || counter.shop.payments(&id)[0]["state"] == "mined");
    assert_eq!(counter.shop.balance(), amounts.iter().sum::<u64>());
    counter
}

#[test]
fn a_withdrawal_of_all_1200_coins_makes_the_three_transactions_of_the_dry_run() {
    let counter = with_coins(&[], &[[1_000_u64; 1200].as_slice(), &[1, 14, 15]].concat());
    let wallet = &counter.shop;
    let mut asked = json!({ "address": ADDRESS, "all": true, "dryRun": true });
    let preview = withdraw(wallet, &asked);
    assert_eq!(preview.status, 200, "{}", preview.body);
    let preview = json_of(&preview);
    assert_eq!(wallet.get(WITHDRAWALS), json!([]), "nothing was sent");
    let shown = wallet.site.cli_ok(&["send", ADDRESS, "all", "--dry-run"]);
    assert!(shown.contains("in 3 transactions"), "{shown}");
    asked["dryRun"] = json!(false);
    let withdrawal = made(&withdraw(wallet, &asked));
    let sent = withdrawal["transactions"].as_array().unwrap();
    assert_eq!(sent.len(), 3);
    for (sent, shown) in sent.iter().zip(preview["transactions"].as_array().unwrap()) {
        assert_eq!([&sent["satoshis"], &sent["fee"]], [&shown["satoshis"], &shown["fee"]]);
        assert_eq!(sent["state"], "settled");
        let hex = counter.node.call("getrawtransaction", json!([sent["txid"]]));
        let transaction = Transaction::from_hex(hex.as_str().unwrap()).unwrap();
        assert!(transaction.inputs.len() <= 500);
        assert_eq!(outputs_to(&transaction, SCRIPT), [sent["satoshis"].as_u64().unwrap()]);
        assert_eq!(transaction.outputs.len(), 1, "nothing comes back");
    }
    let [satoshis, fee] = ["satoshis", "fee"].map(|it| withdrawal[it].as_u64().unwrap());
    assert_eq!([&preview["satoshis"], &preview["fee"]], [&json!(satoshis), &json!(fee)]);
    assert_eq!(satoshis + fee, 1_200_000, "what cannot pay for itself stays");
    assert_eq!(wallet.balance(), 30);
    counter.node.mine(1);
    wait_until("all is mined", || {
        wallet.outgoing().iter().all(|payment| payment["blockHeight"].is_u64())
    });
    wallet.site.verified_books();
    check_problem(&withdraw(wallet, &asked), 422, "insufficient-funds", "only dust is left");
}

#[test]
fn a_withdrawal_is_sent_again_until_the_node_shows_it() {
    let (counter, gate) = Counter::with_gate(2);
    let wallet = &counter.shop;
    let (_, bill) = counter.bill();
    assert_eq!(bill.post(&counter.purse.transaction_for(&bill)).status, 201);
    let (method, code, message) = ("sendrawtransaction", -26, "66: mempool full");
    gate.refuse(Refusal { method, code, message });
    let reply = withdraw(wallet, &json!({ "address": ADDRESS, "satoshis": 1_000 }));
    let withdrawal = made(&reply);
    let txid = withdrawal["transactions"][0]["txid"].as_str().unwrap().to_owned();
    assert_eq!(withdrawal["transactions"][0]["state"], "open");
    gate.accept();
    wait_until("it is sent again", || wallet.outgoing_states() == ["settled"]);
    assert_eq!(counter.mempool().as_array().unwrap().len(), 2);
    assert_eq!(wallet.outgoing()[0]["txid"], json!(txid));
}

#[test]
fn the_command_line_sends_after_a_confirmation() {
    let wallet = buyer(&[50_000]);
    let site = &wallet.site;
    let mut terminal = Terminal::start(site, &["send", ADDRESS, "7000"]);
    terminal.wait_for("7000 satoshis go to mrCDr");
    terminal.wait_for("Send? [y/N] ");
    terminal.type_in("n\r");
    assert_eq!(terminal.end().0, 1);
    assert_eq!(site.cli_json(&["outgoing", "list"]), json!([]));
    let mut terminal = Terminal::start(site, &["send", ADDRESS, "7000", "--reference", "a b"]);
    terminal.wait_for("Send? [y/N] ");
    terminal.type_in("y\r");
    let (code, shown, _) = terminal.end();
    assert_eq!(code, 0, "{shown}");
    assert_eq!(wallet.get(WITHDRAWALS)[0]["reference"], "a b");
    for amount in ["3000", "all"] {
        let preview = site.cli_json(&["send", ADDRESS, amount, "--dry-run"]);
        let refused = site.cli(&["send", ADDRESS, amount]);
        assert!(refused.stderr.contains("needs --yes"), "{}", refused.stderr);
        let sent = site.cli_json(&["send", ADDRESS, amount, "--yes"]);
        assert_eq!([&sent["satoshis"], &sent["fee"]], [&preview["satoshis"], &preview["fee"]]);
        let txid = &sent["transactions"][0]["txid"];
        assert_eq!(json!(outputs_to(&transaction(txid), SCRIPT)), json!([preview["satoshis"]]));
    }
    assert_eq!(wallet.balance(), 0);
    let shown = site.cli_ok(&["outgoing", "show", "3"]);
    assert!(shown.starts_with("Payment 3 is settled\n"), "{shown}");
    for line in
        [format!("paid to      {ADDRESS}\nfor          withdrawal 3\n").as_str(), "satoshis     "]
    {
        assert!(shown.contains(line), "{shown}");
    }
    assert!(site.cli_ok(&["outgoing", "list"]).contains(&ADDRESS[..8]));
    let refused = site.cli(&["send", ADDRESS, "1", "--max-fee", "0", "--yes", "--json"]);
    let error: Value = serde_json::from_str(&refused.stderr).unwrap();
    assert_eq!((refused.code, &error["code"]), (1, &json!("too-small")));
    for wrong in [&["send", ADDRESS][..], &["send", ADDRESS, "0"], &["send", ADDRESS, "ALL"]] {
        assert_eq!(site.cli(wrong).code, 2, "{wrong:?}");
    }
}
