//! Texts that try to act as more than text: markup, scripts, control characters.

use bsv_tests::{Browser, Site, repetitions};
use serde_json::json;

use crate::page::shop::{Merchant, shop};

const TEXTS: [&str; 34] = [
    "<script>window.stung = 1</script>",
    "</bdi></p></main><script>window.stung = 1</script>",
    "<img src=x onerror=\"window.stung = 1\">",
    "<svg onload=window.stung=1>",
    "<svg><script>window.stung = 1</script></svg>",
    "<iframe srcdoc=\"<script>parent.stung = 1</script>\"></iframe>",
    "<base href=\"https://evil.example/\">",
    "<meta http-equiv=refresh content=\"0;url=https://evil.example/\">",
    "<link rel=stylesheet href=https://evil.example/x.css>",
    "<style>* { display: none }</style>",
    "<form action=https://evil.example><button>Pay</button></form>",
    "<a href=\"javascript:window.stung = 1\">tea</a>",
    "<!-- comment",
    "<![CDATA[ tea ]]>",
    "<plaintext>",
    "<textarea>",
    "\"><script>window.stung = 1</script>",
    "' onmouseover='window.stung = 1",
    "&lt;b&gt;tea&lt;/b&gt;",
    "&amp;amp; &#60;b&#62; &quot;",
    "{{ 7 * 7 }} {% include \"page.html\" %}",
    "${window.stung = 1} `${1}` \\u003cscript>",
    "tea\u{202e}gpj.exe",
    "\u{202e}\u{202d}\u{202a}\u{202b}\u{202c}tea",
    "\u{2066}\u{2067}\u{2068}tea\u{2069}",
    "\u{061c}\u{200e}\u{200f}",
    "שלום עולם 0.0005 BSV",
    "مرحبا 123 ABC",
    "tea\u{0}\u{1}\u{7}\u{8}\u{1b}[31m\u{7f}\u{9b}31m",
    "one\r\ntwo\rthree\n\nfour\tfive",
    "   spaces   \n   ",
    "t\u{0301}\u{0302}\u{0303}e\u{0304}\u{0305}\u{0306}a\u{0307}",
    "👨‍👩‍👧‍👦 🏳️‍🌈 tea",
    "\u{feff}\u{200b}\u{200d}\u{e0041}tea",
];

/// All texts, and some more of the greatest length.
fn texts() -> Vec<String> {
    let long = ["W", "<b>", "&amp;", "\u{202e}", "漢", "a\u{0301}\u{0302}\u{0303}"];
    let long = long.into_iter().map(|part| part.chars().cycle().take(1024).collect());
    TEXTS.into_iter().map(str::to_owned).chain(long).collect()
}

/// The text that the page must show for a text.
fn visible(text: &str) -> String {
    let turns = "\u{61c}\u{200e}\u{200f}\u{202a}\u{202b}\u{202c}\u{202d}\u{202e}\u{2066}\u{2067}\u{2068}\u{2069}";
    let show = |c: char| match c {
        '\n' => "\n".to_owned(),
        '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' => format!("\\u{:04x}", u32::from(c)),
        c if turns.contains(c) => format!("\\u{:04x}", u32::from(c)),
        c => c.to_string(),
    };
    text.chars().map(show).collect()
}

#[test]
fn descriptions_are_shown_as_they_are_written() {
    let shop = shop();
    let browser = Browser::start();
    let page = browser.open(json!({ "viewport": { "width": 320, "height": 640 } }));
    let texts = texts();
    assert_eq!(texts.len(), 40);
    let count = repetitions("hostile descriptions in a browser", texts.len(), 14);
    for text in texts.iter().step_by(texts.len().div_ceil(count)) {
        let id = shop.invoice_of(json!({ "satoshis": 1000, "description": text }));
        assert_eq!(page.goto(&shop.page_url(&id)), 200);
        let shown = page.run(
            "(() => {
                const shown = document.querySelector('.description bdi');
                return [shown.textContent, shown.children.length, 'stung' in window,
                    document.documentElement.scrollWidth <= innerWidth,
                    document.querySelector('main.pending h1').innerText];
            })()",
        );
        assert_eq!(shown, json!([visible(text), 0, false, true, "0.00001 BSV"]), "{text:?}");
        let told = page.told();
        let origin = format!("http://{}/", shop.server.payments().address());
        assert!(told.requests.iter().all(|url| url.starts_with(&origin)), "{text:?}: {told:?}");
        assert_eq!(told.complaints, Vec::<String>::new(), "{text:?}");
    }
}

#[test]
fn the_name_of_a_shop_and_its_picture_are_harmless_too() {
    let name = "</title><script>window.stung = 1</script>\u{202e}shop";
    let origin = "https://pay.example.com";
    for (avatar, is_shown) in [
        ("https://pay.example.com/logo.png?\"><script>window.stung = 1</script>", true),
        ("/logo.png", true),
        ("//evil.example/logo.png", false),
        ("https://pay.example.com.evil.example/logo.png", false),
        ("https://pay.example.com@evil.example/logo.png", false),
        ("javascript:window.stung = 1", false),
        ("data:image/png;base64,AAAA", false),
    ] {
        let site = Site::with(json!({
            "wallet": { "merchant": { "name": name, "avatar": avatar } },
            "payments": { "publicUrl": origin },
        }));
        let shop = Merchant { server: site.server(), site };
        let id = shop.invoice(1000);
        let html = shop.server.payments().get(&format!("/pay/{id}")).body;
        assert!(!html.contains("<script>window"), "{html}");
        assert!(html.contains("&#60;script&#62;"), "{html}");
        assert_eq!(html.contains("<img class=\"avatar\""), is_shown, "{avatar}");
    }
}
