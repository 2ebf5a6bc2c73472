//! Payees who try to make the wallet send requests where it should not.

use bsv_tests::payee::{Answer, Payee, go_dpp_terms, output};
use bsv_tests::rival::restart_empty_with;
use bsv_tests::{Node, Purse};
use bsv_tx::TxOut;
use serde_json::{Value, json};

use super::merchant::{Merchant, json_of, wait_until};
use super::money_strict_node::{STRICT, data};
use super::paying_scene::{buyer, buyer_with, check_problem, node, site_with};

const ROTATE: &str = "/opreturn/pool/rotate";

fn miner_id(shop: &Merchant) -> String {
    shop.server.text("/minerid/pool")
}

#[test]
fn a_channel_at_our_own_listeners_is_never_read() {
    let mut node = Node::start();
    node.mine(110);
    let purse = Purse::filled(&node, 1, 100_000);
    let shop = buyer_with(&node, json!({}), &[10_000; 5]);
    node.mine(1);
    shop.site.cli_ok(&["generateminerid", "--name", "pool"]);
    let Merchant { site, server } = shop;
    let ours = server.address().to_owned();
    let shop = Merchant { site, server };
    let key = miner_id(&shop);

    let paid_to = |host: &str, path: &str, id: &str| {
        let asked = TxOut { satoshis: 9_900, locking_script: purse.script() };
        let payee = Payee::asking(&go_dpp_terms(&[asked, data()]));
        let host = if host.is_empty() { payee.address() } else { host.to_owned() };
        let channel = json!({ "host": host, "path": path, "channel_id": id, "token": "t" });
        payee.on_post(move |request| {
            let txid = request.transaction().txid().to_string();
            let channel = &channel;
            let answer = json!({ "id": "", "tx_id": txid, "memo": "", "peer_channel": channel });
            Answer::json(201, &answer)
        });
        shop.pay_ok(&payee.url());
        payee
    };
    let hostile = [
        paid_to(&ours, &format!("{ROTATE}?"), "c"),
        paid_to(&format!("{ours}{ROTATE}?"), "", "c"),
        paid_to(&ours, "", &format!("../../..{ROTATE}?")),
        paid_to(&ours, ROTATE, "c"),
    ];
    let honest = paid_to("", "", "c");
    // Once the node does not show the payments any more, the wallet asks the payees.
    restart_empty_with(&mut node, &STRICT);
    wait_until("channels are read", || honest.requests("GET").len() > 1);
    wait_until("they are read again", || honest.requests("GET").len() > 2);
    assert_eq!(miner_id(&shop), key);
    assert!(hostile.iter().all(|payee| payee.requests("GET").len() == 1));
}

#[test]
fn payees_at_the_owners_listeners_are_refused() {
    let buyer = buyer(&[50_000]);
    buyer.site.cli_ok(&["generateminerid", "--name", "pool"]);
    let key = miner_id(&buyer);
    let [minerid, wallet, payments] = [
        buyer.server.address(),
        buyer.server.wallet().address(),
        buyer.server.payments().address(),
    ];
    let port = |address: &str| address.rsplit_once(':').unwrap().1.to_owned();
    for address in [minerid, wallet] {
        for host in ["127.0.0.1", "0x7f.1", "0", "[::ffff:127.0.0.1]"] {
            let url = format!("http://{host}:{}{ROTATE}", port(address));
            let reply = buyer.pay(&url);
            check_problem(&reply, 400, "invalid-fields");
            assert!(json_of(&reply)["errors"]["payToURL"][0].is_string(), "{}", reply.body);
        }
        let url = format!("http://localhost:{}{ROTATE}", port(address));
        check_problem(&buyer.pay(&url), 502, "payee-nonsense");
    }
    for address in [minerid, wallet, payments] {
        for host in ["127.0.0.1", "localhost", "2130706433"] {
            let location = format!("http://{host}:{}{ROTATE}", port(address));
            let payee = Payee::asking(&Value::Null);
            payee.on_get(move |_| Answer::redirect(&location));
            check_problem(&buyer.pay(&payee.url()), 502, "payee-nonsense");
        }
    }
    assert_eq!(miner_id(&buyer), key);
    assert_eq!((buyer.balance(), buyer.outgoing()), (50_000, Vec::new()));
}

#[test]
fn the_wallet_does_not_use_the_proxies_of_the_environment() {
    let mut site = site_with(node(), json!({}));
    let proxy = Payee::asking(&Value::Null);
    for name in ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"]
    {
        site.set_env(name, format!("http://{}", proxy.address()));
    }
    let buyer = Merchant { server: site.server(), site };
    buyer.fill(10_000);
    let payee = Payee::asking(&go_dpp_terms(&[output(1_000)]));
    buyer.pay_ok(&payee.url());
    assert!(proxy.requests("GET").is_empty() && proxy.requests("POST").is_empty());
}
