//! What a page loads, and what it shows.

use bsv_tests::Browser;
use serde_json::json;

use crate::shop::{NAME, shop};

#[test]
fn a_page_loads_from_its_own_origin_only() {
    let shop = shop();
    let id =
        shop.invoice_of(json!({ "satoshis": 50_000, "description": "tea", "reference": "r-17" }));
    let browser = Browser::start();
    let page = browser.open(json!({}));
    assert_eq!(page.goto(&shop.page_url(&id)), 200);
    page.wait("document.querySelector('[role=timer]').textContent !== ''");
    assert_eq!(page.text("h1"), "0.0005 BSV");
    assert_eq!(page.text(".description"), "tea");
    assert!(page.text("header").contains(NAME));
    assert_eq!(page.run("document.documentElement.outerHTML.includes('r-17')"), false);
    let told = page.told();
    let origin = format!("http://{}/", shop.server.payments().address());
    assert!(told.requests.iter().all(|url| url.starts_with(&origin)), "{told:?}");
    assert_eq!(told.complaints, Vec::<String>::new());
}
