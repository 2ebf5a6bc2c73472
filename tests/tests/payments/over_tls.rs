//! A payments listener with TLS, and its payers.

use bsv_tests::tls::{authority, setting};
use serde_json::json;

use super::merchant::Merchant;
use super::payees::trusting;
use super::paying_scene::{node, site_with};

#[test]
fn an_invoice_is_paid_over_tls() {
    let mut site = site_with(node(), json!({"payments": {"tls": setting("pool")}}));
    site.set_env("SSL_CERT_FILE", authority());
    let shop = Merchant { server: site.server(), site };
    let url = |id: &str| {
        let link = shop.server.wallet().get(&format!("/api/v1/invoices/{id}"));
        let link = link.header("link").unwrap().to_owned();
        link.strip_prefix('<').and_then(|it| it.split_once('>')).unwrap().0.to_owned()
    };
    let host = format!("https://{}", shop.server.payments().address());

    let by_the_node = shop.invoice(20_000);
    assert!(url(&by_the_node).starts_with(&host), "{}", url(&by_the_node));
    shop.site.cli_ok(&["wallet", "faucet", &url(&by_the_node)]);
    assert_eq!((shop.balance(), shop.state(&by_the_node)), (20_000, "paid".to_owned()));

    let buyer = trusting(&authority());
    let over_http = shop.invoice(3_000);
    let result = buyer.pay_ok(&url(&over_http));
    assert_eq!(shop.payments(&over_http)[0]["txid"], result["tx_id"]);
    let channel = &result["peer_channel"];
    assert_eq!(channel["host"], host);
    let text = |name: &str| channel[name].as_str().unwrap();
    let path = format!("/api/v1/channel/{}", text("id"));
    let token = format!("Bearer {}", text("token"));
    let messages = shop.server.payments().send("GET", &path, &[("Authorization", &token)], b"");
    assert_eq!(messages.status, 200, "{}", messages.body);

    let by_command = shop.invoice(2_000);
    buyer.site.cli_ok(&["pay", &url(&by_command), "--yes"]);
    assert_eq!((shop.balance(), shop.state(&by_command)), (25_000, "paid".to_owned()));
}
