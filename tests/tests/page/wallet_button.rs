//! The button that has a wallet (BRC-100) pay.

use bsv_tests::browser::Page;
use bsv_tests::purse::FEE;
use bsv_tests::{Brc100Wallet, Browser, Node, Purse};
use bsv_tx::{Address, Network, Transaction, TxOut};
use serde_json::{Value, json};

use crate::page::shop::{Merchant, pay, shop, shop_on_node, shop_on_services, shop_with};

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

/// A wallet in the page that waits for its user. `window.CWI.answer` answers the requests in turn.
const WAITING_WALLET: &str = "
    window.CWI = {
        asked: 0,
        waiting: [],
        createAction() {
            this.asked++;
            return new Promise((answer) => this.waiting.push(answer));
        },
        answer(tx) {
            this.waiting.shift()({ tx });
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

/// Has the waiting wallet of a page answer with these bytes.
fn answer(page: &Page<'_>, bytes: &[u8]) {
    page.wait("window.CWI.waiting.length > 0");
    page.run_with("bytes => window.CWI.answer(bytes)", json!(bytes));
}

/// A transaction that pays an invoice, which nobody has sent.
fn transaction(shop: &Merchant, purse: &Purse, id: &str, satoshis: u64) -> Transaction {
    let address = Address::parse(&shop.address(id), Network::Regtest).unwrap();
    let output = TxOut { satoshis, locking_script: address.locking_script() };
    purse.spend(&[purse.coin()], vec![output], FEE)
}

#[test]
fn a_wallet_is_asked_once_although_the_page_changes_meanwhile() {
    let (shop, node, purse) = shop_on_node(2, json!({}));
    let id = shop.invoice(5_000);
    let paying = transaction(&shop, &purse, &id, 5_000);
    let browser = Browser::start();
    let page = browser.open(json!({ "init": WAITING_WALLET }));
    click(&page, &shop, &id);
    page.wait("window.CWI.asked === 1");
    // A stranger pays a part, so the page shows the rest.
    pay(&node, &purse, &shop.address(&id), 1);
    page.wait("document.querySelector('h1').innerText === '0.00004999 BSV'");
    assert_eq!(page.run("document.querySelector('.wallet button').disabled"), true);
    let said = "Please confirm the payment in your wallet.";
    assert_eq!(page.text(".wallet [role=status]"), said);
    page.run(
        "(() => {
            const button = document.querySelector('.wallet button');
            button.disabled = false;
            button.click();
        })()",
    );
    answer(&page, &paying.to_bytes());
    page.wait("document.querySelector('main.paid') !== null");
    assert_eq!(page.run("window.CWI.asked"), 1);
    assert_eq!(shop.payers_state(&id)["paidSatoshis"], 5_001);
}

#[test]
fn a_payment_that_the_shop_refuses_can_be_made_again() {
    let (shop, _node, purse) = shop_on_node(1, json!({}));
    let id = shop.invoice(5_000);
    let browser = Browser::start();
    let page = browser.open(json!({ "init": WAITING_WALLET }));
    click(&page, &shop, &id);
    answer(&page, &[1, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    page.wait(
        "document.querySelector('.wallet [role=status]').textContent.startsWith('The shop says')",
    );
    let said = page.text(".wallet [role=status]");
    assert!(said.contains("the transaction cannot be read"), "{said}");
    assert!(!said.contains("paid"), "{said}");
    page.wait("!document.querySelector('.wallet button').disabled");
    assert_eq!(page.text(".wallet button"), "Pay with the wallet on this device");
    page.click(".wallet button");
    answer(&page, &transaction(&shop, &purse, &id, 5_000).to_bytes());
    page.wait("document.querySelector('main.paid') !== null");
    assert_eq!(page.run("window.CWI.asked"), 2);
}

/// Front ends and busy shops answer like this. The first answer of the page's shop is one of these,
/// the next ones are its own.
#[test]
fn a_page_tells_the_shop_again_until_the_shop_decides() {
    let refusals = [
        (408, "request-timeout"),
        (409, "payment-in-flight"),
        (429, "too-many-requests"),
        (502, "none"),
        (503, "payment-outcome-unknown"),
    ];
    let (shop, _node, purse) = shop_on_node(refusals.len(), json!({}));
    let browser = Browser::start();
    for (status, code) in refusals {
        let id = shop.invoice(5_000);
        let first = format!(
            "window.refused = 0;
            const send = window.fetch;
            window.fetch = async (url, options) => {{
                if (!String(url).endsWith('/transaction') || window.refused) return send(url, options);
                window.refused++;
                return new Response(JSON.stringify({{ code: '{code}' }}), {{ status: {status} }});
            }};"
        );
        let page = browser.open(json!({ "init": format!("{WAITING_WALLET}{first}") }));
        click(&page, &shop, &id);
        answer(&page, &transaction(&shop, &purse, &id, 5_000).to_bytes());
        page.wait("document.querySelector('main.paid, .wallet button:enabled') !== null");
        assert_eq!(page.text(".stage"), "Paid. Thank you!", "{status} {code}");
        assert_eq!(page.run("[window.refused, window.CWI.asked]"), json!([1, 1]), "{status}");
    }
}

#[test]
fn a_wallet_in_the_browser_pays() {
    let (shop, node, _purse) = shop_on_node(0, json!({}));
    pay_in_each_way(&shop, &node);
}

#[test]
fn a_wallet_in_the_browser_pays_a_shop_without_a_node() {
    let (shop, node, _service) = shop_on_services();
    pay_in_each_way(&shop, &node);
}

fn pay_in_each_way(shop: &Merchant, node: &Node) {
    let wallet = Brc100Wallet::start(node);
    wallet.fund(node, &[100_000; 4]);
    let browser = Browser::start();
    // The first wallet broadcasts, the second leaves that to the shop, and the third signs in a
    // second step.
    for options in ["", "noSend: true", "signAndProcess: false"] {
        let id = shop.invoice(5_000);
        let page = browser.open(json!({
            "init": wallet_with(options), "wallet": format!("http://{}", wallet.address()),
        }));
        click(&page, shop, &id);
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
    let script = Address::parse(&shop.address(&id), Network::Regtest).unwrap();
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
