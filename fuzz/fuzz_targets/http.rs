//! Any bytes on a connection to the miner identity listener, through the whole path of a request:
//! no answer is an internal error.

#![no_main]

use std::fs;
use std::path::Path;
use std::sync::LazyLock;
use std::time::Duration;

use bsv_fuzz::Service;
use bsv_minerid::store::RedbIdentityStore;
use bsv_minerid::{Keystore, MinerIds, Network, PlainKeys};
use bsv_server::config::{Config, KeystoreConfig, MinerIdConfig, StaleCopy};
use bsv_server::{AccessConfig, Api};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use tempfile::TempDir;

/// A service with the identities of the recorded answers, which can make documents.
static SITE: LazyLock<(Service, TempDir)> = LazyLock::new(|| {
    let dir = TempDir::new().unwrap();
    let config = Config {
        network: Network::Regtest,
        network_dir: dir.path().to_owned(),
        drain_time: Duration::from_secs(30),
        stalled_time: Duration::from_secs(30),
        check_period: Duration::from_secs(24 * 3600),
        keystore: KeystoreConfig {
            dir: dir.path().join("keystore"),
            passphrase: None,
            plain_keys: PlainKeys::Allowed,
        },
        node: None,
        services: None,
        headers: None,
        minerid: Some(MinerIdConfig {
            address: ([127, 0, 0, 1], 0).into(),
            tls: None,
            data_dir: dir.path().join("minerid"),
            patience: Duration::ZERO,
            node_listener: None,
            stale_copy: StaleCopy::Answer,
        }),
        wallet: None,
        allowed_hosts: Vec::new(),
        access: AccessConfig::default(),
        log_requests: false,
        tells_balance: false,
        assume_yes: false,
    };
    import_recorded_home(&config, dir.path());
    (Service::open(config), dir)
});

fn import_recorded_home(config: &Config, dir: &Path) {
    let vectors = include_str!("../../tests/vectors/minerid-0.2.json");
    let vectors: Value = serde_json::from_str(vectors).unwrap();
    let home = dir.join("home");
    for (path, content) in vectors["files"].as_object().unwrap() {
        let path = home.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content.as_str().unwrap()).unwrap();
    }
    let keystore = Keystore::open(&config.keystore.dir, None, PlainKeys::Allowed, "fuzz").unwrap();
    let data_dir = &config.minerid.as_ref().unwrap().data_dir;
    let store = RedbIdentityStore::open(data_dir, "fuzz").unwrap();
    let ids = MinerIds::open(store, keystore, config.network).unwrap();
    ids.import_without_node(&home, None).unwrap();
    let keys = config.keystore.dir.join("revocation");
    let keys = Keystore::open(&keys, None, PlainKeys::Allowed, "fuzz").unwrap();
    ids.generate_miner_info(&"modern".parse().unwrap(), &keys).unwrap();
}

fuzz_target!(|bytes: &[u8]| {
    // Rotations are left out: they wait for the disk, and each makes the identity longer, so that
    // runs would become slower and slower.
    if bytes.windows(6).any(|window| window == b"rotate") {
        return;
    }
    SITE.0.check(Api::MinerId, bytes);
});
