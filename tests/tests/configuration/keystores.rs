//! The passphrase of a keystore.

use std::fs;
use std::path::{Path, PathBuf};

use bsv_tests::Site;
use bsv_tests::build::{cli_program, server_program};
use serde_json::json;
use tempfile::TempDir;

use super::programs::{Server, Source, check_refused, configured, names_in, run_ok};

#[test]
fn keys_of_the_main_network_are_sealed_unless_plain_ones_are_allowed() {
    let refused = "a passphrase is required for keystore";
    let dir = TempDir::new().unwrap();
    let livenet = json!({"network": "livenet", "port": 0});
    let server = &mut configured(server_program(), dir.path(), Source::File, &livenet);
    check_refused(server, &[refused]);
    let cli = &mut configured(cli_program(), dir.path(), Source::File, &livenet);
    check_refused(cli.args(["generateminerid", "-n", "pool"]), &[refused]);
    assert!(!dir.path().join("data/livenet/keystore/keystore.json").exists());

    let allowed = json!({"network": "livenet", "port": 0, "allowPlainKeystore": true});
    Server::start(&mut configured(server_program(), dir.path(), Source::File, &allowed)).stop();
    let server = &mut configured(server_program(), dir.path(), Source::File, &livenet);
    check_refused(server, &[refused]);
}

/// Everything in and below a directory, except locks and sockets.
fn contents(dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files = Vec::new();
    for name in names_in(dir) {
        let path = dir.join(&name);
        if path.is_dir() {
            files.extend(contents(&path));
        } else if !["lock", "control.sock"].contains(&name.as_str()) {
            files.push((path.clone(), fs::read(path).unwrap()));
        }
    }
    files
}

#[test]
fn a_passphrase_seals_the_keys_and_only_it_opens_them() {
    const PASSPHRASE: &str = "correct horse é";
    for source in [Source::File, Source::Environment] {
        let dir = TempDir::new().unwrap();
        let passphrase_file = dir.path().join("passphrase");
        let with = |program: &Path, passphrase: Option<&str>| {
            let mut settings = json!({"network": "livenet", "port": 0});
            let mut command = match (source, passphrase) {
                (Source::File, Some(passphrase)) => {
                    fs::write(&passphrase_file, format!("{passphrase}\n")).unwrap();
                    settings["keystorePassphraseFile"] = json!(passphrase_file);
                    configured(program, dir.path(), source, &settings)
                }
                _ => configured(program, dir.path(), source, &settings),
            };
            if let (Source::Environment, Some(passphrase)) = (source, passphrase) {
                command.env("BSV_KEYSTORE_PASSPHRASE", passphrase);
            }
            command
        };
        let cli = |passphrase, arguments: &[&str]| {
            let mut command = with(cli_program(), passphrase);
            command.args(arguments);
            command
        };
        run_ok(&mut cli(Some(PASSPHRASE), &["generateminerid", "-n", "pool"]));
        let key = run_ok(&mut cli(Some(PASSPHRASE), &["getcurrentminerid", "-n", "pool"]));
        let network_dir = dir.path().join("data/livenet");
        let before = contents(&network_dir);
        let key_file = network_dir.join("keystore/pool_1.key");
        let data_key = fs::read_to_string(network_dir.join("keystore/keystore.json")).unwrap();
        assert!(data_key.contains("wrapped"), "{data_key}");
        for (path, content) in &before {
            for secret in ["xprv", "correct horse"] {
                let is_there = content.windows(secret.len()).any(|part| part == secret.as_bytes());
                assert!(!is_there, "{secret} in {}", path.display());
            }
        }
        assert!(before.iter().any(|(path, _)| path == &key_file));

        for (passphrase, reason) in [
            (Some("another"), "the passphrase does not open "),
            (Some("correct horse é "), "the passphrase does not open "),
            (Some(""), "the keystore's passphrase is empty"),
            (None, "a passphrase is required for keystore"),
        ] {
            check_refused(&mut with(server_program(), passphrase), &[reason]);
            check_refused(&mut cli(passphrase, &["getcurrentminerid", "-n", "pool"]), &[reason]);
            check_refused(&mut cli(passphrase, &["generateminerid", "-n", "other"]), &[reason]);
        }
        assert!(contents(&network_dir) == before, "what was refused has changed something");

        let server = Server::start(&mut with(server_program(), Some(PASSPHRASE)));
        assert_eq!(server.get("/minerid/pool").body, key.trim());
        server.stop();
    }
}

#[test]
fn a_keystore_is_opened_with_a_passphrase_only_if_it_was_made_with_one() {
    let site = Site::new();
    site.cli_ok(&["generateminerid", "-n", "pool"]);
    let mut with_passphrase = site.cli_command(&["miner", "list"]);
    with_passphrase.env("BSV_KEYSTORE_PASSPHRASE", "x");
    let reason = "was made without a passphrase, but one is configured";
    check_refused(&mut with_passphrase, &[reason]);

    let site = Site::new();
    let mut sealing = site.cli_command(&["generateminerid", "-n", "pool"]);
    run_ok(sealing.env("BSV_KEYSTORE_PASSPHRASE", "x"));
    let reason = "is sealed, and no passphrase is configured";
    check_refused(&mut site.cli_command(&["miner", "list"]), &[reason]);
    check_refused(&mut site.server_command(), &[reason]);

    let mut twice = site.cli_command(&["miner", "list"]);
    twice.env("BSV_KEYSTORE_PASSPHRASE", "x");
    twice.env("BSV_CONFIG", json!({"keystorePassphraseFile": "/x"}).to_string());
    let reason = "keystorePassphraseFile and BSV_KEYSTORE_PASSPHRASE are both set: use one";
    check_refused(&mut twice, &[reason]);
}
