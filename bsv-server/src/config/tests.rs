use super::*;

fn config(settings: Value) -> Result<Config, ConfigError> {
    Config::new(Settings::read("test", settings)?, Path::new("/data"), None)
}

fn error(settings: Value) -> String {
    config(settings).unwrap_err().to_string()
}

#[test]
fn nothing_is_needed_to_start_on_regtest() {
    let config = config(json!({})).unwrap();
    assert_eq!(config.network, Network::Regtest);
    assert_eq!(config.network_dir, Path::new("/data/regtest"));
    assert_eq!(config.keystore.dir, Path::new("/data/regtest/keystore"));
    assert_eq!(config.keystore.plain_keys, PlainKeys::Allowed);
    assert!(config.node.is_none());
    let minerid = config.minerid.unwrap();
    assert_eq!(minerid.address, "127.0.0.1:9002".parse().unwrap());
    assert_eq!(minerid.data_dir, Path::new("/data/regtest/minerid"));
}

#[test]
fn every_setting_of_the_specification_counts() {
    let config = config(json!({
        "port": 1234, "minerIdDataPath": "/ids", "keystore": "/keys", "network": "livenet",
        "rpcHost": "node", "rpcPort": 99, "rpcUser": "me", "rpcPassword": "hidden-password",
        "auth": {"requireToken": true, "jwtKey": "hidden-password of 32 bytes or more"},
    }))
    .unwrap();
    assert_eq!(config.network, Network::Livenet);
    assert_eq!(config.keystore.dir, Path::new("/keys"));
    assert_eq!(config.keystore.plain_keys, PlainKeys::Refused);
    let minerid = config.minerid.clone().unwrap();
    assert_eq!((minerid.address.port(), minerid.data_dir.as_path()), (1234, Path::new("/ids")));
    let node = config.node.as_ref().unwrap();
    assert_eq!((node.host.as_str(), node.port, node.user.as_str()), ("node", 99, "me"));
    assert_eq!(node.password.expose_secret(), "hidden-password");
    for shown in [config.to_json().to_string(), format!("{config:?}")] {
        assert!(!shown.contains("hidden-password"), "{shown}");
    }
}

#[test]
fn the_node_is_asked_at_its_networks_port() {
    for (network, port) in [("livenet", 8332), ("testnet", 18332), ("regtest", 18443)] {
        let settings = json!({"network": network, "rpcUser": "u", "rpcPassword": "p"});
        let node = config(settings).unwrap().node.unwrap();
        assert_eq!((node.host.as_str(), node.port), ("127.0.0.1", port));
    }
}

#[test]
fn mistakes_are_named() {
    for (settings, expected) in [
        (json!({"prot": 1}), "unknown field `prot`"),
        (json!({"minerid": {"on": true}}), "minerid.on: unknown field `on`"),
        (json!({"port": 65536}), "port: "),
        (json!({"stores": {"checkHours": 0}}), "stores.checkHours must be from 1 to 8760"),
        (json!({"port": "9002"}), "port: "),
        (json!({"network": "mainnet"}), "network: unknown network \"mainnet\""),
        (json!({"host": "example.com"}), "host: "),
        (json!({"rpcUser": "me"}), "rpcUser and rpcPassword must be set together"),
        (json!({"rpcUser": "me", "rpcPassword": 1}), "rpcPassword: must be a string"),
        (json!({"host": "0.0.0.0"}), "allowUnauthenticated"),
        (json!({"auth": {"jwtKey": 1}}), "auth.jwtKey: must be a string"),
        (json!({"payments": {"connections": 0}}), "payments.connections must be from 1 to 100000"),
        (json!({"payments": {"requestBurst": 0}}), "payments.requestBurst must be from 1"),
        (json!({"payments": {"trustedProxies": ["proxy"]}}), "\"proxy\" is not an IP address"),
        (json!([]), "settings are an object"),
    ] {
        let error = error(settings);
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn a_front_end_may_protect_a_listener_that_others_reach() {
    let settings = json!({"host": "::", "allowUnauthenticated": true});
    assert_eq!(config(settings).unwrap().minerid.unwrap().address.to_string(), "[::]:9002");
}

#[test]
fn a_service_can_be_switched_off() {
    let config = config(json!({"minerid": {"enabled": false}})).unwrap();
    assert!(config.minerid.is_none());
}

#[test]
fn the_environment_counts_over_the_file_leaf_by_leaf() {
    let mut merged = json!({"port": 1, "minerid": {"enabled": false}, "allowedHosts": ["a", "b"]});
    merge(&mut merged, json!({"port": 2, "minerid": {}, "allowedHosts": ["c"], "rpcHost": "d"}));
    let expected =
        json!({"port": 2, "minerid": {"enabled": false}, "allowedHosts": ["c"], "rpcHost": "d"});
    assert_eq!(merged, expected);
}

#[test]
fn what_is_wrong_in_a_file_is_told_without_its_line() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("settings.toml");
    for (text, place) in [
        ("port = 1\nrpcPassword = \"hunter2\n", "line 2, column 23: "),
        ("rpcPassword = hunter2", "line 1, column 15: "),
        ("rpcPassword = \"hunter2\"\nrpcPassword = \"hunter2\"", "line 2, column 1: "),
        ("\u{e9} = 'hunter2'", "line 1, column 1: "),
    ] {
        fs::write(&file, text).unwrap();
        let error = read_file(&file).unwrap_err().to_string();
        assert!(error.contains(&format!("settings.toml: {place}")), "{error}");
        assert!(!error.contains("hunter2"), "{error}");
    }
}

#[test]
fn one_passphrase_and_not_an_empty_one() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("passphrase");
    fs::write(&file, "two words\r\n").unwrap();
    let variable = || Some(SecretString::from("other"));
    let passphrase = one_passphrase(Some(&file), None).unwrap().unwrap();
    assert_eq!(passphrase.expose_secret(), "two words");
    assert_eq!(one_passphrase(None, variable()).unwrap().unwrap().expose_secret(), "other");
    assert!(one_passphrase(None, None).unwrap().is_none());
    assert!(one_passphrase(Some(&file), variable()).is_err());
    assert!(one_passphrase(None, Some(SecretString::from(""))).is_err());
    assert!(one_passphrase(Some(&dir.path().join("missing")), None).is_err());
}

#[tokio::test]
async fn an_instance_shows_no_secret() {
    let dir = tempfile::tempdir().unwrap();
    let settings = json!({
        "rpcUser": "me", "rpcPassword": "hidden-password",
        "auth": {"requireToken": true, "jwtKey": "hidden-key of 32 bytes or even more"},
    });
    let settings = Settings::read("test", settings).unwrap();
    let passphrase = Some(SecretString::from("hidden-passphrase"));
    let config = Config::new(settings, dir.path(), passphrase).unwrap();
    let instance = crate::Instance::open(config, None, "test").await.unwrap();
    let words = instance.wallet.as_ref().unwrap().wallet().export_seed().await.unwrap();
    let shown = format!("{instance:?}");
    assert!(!shown.contains("hidden"), "{shown}");
    assert!(!shown.contains(words.words().as_str()) && !shown.is_empty(), "{shown}");
}
