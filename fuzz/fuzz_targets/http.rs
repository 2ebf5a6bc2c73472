//! The whole request path of the miner identity listener: any bytes on a connection get answers
//! that are not the server's fault.

#![no_main]

use std::fs;
use std::path::Path;
use std::sync::{Arc, LazyLock};

use bsv_minerid::{Keystore, MinerIds, Network, PlainKeys, RedbIdentityStore};
use bsv_server::config::{Config, KeystoreConfig, MinerIdConfig};
use bsv_server::{Instance, Surface, serve_connection};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex, split};
use tokio::runtime::Runtime;

struct Site {
    runtime: Runtime,
    instance: Arc<Instance>,
    _dir: TempDir,
}

/// Identities that make documents: those of the recorded answers.
static SITE: LazyLock<Site> = LazyLock::new(|| {
    let dir = TempDir::new().unwrap();
    let config = Config {
        network: Network::Regtest,
        network_dir: dir.path().to_owned(),
        keystore: KeystoreConfig {
            dir: dir.path().join("keystore"),
            passphrase: None,
            plain_keys: PlainKeys::Allowed,
        },
        node: None,
        minerid: Some(MinerIdConfig {
            address: ([127, 0, 0, 1], 0).into(),
            data_dir: dir.path().join("minerid"),
        }),
        allowed_hosts: Vec::new(),
    };
    import_recorded_home(&config, dir.path());
    let instance = Arc::new(Instance::open(config, "fuzz").unwrap());
    Site { runtime: Runtime::new().unwrap(), instance, _dir: dir }
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
    MinerIds::open(store, keystore, config.network).unwrap().import(&home).unwrap();
}

fuzz_target!(|bytes: &[u8]| {
    // A rotation waits for the disk and stays, so that runs would grow slower and slower.
    if bytes.windows(6).any(|window| window == b"rotate") {
        return;
    }
    let Site { runtime, instance, .. } = &*SITE;
    let answers = runtime.block_on(async {
        let (client, server) = duplex(64 << 10);
        let (mut reader, mut writer) = split(client);
        let ask = async {
            // The server may hang up before it has read everything.
            let _ = writer.write_all(bytes).await;
            let _ = writer.shutdown().await;
        };
        let listen = async {
            let mut answers = Vec::new();
            let _ = reader.read_to_end(&mut answers).await;
            answers
        };
        tokio::join!(listen, ask, serve_connection(instance, Surface::MinerId, server)).0
    });
    let text = String::from_utf8_lossy(&answers);
    assert!(text.is_empty() || text.starts_with("HTTP/1."), "{text}");
    assert!(!text.contains("Internal error"), "{text}");
});
