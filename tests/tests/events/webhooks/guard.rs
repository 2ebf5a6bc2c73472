//! Webhooks that would make the server connect to forbidden addresses.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use bsv_tests::payee::Answer;
use bsv_tests::tls::authority;
use bsv_tests::{Client, Receiver, Site};
use serde_json::{Value, json};

use super::{WEBHOOKS, answered, path, post, shop, text, until, webhook};
use crate::events::{Shop, check_problem};

/// A listener that counts connections and answers each with 200.
struct Trap {
    address: String,
    count: Arc<AtomicUsize>,
}

impl Trap {
    fn set() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let count = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&count);
        thread::spawn(move || {
            for stream in listener.incoming() {
                counted.fetch_add(1, Ordering::SeqCst);
                let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
                let _ = stream.and_then(|mut stream| {
                    let _request = stream.read(&mut [0; 4096])?;
                    stream.write_all(answer)
                });
            }
        });
        Self { address, count }
    }

    fn connections(&self) -> usize {
        self.count.load(Ordering::SeqCst)
    }
}

fn create(client: &Client, url: &str) -> bsv_tests::Reply {
    post(client, WEBHOOKS, &json!({ "url": url }))
}

/// The outcome of a test message to a URL. The webhook is then deleted.
fn tried(client: &Client, url: &str) -> Value {
    let id = text(&answered(&create(client, url), 201), "id");
    let attempt = answered(&post(client, &format!("{}/test", path(&id)), &json!({})), 200);
    assert_eq!(client.request("DELETE", &path(&id), b"").status, 204);
    attempt
}

/// Addresses outside the public Internet, in spellings of URLs.
const INTERNAL: [&str; 38] = [
    "127.0.0.1",
    "127.1",
    "127.255.255.254",
    "2130706433",
    "0x7f.1",
    "0177.0.0.1",
    "0x7f000001",
    "127.0.0.1.",
    "127%2e0.0.1",
    "１２７.0.0.1",
    "0",
    "0.0.0.0",
    "10.0.0.1",
    "100.64.0.1",
    "169.254.169.254",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.1",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.0.1",
    "192.168.257",
    "198.18.0.1",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "255.255.255.255",
    "[::]",
    "[::1]",
    "[::ffff:127.0.0.1]",
    "[::ffff:a00:1]",
    "[fe80::1]",
    "[fd00::1]",
    "[ff02::1]",
    "[2001:db8::1]",
    "[2002:7f00:1::]",
    "[64:ff9b::7f00:1]",
    "[64:ff9b:1::1]",
];

#[test]
fn internal_addresses_are_refused_however_they_are_spelt() {
    let trap = Trap::set();
    let port = trap.address.rsplit_once(':').unwrap().1;
    let mut site = Site::new();
    let proxy = format!("http://{}", trap.address);
    for variable in ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY"] {
        site.set_env(variable, &proxy);
    }
    let shop = Shop::start_on(site);
    let client = shop.client();
    for host in INTERNAL {
        for scheme in ["http", "https"] {
            let reply = create(client, &format!("{scheme}://{host}:{port}/x"));
            let problem = check_problem(&reply, 400, "invalid-fields");
            let why = problem["errors"]["url"][0].as_str().unwrap();
            assert!(why.contains("allowNetworks"), "{host}: {why}");
        }
    }
    // Names are looked up for each connection.
    let attempt = tried(client, &format!("https://localhost:{port}/x"));
    let came = (&attempt["status"], &attempt["failure"], &attempt["answer"]);
    assert_eq!(came, (&json!(null), &json!("blocked-address"), &json!("")));
    let attempt = tried(client, "https://no-such-name.invalid/");
    assert_eq!(attempt["failure"], "dns");
    // Nobody has this address. Whatever the outcome, no proxy is used.
    check_problem(&create(client, "http://shop.example/"), 400, "invalid-fields");
    assert_eq!(trap.connections(), 0);
}

#[test]
fn an_opened_network_is_reached_without_proxies_and_redirects() {
    let trap = Trap::set();
    let mut site = super::site();
    for variable in ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"] {
        site.set_env(variable, format!("http://{}", trap.address));
    }
    let shop = Shop::start_on(site);
    let client = shop.client();
    let receiver = Receiver::start();
    let (id, _) = webhook(client, &receiver, json!({}));
    let elsewhere = format!("http://{}/", trap.address);
    receiver.reply_with(move |_| Answer::redirect(&elsewhere));
    shop.create_user();
    let delivery = format!("{}/deliveries", path(&id));
    let known = until(client, &delivery, |list| list[0]["attempts"][0]["status"] == 307);
    assert_eq!(known[0]["state"], "pending");
    assert_eq!(receiver.numbers()[0], 1);
    assert_eq!(trap.connections(), 0);
    // The trap is in an opened network, so that a redirect to it would be counted.
    assert_eq!(tried(client, &format!("http://{}/", trap.address))["failure"], json!(null));
    assert_eq!(trap.connections(), 1);
}

#[test]
fn our_own_listeners_are_never_reached_even_if_all_networks_are_open() {
    let open = json!({ "allowNetworks": ["0.0.0.0/0", "::/0"] });
    let own = Site::with(json!({ "webhooks": open }));
    let wild = Site::with(json!({
        "webhooks": open, "allowUnauthenticated": true, "host": "0.0.0.0",
        "wallet": { "host": "0.0.0.0" },
        "payments": { "host": "0.0.0.0", "publicUrl": "http://pay.example" },
    }));
    for (site, others) in [(own, &[][..]), (wild, &["127.0.0.2", "127.255.0.9"])] {
        let shop = Shop::start_on(site);
        let client = shop.client();
        let listeners = [shop.server.wallet(), shop.server.payments(), shop.server.minerid()];
        for listener in listeners {
            let port = listener.address().rsplit_once(':').unwrap().1;
            let hosts = ["127.0.0.1", "0.0.0.0", "0x7f.1", "[::ffff:127.0.0.1]"];
            for host in hosts.iter().chain(others) {
                let reply = create(client, &format!("http://{host}:{port}/healthz"));
                let problem = check_problem(&reply, 400, "invalid-fields");
                let why = &problem["errors"]["url"][0];
                assert!(why.as_str().unwrap().contains("not to this service"), "{host}: {why}");
            }
            let attempt = tried(client, &format!("http://localhost:{port}/healthz"));
            assert_eq!(attempt["failure"], "blocked-address", "{port}");
        }
        // Other listeners of this machine are reached.
        let receiver = Receiver::start();
        assert_eq!(tried(client, &receiver.url())["status"], 200);
    }
}

#[test]
fn without_tls_only_opened_networks_are_reached() {
    let shop = shop();
    let client = shop.client();
    for (url, is_taken) in [
        ("http://127.0.0.1:1/", true),
        ("https://127.0.0.1:1/", true),
        ("https://8.8.8.8/", true),
        ("http://8.8.8.8/", false),
        ("http://10.0.0.1/", false),
        ("https://10.0.0.1/", false),
    ] {
        let reply = create(client, url);
        assert_eq!(reply.status, if is_taken { 201 } else { 400 }, "{url}: {}", reply.body);
    }
}

#[test]
fn over_tls_events_go_only_to_endpoints_with_a_trusted_certificate() {
    let receiver = Receiver::secure();
    for is_trusted in [false, true] {
        let mut site = super::site();
        if is_trusted {
            site.set_env("SSL_CERT_FILE", authority());
        }
        let shop = Shop::start_on(site);
        let attempt = tried(shop.client(), &receiver.url());
        let came = (&attempt["status"], &attempt["failure"]);
        let expected = match is_trusted {
            true => (&json!(200), &json!(null)),
            false => (&json!(null), &json!("tls")),
        };
        assert_eq!(came, expected);
        assert_eq!(receiver.received().len(), usize::from(is_trusted));
    }
}
