//! The button, with a wallet of other people's behind it that pays on the network.

use bsv_tests::{Brc100Wallet, Browser, Node, Site, free_port};
use serde_json::json;

use crate::shop::{Merchant, wait_until};

/// Where pages look for a wallet on this device.
const PORT: u16 = 3321;

/// A wallet in the browser that passes on what it is asked to the one on this device, with further options.
fn in_browser(options: &str) -> String {
    format!(
        "window.CWI = {{
            async createAction(args) {{
                window.asked = (window.asked ?? 0) + 1;
                const options = {{ ...args.options, {options} }};
                const answer = await fetch('http://localhost:{PORT}/createAction', {{
                    method: 'POST',
                    headers: {{ 'Content-Type': 'application/json' }},
                    body: JSON.stringify({{ ...args, options }}),
                }});
                const result = await answer.json();
                if (!answer.ok) throw new Error(result.message);
                return result;
            }},
        }};"
    )
}

/// A shop that is content with the fee that such wallets pay.
fn shop(node: &Node) -> Merchant {
    let mut site = Site::on(node);
    site.set("payments", json!({ "port": free_port(), "feeRate": 1 }));
    Merchant { server: site.server(), site }
}

/// The only test that needs this port.
#[test]
fn a_click_pays() {
    let node = Node::start_with(&[&format!("zmqpubrawtx2=tcp://127.0.0.1:{}", free_port())]);
    node.mine(110);
    let shop = shop(&node);
    wait_until("the node is followed", || shop.server.wallet().get("/readyz").status == 200);
    let wallet = Brc100Wallet::at_port(&node, PORT);
    let address = shop.server.payments().address();
    let public = format!("--ip-address-space-overrides={address}=public");
    for (what, flag, options) in [
        ("a wallet on this device", None, json!({})),
        (
            "the same, which a page of the public Internet may reach",
            Some(public.as_str()),
            json!({ "permissions": ["local-network-access"] }),
        ),
        ("a wallet in the browser", None, json!({ "init": in_browser("") })),
        (
            "one that leaves broadcasting to the shop",
            None,
            json!({ "init": in_browser("noSend: true") }),
        ),
    ] {
        wallet.fund(&node, &[100_000]);
        let id = shop.invoice(20_000);
        let browser = Browser::start_with(flag.as_slice());
        let page = browser.open(options);
        page.goto(&shop.page_url(&id));
        page.wait("document.querySelector('[role=timer]').textContent !== ''");
        page.click(".wallet button");
        page.wait("document.querySelector('main.paid') !== null");
        assert_eq!(shop.state(&id), "paid", "{what}");
        let payments = shop.payments(&id);
        assert_eq!(payments.len(), 1, "{what}: {payments:?}");
        assert_eq!(
            (&payments[0]["satoshis"], &payments[0]["state"]),
            (&json!(20_000), &json!("accepted"))
        );
        let txid = payments[0]["txid"].clone();
        let mempool = node.call("getrawmempool", json!([]));
        assert!(mempool.as_array().unwrap().contains(&txid), "{what}");
    }
}
