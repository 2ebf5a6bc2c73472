//! Checks of a site's identities, through every interface.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use bsv_minerid::{Keystore, PlainKeys};
use bsv_tx::{ExtendedPrivateKey, PublicKey, Signature, sha256};
use serde_json::Value;

use crate::site::{Server, Site};

/// The keys of each alias, the current one last.
pub type Histories = BTreeMap<String, Vec<String>>;

/// The identities according to the command line. There are none before the first one is begun.
pub fn histories(site: &Site) -> Histories {
    let done = site.cli(&["miner", "list", "--json"]);
    if done.code == 1 && done.stderr.contains("\"nothing-there\"") {
        return Histories::new();
    }
    let list: Value = serde_json::from_str(&done.stdout).unwrap();
    list.as_array().unwrap().iter().map(history).collect()
}

fn history(identity: &Value) -> (String, Vec<String>) {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let keys: Vec<_> = identity["minerIds"].as_array().unwrap().iter().map(text).collect();
    assert_eq!(keys.last(), Some(&text(&identity["minerId"])), "{identity}");
    (text(&identity["alias"]), keys)
}

/// Checks that all interfaces of the server agree with `histories`, and that signatures of an alias
/// verify with its current key.
pub fn check_answers(server: &Server, histories: &Histories) {
    for (alias, keys) in histories {
        let current = keys.last().unwrap();
        assert_eq!(server.text(&format!("/minerid/{alias}")), *current, "{alias}");
        let digest = sha256(format!("{alias} {current}").as_bytes());
        let hash = hex::encode(digest);
        let key: PublicKey = current.parse().unwrap();
        let signature: Signature =
            server.text(&format!("/minerid/{alias}/sign/{hash}")).parse().unwrap();
        assert!(key.verify(&digest, &signature), "{alias}");
        let pksign = server.text(&format!("/minerid/{alias}/pksign/{hash}"));
        let pksign: Value = serde_json::from_str(&pksign).unwrap();
        assert_eq!(pksign["publicKey"].as_str(), Some(current.as_str()), "{alias}");
        let signature: Signature = pksign["signature"].as_str().unwrap().parse().unwrap();
        assert!(key.verify(&digest, &signature), "{alias}");
    }
}

/// Checks that the command line, with or without a server, names the last of `keys` as current.
pub fn check_cli(site: &Site, alias: &str, keys: &[String]) {
    let current = site.cli_ok(&["miner", "id", "--name", alias]);
    assert_eq!(Some(&current), keys.last(), "{alias}");
}

/// Checks that the keystore has every key so far and that the keys open. No server may be running.
pub fn check_keystore(site: &Site, histories: &Histories) {
    let dir = site.network_dir().join("keystore");
    let keystore = Keystore::open(&dir, None, PlainKeys::Allowed, "a test").unwrap();
    for (alias, keys) in histories {
        for (number, key) in (1..).zip(keys) {
            let name = format!("{alias}_{number}");
            let secret = keystore.get(&name).unwrap_or_else(|error| panic!("{name}: {error}"));
            let secret: ExtendedPrivateKey = std::str::from_utf8(&secret).unwrap().parse().unwrap();
            assert_eq!(secret.private_key().public_key().to_string(), *key, "{name}");
        }
    }
}

/// Checks that every key so far has its file. A server may be running.
pub fn check_key_files(site: &Site, histories: &Histories) {
    // The directory may be missing before the first key.
    let dir = fs::read_dir(site.network_dir().join("keystore")).into_iter().flatten();
    let files: BTreeSet<_> = dir.map(|entry| entry.unwrap().file_name()).collect();
    for (alias, keys) in histories {
        for number in 1..=keys.len() {
            let name = format!("{alias}_{number}.key");
            assert!(files.contains(name.as_ref() as &std::ffi::OsStr), "{name} is missing");
        }
    }
}
