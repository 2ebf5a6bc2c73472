//! The files of certificates and keys: read at the start, when they change, and when they are wrong.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::thread::sleep;
use std::time::{Duration, Instant};

use bsv_tests::tls::{self, TlsStream, certificate, shown};
use bsv_tests::{Server, Site};
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
        let server = site.server_logging_to(&dir.path().join("log"));
        Self { server, dir, _site: site }
    }

    /// Makes one of the links lead to another file.
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

    /// The number of lines of the log with this text.
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
        assert!(Instant::now() < deadline, "timed out, waiting for: {what}");
        sleep(Duration::from_millis(50));
    }
}

/// The log lines about files that are in use, and about unusable files.
const TAKEN: &str =
    "INFO bsv_server::http::tls: wallet.tls: new connections get the certificate in ";
const REFUSED: &str = "The previous certificate stays in use.";

#[test]
fn new_connections_get_a_replaced_certificate() {
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

/// Whether an open connection carries another request.
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
fn a_hang_up_signal_makes_the_server_read_the_files_again() {
    let shop = Shop::open();
    // Only the signal makes the server read these files.
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

/// The error of a server that does not start with these settings.
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
