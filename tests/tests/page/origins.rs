//! Pages of other origins may send the requests of payers, and no others.

use bsv_tests::Browser;
use bsv_tests::browser::Page;
use serde_json::{Value, json};

use crate::page::shop::{Merchant, shop, shop_on_node};

/// Sends a request from a page. Gives status and body, or that the browser withholds them.
const ASK: &str = "async ([url, options]) => {
    try {
        const answer = await fetch(url, options);
        return [answer.status, await answer.text(), answer.headers.get('etag')];
    } catch (error) {
        return error.name;
    }
}";

fn ask(page: &Page<'_>, url: &str, options: Value) -> Value {
    page.run_with(ASK, json!([url, options]))
}

/// A page whose origin differs from that of every listener.
fn foreign_page<'a>(browser: &'a Browser, shop: &Merchant) -> Page<'a> {
    let page = browser.open(json!({}));
    // `localhost` leads to the same listener, and is another origin than its address.
    let port = shop.server.payments().address().rsplit_once(':').unwrap().1.to_owned();
    assert_eq!(page.goto(&format!("http://localhost:{port}/pay/000000000000/state")), 404);
    page
}

#[test]
fn pages_of_other_origins_pay() {
    let (shop, _node, purse) = shop_on_node(1, json!({}));
    let id = shop.invoice(1_000);
    let browser = Browser::start();
    let page = foreign_page(&browser, &shop);
    let state = ask(&page, &format!("{}/state", shop.page_url(&id)), json!({}));
    assert_eq!((&state[0], &state[2]), (&json!(200), &json!("W/\"pending-0-1000-0-0-0-false\"")));
    let url = shop.payment_url(&id);
    let terms = ask(&page, &url, json!({ "headers": { "Accept": "application/json" } }));
    assert_eq!(terms[0], 200);
    // The browser sends a preflight before this request.
    let json = json!({ "Content-Type": "application/json" });
    let refused = ask(&page, &url, json!({ "method": "POST", "headers": json, "body": "{}" }));
    assert_eq!(refused[0], 400);
    let first = "url => new Promise(done => {
        const source = new EventSource(url);
        source.addEventListener('state', event => { source.close(); done(event.data); });
    })";
    let told = page.run_with(first, json!(format!("{}/stream", shop.page_url(&id))));
    assert!(told.as_str().unwrap().contains("\"pending\""));

    let bill = bsv_tests::Bill::at(&url);
    let payment = String::from_utf8(bill.payment(&purse.transaction_for(&bill))).unwrap();
    let options = json!({ "method": "POST", "headers": json, "body": payment });
    let paid = ask(&page, &url, options);
    assert_eq!(paid[0], 201, "{paid}");
    let acknowledged: Value = serde_json::from_str(paid[1].as_str().unwrap()).unwrap();
    let channel = &acknowledged["peer_channel"];
    let proofs = format!(
        "http://{}/api/v1/channel/{}",
        shop.server.payments().address(),
        channel["channel_id"].as_str().unwrap()
    );
    let bearer = format!("Bearer {}", channel["token"].as_str().unwrap());
    let proofs = ask(&page, &proofs, json!({ "headers": { "Authorization": bearer } }));
    assert_eq!(proofs[0], 200, "{proofs}");
}

#[test]
fn pages_of_other_origins_reach_no_other_listener() {
    let shop = shop();
    let browser = Browser::start();
    let page = foreign_page(&browser, &shop);
    let before = shop.get("/api/v1/invoices");
    let json = json!({ "Content-Type": "application/json" });
    for listener in [shop.server.wallet(), shop.server.minerid()] {
        let url = |path: &str| format!("http://{}{path}", listener.address());
        for path in ["/healthz", "/api/v1/invoices", "/minerid/x", "/openapi.json"] {
            assert_eq!(ask(&page, &url(path), json!({})), "TypeError", "{path}");
        }
        for headers in [json!({ "Content-Type": "text/plain" }), json.clone()] {
            let options =
                json!({ "method": "POST", "headers": headers, "body": r#"{"satoshis":1}"# });
            assert_eq!(ask(&page, &url("/api/v1/invoices"), options), "TypeError", "{headers}");
        }
        for (method, path) in [("OPTIONS", "/healthz"), ("GET", "/healthz"), ("OPTIONS", "/x")] {
            let headers =
                [("Origin", "https://shop.example"), ("Access-Control-Request-Method", "POST")];
            let reply = listener.send(method, path, &headers, b"");
            let has_cors =
                reply.headers.iter().any(|(name, _)| name.starts_with("access-control-"));
            assert!(!has_cors, "{method} {path}: {:?}", reply.headers);
        }
    }
    assert_eq!(shop.get("/api/v1/invoices"), before);
}

#[test]
fn a_preflight_names_what_pages_may_send() {
    let shop = shop();
    let id = shop.invoice(1_000);
    for path in [
        format!("/pay/{id}"),
        format!("/pay/{id}/state"),
        format!("/pay/{id}/stream"),
        format!("/pay/{id}/qr.svg"),
        "/pay/assets/x.js".to_owned(),
        format!("/dpp/api/v1/payment/{id}"),
        format!("/api/v1/payment/{id}"),
    ] {
        let headers =
            [("Origin", "https://shop.example"), ("Access-Control-Request-Method", "POST")];
        let reply = shop.server.payments().send("OPTIONS", &path, &headers, b"");
        assert_eq!(reply.status, 204, "{path}");
        for (name, value) in [
            ("access-control-allow-origin", "*"),
            ("access-control-allow-methods", "GET, HEAD, POST"),
            ("access-control-allow-headers", "content-type, accept, authorization"),
            ("access-control-expose-headers", "etag, retry-after, link"),
            ("access-control-max-age", "600"),
        ] {
            assert_eq!(reply.header(name), Some(value), "{path}");
        }
        assert_eq!(reply.header("access-control-allow-credentials"), None);
    }
}
