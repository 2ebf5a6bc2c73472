//! What a page loads and shows.

use bsv_tests::Browser;
use serde_json::{Value, json};

use crate::page::shop::{Merchant, NAME, attribute, json_of, shop, shop_with};

/// The most bytes that a page may load in all.
const MAX_SIZE: usize = 30_000;

fn tea(shop: &Merchant) -> String {
    shop.invoice_of(json!({ "satoshis": 50_000, "description": "tea", "reference": "r-17" }))
}

#[test]
fn a_page_loads_from_its_own_origin_only() {
    let shop = shop();
    let id = tea(&shop);
    let browser = Browser::start();
    let page = browser.open(json!({}));
    assert_eq!(page.goto(&shop.page_url(&id)), 200);
    page.wait("document.querySelector('[role=timer]').textContent !== ''");
    assert_eq!(page.text("h1"), "0.0005 BSV");
    assert_eq!(page.text(".satoshis"), "50000 satoshis");
    assert_eq!(page.text(".description"), "tea");
    assert!(page.text("header").contains(NAME));
    assert_eq!(page.run("document.documentElement.outerHTML.includes('r-17')"), false);
    let told = page.told();
    let origin = format!("http://{}/", shop.server.payments().address());
    assert!(told.requests.iter().all(|url| url.starts_with(&origin)), "{told:?}");
    assert_eq!(told.complaints, Vec::<String>::new());
    let files = told.requests.iter().filter(|url| !url.ends_with("/stream"));
    let size: usize = files
        .map(|url| {
            shop.server.payments().get(url.strip_prefix(origin.trim_end_matches('/')).unwrap())
        })
        .map(|reply| reply.body.len())
        .sum();
    assert!(size <= MAX_SIZE, "{size}");
}

#[test]
fn a_page_is_complete_without_its_script() {
    let shop = shop();
    let id = tea(&shop);
    let browser = Browser::start();
    let page = browser.open(json!({ "java_script_enabled": false }));
    assert_eq!(page.goto(&shop.page_url(&id)), 200);
    let text = page.text("body");
    let address = shop.address(&id);
    let link = format!("bitcoin:{address}?sv&amount=0.0005&r={}", shop.payment_url(&id));
    for shown in ["0.0005 BSV", "tea", "Waiting for your payment", "UTC", &address, &link, &id] {
        assert!(text.contains(shown), "{shown}: {text}");
    }
    for absent in ["Copy", "Print", "wallet on this device", "Time left"] {
        assert!(!text.contains(absent), "{absent}: {text}");
    }
    let codes =
        page.run("[...document.querySelectorAll('svg[role=img]')].map(it => it.clientWidth)");
    assert_eq!(codes.as_array().unwrap().len(), 2);
    page.click("footer a");
    page.wait("document.querySelector('main.pending') !== null");
}

#[test]
fn pages_speak_the_language_of_their_payer() {
    let shop = shop();
    let id = tea(&shop);
    let ask = |query: &str, accepted: &str| {
        let headers = [("Accept-Language", accepted)];
        shop.server.payments().send("GET", &format!("/pay/{id}{query}"), &headers, b"")
    };
    for (query, accepted, language, said) in [
        ("", "de-AT,de;q=0.9,en;q=0.8", "de", "Zahlung an"),
        ("", "fr", "en", "Payment to"),
        ("?lang=de", "en", "de", "Zahlung an"),
        ("?lang=xx", "de", "de", "Zahlung an"),
        ("?other=1", "en", "en", "Payment to"),
    ] {
        let reply = ask(query, accepted);
        assert_eq!(reply.header("content-language"), Some(language), "{query} {accepted}");
        assert_eq!(reply.header("vary"), Some("accept-language"));
        assert_eq!(attribute(&reply.body, "lang"), language);
        assert!(reply.body.contains(said), "{query} {accepted}");
    }
    let missing = shop.server.payments().get("/pay/000000000000?lang=de");
    assert_eq!((missing.status, attribute(&missing.body, "lang")), (404, "de"));
    assert!(missing.body.contains("Diese Rechnung gibt es nicht"));
}

#[test]
fn headers_restrict_what_a_browser_may_do() {
    let shop = shop();
    let id = tea(&shop);
    for method in ["GET", "HEAD"] {
        let reply = shop.server.payments().request(method, &format!("/pay/{id}"), b"");
        let policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
                      connect-src 'self' https://localhost:2121 http://localhost:3321; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
        assert_eq!(reply.header("content-security-policy"), Some(policy));
        assert_eq!(reply.header("referrer-policy"), Some("no-referrer"));
        assert_eq!(reply.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(reply.header("cross-origin-opener-policy"), Some("same-origin"));
    }
    let page = json!({ "browserWallets": false, "embedders": ["https://shop.example", "http://[::1]:8080"] });
    let shop = shop_with(json!({ "page": page }));
    let reply = shop.server.payments().get(&format!("/pay/{}", tea(&shop)));
    let policy = reply.header("content-security-policy").unwrap();
    assert!(policy.contains("connect-src 'self'; "), "{policy}");
    assert!(policy.ends_with("frame-ancestors https://shop.example http://[::1]:8080"), "{policy}");
    assert!(!reply.body.contains("class=\"wallet\""));
}

#[test]
fn a_slash_at_the_end_leads_to_the_page() {
    let shop = shop();
    let id = tea(&shop);
    for method in ["GET", "HEAD"] {
        for (query, there) in [("", format!("../{id}")), ("?lang=de", format!("../{id}?lang=de"))] {
            let path = format!("/pay/{id}/{query}");
            let reply = shop.server.payments().request(method, &path, b"");
            assert_eq!((reply.status, reply.header("location")), (308, Some(there.as_str())));
        }
    }
    let browser = Browser::start();
    let page = browser.open(json!({}));
    assert_eq!(page.goto(&format!("{}/?lang=de", shop.page_url(&id))), 200);
    page.wait("document.querySelector('[role=timer]').textContent !== ''");
    assert_eq!(page.run("location.href"), format!("{}?lang=de", shop.page_url(&id)));
    assert_eq!(page.text("h1"), "0.0005 BSV");
}

#[test]
fn pages_can_be_switched_off() {
    let shop = shop_with(json!({ "page": { "enabled": false } }));
    let reply = shop.server.wallet().post("/api/v1/invoices", r#"{"satoshis":1}"#);
    let links = reply.headers.iter().filter(|(name, _)| name == "link").count();
    assert_eq!(links, 1, "{:?}", reply.headers);
    let id = tea(&shop);
    for path in [format!("/pay/{id}"), "/pay/assets/x.js".to_owned()] {
        assert_eq!(shop.server.payments().get(&path).status, 404, "{path}");
    }
    let invoice = shop.site.cli_json(&["invoice", "get", &id]);
    assert_eq!(invoice["pageUrl"], Value::Null);
}

#[test]
fn answers_about_an_invoice_link_to_its_page() {
    let shop = shop();
    let created = shop.server.wallet().post("/api/v1/invoices", r#"{"satoshis":1}"#);
    let id = json_of(&created)["id"].as_str().unwrap().to_owned();
    let read = shop.server.wallet().get(&format!("/api/v1/invoices/{id}"));
    for reply in [created, read] {
        let links = reply.headers.iter().filter(|(name, _)| name == "link");
        let links: Vec<_> = links.map(|(_, value)| value.as_str()).collect();
        let page = format!("<{}>; rel=\"alternate\"; type=\"text/html\"", shop.page_url(&id));
        assert_eq!(links, [&format!("<{}>; rel=\"payment\"", shop.payment_url(&id)), &page]);
    }
}

#[test]
fn files_keep_their_names_as_long_as_their_contents_do_not_change() {
    let shop = shop();
    let html = shop.server.payments().get(&format!("/pay/{}", tea(&shop))).body;
    let names = html.split("\"assets/").skip(1).map(|rest| rest.split('"').next().unwrap());
    let names: Vec<_> = names.collect();
    for (ending, kind) in [("js", "text/javascript"), ("css", "text/css"), ("svg", "image/svg+xml")]
    {
        let name = names.iter().find(|name| name.ends_with(ending)).unwrap();
        for method in ["GET", "HEAD"] {
            let reply = shop.server.payments().request(method, &format!("/pay/assets/{name}"), b"");
            assert_eq!(reply.status, 200);
            assert!(reply.header("content-type").unwrap().starts_with(kind));
            let kept = Some("max-age=31536000, immutable");
            assert_eq!(reply.header("cache-control"), kept, "{name}");
            assert_eq!(reply.header("x-content-type-options"), Some("nosniff"), "{name}");
        }
    }
    assert_eq!(shop.server.payments().get("/pay/assets/0000000000000000.js").status, 404);
}

/// What browsers send when somebody opens a page.
const BROWSER: (&str, &str) =
    ("Accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8");

#[test]
fn a_browser_that_has_to_ask_again_later_gets_a_page() {
    let shop =
        shop_with(json!({ "limitLoopback": true, "requestsPerSecond": 1, "requestBurst": 1 }));
    let (path, payments) = (format!("/pay/{}", tea(&shop)), shop.server.payments());
    // One request a second is answered, and the next one refused.
    let ask = |path: &str, headers: &[(&str, &str)]| loop {
        let reply = payments.send("GET", path, headers, b"");
        if reply.status == 429 {
            return reply;
        }
    };
    for (language, text) in [
        ("en", "This page cannot be shown at the moment"),
        ("de", "Diese Seite kann gerade nicht gezeigt werden"),
    ] {
        let reply = ask(&path, &[BROWSER, ("Accept-Language", language)]);
        assert_eq!(reply.header("content-type"), Some("text/html; charset=utf-8"));
        assert_eq!(reply.header("content-language"), Some(language));
        assert_eq!(reply.header("x-content-type-options"), Some("nosniff"));
        assert!(reply.body.contains(&format!("<h1>{text}</h1>")), "{}", reply.body);
        let seconds = reply.header("retry-after").unwrap();
        let again = format!("http-equiv=\"refresh\" content=\"{seconds}\"");
        assert!(reply.body.contains(&again), "{}", reply.body);
    }
    let programs = [&[][..], &[("Accept", "*/*")], &[("Accept", "application/json")]];
    let asked = programs.into_iter().map(|headers| (path.clone(), headers));
    for (path, headers) in asked.chain([(format!("{path}/state"), &[BROWSER][..])]) {
        assert_eq!(json_of(&ask(&path, headers))["code"], "too-many-requests", "{path}");
    }
}

#[test]
fn a_receipt_shows_the_reference_only_if_the_owner_wants_it() {
    for is_shown in [false, true] {
        let shop = shop_with(json!({ "page": { "showReference": is_shown } }));
        let id = shop.invoice_of(json!({ "satoshis": 1_234_567, "reference": "table <9>" }));
        let page = || shop.server.payments().get(&format!("/pay/{id}")).body;
        let pending = page();
        assert!(!pending.contains("table") && !pending.contains("Receipt"), "{pending}");
        assert!(pending.contains("role=\"timer\""), "{pending}");
        let marked = format!("/api/v1/invoices/{id}/mark");
        assert_eq!(shop.server.wallet().post(&marked, r#"{"state":"paid"}"#).status, 200);
        let paid = page();
        for part in ["Receipt", "Paid on", "0.01234567 BSV"] {
            assert!(paid.contains(part), "{part}: {paid}");
        }
        assert_eq!(paid.contains("table"), is_shown, "{paid}");
        assert!(!paid.contains("<9>") && !paid.contains("role=\"timer\""), "{paid}");
    }
}
