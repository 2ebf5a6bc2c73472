use std::fs;
use std::path::Path;

use bip39::Mnemonic;
use bsv_minerid::{Keystore, PlainKeys, StretchedPassphrase};
use bsv_server::{Config, ConfigSources, Create, Instance};
use bsv_tests::{Bill, Client, Done, Node, Purse, Site};
use bsv_tx::{ExtendedPrivateKey, Network, PrivateKey};
use serde_json::{Value, json};
use tempfile::TempDir;

const PASSPHRASE: &str = "a passphrase that nobody may see";
const NEW_PASSPHRASE: &str = "the next passphrase that nobody may see";
const OF_BACKUP: &str = "of the backup, that nobody may see either";
const JWT_KEY: &str = "0f1e2d3c4b5a69788796a5b4c3d2e1f0";
const MADE_UP_JWT: &str = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJ1c2VybmFtZSI6Im1hZGUgdXAifQ.\
                           c2lnbmF0dXJlIG9mIG5vYm9keSBhdCBhbGwsIDMyIGI";

/// Collects everything that is visible of a service, and then searches it for secrets.
#[derive(Default)]
struct Seen(Vec<(String, String)>);

impl Seen {
    fn add(&mut self, what: &str, text: impl Into<String>) {
        self.0.push((what.to_owned(), text.into()));
    }

    fn check(&self, name: &str, secret: &str) {
        assert!(secret.len() >= 8, "{name} is too short to be looked for");
        for (what, text) in &self.0 {
            assert!(!text.contains(secret), "{name} is shown by {what}");
        }
    }
}

#[test]
fn no_secret_is_shown_by_logs_errors_or_settings() {
    let node = Node::start();
    node.mine(102);
    let mut site = Site::with(json!({
        "rpcPort": node.port, "rpcUser": node.user, "rpcPassword": node.password,
        "auth": {"requireToken": true, "jwtKey": JWT_KEY}, "log": {"requests": true},
    }));
    site.set_env("BSV_LOG", "trace,rustls=trace");
    site.set_env("BSV_KEYSTORE_PASSPHRASE", PASSPHRASE);
    site.set_env("BSV_NEW_KEYSTORE_PASSPHRASE", NEW_PASSPHRASE);
    site.set_env("BSV_BACKUP_PASSPHRASE", OF_BACKUP);
    let logs = TempDir::new().unwrap();
    let log = logs.path().join("log");
    let mut seen = Seen::default();
    let mut secrets = vec![
        ("the passphrase", PASSPHRASE.to_owned()),
        ("the new passphrase", NEW_PASSPHRASE.to_owned()),
        ("the passphrase of the backup", OF_BACKUP.to_owned()),
        ("the key of JSON Web Tokens", JWT_KEY.to_owned()),
        ("a JSON Web Token", MADE_UP_JWT.to_owned()),
    ];

    let server = site.server_logging_to(&log);
    let backup = logs.path().join("backup");
    let backup = backup.to_str().unwrap();
    let mut cli = |arguments: &[&str]| {
        let done = site.cli(arguments);
        seen.add(&format!("bsv-cli {arguments:?}"), done.stdout.clone() + &done.stderr);
        done
    };
    for arguments in [
        &["generateminerid", "--name", "pool"][..],
        &["generatevctx", "--name", "pool"],
        &["rotateminerid", "--name", "pool"],
        &["generateminerid", "--name", "pool"],
        &["miner", "list"],
        &["config", "show"],
        &["config", "show", "--json"],
        &["config", "check"],
        &["importminerid", "--from", "/nowhere"],
        &["pay", "http://127.0.0.1:1/x"],
        &["generateminerid", "--name", "modern", "--protocol", "1.0"],
        &["rotaterevocationkey", "--name", "modern"],
        &["revokemineridcompletely", "--yes", "--name", "modern"],
        &["miner", "blind-signing", "--name", "pool", "off"],
        &["backup", backup],
        &["backup", backup],
        &["restore", "--yes", backup],
        &["keystore", "verify"],
        &["books", "verify"],
        &["audit", "verify"],
    ] {
        cli(arguments);
    }
    let shown_on_purpose = |arguments: &[&str]| site.cli(arguments).stdout;
    let token = shown_on_purpose(&["token", "create", "--scope", "wallet:read", "--json"]);
    let token: Value = serde_json::from_str(&token).unwrap();
    let token = token["token"].as_str().unwrap().to_owned();
    let words = shown_on_purpose(&["wallet", "words", "--yes"]);
    let words = words.trim().to_owned();
    assert_eq!(words.split(' ').count(), 24);
    cli(&["token", "list"]);
    cli(&["token", "list", "--json"]);
    cli(&["token", "revoke", "--yes", &token]);
    cli(&["audit", "list"]);

    // This makes a payment, whose channel has a token, and refused requests to all listeners.
    let invoice = site.cli_json(&["invoice", "create", "--satoshis", "5000"]);
    let url = invoice["paymentUrl"].as_str().unwrap();
    let purse = Purse::filled(&node, 1, 100_000);
    let bill = Bill::at(url);
    let paid = bill.post(&purse.transaction_for(&bill));
    let acknowledgement: Value = serde_json::from_str(&paid.body).unwrap();
    let channel = &acknowledgement["peer_channel"];
    let channel_token = channel["token"].as_str().unwrap().to_owned();
    let channel_path = format!("/api/v1/channel/{}", channel["channel_id"].as_str().unwrap());
    let minerid = Client::new(server.address());
    for client in [&minerid, server.wallet(), server.payments()] {
        for secret in [token.as_str(), &channel_token, MADE_UP_JWT, PASSPHRASE, JWT_KEY] {
            let authorization = format!("Bearer {secret}");
            let headers =
                [("Authorization", authorization.as_str()), ("Content-Type", "application/json")];
            for (method, path) in [
                ("GET", "/minerid/pool"),
                ("GET", "/minerid/pool/sign/00"),
                ("GET", "/opreturn/pool/rotate"),
                ("POST", "/coinbase2"),
                ("POST", "/api/v1/invoices"),
                ("POST", "/api/v1/pay"),
                ("GET", "/api/v1/balance"),
                ("GET", "/api/v1/payment/x"),
                ("GET", channel_path.as_str()),
                ("POST", &format!("{channel_path}/1")),
                ("GET", "/readyz"),
                ("BREW", "/"),
            ] {
                let reply = client.send(method, path, &headers, b"{\"x\":");
                seen.add(&format!("{method} {path}"), format!("{reply:?}"));
            }
        }
    }
    assert_eq!(server.stop(), 0);

    // These starts fail.
    let key_files = site.network_dir().join("keystore");
    for (name, value) in [("BSV_KEYSTORE_PASSPHRASE", "another passphrase"), ("BSV_CONFIG", "{")] {
        let mut command = site.server_command();
        let output = command.env(name, value).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        seen.add("a server that does not start", String::from_utf8(output.stderr).unwrap());
    }
    let log = fs::read_to_string(&log).unwrap();
    assert!(log.contains("TRACE") && log.contains("/opreturn/{alias}/rotate"), "{log}");
    seen.add("the log", log);

    for (name, file) in private_files(&site.network_dir()) {
        seen.add(&name, file);
    }
    // These commands run without a server, here and on a restored backup.
    let words_file = logs.path().join("words");
    fs::write(&words_file, &words).unwrap();
    let debug = debug_of_instance(&site, &node);
    assert!(debug.contains("Wallet") && debug.contains("MinerIds"), "{debug}");
    seen.add("what Debug writes of an instance", debug);
    let mut run = |site: &Site, arguments: &[&str]| {
        let mut command = site.cli_command(arguments);
        let done = Done::of(command.stdin(fs::File::open(&words_file).unwrap()));
        seen.add(&format!("bsv-cli {arguments:?}"), done.stdout + &done.stderr);
        done.code
    };
    assert_eq!(run(&site, &["keystore", "passphrase"]), 0);
    assert_eq!(run(&site, &["miner", "list"]), 1);
    for (arguments, passphrase, code) in [
        (&["restore", "--yes", backup][..], "another passphrase", 1),
        (&["restore", "--yes", backup], OF_BACKUP, 0),
        (&["restore", "--yes", "--words"], OF_BACKUP, 0),
    ] {
        let mut elsewhere = Site::new();
        elsewhere.set_env("BSV_LOG", "trace,rustls=trace");
        elsewhere.set_env("BSV_KEYSTORE_PASSPHRASE", PASSPHRASE);
        elsewhere.set_env("BSV_BACKUP_PASSPHRASE", passphrase);
        assert_eq!(run(&elsewhere, arguments), code, "{arguments:?}");
        for arguments in [&["miner", "list"][..], &["wallet", "balance"], &["audit", "list"]] {
            run(&elsewhere, arguments);
        }
    }

    let revocation_keys = key_files.join("revocation");
    let extended = [
        private_keys(&key_files, &["pool_1", "pool_2", "modern_1"]),
        private_keys(&revocation_keys, &["modern_1", "modern_2"]),
        wallet_keys(&words, &mut secrets),
    ];
    for key in extended.concat() {
        let extended: ExtendedPrivateKey = key.parse().unwrap();
        secrets.push(("an extended private key", key));
        secrets.extend(forms(extended.private_key()));
    }
    let of_vctx = keystore(&key_files).get("pool_vctx").unwrap();
    let of_vctx = std::str::from_utf8(&of_vctx).unwrap().trim();
    secrets.extend(forms(&PrivateKey::from_wif(of_vctx, Network::Regtest).unwrap()));
    secrets.push(("a token", token[13..].to_owned()));
    secrets.push(("the words", words.clone()));
    secrets.push(("the first words", words.split(' ').take(4).collect::<Vec<_>>().join(" ")));
    secrets.push(("the password of the node", node.password.clone()));
    secrets.push(("the token of a channel", channel_token));
    for (name, secret) in &secrets {
        seen.check(name, secret);
    }
}

/// All files of a directory, as text.
fn private_files(dir: &Path) -> Vec<(String, String)> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let entry = entry.unwrap();
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            files.extend(private_files(&entry.path()));
        } else if kind.is_file() {
            let bytes = fs::read(entry.path()).unwrap();
            let text = String::from_utf8_lossy(&bytes).into_owned();
            files.push((entry.path().display().to_string(), text));
        }
    }
    files
}

fn keystore(dir: &Path) -> Keystore {
    let passphrase = StretchedPassphrase::for_keystore(dir, &NEW_PASSPHRASE.into()).unwrap();
    Keystore::open(dir, Some(&passphrase), PlainKeys::Refused, "a test").unwrap()
}

/// The extended private keys of these names.
fn private_keys(dir: &Path, names: &[&str]) -> Vec<String> {
    let keystore = keystore(dir);
    let text = |name: &&str| String::from_utf8(keystore.get(name).unwrap().to_vec()).unwrap();
    names.iter().map(text).map(|text| text.trim().to_owned()).collect()
}

/// The forms in which a private key can be written.
fn forms(key: &PrivateKey) -> [(&'static str, String); 2] {
    let wif = key.to_wif(Network::Regtest).to_string();
    let bytes = bs58::decode(&wif).into_vec().unwrap();
    [("a private key", wif), ("a private key in hexadecimal", hex::encode(&bytes[1..33]))]
}

/// Some of the extended private keys of a wallet. The bytes that they come from are secret, too.
fn wallet_keys(words: &str, secrets: &mut Vec<(&'static str, String)>) -> Vec<String> {
    let words: Mnemonic = words.parse().unwrap();
    let seed = words.to_seed("");
    secrets.push(("the bytes of the words", hex::encode(words.to_entropy())));
    secrets.push(("the seed", hex::encode(seed)));
    let master = ExtendedPrivateKey::from_seed(&seed, Network::Regtest).unwrap();
    let derive = |path: &str| master.derive(path).unwrap().as_text().to_owned();
    let paths = ["m/44'/236'/0'", "m/44'/236'/0'/0", "m/44'/236'/0'/0/1", "m/44'/236'/0'/2/1"];
    [vec![master.as_text().to_owned()], paths.map(derive).to_vec()].concat()
}

/// The `Debug` text of a service with everything in it, and of its settings.
fn debug_of_instance(site: &Site, node: &Node) -> String {
    let dir = TempDir::new().unwrap();
    let [file, passphrase] = ["settings.toml", "passphrase"].map(|name| dir.path().join(name));
    fs::write(&passphrase, PASSPHRASE).unwrap();
    let settings = format!(
        "keystorePassphraseFile = {passphrase:?}\nrpcPort = {}\nrpcUser = {:?}\n\
         rpcPassword = {:?}\n[auth]\nrequireToken = true\njwtKey = {JWT_KEY:?}\n",
        node.port, node.user, node.password
    );
    fs::write(&file, settings).unwrap();
    let data_dir = Some(site.data_dir().to_owned());
    let config = Config::load(&ConfigSources { file: Some(file), data_dir }).unwrap();
    let of_config = format!("{config:#?}");
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let instance = runtime.block_on(Instance::open(config, "a test", Create::All)).unwrap();
    of_config + &format!("{instance:#?}")
}
