//! The accessibility of pages.

use std::path::PathBuf;
use std::time::Duration;

use bsv_invoicing::Timestamp;
use bsv_tests::browser::Page;
use bsv_tests::fetch::npm_packages;
use bsv_tests::{Browser, repetitions};
use serde_json::{Value, json};

use crate::page::shop::{Merchant, pay, shop, shop_on_node, wait_until};

/// The ways in which payers look at a page.
fn looks() -> Vec<(&'static str, Value)> {
    let wide = json!({ "width": 1280, "height": 800 });
    let narrow = json!({ "width": 320, "height": 640 });
    // This equals a window of 1280 pixels at 200 %.
    let enlarged = json!({ "width": 640, "height": 400 });
    vec![
        ("light", json!({ "viewport": wide, "color_scheme": "light" })),
        ("dark", json!({ "viewport": wide, "color_scheme": "dark" })),
        ("narrow", json!({ "viewport": narrow })),
        (
            "narrow and dark",
            json!({ "viewport": narrow, "color_scheme": "dark", "has_touch": true }),
        ),
        ("enlarged", json!({ "viewport": enlarged, "device_scale_factor": 2 })),
        ("German", json!({ "viewport": wide, "locale": "de-AT" })),
        ("still", json!({ "viewport": wide, "reduced_motion": "reduce" })),
        ("forced colours", json!({ "viewport": wide, "forced_colors": "active" })),
        // JavaScript stays on, since axe-core is a script itself.
        ("without its script", json!({ "viewport": wide, "block": "**/*.js" })),
    ]
}

fn axe() -> PathBuf {
    npm_packages().join("node_modules/axe-core/axe.min.js")
}

/// The problems that axe-core finds in a page.
fn findings(page: &Page<'_>) -> Value {
    page.add(&axe());
    page.run(
        "axe.run().then(found => found.violations.map(it => [it.id, it.nodes.map(node => node.html)]))",
    )
}

fn check(page: &Page<'_>, what: &str) {
    assert_eq!(findings(page), json!([]), "{what}");
    let is_within = page.run("document.documentElement.scrollWidth <= innerWidth");
    assert_eq!(is_within, true, "{what}: it is wider than the window");
}

/// Invoices in all states that a payer can see.
fn invoices() -> (Merchant, Vec<(&'static str, String)>) {
    let (shop, node, purse) = shop_on_node(4, json!({ "zeroConfLimitSatoshis": 60_000 }));
    let [pending, partly, in_block, paid, mined] =
        [50_000, 50_000, 70_000, 20_000, 20_000].map(|satoshis| shop.invoice(satoshis));
    let soon = Timestamp::of_system().after(Duration::from_secs(2)).to_string();
    let expired = shop.invoice_of(json!({ "satoshis": 1000, "expiresAt": soon }));
    pay(&node, &purse, &shop.address(&mined), 20_000);
    wait_until("it is seen", || shop.state(&mined) == "paid");
    node.mine(1);
    for (id, satoshis) in [(&partly, 20_000), (&in_block, 70_000), (&paid, 20_000)] {
        pay(&node, &purse, &shop.address(id), satoshis);
        wait_until("it is seen", || shop.payers_state(id)["paidSatoshis"] == satoshis);
    }
    wait_until("it is mined", || shop.payers_state(&mined)["mined"] == true);
    wait_until("it expires", || shop.state(&expired) == "expired");
    let all = [
        ("pending", pending),
        ("paid in part", partly),
        ("waiting for a block", in_block),
        ("paid", paid),
        ("mined", mined),
        ("expired", expired),
        ("missing", "000000000000".to_owned()),
    ];
    (shop, all.into())
}

#[test]
fn axe_finds_nothing_however_a_page_is_looked_at() {
    let (shop, invoices) = invoices();
    let browser = Browser::start();
    let looks = looks();
    let pairs: Vec<_> =
        looks.iter().flat_map(|look| invoices.iter().map(move |it| (look, it))).collect();
    let count = repetitions("pages as axe-core sees them", pairs.len(), 16);
    for ((look, options), (state, id)) in pairs.iter().step_by(pairs.len().div_ceil(count)) {
        let page = browser.open(options.clone());
        page.goto(&shop.page_url(id));
        check(&page, &format!("{state}, {look}"));
        if *state == "pending" && options.get("block").is_none() {
            page.click("#tab-link");
            check(&page, &format!("link, {look}"));
        }
    }
}

#[test]
fn a_page_shows_the_state_of_its_invoice() {
    let (shop, invoices) = invoices();
    for ((state, id), said) in invoices.iter().zip([
        "Waiting for your payment",
        "Please pay the rest",
        "counts once it is in a block",
        "The network has your payment",
        "Your payment is confirmed",
        "This invoice has expired",
        "There is no such invoice",
    ]) {
        let reply = shop.server.payments().get(&format!("/pay/{id}"));
        assert!(reply.body.contains(said), "{state}: {}", reply.body);
        let asks = matches!(*state, "pending" | "paid in part");
        assert_eq!(reply.body.contains("id=\"address\""), asks, "{state}");
        let code = shop.server.payments().get(&format!("/pay/{id}/qr.svg")).status;
        let expected = if asks {
            200
        } else if *state == "missing" {
            404
        } else {
            409
        };
        assert_eq!(code, expected, "{state}");
    }
    let rest = shop.server.payments().get(&format!("/pay/{}", invoices[1].1)).body;
    assert!(rest.contains("<span class=\"value\">0.0003</span>"), "{rest}");
}

#[test]
fn text_may_be_twice_as_large() {
    let shop = shop();
    let id = shop.invoice(2_100_000_000_000_000);
    let browser = Browser::start();
    let page = browser.open(json!({ "viewport": { "width": 640, "height": 800 } }));
    page.goto(&shop.page_url(&id));
    page.run("document.documentElement.style.fontSize = '200%'");
    check(&page, "text twice as large");
}

#[test]
fn a_page_can_be_used_by_keyboard_alone() {
    let shop = shop();
    let id = shop.invoice(5_000);
    let browser = Browser::start();
    let page = browser.open(json!({ "permissions": ["clipboard-read", "clipboard-write"] }));
    page.goto(&shop.page_url(&id));
    let focused = || page.run("document.activeElement.id || document.activeElement.ariaLabel");
    let tab_until = |wanted: &str| {
        (0..20).find(|_| {
            page.press("Tab");
            focused() == wanted
        })
    };
    assert!(tab_until("tab-address").is_some(), "{}", focused());
    for (key, tab) in [
        ("ArrowRight", "tab-link"),
        ("ArrowRight", "tab-address"),
        ("ArrowLeft", "tab-link"),
        ("Home", "tab-address"),
        ("End", "tab-link"),
    ] {
        page.press(key);
        assert_eq!(focused(), tab, "{key}");
        let shown = page.run("[...document.querySelectorAll('section')].map(it => !it.hidden)");
        assert_eq!(shown, json!([tab == "tab-address", tab == "tab-link"]));
    }
    page.press("Home");
    assert!(tab_until("Copy: Amount (satoshis)").is_some(), "{}", focused());
    page.press("Enter");
    page.wait("document.querySelector('#say').textContent === 'Copied: 5000'");
    assert_eq!(page.run("navigator.clipboard.readText()"), "5000");
}
