//! Paying on the command line, with a server and without one.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};

use bsv_network::NodeRpc;
use bsv_tests::payee::{Answer, Payee, Request, go_dpp_terms, output};
use bsv_tests::purse::send;
use bsv_tests::{Done, Node, Server, Site};
use bsv_tx::{Beef, Script, Tip, Transaction};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use super::merchant::{Merchant, json_of, wait_until};
use super::paying_scene::{broadcast, buyer, node, rich_node, site_with};

fn check_refused(site: &Site, arguments: &[&str], complaint: &str) {
    let Done { code, stdout, stderr } = site.cli(arguments);
    let told = (code, stdout.as_str(), stderr.lines().next());
    assert_eq!(told, (1, "", Some(&*format!("bsv-cli: {complaint}"))), "{arguments:?}");
}

/// Two sites with a coin of 50,000 satoshis each, one with its server and one without.
fn sites() -> [(Site, Option<Server>); 2] {
    [true, false].map(|with_server| {
        let Merchant { site, server } = buyer(&[50_000]);
        match with_server {
            true => (site, Some(server)),
            false => {
                assert_eq!(server.stop(), 0);
                (site, None)
            }
        }
    })
}

fn payee(satoshis: u64) -> Payee {
    Payee::asking(&go_dpp_terms(&[output(satoshis)]))
}

#[test]
fn paying_prints_what_it_came_to() {
    for (site, _server) in sites() {
        let payee = payee(10_000);
        let said = site.cli_ok(&["pay", &payee.url(), "--yes"]);
        let txid = payee.paid_with().txid().to_string();
        let expected =
            format!("Paid\nid           order-1\ntransaction  {txid}\nmemo         thanks");
        assert_eq!(said, expected);
        let nowhere = json!({ "host": "", "path": "", "id": "", "token": "" });
        let result = json!({
            "id": "order-1", "tx_id": txid, "memo": "thanks", "peer_channel": nowhere,
        });
        // There is no question for an earlier payment.
        assert_eq!(site.cli_json(&["pay", &payee.url()]), result);
        assert_eq!(payee.requests("POST").len(), 1);
    }
}

#[test]
fn a_payment_is_shown_with_what_it_builds_on() {
    for (site, server) in sites() {
        let payees = [(); 2].map(|()| payee(10_000));
        for payee in &payees {
            site.cli_ok(&["pay", &payee.url(), "--yes"]);
        }
        let node = NodeRpc::new(node().settings());
        let runtime = Runtime::new().unwrap();
        for (id, payee) in ["1", "2"].into_iter().zip(&payees) {
            let hex = site.cli_ok(&["outgoing", "show", id, "--beef"]);
            let beef = Beef::from_bytes(&hex::decode(&hex).unwrap()).unwrap();
            assert!(beef.is_atomic());
            assert_eq!(*beef.subject(), payee.paid_with());
            let tip = runtime.block_on(node.tip()).unwrap();
            let tip = Tip { height: tip.height, median_time: tip.median_time };
            let has_root = |height, root| {
                runtime.block_on(async {
                    let hash = node.block_hash(height).await.unwrap()?;
                    let header = node.block_header(&hash).await.unwrap()?.header;
                    Some(header.merkle_root == root)
                })
            };
            assert_eq!(beef.verify(tip, has_root, |_| None), Ok(()));
            let expected = json!({ "txid": beef.subject_txid().to_string(), "beef": hex });
            assert_eq!(site.cli_json(&["outgoing", "show", id, "--beef"]), expected);
            if let Some(server) = &server {
                let path = format!("/api/v1/outgoing/{id}/beef");
                assert_eq!(json_of(&server.wallet().get(&path)), expected);
                assert_eq!(server.wallet().request("HEAD", &path, b"").status, 200);
            }
        }
        check_refused(&site, &["outgoing", "show", "9", "--beef"], "there is no payment 9");
    }
}

#[test]
fn payments_are_listed_the_newest_first() {
    for (site, _server) in sites() {
        assert_eq!(site.cli_ok(&["outgoing", "list"]), "There is no payment");
        assert_eq!(site.cli_json(&["outgoing", "list"]), json!([]));
        let [paid, open] = [payee(10_000), payee(5_000)];
        open.on_post(|_| Answer::text(503, "{}"));
        site.cli_ok(&["pay", &paid.url(), "--yes"]);
        let complaint = "it is not known whether the payment went through (the payee cannot answer \
                         now: HTTP status 503): the wallet follows it, and you may send it again";
        check_refused(&site, &["pay", &open.url(), "--yes"], complaint);
        let listed = site.cli_json(&["outgoing", "list"]);
        let payments = listed.as_array().unwrap();
        let txid = |payee: &Payee| payee.paid_with().txid().to_string();
        for (payment, id, payee, satoshis, state, memo) in [
            (&payments[0], 2, &open, 5_000, "open", ""),
            (&payments[1], 1, &paid, 10_000, "settled", "thanks"),
        ] {
            let mut payment = payment.as_object().unwrap().clone();
            let fee = payment.remove("fee").unwrap().as_u64().unwrap();
            assert!((11..=13).contains(&fee), "{fee}");
            let [created, expires] =
                ["createdAt", "expiresAt"].map(|time| payment.remove(time).unwrap());
            assert!(created.as_str() < expires.as_str(), "{created} {expires}");
            let expected = json!({
                "id": id, "url": payee.url(), "txid": txid(payee), "satoshis": satoshis,
                "state": state, "memo": memo, "blockHash": null, "blockHeight": null,
                "purpose": "payment", "withdrawal": null, "invoice": null, "to": null,
            });
            assert_eq!(Value::Object(payment), expected);
        }
        assert_eq!(site.cli_json(&["outgoing", "list", "--before", "2"]), json!([payments[1]]));
        assert_eq!(site.cli_json(&["outgoing", "list", "--before", "1"]), json!([]));
        let table = site.cli_ok(&["outgoing", "list"]);
        let lines: Vec<Vec<_>> =
            table.lines().map(|line| line.split_whitespace().collect()).collect();
        let row =
            |first: &str| lines.iter().find(|line| line.first() == Some(&first)).unwrap().clone();
        assert_eq!(
            row("id"),
            ["id", "state", "satoshis", "fee", "block", "transaction", "paid", "to", "for"]
        );
        assert_eq!(row("2")[..3], ["2", "open", "5000"]);
        assert_eq!(row("1")[..3], ["1", "settled", "10000"]);
        assert!(table.contains(&paid.url()) && table.contains(&txid(&open)), "{table}");

        let cancelled = site.cli_json(&["outgoing", "cancel", "2", "--yes"]);
        assert_eq!((&cancelled["id"], &cancelled["state"]), (&json!(2), &json!("cancelled")));
        check_refused(&site, &["outgoing", "cancel", "2", "--yes"], "payment 2 is cancelled");
        check_refused(&site, &["outgoing", "cancel", "3", "--yes"], "there is no payment 3");
    }
}

#[test]
fn a_payment_that_was_left_open_without_a_server_is_seen_to_by_the_next_one() {
    let [_, (site, _)] = sites();
    let payee = payee(10_000);
    payee.on_post(|_| Answer::text(503, "{}"));
    assert_eq!(site.cli(&["pay", &payee.url(), "--yes"]).code, 1);
    broadcast(&payee.paid_with());
    let shop = Merchant { server: site.server(), site };
    wait_until("it is settled", || shop.outgoing_states() == ["settled"]);
}

#[test]
fn refusals_say_why_and_wrong_usage_is_told_apart() {
    let buyer = buyer(&[1_000]);
    let site = &buyer.site;
    let url = "http://127.0.0.1/";
    check_refused(site, &["pay", url], "payToURL must end with the id of what is paid");
    let dear = payee(1_000);
    let complaint = "1010 satoshis are needed, fee included, and 1000 can be spent";
    check_refused(site, &["pay", &dear.url(), "--yes"], complaint);
    let shop = payee(100);
    shop.on_post(|_| Answer::text(409, r#"{"detail":"sold out"}"#));
    check_refused(site, &["pay", &shop.url(), "--yes"], "the payee refuses the payment: sold out");
    for wrong in [
        &["pay"][..],
        &["pay", "a", "b"],
        &["outgoing"],
        &["outgoing", "cancel"],
        &["outgoing", "cancel", "x", "--yes"],
        &["outgoing", "cancel", "-1", "--yes"],
        &["outgoing", "list", "--before", "x"],
        &["wallet", "faucet"],
        &["pay", url, "--max", "-1"],
        &["send", "mrCDrCybB6J1vRfbwM5hemdJz73FwDBC8r", "1000", "--max-fee", "-1"],
    ] {
        let done = site.cli(wrong);
        assert_eq!((done.code, done.stdout.as_str()), (2, ""), "{wrong:?}: {}", done.stderr);
        if let [.., option, "-1"] = wrong {
            let named = if *option == "cancel" { "<ID>" } else { option };
            assert!(done.stderr.contains(named), "{wrong:?}: {}", done.stderr);
        }
    }
}

#[test]
fn an_empty_faucet_says_how_to_fill_it() {
    let node = Node::start();
    let said = "the wallet of the node has too few coins (Insufficient funds): on regtest, bitcoin-cli generate 101 \
                mines some";
    let site = Site::on(&node);
    site.cli_ok(&["init"]);
    check_refused(&site, &["wallet", "faucet", &payee(5_000).url()], said);
}

#[test]
fn the_faucet_pays_up_to_its_limit() {
    for (site, _server) in sites() {
        let most = payee(100_000);
        let said = site.cli_ok(&["wallet", "faucet", &most.url()]);
        let paid = most.paid_with();
        let expected =
            format!("The faucet has paid to {}\ntransaction  {}", most.url(), paid.txid());
        assert_eq!(said, expected);
        assert!(paid.outputs.iter().any(|output| output.satoshis == 100_000));
        assert_eq!(most.requests("POST")[0].json()["memo"], "from the faucet");
        let again = site.cli_json(&["wallet", "faucet", &payee(5_000).url()]);
        assert_eq!(again.as_object().unwrap().keys().collect::<Vec<_>>(), ["txid"]);
        let complaint = "the payment would cost 100001 satoshis, and the limit is 100000";
        for asked in [vec![output(100_001)], vec![output(100_000), output(1)]] {
            let payee = Payee::asking(&go_dpp_terms(&asked));
            check_refused(&site, &["wallet", "faucet", &payee.url()], complaint);
            assert!(payee.requests("POST").is_empty());
        }
        assert_eq!(site.cli_ok(&["wallet", "balance"]), "50000 satoshis");
        assert_eq!(site.cli_json(&["outgoing", "list"]), json!([]));
    }
}

/// A node whose coins no test of another file spends.
fn own_node() -> &'static Node {
    static NODE: LazyLock<Node> = LazyLock::new(rich_node);
    &NODE
}

/// Has that node's wallet spend the coins of a transaction in another transaction.
fn spend_otherwise(transaction: &Transaction) {
    let mut other = transaction.clone();
    for input in &mut other.inputs {
        input.unlocking_script = Script::default();
    }
    other.outputs.truncate(1);
    other.outputs[0].satoshis -= 1;
    let signed = own_node().call("signrawtransaction", json!([other.to_hex()]));
    own_node().call("sendrawtransaction", json!([signed["hex"], true, true]));
}

#[test]
fn the_faucet_takes_other_coins_where_somebody_was_quicker_with_the_first() {
    let site = site_with(own_node(), json!({}));
    site.cli_ok(&["init"]);
    let refusal = Answer::text(422, r#"{"detail":"258: txn-mempool-conflict"}"#);
    let (shop, late) = (payee(1_000), AtomicU32::new(2));
    shop.on_post(move |request| {
        if late.fetch_sub(1, Ordering::SeqCst) == 0 {
            return Answer::accept(request);
        }
        spend_otherwise(&request.transaction());
        refusal.clone()
    });
    let txid = site.cli_json(&["wallet", "faucet", &shop.url()])["txid"].clone();
    let paid: Vec<_> = shop.requests("POST").iter().map(Request::transaction).collect();
    let [first, second, third] = &paid[..] else { panic!("{} payments", paid.len()) };
    assert_eq!(txid, third.txid().to_string());
    assert!([first, second].iter().all(|lost| lost.inputs != third.inputs));

    let sly = payee(1_000);
    sly.on_post(|request| {
        send(own_node(), &request.transaction());
        Answer::text(422, r#"{"detail":"no"}"#)
    });
    check_refused(&site, &["wallet", "faucet", &sly.url()], "the payee refuses the payment: no");
    assert_eq!(sly.requests("POST").len(), 1);

    let unlucky = payee(1_000);
    unlucky.on_post(|request| {
        spend_otherwise(&request.transaction());
        Answer::text(409, r#"{"detail":"gone"}"#)
    });
    check_refused(
        &site,
        &["wallet", "faucet", &unlucky.url()],
        "the payee refuses the payment: gone",
    );
    assert_eq!(unlucky.requests("POST").len(), 5);
}

#[test]
fn the_faucet_says_why_it_does_not_pay() {
    let site = site_with(node(), json!({}));
    site.cli_ok(&["init"]);
    let shop = payee(1_000);
    shop.on_post(|_| Answer::text(400, r#"{"detail":"no"}"#));
    check_refused(&site, &["wallet", "faucet", &shop.url()], "the payee refuses the payment: no");
    shop.on_get(|_| Answer::text(404, r#"{"detail":"no such order"}"#));
    let complaint = "the payee offers no terms: no such order";
    check_refused(&site, &["wallet", "faucet", &shop.url()], complaint);
    let complaint = "payToURL must begin with http:// or https://";
    check_refused(&site, &["wallet", "faucet", "file:///etc/passwd"], complaint);

    let complaint = "the faucet gives coins of a regtest node only";
    let testnet = Site::with(json!({ "network": "testnet", "rpcUser": "u", "rpcPassword": "p" }));
    testnet.cli_ok(&["init"]);
    check_refused(&testnet, &["wallet", "faucet", &payee(1_000).url()], complaint);
    let complaint = "no node is configured: set rpcUser and rpcPassword, or rpcCookieFile";
    let alone = Site::new();
    alone.cli_ok(&["init"]);
    check_refused(&alone, &["wallet", "faucet", &payee(1_000).url()], complaint);
}
