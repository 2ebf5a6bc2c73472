//! The forms in which payers send transactions, at each of the routes that accept them.

use bsv_tests::ancestry::{beef, previous_outputs};
use bsv_tests::purse::send;
use bsv_tests::{Node, Reply, source};
use bsv_tx::{BeefVersion, ExtendedTransaction, Transaction};
use serde_json::json;

use super::counter::{Counter, PRICE, check_problem};
use super::merchant::json_of;

/// Posts a transaction, in any form, to the route that pages use. A raw one has its ancestors where the shop asks for
/// them.
pub(crate) fn post_transaction(counter: &Counter, id: &str, body: impl AsRef<[u8]>) -> Reply {
    let body = source::with_ancestors(body.as_ref());
    counter.shop.server.payments().post(&format!("/pay/{id}/transaction"), body)
}

/// A transaction in all forms.
fn forms(node: &Node, transaction: &Transaction) -> Vec<(&'static str, Vec<u8>)> {
    let [v1, v2] =
        [BeefVersion::V1, BeefVersion::V2].map(|version| beef(node, version, transaction, &[]));
    let outputs = previous_outputs(node, transaction);
    let extended = ExtendedTransaction::new(transaction.clone(), outputs).unwrap();
    vec![
        ("raw", transaction.to_bytes()),
        ("extended", extended.to_bytes()),
        ("BEEF V1", v1.to_bytes()),
        ("BEEF V2", v2.to_bytes()),
        ("Atomic BEEF V1", v1.into_atomic().unwrap().to_bytes()),
        ("Atomic BEEF V2", v2.into_atomic().unwrap().to_bytes()),
    ]
}

/// Checks that the route that pages use accepted a transaction.
pub(crate) fn check_taken(reply: &Reply, transaction: &Transaction, state: &str, what: &str) {
    assert_eq!(reply.status, 201, "{what}: {}", reply.body);
    let txid = transaction.txid();
    assert_eq!(reply.body, format!(r#"{{"txid":"{txid}","state":"{state}"}}"#), "{what}");
    assert_eq!(reply.header("content-type"), Some("application/json; charset=utf-8"));
}

#[test]
fn a_transaction_is_posted_in_any_form_as_bytes_digits_or_json() {
    let counter = Counter::new(6 * 3);
    for number in 0..6 {
        for writing in ["bytes", "digits", "JSON"] {
            let (id, bill) = counter.bill();
            let transaction = counter.purse.transaction_for(&bill);
            let (form, bytes) = forms(&counter.node, &transaction).swap_remove(number);
            let what = format!("{form} as {writing}");
            let body = match writing {
                "bytes" => bytes,
                "digits" => format!("{}\n", hex::encode_upper(bytes)).into_bytes(),
                _ => json!({ "rawTx": hex::encode(bytes) }).to_string().into_bytes(),
            };
            let post = || post_transaction(&counter, &id, &body);
            check_taken(&post(), &transaction, "accepted", &what);
            counter.check_paid(&id, &transaction);
            check_taken(&post(), &transaction, "accepted", "once more");
            if number == 0 {
                counter.mine(1);
                super::merchant::wait_until("it is mined", || {
                    counter.shop.payments(&id)[0]["state"] == "mined"
                });
                check_taken(&post(), &transaction, "mined", "in a block");
            }
        }
    }
    assert_eq!(counter.shop.balance(), 18 * PRICE);
}

#[test]
fn payment_urls_take_the_same_forms_in_each_dialect() {
    let counter = Counter::new(6 * 3);
    for number in 0..6 {
        for dialect in ["go-dpp", "BRC-27", "BIP270"] {
            let (id, bill) = counter.bill();
            let transaction = counter.purse.transaction_for(&bill);
            let (form, bytes) = forms(&counter.node, &transaction).swap_remove(number);
            let hex = hex::encode(bytes);
            let body = match dialect {
                "go-dpp" => json!({ "rawTx": hex }),
                "BRC-27" => json!({
                    "modeId": "ef63d9775da5",
                    "mode": { "optionId": "choiceID0", "transactions": [hex] },
                }),
                _ => json!({ "transaction": hex }),
            };
            let reply = counter.post(&id, body.to_string());
            assert_eq!(reply.status, 201, "{form} by {dialect}: {}", reply.body);
            let answer = json_of(&reply);
            let txid = transaction.txid().to_string();
            match dialect {
                "go-dpp" => assert_eq!(answer["tx_id"], txid),
                "BRC-27" => assert_eq!(answer["mode"]["transactionIds"], json!([txid])),
                _ => assert_eq!(answer["payment"], body),
            }
            counter.check_paid(&id, &transaction);
        }
    }
}

#[test]
fn what_the_wallet_has_sent_itself_is_taken_in_any_form() {
    let counter = Counter::new(6 * 2);
    for number in 0..6 {
        for blocks in [0, 1] {
            let (id, bill) = counter.bill();
            let transaction = counter.purse.transaction_for(&bill);
            let (form, bytes) = forms(&counter.node, &transaction).swap_remove(number);
            send(&counter.node, &transaction);
            counter.mine(blocks);
            let reply = post_transaction(&counter, &id, bytes);
            let state = json_of(&reply)["state"].as_str().unwrap_or_default().to_owned();
            assert!(matches!(&state[..], "accepted" | "mined"), "{form}: {}", reply.body);
            check_taken(&reply, &transaction, &state, form);
            assert_eq!(counter.shop.state(&id), "paid");
        }
    }
    assert_eq!(counter.shop.balance(), 12 * PRICE);
}

#[test]
fn what_is_no_transaction_is_refused_with_a_reason() {
    let counter = Counter::new(1);
    let (id, bill) = counter.bill();
    let transaction = counter.purse.transaction_for(&bill);
    for (what, body, code, reason) in [
        ("nothing", &b""[..], "malformed-payment", "empty"),
        ("spaces", b" \r\n", "malformed-payment", "empty"),
        ("a word", b"hello, world", "bad-transaction", "like a raw transaction, but"),
        ("half a digit", b"0100000", "malformed-payment", "Odd number of digits"),
        ("another object", b"{\"tx\":\"00\"}", "malformed-payment", "rawTx"),
        ("an array", b"[1,1,1,1]", "bad-transaction", "like a raw transaction"),
        ("a short BEEF", b"0100beef01", "bad-transaction", "like a BEEF of version 1, but"),
        ("a short Atomic BEEF", b"01010101ff", "bad-transaction", "like an Atomic BEEF, but"),
        (
            "a short extended one",
            b"010000000000000000ef",
            "bad-transaction",
            "like a transaction in extended format, but",
        ),
    ] {
        let detail = check_problem(&post_transaction(&counter, &id, body), 400, code, what);
        assert!(detail.contains(reason), "{what}: {detail}");
    }
    for (form, mut bytes) in forms(&counter.node, &transaction) {
        bytes.push(0);
        for reply in [post_transaction(&counter, &id, &bytes), counter.post_bytes(&id, &bytes)] {
            let detail = check_problem(&reply, 400, "bad-transaction", form);
            assert!(detail.contains("left over"), "{form}: {detail}");
        }
    }
    counter.check_unpaid(&id, "nothing of this pays");
    let unknown = post_transaction(&counter, "aaaaaaaaaaaa", transaction.to_bytes());
    check_problem(&unknown, 404, "unknown-invoice", "an unknown invoice");
    let get = counter.shop.server.payments().get(&format!("/pay/{id}/transaction"));
    check_problem(&get, 405, "method-not-allowed", "GET");
    check_taken(
        &post_transaction(&counter, &id, transaction.to_bytes()),
        &transaction,
        "accepted",
        "afterwards",
    );
}

#[test]
fn a_page_is_refused_a_second_transaction_for_a_paid_invoice() {
    let counter = Counter::new(2);
    let (id, bill) = counter.bill();
    let [first, second] = [(); 2].map(|()| counter.purse.transaction_for(&bill));
    check_taken(&post_transaction(&counter, &id, first.to_bytes()), &first, "accepted", "first");
    let reply = post_transaction(&counter, &id, second.to_bytes());
    check_problem(&reply, 409, "invoice-paid", "second");
    assert_eq!(counter.shop.balance(), PRICE);
}
