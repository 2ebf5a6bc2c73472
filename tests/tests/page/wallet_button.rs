//! The button that has a wallet (BRC-100) pay.

use bsv_tests::browser::Page;
use bsv_tests::{Brc100Wallet, Browser};
use serde_json::{Value, json};

use crate::shop::{Merchant, pay, shop, shop_on_node, shop_with};

/// A wallet in the page that records the requests it gets, and pays nothing.
const REFUSING_WALLET: &str = "
    window.CWI = {
        asked: [],
        async createAction(args) {
            this.asked.push(args);
            throw new Error('not enough <b>money</b>');
        },
    };
";

/// A wallet in the page that forwards requests, with further options, to another wallet.
fn wallet_with(options: &str) -> String {
    format!(
        "window.CWI = new Proxy({{}}, {{
            get: (_, call) => async (args) => {{
                if (call === 'createAction') args.options = {{ ...args.options, {options} }};
                const result = await askWallet(call, args);
                if (result.isError) throw new Error(result.message);
                return result;
            }},
        }});"
    )
}

/// Opens the page of an invoice, and clicks the button.
fn click(page: &Page<'_>, shop: &Merchant, id: &str) {
    page.goto(&shop.page_url(id));
    page.wait("document.querySelector('[role=timer]').textContent !== ''");
    page.click(".wallet button");
}

#[test]
fn a_wallet_in_the_browser_pays() {
    let (shop, node, _purse) = shop_on_node(0, json!({}));
    let wallet = Brc100Wallet::start(&node);
    wallet.fund(&node, &[100_000; 4]);
    let browser = Browser::start();
    // The first wallet broadcasts, the second leaves that to the shop, and the third signs in a
    // second step.
    for options in ["", "noSend: true", "signAndProcess: false"] {
        let id = shop.invoice(5_000);
        let page = browser.open(json!({
            "init": wallet_with(options), "wallet": format!("http://{}", wallet.address()),
        }));
        click(&page, &shop, &id);
        page.wait("document.querySelector('main.paid, .wallet [role=status]').innerText.match(/Paid|says|told/)");
        assert!(page.text("main").contains("Paid. Thank you!"), "{options}: {}", page.text("main"));
        let [payment] = shop.payments(&id).try_into().unwrap();
        assert_eq!(payment["satoshis"], 5_000);
        assert_eq!(payment["state"], "accepted", "{options}");
        let mempool = node.call("getrawmempool", json!([]));
        assert!(mempool.as_array().unwrap().contains(&payment["txid"]), "{options}");
    }
    assert_eq!(shop.balance(), 15_000);
}

/// No other test may use the port at which pages look for a wallet.
#[test]
fn a_wallet_beside_the_browser_pays_if_its_payer_lets_the_page_reach_it() {
    let (shop, node, _purse) = shop_on_node(0, json!({}));
    let wallet = Brc100Wallet::at_port(&node, 3321);
    wallet.fund(&node, &[100_000; 3]);
    let address = shop.server.payments().address();
    let public = format!("--ip-address-space-overrides={address}=public");
    for (flags, permissions, is_reached) in [
        (&[][..], json!([]), true),
        (&[public.as_str()], json!([]), false),
        (&[public.as_str()], json!(["local-network-access"]), true),
    ] {
        let id = shop.invoice(5_000);
        let browser = Browser::start_with(flags);
        let page = browser.open(json!({ "permissions": permissions }));
        click(&page, &shop, &id);
        page.wait("document.querySelector('main.paid, .wallet [role=status]').innerText.match(/Paid|says|told|No wallet/)");
        let expected = if is_reached { "Paid. Thank you!" } else { "No wallet answers." };
        assert!(page.text("main").contains(expected), "{flags:?}: {}", page.text("main"));
        assert_eq!(shop.state(&id), if is_reached { "paid" } else { "pending" });
    }
}

#[test]
fn a_wallet_is_asked_for_what_is_left_to_pay() {
    let (shop, node, purse) = shop_on_node(1, json!({}));
    let id = shop.invoice(5_000);
    let browser = Browser::start();
    let page = browser.open(json!({ "init": REFUSING_WALLET }));
    page.goto(&shop.page_url(&id));
    pay(&node, &purse, &shop.address(&id), 2_000);
    page.wait("document.querySelector('h1').innerText === '0.00003 BSV'");
    page.click(".wallet button");
    page.wait("window.CWI.asked.length === 1");
    assert_eq!(page.run("window.CWI.asked[0].outputs[0].satoshis"), 3_000);
}

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
    // Browsers let a page of the public Internet reach this machine only after they have asked the
    // user.
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
fn the_button_can_be_switched_off() {
    let shop = shop_with(json!({ "page": { "browserWallets": false } }));
    let id = shop.invoice(5_000);
    let browser = Browser::start();
    let page = browser.open(json!({}));
    page.goto(&shop.page_url(&id));
    page.wait("document.querySelector('[role=timer]').textContent !== ''");
    assert_eq!(page.run("document.querySelector('.wallet')"), Value::Null);
}
