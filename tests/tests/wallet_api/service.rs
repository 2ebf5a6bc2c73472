//! The wallet among the services: services that are switched off, a directory that another process
//! uses, and files that are missing.

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use bsv_tests::{Done, Site};
use serde_json::{Value, json};

use crate::wallet_api::{INVOICES, Owner, USERS};

pub(crate) fn names_in(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<_> = entries.map(|name| name.into_string().unwrap()).collect();
    names.sort();
    names
}

/// The owner of a wallet whose server has no other service.
pub(crate) fn owner_of_a_wallet_alone() -> Owner {
    Owner::start_on(Site::with(json!({"minerid": {"enabled": false}})))
}

/// Checks that the server does not start: exit code 1, nothing on standard output, and these
/// reasons.
pub(crate) fn check_refused(site: &Site, reasons: &[&str]) {
    let Err(Done { code, stdout, stderr }) = site.try_server() else {
        panic!("the server has started, not refused with {reasons:?}")
    };
    assert_eq!((code, stdout.as_str()), (1, ""), "{stderr}");
    for reason in reasons {
        assert!(stderr.contains(reason), "{reason}: {stderr}");
    }
}

#[test]
fn a_wallet_that_is_disabled_has_no_store_no_seed_and_no_listener() {
    let site = Site::with(json!({"wallet": {"enabled": false}}));
    let server = site.server();
    assert_eq!(server.get("/minerid/x").status, 422);
    assert_eq!(names_in(&site.network_dir()), ["control.sock", "keystore", "lock", "minerid"]);
    assert_eq!(names_in(&site.network_dir().join("keystore")), ["keystore.json", "lock"]);
    assert_eq!(server.get("/api/v1/balance").status, 404);
    let commands =
        [&["wallet", "balance"][..], &["invoice", "list"], &["wallet", "words", "--yes"]];
    for arguments in commands {
        let done = site.cli(arguments);
        let complaint = "bsv-cli: the wallet is disabled\n\
                         hint: enable it with minerid.enabled or wallet.enabled\n";
        assert_eq!((done.code, done.stdout.as_str(), &*done.stderr), (1, "", complaint));
    }
    assert_eq!(server.stop(), 0);
    for arguments in commands {
        let done = site.cli(arguments);
        assert_eq!((done.code, done.stdout.as_str()), (1, ""), "{arguments:?}");
        assert!(done.stderr.contains("the wallet is disabled"), "{}", done.stderr);
    }
    assert!(!site.network_dir().join("wallet.redb").exists());
    assert!(!site.network_dir().join("keystore/wallet.seed.key").exists());
}

#[test]
fn without_any_service_there_is_no_key() {
    let site = Site::with(json!({"minerid": {"enabled": false}, "wallet": {"enabled": false}}));
    let server = site.server();
    assert_eq!(names_in(&site.network_dir()), ["control.sock", "lock"]);
    assert_eq!(server.stop(), 0);
}

#[test]
fn the_second_process_on_a_data_directory_says_who_holds_it() {
    let owner = Owner::start();
    owner.create_invoice(r#"{"satoshis":1}"#);
    let holder = format!("is in use by bsv-server (process {})", owner.server.id());
    let dir = owner.site.network_dir().display().to_string();
    check_refused(&owner.site, &["bsv-server: ", &dir, &holder]);
    owner.check_alive(1);
    owner.restart().check_alive(1);
}

#[test]
fn acknowledged_invoices_and_users_survive_stops_and_kills() {
    let mut owner = Owner::start();
    let restarts: [fn(Owner) -> Owner; 2] = [Owner::restart, Owner::restart_after_kill];
    let mut invoices = Vec::new();
    for restart in restarts.into_iter().cycle().take(6) {
        let body =
            format!(r#"{{"satoshis":{},"description":"é\n","reference":"r"}}"#, invoices.len() + 1);
        invoices.push(owner.create(INVOICES, body));
        let user = owner.create(USERS, r#"{"name":"me"}"#);
        let path = format!("{USERS}/{}", invoices.len());
        owner = restart(owner);
        assert_eq!(owner.text(INVOICES), format!("[{}]", invoices.join(",")));
        assert_eq!(owner.text(&path), user);
    }
}

#[test]
fn a_stop_under_load_loses_no_acknowledged_invoice() {
    const CALLERS: usize = 16;
    let Owner { site, server } = Owner::start();
    let client = server.wallet().clone();
    let acknowledged = Mutex::new(BTreeSet::new());
    let create_until_it_ends = || {
        let headers = [("Content-Type", "application/json")];
        while let Ok(reply) = client.try_send("POST", INVOICES, &headers, br#"{"satoshis":1}"#) {
            assert_eq!(reply.status, 201, "{}", reply.body);
            let id = crate::wallet_api::json(&reply)["id"].as_str().unwrap().to_owned();
            assert!(acknowledged.lock().unwrap().insert(id));
        }
    };
    thread::scope(|scope| {
        for _ in 0..CALLERS {
            scope.spawn(create_until_it_ends);
        }
        thread::sleep(Duration::from_millis(500));
        assert_eq!(server.stop(), 0);
    });
    let owner = Owner::start_on(site);
    let stored = owner.ids(INVOICES).into_iter().collect::<BTreeSet<_>>();
    let acknowledged = acknowledged.into_inner().unwrap();
    assert!(acknowledged.len() > CALLERS && stored.is_superset(&acknowledged));
    assert!(stored.len() <= acknowledged.len() + CALLERS, "{} more", stored.len());
}

#[test]
fn a_request_in_flight_is_finished_before_the_server_stops() {
    let Owner { site, server } = Owner::start();
    let address = server.wallet().address().to_owned();
    let mut stream = TcpStream::connect(&address).unwrap();
    let request = format!(
        "POST {INVOICES} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         Expect: 100-continue\r\nContent-Length: 14\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).unwrap();
    // The server sends this as soon as the request is in flight.
    let mut told = [0; 25];
    stream.read_exact(&mut told).unwrap();
    assert_eq!(&told, b"HTTP/1.1 100 Continue\r\n\r\n");
    let mut answer = String::new();
    thread::scope(|scope| {
        let stopping = scope.spawn(|| server.stop());
        while TcpStream::connect(&address).is_ok() {
            thread::sleep(Duration::from_millis(10));
        }
        stream.write_all(br#"{"satoshis":9}"#).unwrap();
        stream.read_to_string(&mut answer).unwrap();
        assert_eq!(stopping.join().unwrap(), 0);
    });
    assert!(answer.starts_with("HTTP/1.1 201 Created\r\n"), "{answer}");
    let invoice = answer.split("\r\n\r\n").nth(1).unwrap();
    assert_eq!(Owner::start_on(site).text(INVOICES), format!("[{invoice}]"));
}

#[test]
fn a_seed_that_is_lost_or_of_another_wallet_is_not_replaced() {
    let owner = owner_of_a_wallet_alone();
    owner.create_invoice(r#"{"satoshis":1}"#);
    let Owner { site, server } = owner;
    assert_eq!(server.stop(), 0);
    let seed_name = |site: &Site| {
        let names = names_in(&site.network_dir().join("keystore"));
        names.into_iter().find(|name| name.contains("seed")).unwrap()
    };
    let keystore = site.network_dir().join("keystore");
    let seed = keystore.join(seed_name(&site));
    let kept = fs::read(&seed).unwrap();

    fs::remove_file(&seed).unwrap();
    let missing =
        "the keystore has no seed for this wallet (wallet.seed.key): restore it from a backup";
    for _ in 0..2 {
        check_refused(&site, &[missing]);
        let done = site.cli(&["wallet", "balance"]);
        assert_eq!((done.code, done.stdout.as_str()), (1, ""));
        assert!(done.stderr.contains(missing), "{}", done.stderr);
        assert!(!seed.exists(), "no new seed is made");
    }

    fs::write(&seed, &kept[..kept.len() - 1]).unwrap();
    check_refused(&site, &["wallet.seed"]);

    let other = Owner::start();
    let other_keystore = other.site.network_dir().join("keystore");
    assert_eq!(other.server.stop(), 0);
    let aside = site.data_dir().join("aside");
    fs::rename(&keystore, &aside).unwrap();
    fs::rename(&other_keystore, &keystore).unwrap();
    check_refused(&site, &["the seed in the keystore is not that of this wallet"]);
    fs::rename(&keystore, &other_keystore).unwrap();
    fs::rename(&aside, &keystore).unwrap();

    fs::write(&seed, &kept).unwrap();
    Owner::start_on(site).check_alive(1);
}

#[test]
fn settings_that_cannot_be_used_are_named() {
    for (settings, reason) in [
        (json!({"wallet": {"paymentExpiryHours": 0}}), "wallet.paymentExpiryHours must be from 1"),
        (json!({"wallet": {"paymentExpiryHours": 87_601}}), "wallet.paymentExpiryHours must be"),
        (json!({"wallet": {"paymentExpiryHours": -1}}), "wallet.paymentExpiryHours: "),
        (json!({"wallet": {"paymentExpiryHours": 1.5}}), "wallet.paymentExpiryHours: "),
        (json!({"wallet": {"paymentExpiryHours": "24"}}), "wallet.paymentExpiryHours: "),
        (json!({"wallet": {"cacheMegabytes": 0}}), "wallet.cacheMegabytes must be from 1"),
        (json!({"wallet": {"host": "0.0.0.0"}}), "wallet.host is reachable from other machines"),
        (json!({"wallet": {"host": "::"}}), "allowUnauthenticated = true"),
        (json!({"wallet": {"host": "localhost"}}), "wallet.host: "),
        (json!({"wallet": {"port": 65_536}}), "wallet.port: "),
        (json!({"wallet": {"enabled": "yes"}}), "wallet.enabled: "),
        (json!({"wallet": {"expiry": 1}}), "wallet.expiry: unknown field `expiry`"),
        (json!({"payments": {"publicURL": "x"}}), "unknown field `publicURL`"),
    ] {
        check_setting(settings, reason);
    }
    for url in [
        "",
        "nonsense",
        "pay.example.com",
        "/shop",
        "//pay.example.com",
        "ftp://pay.example.com",
        "http://",
        "https:///shop",
        "https://pay.example.com?x=y",
        "https://pay.example.com/shop?",
        "https://pay.example.com/#x",
        "https://pay example.com",
        "https://pay.example.com/a b",
        "https://pay.example.com/\r\nX-Evil: 1",
        "https://pay.example.com/>; rel=\"x\"",
        "https://me:secret@pay.example.com",
    ] {
        let settings = json!({"payments": {"publicUrl": url}});
        check_setting(settings, "payments.publicUrl must be a URL such as https://pay.example.com");
    }
}

/// Checks that both programs refuse these settings, and that both say why.
fn check_setting(settings: Value, reason: &str) {
    let site = Site::with(settings.clone());
    check_refused(&site, &["bsv-server: ", reason]);
    for arguments in [&["config", "check"][..], &["wallet", "balance"]] {
        let done = site.cli(arguments);
        assert_eq!((done.code, done.stdout.as_str()), (1, ""), "{settings}");
        assert!(done.stderr.contains(reason), "{settings}: {}", done.stderr);
    }
    assert!(!site.network_dir().exists(), "{settings}");
}

/// A payment URL is sent in a header, which can hold only ASCII.
#[test]
fn a_public_url_that_no_header_can_hold_is_refused() {
    for url in ["https://pay.example.com/caf\u{e9}", "https://pay.example.com/\u{7f}"] {
        let settings = json!({"payments": {"publicUrl": url}});
        check_setting(settings, "payments.publicUrl must be a URL such as https://pay.example.com");
    }
}

#[test]
fn a_wallet_behind_a_front_end_may_listen_at_any_address() {
    let settings = json!({"wallet": {"host": "0.0.0.0"}, "allowUnauthenticated": true});
    let owner = Owner::start_on(Site::with(settings));
    assert!(owner.client().address().starts_with("0.0.0.0:"));
    owner.check_alive(0);
    let owner = Owner::start_on(Site::with(json!({"wallet": {"host": "::1"}})));
    assert!(owner.client().address().starts_with("[::1]:"));
    owner.check_alive(0);
    let port = owner.client().address().rsplit(':').next().unwrap().parse::<u16>().unwrap();
    let taken = Site::with(json!({"wallet": {"host": "::1", "port": port}}));
    let Err(done) = taken.try_server() else { panic!("two listeners on port {port}") };
    assert_eq!(done.code, 1);
    assert!(done.stderr.contains(&format!("cannot listen on [::1]:{port}: ")), "{}", done.stderr);
}
