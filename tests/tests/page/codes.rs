//! The QR codes that wallets scan, and the texts in them.

use std::fs;
use std::path::Path;

use bsv_tests::build::workspace;
use bsv_tests::fetch::python_with;
use bsv_tests::{Browser, Done};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::page::shop::{Merchant, shop};

/// The texts of the QR codes in a picture or a document. Two different libraries read them, and
/// must agree.
fn read(path: &Path) -> Vec<String> {
    let mut python = python_with("qr");
    let done = Done::of(python.arg(workspace().join("tests/python/qr.py")).arg(path));
    assert_eq!(done.code, 0, "{}", done.stderr);
    let pictures: Value = serde_json::from_str(&done.stdout).unwrap();
    let texts = pictures.as_array().unwrap().iter().flat_map(|picture| {
        let mut texts: Vec<String> = serde_json::from_value(picture["texts"].clone()).unwrap();
        texts.sort();
        let path = picture["greys"].as_str().unwrap();
        assert_eq!(read_greys(Path::new(path)), texts, "{path}");
        texts
    });
    texts.collect()
}

/// The texts of the QR codes in a grey picture (PGM), as the second library reads them.
fn read_greys(path: &Path) -> Vec<String> {
    let bytes = fs::read(path).unwrap();
    let mut head = bytes.splitn(4, u8::is_ascii_whitespace);
    let mut word = || std::str::from_utf8(head.next().unwrap()).unwrap().to_owned();
    assert_eq!(word(), "P5");
    let [width, height] = [(); 2].map(|()| word().parse::<usize>().unwrap());
    let (_, greys) = bytes.split_at(bytes.len() - width * height);
    let mut picture =
        rqrr::PreparedImage::prepare_from_greyscale(width, height, |x, y| greys[y * width + x]);
    let grids = picture.detect_grids();
    let mut texts: Vec<_> = grids.iter().map(|grid| grid.decode().unwrap().1).collect();
    texts.sort();
    texts
}

/// The address and the link of an invoice, as the codes must hold them.
fn expected(shop: &Merchant, id: &str, amount: &str) -> [String; 2] {
    let address = shop.address(id);
    let link = format!("bitcoin:{address}?sv&amount={amount}&r={}", shop.payment_url(id));
    [address, link]
}

#[test]
fn codes_on_screens_and_on_paper_are_read_by_two_readers() {
    let shop = shop();
    let id = shop.invoice_of(json!({ "satoshis": 123_456_789, "description": "tea" }));
    let [address, link] = expected(&shop, &id, "1.23456789");
    let dir = TempDir::new().unwrap();
    let browser = Browser::start();
    for (name, options) in [
        ("light", json!({ "color_scheme": "light" })),
        ("dark", json!({ "color_scheme": "dark" })),
        ("narrow", json!({ "viewport": { "width": 320, "height": 640 } })),
        (
            "enlarged",
            json!({ "viewport": { "width": 640, "height": 400 }, "device_scale_factor": 2 }),
        ),
    ] {
        let page = browser.open(options);
        page.goto(&shop.page_url(&id));
        let picture = dir.path().join(format!("{name}.png"));
        for (tab, text) in [("#tab-address", &address), ("#tab-link", &link)] {
            page.click(tab);
            page.screenshot(&picture);
            assert_eq!(read(&picture), [text.as_str()], "{name}, {tab}");
        }
        let modules = page.run(
            "[...document.querySelectorAll('.qr')].map(it => it.width.baseVal.value / it.viewBox.baseVal.width)",
        );
        let modules: Vec<f64> = serde_json::from_value(modules).unwrap();
        assert!(
            modules.iter().all(|pixels| *pixels >= 4.0 && pixels.fract() == 0.0),
            "{modules:?}"
        );
    }
    let page = browser.open(json!({ "color_scheme": "dark" }));
    page.goto(&shop.page_url(&id));
    let document = dir.path().join("page.pdf");
    page.pdf(&document);
    assert_eq!(read(&document), [link.as_str(), address.as_str()], "in alphabetical order");
    check_paper(&document, &shop.page_url(&id), &address);
}

/// Checks that a printed page holds its URL and the address, and takes one sheet.
fn check_paper(document: &Path, url: &str, address: &str) {
    let script = "import sys, pypdfium2\nfor page in pypdfium2.PdfDocument(sys.argv[1]):\n \
                  print(page.get_textpage().get_text_range().replace('\\r\\n', '').replace('\\n', ''))";
    let done = Done::of(python_with("qr").args(["-c", script]).arg(document));
    assert_eq!(done.code, 0, "{}", done.stderr);
    let sheets: Vec<_> = done.stdout.lines().collect();
    let [sheet] = sheets.as_slice() else { panic!("{sheets:?}") };
    for text in [url, address, "123456789", "tea"] {
        assert!(sheet.contains(text), "{text}: {sheet}");
    }
    for text in ["Copy", "Print", "Time left", "Check again"] {
        assert!(!sheet.contains(text), "{text}: {sheet}");
    }
}

#[test]
fn shops_can_show_the_codes_in_their_own_pages() {
    let shop = shop();
    let id = shop.invoice(5_000);
    let [address, link] = expected(&shop, &id, "0.00005");
    let dir = TempDir::new().unwrap();
    let browser = Browser::start();
    // This page has another origin.
    let page = browser.open(json!({}));
    let show = "url => new Promise((shown, failed) => {
        const picture = new Image();
        picture.onload = () => shown(true);
        picture.onerror = failed;
        picture.src = url;
        document.body.replaceChildren(picture);
    })";
    for (query, text) in [("", &address), ("?form=address", &address), ("?form=link", &link)] {
        let path = format!("/pay/{id}/qr.svg{query}");
        let reply = shop.server.payments().get(&path);
        assert_eq!((reply.status, reply.header("content-type")), (200, Some("image/svg+xml")));
        assert_eq!(shop.server.payments().request("HEAD", &path, b"").status, 200);
        let url = format!("http://{}{path}", shop.server.payments().address());
        assert_eq!(page.run_with(show, json!(url)), true);
        let picture = dir.path().join("code.png");
        page.screenshot(&picture);
        assert_eq!(read(&picture), [text.as_str()], "{query}");
    }
    for method in ["GET", "HEAD"] {
        let reply =
            shop.server.payments().request(method, &format!("/pay/{id}/qr.svg?form=x"), b"");
        assert_eq!(reply.status, 400);
    }
}

/// What a wallet reads from a code: the address, the amount in satoshis if it uses one, and the
/// payment URL if it uses one.
type Scanned = (String, Option<u64>, Option<String>);

/// BSV Browser, HandCash, BSV Desktop and Yours read a bare address, and nothing else.
fn bare_address(text: &str) -> Option<Scanned> {
    let is_address =
        text.bytes().all(|c| c.is_ascii_alphanumeric()) && (26..=35).contains(&text.len());
    is_address.then(|| (text.to_owned(), None, None))
}

/// BSV Browser also reads `bitcoin:ADDRESS?amount=`, and ignores the amount.
fn bsv_browser(text: &str) -> Option<Scanned> {
    let address = text.strip_prefix("bitcoin:")?.split('?').next()?;
    bare_address(address)
}

/// ElectrumSV (`parse_URI`) requires `sv`. Amounts are decimal numbers of BSV, and `r` is the
/// payment URL.
fn electrum_sv(text: &str) -> Option<Scanned> {
    let (address, query) = text.strip_prefix("bitcoin:")?.split_once('?')?;
    let members: Vec<(String, String)> = query
        .split('&')
        .map(|member| member.split_once('=').unwrap_or((member, "")))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    let member = |wanted: &str| {
        let mut found = members.iter().filter(|(name, _)| name == wanted);
        let first = found.next().map(|(_, value)| value.clone());
        found.next().is_none().then_some(first).flatten()
    };
    member("sv")?;
    let amount = match member("amount") {
        Some(amount) => {
            let (whole, rest) = amount.split_once('.').unwrap_or((&amount, ""));
            let rest: u64 = format!("{rest:0<8}").parse().ok().filter(|_| rest.len() <= 8)?;
            Some(whole.parse::<u64>().ok()? * 100_000_000 + rest)
        }
        None => None,
    };
    Some((address.to_owned(), amount, member("r")))
}

/// Wallets of the Direct Payment Protocol read a payment URL.
fn dpp(text: &str) -> Option<Scanned> {
    text.starts_with("http").then(|| (String::new(), None, Some(text.to_owned())))
}

#[test]
fn each_wallet_reads_one_of_the_codes() {
    let shop = shop();
    for (satoshis, amount) in [
        (1, "0.00000001"),
        (5_000, "0.00005"),
        (100_000_000, "1"),
        (2_100_000_000_000_000, "21000000"),
    ] {
        let id = shop.invoice(satoshis);
        let [address, link] = expected(&shop, &id, amount);
        let url = shop.payment_url(&id);
        type Wallet = (&'static str, fn(&str) -> Option<Scanned>);
        let address_only = || Some((address.clone(), None, None));
        let wallets: [(Wallet, &str, Option<Scanned>); 8] = [
            (("bare address", bare_address), &address, address_only()),
            (("bare address", bare_address), &link, None),
            (("BSV Browser", bsv_browser), &link, address_only()),
            (
                ("ElectrumSV", electrum_sv),
                &link,
                Some((address.clone(), Some(satoshis), Some(url.clone()))),
            ),
            (("ElectrumSV", electrum_sv), &address, None),
            (("ElectrumSV, without sv", electrum_sv), &link.replace("sv&", ""), None),
            (("DPP", dpp), &url, Some((String::new(), None, Some(url.clone())))),
            (("DPP", dpp), &link, None),
        ];
        for ((wallet, parse), text, expected) in wallets {
            assert_eq!(parse(text), expected, "{wallet}: {text}");
        }
        let terms = bsv_tests::Bill::at(&url).outputs();
        let paid: u64 = terms.iter().map(|output| output.satoshis).sum();
        assert_eq!(paid, satoshis);
        let script =
            bsv_tx::Address::parse(&address, bsv_tx::Network::Regtest).unwrap().locking_script();
        assert_eq!(terms[0].locking_script, script, "the address and the terms are of one script");
    }
}
