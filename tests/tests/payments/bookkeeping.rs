//! The details of the balance, receipts of no invoice, and the export for bookkeeping.

use std::collections::BTreeMap;

use bsv_tests::payee::{self, Answer, Payee, go_dpp_terms};
use bsv_tests::purse::send;
use bsv_tests::{Node, Purse};
use bsv_tx::{PublicKey, Script};
use serde_json::{Value, json};

use super::merchant::{Merchant, json_of, wait_until};
use super::paying_scene::{buyer_with, check_problem};
use super::watching::{output, payment, publishing_node, script_of};

/// A text that a spreadsheet would take for a formula, with every character that CSV has to quote.
const REFERENCE: &str = "=1+1,\"2\";\r\n3";

/// Creates a user, and answers the user's script.
fn user(shop: &Merchant) -> Script {
    let reply = shop.server.wallet().post("/api/v1/users", r#"{"name":"Ann"}"#);
    let pki = json_of(&reply)["extendedData"]["pki"].as_str().unwrap().to_owned();
    Script::p2pkh(&pki.parse::<PublicKey>().unwrap().hash())
}

fn invoice(shop: &Merchant, satoshis: u64) -> String {
    let body = json!({ "satoshis": satoshis, "reference": REFERENCE, "description": "-1" });
    let reply = shop.server.wallet().post("/api/v1/invoices", body.to_string());
    json_of(&reply)["id"].as_str().unwrap().to_owned()
}

fn post(shop: &Merchant, path: &str, body: &Value) -> Value {
    let reply = shop.server.wallet().post(path, body.to_string());
    assert_eq!(reply.status, 201, "{}", reply.body);
    json_of(&reply)
}

/// A shop that received 40,000 for an invoice of 30,000, and 5,000 for a user. It then refunded
/// 10,000, withdrew 2,000, paid 3,000, and consolidated nothing. All this is in blocks. At last, it
/// received 1,000 towards another invoice, which is in no block.
fn busy_shop(node: &Node, purse: &Purse) -> Merchant {
    let shop = buyer_with(node, json!({}), &[]);
    let paid = invoice(&shop, 30_000);
    send(node, &payment(purse, vec![output(40_000, &script_of(&shop, &paid))]));
    wait_until("it is paid", || shop.state(&paid) == "paid");
    send(node, &payment(purse, vec![output(5_000, &user(&shop))]));
    wait_until("it is seen", || shop.balance() == 45_000);
    node.mine(1);
    let all_is_mined = || shop.get("/api/v1/balance/details")["unconfirmed"] == 0;
    wait_until("both are mined", all_is_mined);
    let to = node.call("getnewaddress", json!([]));
    post(&shop, &format!("/api/v1/invoices/{paid}/refund"), &json!({ "to": to }));
    post(&shop, "/api/v1/withdrawals", &json!({ "address": to, "satoshis": 2_000 }));
    let supplier = buyer_with(node, json!({}), &[]);
    shop.pay_ok(&supplier.payment_url(&supplier.invoice(3_000)));
    node.mine(1);
    wait_until("all is mined", all_is_mined);
    let part = invoice(&shop, 9_000);
    send(node, &payment(purse, vec![output(1_000, &script_of(&shop, &part))]));
    wait_until("a part is seen", || shop.payments(&part).len() == 1);
    shop
}

fn export(shop: &Merchant, query: &str) -> Vec<Value> {
    shop.get(&format!("/api/v1/export{query}")).as_array().unwrap().clone()
}

/// The rows of a CSV file. Each row holds its values by the names of the columns.
fn read_csv(text: &str) -> Vec<BTreeMap<String, String>> {
    csv::Reader::from_reader(text.as_bytes()).deserialize().map(Result::unwrap).collect()
}

/// The change of the balance by a row.
fn change(row: &Value) -> i64 {
    row["satoshis"].as_i64().unwrap() - row["fee"].as_i64().unwrap()
}

#[test]
fn what_is_exported_adds_up_to_the_balance() {
    let (node, purse) = publishing_node(3);
    let shop = busy_shop(&node, &purse);
    let rows = export(&shop, "");
    assert_eq!(rows.iter().map(change).sum::<i64>(), i64::try_from(shop.balance()).unwrap());
    let told: Vec<_> =
        rows.iter().map(|row| (row["type"].as_str().unwrap(), row["satoshis"].clone())).collect();
    let expected = [
        ("receipt", json!(40_000)),
        ("receipt", json!(5_000)),
        ("refund", json!(-10_000)),
        ("withdrawal", json!(-2_000)),
        ("payment", json!(-3_000)),
        ("receipt", json!(1_000)),
    ];
    assert_eq!(told, expected);
    for row in &rows[..5] {
        let block = node.call("getblockheader", json!([row["blockHash"]]));
        let time = i64::try_from(block["time"].as_u64().unwrap()).unwrap();
        let told: bsv_invoicing::Timestamp = row["blockTime"].as_str().unwrap().parse().unwrap();
        assert_eq!(told.as_micros(), time.unsigned_abs() * 1_000_000);
        assert_eq!(row["blockHeight"], block["height"]);
    }
    assert_eq!((&rows[5]["state"], &rows[5]["blockTime"]), (&json!("accepted"), &Value::Null));
    assert_eq!(
        (&rows[0]["reference"], &rows[0]["invoice"]),
        (&json!(REFERENCE), &rows[2]["invoice"])
    );
    assert_eq!((&rows[1]["invoice"], &rows[3]["withdrawal"]), (&Value::Null, &json!(1)));

    let text = shop.server.wallet().get("/api/v1/export?format=csv");
    assert_eq!(text.header("content-type"), Some("text/csv; charset=utf-8; header=present"));
    let table = read_csv(&text.body);
    assert_eq!(table.len(), rows.len());
    for (row, line) in rows.iter().zip(&table) {
        for (column, value) in row.as_object().unwrap() {
            let written = match (column.as_str(), value) {
                ("reference" | "description", Value::String(text)) => format!("'{text}"),
                (_, Value::Null) => String::new(),
                (_, Value::String(text)) => text.clone(),
                (_, number) => number.to_string(),
            };
            assert_eq!(line[column], written, "{column}");
        }
    }
    assert_eq!(shop.site.cli_ok(&["export"]).trim_end(), text.body.trim_end());
    assert_eq!(shop.site.cli_json(&["export"]), Value::from(rows));
}

#[test]
fn an_export_holds_the_movements_of_the_requested_time() {
    let (node, purse) = publishing_node(3);
    let shop = busy_shop(&node, &purse);
    let rows = export(&shop, "");
    let at = |place: usize| rows[place]["time"].as_str().unwrap();
    let [second, fourth] = [at(1), at(3)];
    assert_eq!(export(&shop, &format!("?from={second}")), rows[1..]);
    assert_eq!(export(&shop, &format!("?to={fourth}")), rows[..3]);
    assert_eq!(export(&shop, &format!("?from={second}&to={fourth}")), rows[1..3]);
    assert_eq!(export(&shop, &format!("?from={second}&to={second}")).len(), 0);
    // The same moment, written in another time zone.
    let moment: jiff::Timestamp = second.parse().unwrap();
    let there = moment.to_zoned(jiff::tz::TimeZone::fixed(jiff::tz::offset(5)));
    let there = there.strftime("%Y-%m-%dT%H:%M:%S.%6f%:z").to_string().replace('+', "%2B");
    assert_eq!(export(&shop, &format!("?from={there}")), rows[1..]);

    let day = &second[..10];
    let in_csv =
        |arguments: &[&str]| read_csv(&shop.site.cli_ok(&[&["export"], arguments].concat())).len();
    assert_eq!(in_csv(&["--to", "2026-01"]), 0);
    assert_eq!(in_csv(&["--from", "2026-01"]), rows.len());
    // All rows are of this day, unless the day has just begun.
    let next: jiff::civil::Date = day.parse().unwrap();
    let next = next.tomorrow().unwrap().to_string();
    assert_eq!(in_csv(&["--from", &day[..7], "--to", &next]), rows.len());
    assert_eq!(
        in_csv(&["--from", &next, "--to", &next]) + in_csv(&["--from", day, "--to", day]),
        6
    );
    for wrong in [
        ["--from", "yesterday", "--to", "2026-11"],
        ["--from", "2026-12", "--to", "2026-11"],
        ["--from", "2026-11-22T00:00:00Z", "--to", "2026-11-21T00:00:00Z"],
    ] {
        let refused = shop.site.cli(&[&["export"], &wrong[..]].concat());
        assert_eq!((refused.code, refused.stdout.as_str()), (2, ""), "{}", refused.stderr);
    }
}

#[test]
fn an_export_that_cannot_be_made_says_why() {
    let (mut node, purse) = publishing_node(3);
    let shop = busy_shop(&node, &purse);
    for (query, field) in [
        ("from=2026-11", "from"),
        ("to=x", "to"),
        ("from=2026-11-02T00:00:00Z&to=2026-11-01T00:00:00Z", "to"),
        ("format=xml", "format"),
        ("month=11", "month"),
    ] {
        let reply = shop.server.wallet().get(&format!("/api/v1/export?{query}"));
        check_problem(&reply, 400, "invalid-query");
        assert!(json_of(&reply)["errors"].get(field).is_some(), "{query}: {}", reply.body);
    }
    let reply = shop.server.wallet().send("HEAD", "/api/v1/export?format=csv", &[], b"");
    assert_eq!((reply.status, reply.body.as_str()), (200, ""));
    // The export of movements that are in no block needs no node.
    let rows = export(&shop, "");
    let last = rows[5]["time"].as_str().unwrap();
    node.stop();
    assert_eq!(export(&shop, &format!("?from={last}")), rows[5..]);
    check_problem(&shop.server.wallet().get("/api/v1/export"), 503, "network-unavailable");
}

#[test]
fn the_details_of_the_balance_are_listed() {
    let (node, purse) = publishing_node(2);
    let shop = buyer_with(&node, json!({}), &[]);
    let details = |shop: &Merchant| shop.get("/api/v1/balance/details");
    let nothing = json!({
        "satoshis": 0, "confirmed": 0, "unconfirmed": 0, "reserved": 0, "contested": 0,
        "immature": 0, "waiting": 0, "coins": 0,
    });
    let with = |members: Value| {
        let mut expected = nothing.clone();
        expected.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        expected
    };
    assert_eq!(details(&shop), nothing);
    let outputs = vec![output(5_000, &user(&shop)), output(7_000, &user(&shop))];
    let received = payment(&purse, outputs);
    send(&node, &received);
    let seen = with(json!({ "satoshis": 12_000, "unconfirmed": 12_000, "coins": 2 }));
    wait_until("they are seen", || details(&shop) == seen);
    node.mine(1);
    let mined = with(json!({ "satoshis": 12_000, "confirmed": 12_000, "coins": 2 }));
    wait_until("they are mined", || details(&shop) == mined);

    let silent = Payee::asking(&go_dpp_terms(&[payee::output(1_000)]));
    silent.on_post(|_| Answer::silence());
    let url = silent.url();
    std::thread::scope(|scope| {
        scope.spawn(|| shop.pay(&url));
        let reserved =
            with(json!({ "satoshis": 12_000, "confirmed": 7_000, "reserved": 5_000, "coins": 2 }));
        wait_until("a coin is reserved", || details(&shop) == reserved);
    });
    let shown = shop.site.cli_ok(&["wallet", "balance", "--details"]);
    assert!(shown.starts_with("12000 satoshis\nconfirmed    7000\n"), "{shown}");
    assert_eq!(shop.site.cli_json(&["books", "verify"])["differences"], json!([]));
}

#[test]
fn receipts_of_no_invoice_are_listed() {
    let (node, purse) = publishing_node(3);
    let shop = buyer_with(&node, json!({}), &[]);
    let scripts = [user(&shop), user(&shop)];
    let paid = shop.invoice(1_000);
    let outputs = [3_000, 4_000, 5_000].into_iter().zip(scripts.iter().cycle());
    let outputs = outputs.map(|(satoshis, script)| output(satoshis, script));
    let outputs = outputs.chain([output(1_000, &script_of(&shop, &paid))]).collect();
    let transaction = payment(&purse, outputs);
    send(&node, &transaction);
    wait_until("it is seen", || shop.state(&paid) == "paid");
    let shown = shop.site.cli_ok(&["invoice", "settlement", &paid]);
    assert!(shown.contains("received     1000\ncounted      1000\n"), "{shown}");
    // Change counts as no receipt.
    let to = node.call("getnewaddress", json!([]));
    post(&shop, "/api/v1/withdrawals", &json!({ "address": to, "satoshis": 100 }));
    let list = |query: &str| shop.get(&format!("/api/v1/receipts?unassigned=true{query}"));
    let told = |list: &Value| -> Vec<_> {
        let receipts = list.as_array().unwrap().iter();
        receipts
            .map(|it| (it["vout"].clone(), it["satoshis"].clone(), it["user"].clone()))
            .collect()
    };
    let receipt = |vout: u32, satoshis: u64, user: u64| (json!(vout), json!(satoshis), json!(user));
    let expected = [receipt(2, 5_000, 1), receipt(1, 4_000, 2), receipt(0, 3_000, 1)];
    let all = list("");
    assert_eq!(told(&all), expected);
    assert_eq!(all[0]["txid"], transaction.txid().to_string());
    let first = shop.server.wallet().get("/api/v1/receipts?unassigned=true&limit=2");
    assert_eq!(told(&json_of(&first)), expected[..2]);
    let next = first.header("link").unwrap().split(['<', '>']).nth(1).unwrap().to_owned();
    assert_eq!(told(&shop.get(&next)), expected[2..]);
    let shown = shop.site.cli_ok(&["wallet", "receipts"]);
    assert!(shown.contains("4000") && shown.contains("5000"), "{shown}");
    for (query, field) in [
        ("", "unassigned"),
        ("?unassigned=false", "unassigned"),
        ("?unassigned=true&limit=0", "limit"),
        ("?unassigned=true&before=1", "before"),
        ("?unassigned=true&user=1", "user"),
    ] {
        let reply = shop.server.wallet().get(&format!("/api/v1/receipts{query}"));
        check_problem(&reply, 400, "invalid-query");
        assert!(json_of(&reply)["errors"].get(field).is_some(), "{query}: {}", reply.body);
    }
}
