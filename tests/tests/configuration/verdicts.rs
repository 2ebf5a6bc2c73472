//! What `config check` says.

use std::fs;
use std::io::Write;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use bsv_tests::Site;
use serde_json::{Value, json};

use super::programs::check_refused;

/// The exit code and the lines of `config check` that do not hold, each as check, outcome and detail.
fn verdicts(site: &Site, arguments: &[&str]) -> (i32, Vec<[String; 3]>) {
    let done = site.cli(&[&["config", "check", "--json"], arguments].concat());
    let told: Value = serde_json::from_str(&done.stdout).unwrap_or_else(|_| panic!("{done:?}"));
    let line = |line: &Value| {
        ["check", "outcome", "detail"].map(|member| line[member].as_str().unwrap().to_owned())
    };
    let lines = told["checks"].as_array().unwrap().iter().map(line);
    (done.code, lines.filter(|[_, outcome, _]| outcome != "holds").collect())
}

#[test]
fn config_check_tells_what_the_server_would_refuse_and_what_is_risky() {
    let check = |site: &Site, code: i32, expected: &[[&str; 3]]| {
        let (found, lines) = verdicts(site, &[]);
        let fits = |(line, expected): (&[String; 3], &[&str; 3])| {
            line[0] == expected[0] && line[1] == expected[1] && line[2].contains(expected[2])
        };
        let are_all = lines.len() == expected.len() && lines.iter().zip(expected).all(fits);
        assert!(are_all && found == code, "{expected:?}: {found} {lines:#?}");
    };
    let no_node = ["node settings", "warns", "payments and what blocks show stay unknown"];

    // The defaults.
    let site = Site::new();
    check(&site, 0, &[no_node]);
    assert_eq!(verdicts(&site, &["--strict"]).0, 1);
    assert!(!site.network_dir().exists());
    // A server runs.
    let server = site.server();
    let held = format!("is in use by bsv-server (process {})", server.id());
    let unchecked = |listener| [listener, "unchecked", &held];
    let listeners = ["listener minerid", "listener wallet", "listener payments"].map(unchecked);
    let keys = ["keys", "unchecked", "keystore is in use by bsv-server"];
    check(&site, 0, &[&[keys][..], &listeners, &[no_node]].concat());
    drop(server);

    // Real money, and nothing done for it.
    let mut site = Site::with(json!({ "network": "mainnet", "payments": { "feeRate": 1 } }));
    let no_passphrase = "set keystorePassphraseFile or BSV_KEYSTORE_PASSPHRASE";
    let url = ["publicUrl", "warns", "set payments.publicUrl"];
    let fee_rate = ["feeRate", "warns", "miners refuse less than 100"];
    check(&site, 1, &[["keys", "fails", no_passphrase], url, fee_rate, no_node]);
    check_refused(&mut site.server_command(), &[no_passphrase]);
    assert!(!site.data_dir().join("livenet/keystore/keystore.json").exists());

    // The passphrase is in a file that everybody can read.
    let file = site.data_dir().join("passphrase");
    fs::write(&file, "correct horse\n").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    site.set("keystorePassphraseFile", json!(file));
    let files = ["files", "warns", "other users can read the secrets in"];
    check(&site, 0, &[files, url, fee_rate, no_node]);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
    check(&site, 0, &[files, url, fee_rate, no_node]);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    site.set("payments", json!({ "port": 0, "publicUrl": "https://pay.example.com" }));
    drop(site.server());
    check(&site, 0, &[no_node, ["backup", "warns", "there is none"]]);
    site.set_env("BSV_BACKUP_PASSPHRASE", "battery staple");
    site.cli_ok(&["backup", site.data_dir().join("one.backup").to_str().unwrap()]);
    check(&site, 0, &[no_node]);
    site.unset("keystorePassphraseFile");
    let no_backup = ["backup", "unchecked", no_passphrase];
    check(&site, 1, &[["keys", "fails", no_passphrase], no_node, no_backup]);

    // Addresses that are taken, and files that are missing.
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let tls = json!({ "certificate": "/nowhere.pem", "key": "/nowhere.key" });
    let site = Site::with(json!({ "port": port, "wallet": { "tls": tls } }));
    let [in_use, missing] = ["cannot listen on 127.0.0.1:", "/nowhere.pem"];
    let faults = [["listener minerid", "fails", in_use], ["listener wallet", "fails", missing]];
    check(&site, 1, &[&faults[..], &[no_node]].concat());
}

#[test]
fn config_check_reads_the_settings_once() {
    let site = Site::new();
    let file = site.data_dir().join("passphrase");
    fs::write(&file, "correct horse\n").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    let mut command = site.cli_command(&["config", "check", "--config", "/dev/stdin"]);
    let mut check = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    // A pipe is empty when it is read again.
    let settings = format!("keystorePassphraseFile = '{}'\n", file.display());
    check.stdin.take().unwrap().write_all(settings.as_bytes()).unwrap();
    let output = check.wait_with_output().unwrap();
    let told = String::from_utf8(output.stdout).unwrap();
    let warning = format!("other users can read the secrets in {}", file.display());
    assert!(told.contains(&warning), "{told}");
}
