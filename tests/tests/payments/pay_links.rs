//! Paying what a payment page shows: its link, and not its own URL.

use bsv_tests::payee::{Payee, go_dpp_terms, output};
use serde_json::json;

use super::merchant::json_of;
use super::paying_scene::{buyer, check_problem};

const ADDRESS: &str = "mrCDrCybB6J1vRfbwM5hemdJz73FwDBC8r";

#[test]
fn the_link_of_a_page_and_its_payment_url_are_one_payment() {
    let [shop, buyer] = [buyer(&[]), buyer(&[50_000])];
    let id = shop.invoice(5_000);
    let url = shop.payment_url(&id);
    let page = shop.server.payments().get(&format!("/pay/{id}")).body;
    let (_, rest) = page.split_once("bitcoin:").unwrap();
    let link = format!("bitcoin:{}", rest.split_once(['"', '<']).unwrap().0).replace("&#38;", "&");
    assert!(link.contains("sv&amount=0.00005&r="), "{link}");
    let paid = buyer.pay_ok(&link);
    assert_eq!((shop.state(&id).as_str(), &paid["id"]), ("paid", &json!(id)));
    for same in [
        url.clone(),
        format!("bitcoin:?sv&r={url}"),
        format!("pay:?r={}", url.replace(':', "%3A").replace('/', "%2f")),
        format!("BITCOIN:{ADDRESS}?r={url}&amount=21000000"),
    ] {
        assert_eq!(buyer.pay_ok(&same), paid, "{same}");
    }
    let [listed] = buyer.outgoing().try_into().unwrap();
    assert_eq!((&listed["url"], &listed["satoshis"]), (&json!(url), &json!(5_000)));
}

#[test]
fn the_amount_of_a_link_is_shown_and_does_not_decide() {
    let buyer = buyer(&[50_000]);
    let payee = Payee::asking(&go_dpp_terms(&[output(5_000)]));
    let link = format!("bitcoin:{ADDRESS}?sv&amount=0.5&r={}", payee.url());
    let shown = buyer.site.cli_ok(&["pay", &link, "--dry-run"]);
    assert!(shown.contains("asks for 5000 satoshis (the link names 50000000)"), "{shown}");
    let preview = buyer.site.cli_json(&["pay", &link, "--dry-run"]);
    assert_eq!([&preview["satoshis"], &preview["linkSatoshis"]], [5_000, 50_000_000]);
    buyer.site.cli_ok(&["pay", &link, "--yes"]);
    assert_eq!(payee.paid_with().outputs[0].satoshis, 5_000);
}

#[test]
fn the_url_of_a_page_is_refused_and_the_payment_url_is_named() {
    let [shop, buyer] = [buyer(&[]), buyer(&[50_000])];
    let id = shop.invoice(5_000);
    let page = format!("http://{}/pay/{id}", shop.server.payments().address());
    for text in [page.clone(), format!("{page}?lang=de"), format!("pay:?r={page}")] {
        let reply = buyer.pay(&text);
        check_problem(&reply, 400, "invalid-fields");
        let told = json_of(&reply)["errors"]["payToURL"][0].as_str().unwrap().to_owned();
        assert!(told.contains(&shop.payment_url(&id)), "{text}: {told}");
        let refused = buyer.site.cli(&["pay", &text]);
        assert_eq!(refused.code, 1);
        assert!(refused.stderr.contains(&shop.payment_url(&id)), "{}", refused.stderr);
    }
    // Payees of other software may have such payment URLs.
    let payee = Payee::asking(&go_dpp_terms(&[output(1_000)]));
    buyer.pay_ok(&format!("http://{}/pay/{id}", payee.address()));
    assert_eq!(buyer.outgoing().len(), 1);
}
