//! Only commands that are meant for that create a wallet.

use std::fs;
use std::path::Path;

use bsv_tests::build::cli_program;
use bsv_tests::{Done, Server, Site, vectors};
use serde_json::{Value, json};

/// Commands that need an existing wallet or identity.
const COMMANDS: [&[&str]; 31] = [
    &["status"],
    &["invoice", "create", "--satoshis", "1"],
    &["invoice", "get", "000000000000"],
    &["invoice", "list"],
    &["invoice", "delete", "000000000000", "--yes"],
    &["user", "create", "--name", "Ada"],
    &["user", "get", "1"],
    &["pay", "http://127.0.0.1/x"],
    &["outgoing", "list"],
    &["outgoing", "cancel", "1", "--yes"],
    &["wallet", "balance"],
    &["wallet", "words", "--yes"],
    &["wallet", "accept-clock"],
    &["wallet", "faucet", "http://127.0.0.1/x"],
    &["miner", "list"],
    &["miner", "id", "--name", "a"],
    &["miner", "rotate", "--name", "a"],
    &["miner", "revoke", "--name", "a", "--yes"],
    &["miner", "contact", "--name", "a", "k=v"],
    &["keystore", "verify"],
    &["token", "create", "--scope", "wallet:read"],
    &["token", "list"],
    &["token", "revoke", "00000000", "--yes"],
    &["audit", "list"],
    &["audit", "verify"],
    &["books", "verify"],
    &["config", "--name", "a", "k=v"],
    &["wallet", "balance"],
    &["miner", "list"],
    &["rotateminerid", "--name", "a"],
    &["miner", "script", "--name", "a", "--height", "1"],
];

#[test]
fn without_data_commands_fail_and_create_nothing() {
    let site = Site::new();
    let dir = site.data_dir().join("mistyped");
    let file = dir.to_str().unwrap();
    let run = |arguments: &[&str]| {
        let mut command = std::process::Command::new(cli_program());
        Done::of(command.args(arguments).args(["--data-dir", file]).env_remove("BSV_CONFIG"))
    };
    for arguments in COMMANDS {
        let done = run(arguments);
        assert_eq!((done.code, done.stdout.as_str()), (1, ""), "{arguments:?}: {done:?}");
        assert!(done.stderr.contains(file), "{arguments:?}: {}", done.stderr);
        assert!(done.stderr.contains("\nhint: "), "{arguments:?}: {}", done.stderr);
        assert!(!dir.exists(), "{arguments:?} makes a directory");
    }
    let done = run(&["wallet", "balance", "--json"]);
    let error: Value = serde_json::from_str(&done.stderr).unwrap();
    assert_eq!(error["code"], "nothing-there");
    let backup = site.data_dir().join("backup");
    fs::write(site.data_dir().join("passphrase"), "x").unwrap();
    let passphrase = site.data_dir().join("passphrase");
    let arguments = ["--passphrase-file", passphrase.to_str().unwrap()];
    let done = run(&[&["backup", backup.to_str().unwrap()], &arguments[..]].concat());
    assert_eq!(done.code, 1, "{done:?}");
    assert!(!dir.exists() && !backup.exists());
}

#[test]
fn a_scan_keeps_its_progress_only_where_it_may() {
    let node = bsv_tests::Node::start();
    node.mine(3);
    let site = Site::on(&node);
    let refused = site.cli(&["miner", "scan", "--from", "1"]);
    assert_eq!((refused.code, refused.stderr.contains("--progress")), (1, true), "{refused:?}");
    assert!(!site.network_dir().exists());
    let file = site.data_dir().join("progress");
    site.cli_ok(&["miner", "scan", "--from", "1", "--progress", file.to_str().unwrap()]);
    assert!(file.exists() && !site.network_dir().exists());
    site.cli_ok(&["init"]);
    site.cli_ok(&["miner", "scan", "--from", "1"]);
}

#[test]
fn identities_are_begun_without_a_wallet() {
    let site = Site::new();
    site.cli_ok(&["miner", "create", "--name", "a", "--protocol", "1.0"]);
    assert!(!site.network_dir().join("wallet.redb").exists());
    let done = site.cli(&["wallet", "balance"]);
    assert_eq!((done.code, done.stderr.contains("no wallet")), (1, true), "{done:?}");
    site.cli_ok(&["status"]);

    let site = Site::new();
    let home = vectors::write_home(&vectors::minerid_0_2(), site.data_dir());
    site.cli_ok(&["miner", "import", "--from", home.to_str().unwrap()]);
    assert!(!site.network_dir().join("wallet.redb").exists());
    // A server makes what is missing.
    let _server = site.server();
    assert_eq!(site.cli_ok(&["wallet", "balance"]), "0 satoshis");
}

fn files(dir: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<_> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some())
        .map(|path| (path.display().to_string(), fs::read(path).unwrap()))
        .collect();
    files.sort();
    files
}

#[test]
fn init_begins_a_wallet_that_a_server_serves_and_never_begins_another() {
    let mut site = Site::new();
    site.set_env("BSV_KEYSTORE_PASSPHRASE", "of the keys");
    let said = site.cli_ok(&["init"]);
    let dir = site.network_dir().display().to_string();
    for part in [dir.as_str(), "a wallet and a store of identities", "wallet words", "bsv-server"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(!said.contains("NOT sealed"), "{said}");
    let words = site.cli_ok(&["wallet", "words", "--yes"]);
    let keys = site.network_dir().join("keystore");
    let before = files(&keys);
    let seed = words.split(' ').next().unwrap().as_bytes();
    assert!(before.iter().all(|(_, bytes)| !bytes.windows(seed.len()).any(|part| part == seed)));
    let check_again = |site: &Site| {
        let again = site.cli(&["init", "--json"]);
        let error: Value = serde_json::from_str(&again.stderr).unwrap();
        assert_eq!((again.code, again.stdout.as_str()), (1, ""));
        assert_eq!(error["code"], "there-already");
    };
    check_again(&site);
    let server: Server = site.server();
    check_again(&site);
    assert_eq!(server.wallet().get("/api/v1/balance").body, r#"{"satoshis":0}"#);
    assert_eq!(server.stop(), 0);
    assert_eq!(files(&keys), before);
    assert_eq!(site.cli_ok(&["wallet", "words", "--yes"]), words);
}

#[test]
fn init_makes_what_the_settings_enable() {
    let site = Site::with(json!({ "wallet": { "enabled": false } }));
    let made = site.cli_json(&["init"]);
    assert_eq!((&made["wallet"], &made["minerid"]), (&json!(false), &json!(true)));
    assert_eq!(made["isSealed"], false);
    assert!(!site.network_dir().join("wallet.redb").exists());
    let both = json!({ "wallet": { "enabled": false }, "minerid": { "enabled": false } });
    let site = Site::with(both);
    assert_eq!(site.cli(&["init"]).code, 1);
    assert!(!site.network_dir().exists());
}
