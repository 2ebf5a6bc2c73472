//! Settings that are refused.

use std::fs;

use bsv_tests::build::{cli_program, server_program};
use serde_json::json;
use tempfile::TempDir;

use super::programs::{Server, Source, bare, check_refused, configured, get};

#[test]
fn mistakes_in_settings_are_named_with_their_source() {
    let dir = TempDir::new().unwrap();
    for (settings, reason) in [
        (json!({"prot": 1}), "unknown field `prot`"),
        (json!({"Port": 1}), "unknown field `Port`"),
        (json!({"minerid": {"on": true}}), "minerid.on: unknown field `on`"),
        (json!({"minerid": {"enabled": "yes"}}), "minerid.enabled: "),
        (json!({"minerid": true}), "minerid: "),
        (json!({"port": "9002"}), "port: "),
        (json!({"port": 65536}), "port: "),
        (json!({"port": -1}), "port: "),
        (json!({"port": 1.5}), "port: "),
        (json!({"host": "localhost"}), "host: "),
        (json!({"network": "main"}), "network: unknown network \"main\""),
        (json!({"network": 1}), "network: "),
        (json!({"keystore": 1}), "keystore: "),
        (json!({"minerIdDataPath": []}), "minerIdDataPath: "),
        (json!({"rpcPort": "8332"}), "rpcPort: "),
        (json!({"rpcUser": 1}), "rpcUser: "),
        (json!({"rpcPassword": 1234567}), "rpcPassword: must be a string"),
        (json!({"allowedHosts": "a"}), "allowedHosts: "),
        (json!({"allowedHosts": ["a", 1]}), "allowedHosts[1]: "),
        (json!({"allowPlainKeystore": "true"}), "allowPlainKeystore: "),
    ] {
        for (source, place) in
            [(Source::File, "settings.toml: "), (Source::Environment, "BSV_CONFIG: ")]
        {
            let server = &mut configured(server_program(), dir.path(), source, &settings);
            check_refused(server, &[place, reason]);
            for arguments in
                [&["miner", "list"][..], &["config", "check"], &["config", "check", "--json"]]
            {
                let cli = &mut configured(cli_program(), dir.path(), source, &settings);
                let escaped = reason.replace('"', "\\\"");
                let is_json = arguments.contains(&"--json");
                let reason = if is_json { &escaped } else { reason };
                check_refused(cli.args(arguments), &[place, reason]);
            }
        }
    }
    for text in ["", "{", "port = 0", "[]", "null", "1", "\"x\"", "{\"port\":1}{}"] {
        let mut server = configured(server_program(), dir.path(), Source::File, &json!({}));
        check_refused(server.env("BSV_CONFIG", text), &["BSV_CONFIG: "]);
    }
    for text in ["port", "port = ", "port = 1\nport = 2", "{\"port\":1}", "= 1", "[minerid"] {
        let file = dir.path().join("bad.toml");
        fs::write(&file, text).unwrap();
        check_refused(bare(server_program()).arg("--config").arg(&file), &["bad.toml: "]);
    }
    assert!(!dir.path().join("data").exists(), "bad settings make no data directory");
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let dir = TempDir::new().unwrap();
    let not_utf_8 = dir.path().join("latin-1.toml");
    fs::write(&not_utf_8, b"rpcUser = \"\xe9\"").unwrap();
    for file in [dir.path().join("missing.toml"), dir.path().to_owned(), not_utf_8] {
        for program in [server_program(), cli_program()] {
            let mut command = bare(program);
            command.arg("--config").arg(&file);
            if program == cli_program() {
                command.args(["miner", "list"]);
            }
            check_refused(&mut command, &[&format!("cannot read {}: ", file.display())]);
        }
        let mut command = bare(server_program());
        let settings = json!({"keystorePassphraseFile": file});
        command.arg("--data-dir").arg(dir.path().join("data"));
        command.env("BSV_CONFIG", settings.to_string());
        check_refused(&mut command, &[&format!("cannot read {}: ", file.display())]);
    }
}

#[test]
fn contradictory_and_unsafe_settings_are_refused() {
    let dir = TempDir::new().unwrap();
    for (settings, reason) in [
        (json!({"host": "0.0.0.0"}), "allowUnauthenticated"),
        (json!({"host": "::"}), "allowUnauthenticated"),
        (json!({"host": "192.168.1.1"}), "allowUnauthenticated"),
        (json!({"rpcUser": "me"}), "rpcUser and rpcPassword must be set together"),
        (json!({"rpcPassword": "x"}), "rpcUser and rpcPassword must be set together"),
    ] {
        for program in [server_program(), cli_program()] {
            let mut command = configured(program, dir.path(), Source::Environment, &settings);
            if program == cli_program() {
                command.args(["config", "check"]);
            }
            check_refused(&mut command, &[reason]);
        }
    }
    let settings = json!({"host": "0.0.0.0", "port": 0, "allowUnauthenticated": true});
    let server =
        Server::start(&mut configured(server_program(), dir.path(), Source::File, &settings));
    let port = server.address().strip_prefix("0.0.0.0:").unwrap();
    let reply = get(&format!("127.0.0.1:{port}"), "/minerid/x");
    assert_eq!(reply.status, 422);
    server.stop();
}
