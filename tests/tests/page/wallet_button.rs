//! The button for wallets that a page can call (BRC-100).

use bsv_tests::Browser;
use serde_json::{Value, json};

use crate::shop::{shop, shop_with};

/// A wallet in the page that remembers what it is asked for, and pays nothing.
const REFUSING_WALLET: &str = "
    window.CWI = {
        asked: [],
        async createAction(args) {
            this.asked.push(args);
            throw new Error('not enough <b>money</b>');
        },
    };
";

#[test]
fn a_wallet_in_the_browser_is_asked_for_what_is_due_after_a_click() {
    let shop = shop();
    let id = shop.invoice(5_000);
    let browser = Browser::start();
    let page = browser.open(json!({ "init": REFUSING_WALLET }));
    page.goto(&shop.page_url(&id));
    page.wait("document.querySelector('[role=timer]').textContent !== ''");
    assert_eq!(page.run("window.CWI.asked"), json!([]), "nobody has clicked yet");
    page.click(".wallet button");
    page.wait("document.querySelector('.wallet [role=status]').textContent.includes('money')");
    assert_eq!(page.text(".wallet [role=status]"), "The wallet says: not enough <b>money</b>");
    let script = bsv_tx::Address::parse(&shop.address(&id), bsv_tx::Network::Regtest).unwrap();
    let script = script.locking_script().to_hex();
    let asked = page.run("window.CWI.asked");
    let [asked] = asked.as_array().unwrap().as_slice() else { panic!("{asked}") };
    assert_eq!(asked["outputs"][0]["lockingScript"], script);
    assert_eq!(asked["outputs"][0]["satoshis"], 5_000);
    assert_eq!(asked["outputs"].as_array().unwrap().len(), 1);
    assert_eq!(asked["options"], json!({ "acceptDelayedBroadcast": false }));
    for text in [&asked["description"], &asked["outputs"][0]["outputDescription"]] {
        assert!((5..=50).contains(&text.as_str().unwrap().len()), "{text}");
    }
    assert_eq!(page.run("document.querySelector('.wallet button').disabled"), false);
}

#[test]
fn a_payer_without_a_wallet_is_told_what_to_do() {
    let shop = shop();
    let id = shop.invoice(5_000);
    let address = shop.server.payments().address();
    // A page of the public Internet, which browsers let reach this machine only after they have asked.
    let public = format!("--ip-address-space-overrides={address}=public");
    let browser = Browser::start_with(&[&public]);
    for permissions in [Value::Null, json!([])] {
        let mut options = json!({});
        if !permissions.is_null() {
            options["permissions"] = permissions;
        }
        let page = browser.open(options);
        page.goto(&shop.page_url(&id));
        page.wait("document.querySelector('[role=timer]').textContent !== ''");
        let asked =
            |requests: &[String]| requests.iter().filter(|url| url.contains("localhost")).count();
        assert_eq!(asked(&page.told().requests), 0, "nobody has clicked yet");
        page.click(".wallet button");
        page.wait("document.querySelector('.wallet [role=status]').textContent.startsWith('No wallet answers')");
        assert!(asked(&page.told().requests) > 0);
    }
}

#[test]
fn a_shop_may_do_without_the_button() {
    let shop = shop_with(json!({ "page": { "browserWallets": false } }));
    let id = shop.invoice(5_000);
    let browser = Browser::start();
    let page = browser.open(json!({}));
    page.goto(&shop.page_url(&id));
    page.wait("document.querySelector('[role=timer]').textContent !== ''");
    assert_eq!(page.run("document.querySelector('.wallet')"), Value::Null);
}
