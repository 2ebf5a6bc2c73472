//! Lists of payments, and of the invoices that a transaction pays, page by page.

use std::collections::BTreeSet;

use bsv_tests::Reply;
use bsv_tests::purse::send;
use serde_json::{Value, json};

use super::merchant::{Merchant, json_of, wait_until};
use super::paying_scene::buyer_with;
use super::watching::{output, payment, publishing_node, script_of, settlement};
use crate::wallet_api::owner::check_errors;

/// The elements of each page from this path on.
fn pages(shop: &Merchant, path: &str) -> Vec<Vec<Value>> {
    let (mut pages, mut next) = (Vec::new(), Some(path.to_owned()));
    while let Some(path) = next {
        let reply = shop.server.wallet().get(&path);
        assert_eq!(reply.status, 200, "{path}: {}", reply.body);
        pages.push(json_of(&reply).as_array().unwrap().clone());
        next = reply.next_page();
    }
    pages
}

fn lengths(pages: &[Vec<Value>]) -> Vec<usize> {
    pages.iter().map(Vec::len).collect()
}

#[test]
fn payments_and_the_invoices_of_a_transaction_come_in_pages() {
    const OUTPUTS: usize = 1_200;
    let (node, purse) = publishing_node(2);
    let shop = buyer_with(&node, json!({}), &[]);
    let ids = [(); 3].map(|()| shop.invoice(5_000));
    let [many, ..] = &ids;
    let scripts = ids.each_ref().map(|id| script_of(&shop, id));
    let three = payment(&purse, scripts.iter().rev().map(|it| output(1_000, it)).collect());
    send(&node, &three);
    wait_until("it is seen", || settlement(&shop, many)["paidSatoshis"] == 1_000);
    let wide = purse.spend(&[purse.coin()], vec![output(10, &scripts[0]); OUTPUTS], 10_000);
    send(&node, &wide);
    wait_until("the other one, too", || settlement(&shop, many)["paidSatoshis"] == 13_000);

    let path = format!("/api/v1/invoices/{many}/payments");
    let whole = pages(&shop, &path);
    assert_eq!(lengths(&whole), [1_000, OUTPUTS - 999]);
    let first = shop.server.wallet().get(&path);
    let id = whole[0][999]["id"].as_str().unwrap();
    assert_eq!(first.next_page(), Some(format!("{path}?limit=1000&after={id}")));
    let all = whole.concat();
    assert_eq!(all[0]["txid"], three.txid().to_string());
    let vouts = all[1..].iter().map(|it| it["vout"].as_u64().unwrap() as usize);
    assert!(vouts.eq(0..OUTPUTS), "in the order of the outputs");
    let names: BTreeSet<_> = all.iter().map(|it| it["id"].to_string()).collect();
    assert_eq!(names.len(), OUTPUTS + 1);
    let small = pages(&shop, &format!("{path}?limit=400"));
    assert_eq!((lengths(&small), small.concat()), (vec![400, 400, 400, 1], all.clone()));
    assert_eq!(shop.site.cli_json(&["invoice", "payments", many]), Value::from(all));
    let table = shop.site.cli_ok(&["invoice", "payments", many]);
    assert_eq!(table.lines().count(), OUTPUTS + 2, "with the header");
    let last = table.lines().last().unwrap();
    assert!(last.starts_with(&three.txid().to_string()), "the newest first: {last}");

    let by = format!("/api/v1/invoices?txid={}", three.txid());
    let expected: Vec<_> = ids.iter().rev().map(|id| json!(id)).collect();
    for (limit, expected_lengths) in [("", vec![3]), ("&limit=2", vec![2, 1])] {
        let pages = pages(&shop, &format!("{by}{limit}"));
        assert_eq!(lengths(&pages), expected_lengths);
        let found: Vec<_> = pages.concat().iter().map(|invoice| invoice["id"].clone()).collect();
        assert_eq!(found, expected);
    }
    let reply = shop.server.wallet().get(&format!("{by}&limit=1"));
    assert_eq!(reply.next_page(), Some(format!("{by}&limit=1&after=0")));
    node.mine(1);
    wait_until("all is mined", || settlement(&shop, many)["confirmations"] == 1);
    let books = shop.site.cli_json(&["books", "verify"]);
    assert_eq!(books["differences"], json!([]), "{books}");

    let get = |path: String| -> Reply { shop.server.wallet().get(&path) };
    let limit = ("limit", "must be from 1 to 1000");
    let after = ("after", "must be the id of a receipt");
    let unknown = ("before", "is not known here");
    let wrong = get(format!("{path}?limit=0&after=7&before=1-0"));
    check_errors(&wrong, "invalid-query", &[after, unknown, limit], "payments");
    let after = ("after", "must be the index of an output");
    let alone = ("txid", "only limit and after can stand beside it");
    let wrong = get(format!("{by}&limit=1001&after={many}&state=paid"));
    check_errors(&wrong, "invalid-query", &[after, limit, alone], "of a transaction");
}
