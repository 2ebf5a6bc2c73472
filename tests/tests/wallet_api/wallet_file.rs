//! A wallet that lies in a file. These tests do not apply to a wallet in a database.

use std::fs;

use bsv_tests::Site;
use serde_json::json;

use crate::wallet_api::service::{check_refused, names_in, owner_of_a_wallet_alone};
use crate::wallet_api::{INVOICES, Owner, USERS};

#[test]
fn a_miner_identity_service_that_is_disabled_leaves_the_wallet_alone() {
    let owner = owner_of_a_wallet_alone();
    owner.create_invoice(r#"{"satoshis":1}"#);
    owner.check_alive(1);
    let dir = owner.site.network_dir();
    assert_eq!(names_in(&dir), ["control.sock", "keystore", "lock", "wallet.redb"]);
    assert!(names_in(&dir.join("keystore")).iter().any(|name| name.contains("wallet")));
    assert_eq!(owner.get("/minerid/x").status, 404);
    assert_eq!(owner.site.cli(&["miner", "list"]).code, 1);
    owner.restart().check_alive(1);
}

#[test]
fn a_store_that_is_damaged_is_named_and_left_alone() {
    let owner = owner_of_a_wallet_alone();
    owner.create_invoice(r#"{"satoshis":1}"#);
    let Owner { site, server } = owner;
    assert_eq!(server.stop(), 0);
    let path = site.network_dir().join("wallet.redb");
    let whole = fs::read(&path).unwrap();
    let garbage = vec![0x5a; whole.len()];
    let is_damaged = format!("{} is damaged", path.display());
    let cannot_open = format!("cannot open {}: ", path.display());
    for (damaged, reason) in [
        (&whole[..1000], &is_damaged),
        (&whole[..whole.len() / 2], &is_damaged),
        (&[], &cannot_open),
        (&garbage, &cannot_open),
    ] {
        fs::write(&path, damaged).unwrap();
        check_refused(&site, &[reason]);
        assert!(fs::read(&path).unwrap() == damaged, "it was changed");
    }
    fs::write(&path, &whole).unwrap();
    Owner::start_on(site).check_alive(1);
}

#[test]
fn a_store_that_is_lost_is_not_replaced_unless_the_owner_says_so() {
    let owner = owner_of_a_wallet_alone();
    let user = owner.create(USERS, r#"{"name":"me"}"#);
    let id = owner.create_invoice(r#"{"satoshis":1}"#);
    let words = owner.site.cli_ok(&["wallet", "words", "--yes"]);
    let Owner { site, server } = owner;
    assert_eq!(server.stop(), 0);
    fs::remove_file(site.network_dir().join("wallet.redb")).unwrap();
    for _ in 0..2 {
        let done = site.try_server().unwrap_err();
        assert_eq!(done.code, 1);
        assert!(done.stderr.contains("the wallet's store is missing"), "{}", done.stderr);
    }
    fs::remove_file(site.network_dir().join("keystore/wallet.adopted.key")).unwrap();
    let owner = Owner::start_on(site);
    owner.check_alive(0);
    assert_eq!(owner.get(&format!("{INVOICES}/{id}")).status, 404);
    assert_eq!(owner.get(&format!("{USERS}/1")).status, 404);
    assert_eq!(owner.create(USERS, r#"{"name":"me"}"#), user);
    assert_eq!(owner.site.cli_ok(&["wallet", "words", "--yes"]), words);
}

#[test]
fn config_show_prints_the_settings_of_the_wallet() {
    let site = Site::new();
    let shown = site.cli_json(&["config", "show"]);
    let nobody = json!({"name": "", "email": "", "address": "", "avatar": ""});
    let wallet = json!({
        "enabled": true, "host": "127.0.0.1", "port": 0, "paymentExpiryHours": 24,
        "cacheMegabytes": 48, "payLimitSatoshis": 2_100_000_000_000_000_u64, "maxFeeRate": 1000,
        "consolidate": false, "streams": 64, "underpaidTolerance": 0, "latePayments": "hold",
        "merchant": nobody,
    });
    assert_eq!(shown["wallet"], wallet);
    let payments = json!({
        "host": "127.0.0.1", "port": 0, "feeRate": 100,
        "connections": 1024, "connectionsPerPeer": 64, "requestsPerSecond": 20,
        "requestBurst": 100, "limitLoopback": false, "trustedProxies": [],
        "streams": 512, "streamsPerPeer": 4,
        "page": { "enabled": true, "browserWallets": true, "embedders": [], "showReference": false },
    });
    assert_eq!(shown["payments"], payments);
    let merchant = json!({
        "name": "A shop", "email": "a@shop.example", "address": "1 High Street",
        "avatar": "https://shop.example/a.png",
    });
    let wallet = json!({
        "enabled": true, "host": "127.0.0.2", "port": 7, "paymentExpiryHours": 1,
        "cacheMegabytes": 9, "payLimitSatoshis": 5000, "maxFeeRate": 7, "consolidate": true,
        "streams": 5, "underpaidTolerance": 5, "latePayments": "accept", "zeroConfLimitSatoshis": 700,
        "minedBlocks": 2,
        "zmq": "tcp://127.0.0.1:28332", "merchant": merchant,
    });
    let payments = json!({
        "host": "127.0.0.3", "port": 8, "publicUrl": "https://pay.example.com/shop", "feeRate": 3,
        "connections": 100, "connectionsPerPeer": 7, "requestsPerSecond": 2,
        "requestBurst": 5, "limitLoopback": true, "trustedProxies": ["10.0.0.0/8"],
        "streams": 9, "streamsPerPeer": 2,
        "page": {
            "enabled": false, "browserWallets": false, "embedders": ["https://shop.example"],
            "showReference": true,
        },
    });
    let site = Site::with(json!({"wallet": wallet, "payments": payments}));
    let shown = site.cli_json(&["config", "show"]);
    assert_eq!((&shown["wallet"], &shown["payments"]), (&wallet, &payments));
    let text = site.cli_ok(&["config", "show"]);
    for line in ["[wallet]", "payLimitSatoshis = 5000", "[payments]", "feeRate = 3"] {
        assert!(text.lines().any(|shown| shown == line), "{line} in {text}");
    }
    let site = Site::with(json!({"wallet": {"enabled": false}}));
    assert_eq!(site.cli_json(&["config", "show"])["wallet"]["enabled"], false);
}
