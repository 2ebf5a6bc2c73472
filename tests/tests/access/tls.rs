//! Listeners that speak TLS, and the files that they read for it.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use bsv_tests::tls::{self, TlsStream, VERSIONS, certificate, setting, shown};
use bsv_tests::{Client, Server, Site};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A server whose wallet listener reads its certificate and key from files that change.
struct Shop {
    server: Server,
    /// Holds `live`, as tools for certificates leave it: links to the newest pair.
    dir: TempDir,
    _site: Site,
}

impl Shop {
    /// Begins with the certificate `payee`.
    fn open() -> Self {
        let dir = TempDir::new().unwrap();
        fs::create_dir(dir.path().join("live")).unwrap();
        link(&dir, "payee.pem", "certificate");
        link(&dir, "payee.key", "key");
        let live = |name: &str| dir.path().join("live").join(name);
        let tls = json!({"certificate": live("certificate"), "key": live("key")});
        let site = Site::with(json!({"wallet": {"tls": tls}}));
        let server = site.server_logging_to(&dir.path().join("log"), &[]);
        Self { server, dir, _site: site }
    }

    /// Has one of the links lead to another file.
    fn link(&self, file: &str, name: &str) {
        link(&self.dir, file, name);
    }

    fn replace(&self, pair: &str) {
        self.link(&format!("{pair}.pem"), "certificate");
        self.link(&format!("{pair}.key"), "key");
    }

    fn shows(&self, name: &str) -> bool {
        shown(self.server.wallet().address()) == certificate(name)
    }

    /// How many lines of the log hold this.
    fn logged(&self, text: &str) -> usize {
        let log = fs::read_to_string(self.dir.path().join("log")).unwrap();
        log.lines().filter(|line| line.contains(text)).count()
    }
}

fn link(dir: &TempDir, file: &str, name: &str) {
    let fresh = dir.path().join("fresh");
    symlink(tls::file(file), &fresh).unwrap();
    fs::rename(fresh, dir.path().join("live").join(name)).unwrap();
}

fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < deadline, "in vain: {what}");
        sleep(Duration::from_millis(50));
    }
}

/// What the log says of files that are in use, and of those that cannot be.
const TAKEN: &str =
    "INFO bsv_server::http::tls: wallet.tls: new connections get the certificate in ";
const REFUSED: &str = "The certificate that was read before stays in use.";

#[test]
fn each_listener_has_a_certificate_of_its_own() {
    let site = Site::with(json!({
        "tls": setting("pool"),
        "wallet": {"tls": setting("shop")},
        "payments": {"tls": setting("payee"), "trustedProxies": ["127.0.0.1"], "requestBurst": 1,
                     "requestsPerSecond": 1},
    }));
    let server = site.server();
    let [minerid, wallet, payments] = [server.minerid(), server.wallet(), server.payments()];
    for (listener, name) in [(minerid, "pool"), (wallet, "shop"), (payments, "payee")] {
        assert_eq!(shown(listener.address()), certificate(name));
        assert_eq!(listener.get("/readyz").status, 200);
    }
    assert_eq!(minerid.get("/minerid/nobody").status, 422);
    let invoice = wallet.post("/api/v1/invoices", json!({"satoshis": 1000}).to_string());
    assert_eq!(invoice.status, 201, "{}", invoice.body);
    let link = format!("<https://{}/dpp/api/v1/payment/", payments.address());
    assert!(invoice.header("link").unwrap().starts_with(&link), "{invoice:?}");
    let ask = |payer| {
        let headers = [("X-Forwarded-For", payer)];
        payments.send("GET", "/api/v1/payment/x", &headers, b"").status
    };
    assert_eq!(ask("203.0.113.1"), 404);
    assert_eq!([(); 5].map(|()| ask("203.0.113.1")).iter().max(), Some(&429));
    assert_eq!(ask("203.0.113.2"), 404, "another payer");
}

#[test]
fn both_versions_of_tls_carry_http_1_1() {
    let site = Site::with(json!({"wallet": {"tls": setting("payee")}}));
    let server = site.server();
    let address = server.wallet().address();
    let handshake = |version, protocols: &[&str]| {
        let mut config = tls::client_config(&[version]);
        config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        let mut stream = tls::over_with(TcpStream::connect(address).unwrap(), &Arc::new(config));
        stream.conn.complete_io(&mut stream.sock).map(|_| stream)
    };
    for version in VERSIONS {
        for (offered, chosen) in [
            (&["h2", "http/1.1"][..], Some(&b"http/1.1"[..])),
            (&["http/1.1"], Some(b"http/1.1")),
            (&[], None),
        ] {
            let mut stream = handshake(version, offered).unwrap();
            assert_eq!(stream.conn.protocol_version(), Some(version.version));
            assert_eq!(stream.conn.alpn_protocol(), chosen);
            let request = "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n";
            stream.write_all(request.as_bytes()).unwrap();
            let mut answer = String::new();
            // Without the end that TLS asks for, this fails.
            stream.read_to_string(&mut answer).unwrap();
            assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("ok"), "{answer}");
        }
        handshake(version, &["h2"]).unwrap_err();
    }
}

#[test]
fn a_long_answer_and_a_long_request_come_whole() {
    let site = Site::with(json!({"wallet": {"tls": setting("payee")}}));
    let server = site.server();
    let description = "x".repeat(1000);
    let body = json!({"satoshis": 1000, "description": description}).to_string();
    for _ in 0..500 {
        assert_eq!(server.wallet().post("/api/v1/invoices", &body).status, 201);
    }
    let reply = server.wallet().get("/api/v1/invoices");
    let invoices: Vec<Value> = serde_json::from_str(&reply.body).unwrap();
    assert_eq!(invoices.len(), 500);
    let reply = server.wallet().post("/api/v1/invoices", " ".repeat(1 << 20) + "x");
    assert_eq!(reply.status, 413);
    let reply =
        server.wallet().post("/api/v1/invoices", " ".repeat((1 << 20) - body.len()) + &body);
    assert_eq!(reply.status, 201);
}

#[test]
fn a_pair_that_is_replaced_is_shown_to_those_who_come_then() {
    let shop = Shop::open();
    assert!(shop.shows("payee"));
    let mut standing = tls::connect(shop.server.wallet().address()).unwrap();
    for pair in ["shop", "pool"] {
        shop.replace(pair);
        wait_until("the new certificate is shown", || {
            assert!(is_answered(&mut standing));
            shop.shows(pair)
        });
    }
    assert!(is_answered(&mut standing));
    assert_eq!((shop.logged(TAKEN), shop.logged("ERROR")), (2, 0));
}

/// Whether a connection that stands carries one more request.
fn is_answered(stream: &mut TlsStream) -> bool {
    stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\nok") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        answer.push(byte[0]);
    }
    answer.starts_with(b"HTTP/1.1 200")
}

#[test]
fn a_hang_up_has_the_files_read_again() {
    let shop = Shop::open();
    // Nothing but the signal tells that these are to be read.
    for reads in 1..=3 {
        shop.server.hang_up();
        wait_until("the files are read again", || shop.logged(TAKEN) == reads);
    }
    shop.replace("shop");
    shop.server.hang_up();
    wait_until("the new certificate is shown", || shop.shows("shop"));
}

#[test]
fn a_bad_pair_is_refused_and_the_old_one_stays_in_use() {
    let shop = Shop::open();
    shop.link("shop.pem", "certificate");
    wait_until("a half of a new pair is refused", || shop.logged(REFUSED) == 1);
    assert_eq!(shop.logged("wallet.tls.key: "), 1);
    assert_eq!(shop.logged("is not the key of the first certificate in "), 1);
    assert!(shop.shows("payee"));
    shop.server.hang_up();
    wait_until("it is refused again", || shop.logged(REFUSED) == 2);
    fs::remove_file(shop.dir.path().join("live/certificate")).unwrap();
    wait_until("a missing file is told", || shop.logged(REFUSED) == 3);
    assert_eq!(shop.logged("cannot be read: No such file or directory"), 1);
    assert!(shop.shows("payee"));
    assert_eq!(shop.server.wallet().get("/healthz").status, 200);
    shop.replace("shop");
    wait_until("the other half makes it good", || shop.shows("shop"));
    assert_eq!((shop.logged(TAKEN), shop.logged(REFUSED)), (1, 3));
}

#[test]
fn a_hang_up_ends_no_server() {
    let mut site = Site::new();
    site.set_env("BSV_LOG", "off");
    let mut server = site.server();
    for _ in 0..3 {
        server.hang_up();
        assert!(server.is_alive());
        assert_eq!(server.get("/healthz").status, 200);
    }
    assert_eq!(server.stop(), 0);
}

/// What a server complains about that does not start with these settings.
fn complaint(settings: Value) -> String {
    let done = Site::with(settings).try_server().unwrap_err();
    assert_eq!(done.code, 1, "{}", done.stderr);
    done.stderr
}

#[test]
fn files_that_no_listener_can_speak_tls_with_are_named() {
    let dir = TempDir::new().unwrap();
    let write = |name: &str, text: &str| -> PathBuf {
        let path = dir.path().join(name);
        fs::write(&path, text).unwrap();
        path
    };
    let key = fs::read_to_string(tls::file("payee.key")).unwrap();
    let secret = key.lines().nth(1).unwrap();
    let missing = dir.path().join("missing");
    let empty = write("empty", "");
    let one_line = write("one-line", &key.replace('\n', ""));
    let cut = write("cut", &key[..key.len() - 40]);
    let odd = write("odd", &key.replace(secret, &format!("{secret}!?")));
    let no_certificate =
        write("no-certificate", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
    let no_key = write("no-key", &key.replace(secret, &secret.replace('M', "N")));
    let [pem, shop_pem, shop_key] = ["payee.pem", "shop.pem", "shop.key"].map(tls::file);
    let key = tls::file("payee.key");
    for (certificate, key, reason) in [
        (&missing, &key, "certificate: FILE cannot be read: No such file"),
        (&pem, &missing, "key: FILE cannot be read: No such file"),
        (&empty, &key, "certificate: FILE holds no certificate in PEM form"),
        (&key, &pem, "certificate: FILE holds no certificate in PEM form"),
        (&one_line, &key, "certificate: FILE holds no certificate in PEM form"),
        (&no_certificate, &key, "certificate: FILE cannot be used: "),
        (&pem, &shop_pem, "key: FILE holds no private key in PEM form"),
        (&pem, &empty, "key: FILE holds no private key in PEM form"),
        (&pem, &one_line, "key: FILE holds no private key in PEM form"),
        (&pem, &cut, "key: FILE holds no private key in PEM form"),
        (&pem, &odd, "key: FILE holds no private key in PEM form"),
        (&pem, &no_key, "key: FILE cannot be used: "),
        (&pem, &shop_key, "key: FILE is not the key of the first certificate in "),
    ] {
        let file = if reason.starts_with("certificate") { certificate } else { key };
        let reason = reason.replace("FILE", file.to_str().unwrap());
        let stderr =
            complaint(json!({"payments": {"tls": {"certificate": certificate, "key": key}}}));
        assert!(stderr.contains(&format!("bsv-server: payments.tls.{reason}")), "{stderr}");
        assert!(!stderr.contains(&secret[..8]), "{stderr}");
    }
    let settings = |tls: Value| [json!({"tls": tls}), json!({"wallet": {"tls": tls}})];
    for (settings, setting) in settings(json!({"certificate": missing, "key": key}))
        .into_iter()
        .zip(["bsv-server: tls.certificate: ", "bsv-server: wallet.tls.certificate: "])
    {
        assert!(complaint(settings.clone()).contains(setting), "{settings}");
    }
    for (tls, reason) in [
        (json!({"certificate": pem}), "tls: missing field `key`"),
        (json!({"key": key}), "tls: missing field `certificate`"),
        (json!({"certificate": pem, "key": key, "port": 1}), "tls.port: unknown field `port`"),
        (json!(true), "tls: invalid type"),
    ] {
        for settings in settings(tls) {
            let stderr = complaint(settings);
            assert!(stderr.contains(reason), "{stderr}");
        }
    }
}

#[test]
fn a_listener_that_others_reach_in_the_clear_is_warned_of() {
    let warnings = |settings: Value| {
        let dir = TempDir::new().unwrap();
        let log = dir.path().join("log");
        let server = Site::with(settings).server_logging_to(&log, &[]);
        assert_eq!(server.stop(), 0);
        let log = fs::read_to_string(log).unwrap();
        let warned = log.lines().filter(|line| line.contains("is reachable from other machines"));
        warned.map(|line| line[line.rfind(": set ").unwrap() + 6..].to_owned()).collect::<Vec<_>>()
    };
    let anywhere = "0.0.0.0";
    let local = "listen on 127.0.0.1 behind a front end that encrypts";
    let exposed = json!({
        "host": anywhere, "auth": {"requireToken": true}, "wallet": {"host": anywhere},
        "payments": {"host": anywhere, "publicUrl": "http://pay.example"},
    });
    let expected = [
        format!("tls, or {local}"),
        format!("wallet.tls, or {local}"),
        "payments.tls, or name the front end that encrypts in payments.trustedProxies".to_owned(),
    ];
    assert_eq!(warnings(exposed), expected);
    let protected = [
        json!({"auth": {"requireToken": true}}),
        json!({
            "host": anywhere, "tls": setting("pool"), "auth": {"requireToken": true},
            "wallet": {"host": anywhere, "tls": setting("shop")},
            "payments": {"host": anywhere, "tls": setting("payee"), "publicUrl": "http://a.example"},
        }),
        json!({
            "host": anywhere, "allowUnauthenticated": true, "wallet": {"host": anywhere},
            "payments": {"host": anywhere, "publicUrl": "https://pay.example"},
        }),
        json!({"payments": {
            "host": anywhere, "publicUrl": "http://a.example", "trustedProxies": ["10.0.0.1"],
        }}),
    ];
    for settings in protected {
        assert_eq!(warnings(settings.clone()), [""; 0], "{settings}");
    }
}

#[test]
fn who_speaks_no_tls_gets_no_http() {
    let site = Site::with(json!({"wallet": {"tls": setting("payee")}}));
    let server = site.server();
    let address = server.wallet().address();
    Client::new(address).try_request("GET", "/healthz", b"").unwrap_err();
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    assert!(!answer.starts_with(b"HTTP"), "{answer:?}");
    assert_eq!(server.wallet().get("/healthz").status, 200);
}
