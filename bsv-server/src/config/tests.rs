use std::fs;

use bsv_network::NodeCredentials;
use secrecy::ExposeSecret;
use serde_json::{Value, json};

use super::sources::{merge, one_passphrase, read_file};
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
    assert_eq!((node.host.as_str(), node.port), ("node", 99));
    let NodeCredentials::Password { user, password } = &node.credentials else {
        panic!("{node:?}")
    };
    assert_eq!((user.as_str(), password.expose_secret()), ("me", "hidden-password"));
    assert!(!format!("{config:?}").contains("hidden-password"), "{config:?}");
}

#[test]
fn the_node_is_asked_at_its_networks_port() {
    for (network, port) in [("livenet", 8332), ("testnet", 18332), ("regtest", 18332)] {
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
        (json!({"http": {"drainSeconds": 31}}), "http.drainSeconds must be from 1 to 30"),
        (json!({"http": {"stalledSeconds": 0}}), "http.stalledSeconds must be from 1 to 600"),
        (json!({"stores": {"checkHours": 0}}), "stores.checkHours must be from 1 to 8760"),
        (json!({"port": "9002"}), "port: "),
        (json!({"network": "main"}), "network: unknown network \"main\""),
        (json!({"host": "example.com"}), "host: "),
        (
            json!({"rpcUser": "me", "rpcCookieFile": "c"}),
            "rpcCookieFile takes the place of rpcUser",
        ),
        (json!({"rpcUser": "me"}), "rpcUser and rpcPassword must be set together"),
        (json!({"rpcUser": "me", "rpcPassword": 1}), "rpcPassword: must be a string"),
        (json!({"host": "0.0.0.0"}), "allowUnauthenticated"),
        (json!({"auth": {"jwtKey": 1}}), "auth.jwtKey: must be a string"),
        (json!({"payments": {"connections": 0}}), "payments.connections must be from 1 to 100000"),
        (json!({"payments": {"requestBurst": 0}}), "payments.requestBurst must be from 1"),
        (json!({"payments": {"trustedProxies": ["proxy"]}}), "\"proxy\" is not an IP address"),
        (
            json!({"webhooks": {"allowNetworks": ["10.0.0.0/33"]}}),
            "webhooks.allowNetworks: \"10.0.0.0/33\" is not an IP address",
        ),
        (json!({"webhooks": {"allowNetworks": "10.0.0.0/8"}}), "webhooks.allowNetworks: "),
        (json!({"webhooks": {"allow": []}}), "webhooks.allow: unknown field `allow`"),
        (json!({"minerid": {"nodeListener": {}}}), "minerid.nodeListener: missing field `alias`"),
        (
            json!({"minerid": {"nodeListener": {"alias": "../x"}}}),
            "minerid.nodeListener.alias: \"../x\"",
        ),
        (
            json!({"minerid": {"nodeListener": {"alias": "x", "host": "0.0.0.0"}}}),
            "minerid.nodeListener.allowUnauthenticated",
        ),
        (json!([]), "settings are an object"),
        (json!({"auth": null}), "auth: null is no value"),
        (json!({"auth": {"requireToken": null}}), "auth.requireToken: null is no value"),
        (json!({"payments": {"tls": null}}), "payments.tls: null is no value"),
        (
            json!({"wallet": {"payLimitSatoshis": null}}),
            "wallet.payLimitSatoshis: null is no value",
        ),
    ] {
        let error = error(settings);
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn networks_are_opened_for_webhooks_by_name_or_address() {
    let networks = |settings: Value| config(settings).unwrap().wallet.unwrap().webhook_networks;
    assert_eq!(networks(json!({})), []);
    let opened = networks(json!({"webhooks": {"allowNetworks": ["127.0.0.0/8", "fd00::1"]}}));
    let expected = ["127.0.0.0/8", "fd00::1/128"].map(|network| network.parse().unwrap());
    assert_eq!(opened, expected);
}

#[test]
fn a_front_end_may_protect_a_listener_that_others_reach() {
    let settings = json!({"host": "::", "allowUnauthenticated": true});
    assert_eq!(config(settings).unwrap().minerid.unwrap().address.to_string(), "[::]:9002");
}

#[test]
fn the_nodes_listener_is_declared_by_itself() {
    let listener = |settings: Value| {
        let settings =
            json!({"auth": {"requireToken": true}, "minerid": {"nodeListener": settings}});
        config(settings).unwrap().minerid.unwrap().node_listener.unwrap()
    };
    let local = listener(json!({"alias": "pool"}));
    assert_eq!(
        (local.address.to_string().as_str(), local.alias.as_str()),
        ("127.0.0.1:9003", "pool")
    );
    let others = listener(
        json!({"alias": "pool", "host": "10.0.0.1", "port": 7, "allowUnauthenticated": true}),
    );
    assert_eq!(others.address.to_string(), "10.0.0.1:7");
    // `allowUnauthenticated` of the services does not apply to it.
    let settings = json!({
        "allowUnauthenticated": true,
        "minerid": {"nodeListener": {"alias": "pool", "host": "10.0.0.1"}},
    });
    assert!(error(settings).contains("minerid.nodeListener.host"));
}

#[test]
fn a_service_can_be_switched_off() {
    let config = config(json!({"minerid": {"enabled": false}})).unwrap();
    assert!(config.minerid.is_none());
}

#[test]
fn the_environment_overrides_the_file_leaf_by_leaf() {
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
    let instance = crate::Instance::open(config, "test", crate::Create::All).await.unwrap();
    let words = instance.wallet.as_ref().unwrap().wallet().export_seed().await.unwrap();
    let shown = format!("{instance:?}");
    assert!(!shown.contains("hidden"), "{shown}");
    assert!(!shown.contains(words.words().as_str()) && !shown.is_empty(), "{shown}");
}

#[test]
fn what_is_shown_can_be_read_back_and_holds_no_secret() {
    let dir = tempfile::tempdir().unwrap();
    let write = |text: &str| {
        let file = dir.path().join("settings.toml");
        fs::write(&file, text).unwrap();
        ConfigSources { file: Some(file), data_dir: Some(dir.path().join("data")) }
    };
    let sources = write(
        "network = 'testnet'\nhost = '10.0.0.1'\nrpcUser = 'me'\nrpcPassword = 'hidden'\n\
         keystore = 'keys'\ntls = { certificate = 'c.pem', key = '/k.pem' }\n\
         [auth]\nrequireToken = true\n[wallet.merchant]\nname = \"Ada's\\n\"\n\
         [payments]\ntrustedProxies = ['10.0.0.0/8']\n\
         [webhooks]\nallowNetworks = ['127.0.0.0/8', '::1']\n\
         [minerid.nodeListener]\nalias = 'pool'\nport = 9999\n",
    );
    let shown = ShownSettings::load(&sources).unwrap();
    let (text, json) = (shown.to_toml(), shown.to_json());
    assert!(!text.contains("hidden") && !json.to_string().contains("hidden"), "{text}\n{json}");
    assert_eq!(json["keystore"], dir.path().join("keys").to_str().unwrap());
    assert_eq!(json["tls"]["key"], "/k.pem");
    assert_eq!(json["minerid"]["nodeListener"]["port"], 9999);
    let error = ShownSettings::load(&write(&text)).unwrap_err().to_string();
    assert!(error.contains("rpcPassword: config show does not print secrets"), "{error}");
    let read_back = ShownSettings::load(&write(&text.replace("<redacted>", "hidden"))).unwrap();
    assert_eq!((read_back.to_toml(), read_back.to_json()), (text, json));
}

#[test]
fn paths_in_a_file_are_relative_to_its_directory() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("settings.toml");
    let tls = "tls = { certificate = 'certificate', key = 'key' }\n";
    let text = format!(
        "minerIdDataPath = 'ids'\nkeystore = 'keys'\nkeystorePassphraseFile = 'passphrase'\n{tls}\
         [wallet]\n{tls}[payments]\n{tls}"
    );
    fs::write(&file, text).unwrap();
    fs::write(dir.path().join("passphrase"), "secret").unwrap();
    let data_dir = Some(dir.path().join("data"));
    let config = Config::load(&ConfigSources { file: Some(file), data_dir }).unwrap();
    let in_dir = |name: &str| dir.path().join(name);
    let files = TlsFiles { certificate: in_dir("certificate"), key: in_dir("key") };
    let (minerid, wallet) = (config.minerid.unwrap(), config.wallet.unwrap());
    assert_eq!((minerid.data_dir, config.keystore.dir), (in_dir("ids"), in_dir("keys")));
    assert!(config.keystore.passphrase.is_some());
    assert_eq!(
        [minerid.tls, wallet.tls, wallet.payments.tls],
        [(); 3].map(|()| Some(files.clone()))
    );
}

#[test]
fn headers_are_kept_where_the_settings_say_so() {
    assert_eq!(config(json!({})).unwrap().headers, None);
    let headers = |settings: Value| config(json!({"services": {"headers": settings}}));
    let on = |network: &str| config(json!({"network": network, "services": {"headers": {}}}));
    assert_eq!(on("testnet").unwrap().headers, Some(SourceNames::default()));
    assert!(on("regtest").unwrap_err().to_string().contains("regtest has no seeds"));
    let url = "https://a.example/chaintracks/v2";
    let urls = json!([format!("{url}/"), "http://127.0.0.1:1", "http://[::1]:1/a"]);
    let found = headers(json!({"urls": urls, "peers": ["a.example:8333", "[::1]:8333"]})).unwrap();
    let found = found.headers.unwrap();
    assert_eq!((found.urls[0].as_str(), found.peers.len()), (url, 2));
    let plain = json!(["http://10.0.0.1/v2"]);
    assert!(headers(json!({"urls": plain})).is_err());
    assert!(headers(json!({"urls": plain, "allowHttp": true})).is_ok());
    for url in ["ftp://a.example", "https://user:key@a.example", "a.example", "https://a/?key=1"] {
        assert!(headers(json!({"urls": [url], "allowHttp": true})).is_err(), "{url}");
    }
    for peer in ["a.example", "a.example:port", "https://a.example:1", ":8333", "a@b:1"] {
        assert!(headers(json!({"peers": [peer]})).is_err(), "{peer}");
    }
}

const ARCADE: &str = "https://arcade.example/";

fn services(more: Value) -> Value {
    let mut settings = json!({
        "network": "testnet", "wallet": {"zeroConfLimitSatoshis": 1_000},
        "services": {"broadcasters": [{"kind": "arcade", "url": ARCADE}]},
    });
    merge(&mut settings, more);
    settings
}

#[test]
fn services_take_the_place_of_a_node() {
    let found = config(services(json!({}))).unwrap();
    assert_eq!(found.headers, Some(SourceNames::default()), "they need headers");
    let rules = found.wallet.unwrap().payment_rules;
    assert_eq!((rules.zero_conf_limit, rules.mined_blocks), (Some(1_000), 2));
    assert_eq!(rules.exposure_limit, Some(50_000));
    let exposure = |it: Value| {
        let config = config(services(json!({"services": {"exposureSatoshis": it}})));
        config.unwrap().wallet.unwrap().payment_rules.exposure_limit
    };
    assert_eq!([json!(7), json!("none")].map(exposure), [Some(7), None]);
    let found = found.services.unwrap();
    assert_eq!((found.seen_by, found.accept_timeout), (1, Duration::from_secs(10)));
    assert_eq!(found.broadcasters[0].url, "https://arcade.example");
    assert_eq!(found.callback_url, None);
    let path = "/network/callback";
    for (url, allow_http, is_taken) in [
        ("https://pay.example", false, true),
        ("http://127.0.0.1:8445", false, true),
        ("http://10.0.0.1:8445", true, true),
        ("http://10.0.0.1:8445", false, false),
    ] {
        let arcade = json!({"kind": "arcade", "url": ARCADE, "allowHttp": allow_http});
        let url = format!("{url}{path}");
        let settings = json!({"services": {"callbackUrl": url, "broadcasters": [arcade]}});
        match config(services(settings.clone())) {
            Ok(found) => {
                let found = found.services.unwrap().callback_url;
                assert_eq!((found, is_taken), (Some(url), true));
            }
            Err(_) => {
                assert!(!is_taken && error(services(settings)).contains("services.callbackUrl"));
            }
        }
    }
    for url in ["", " ", "pay.example/a", "https://", "https://pay.example/", "https://a@b/c"] {
        for url in
            [url.to_owned(), format!("https://pay.example{path}?a=b"), "https://a.b/c#d".to_owned()]
        {
            let message = error(services(json!({"services": {"callbackUrl": url}})));
            assert!(message.contains("services.callbackUrl"), "{url}: {message}");
        }
    }
    let unlimited = config(services(json!({"wallet": {"zeroConfLimitSatoshis": "none"}})));
    assert_eq!(unlimited.unwrap().wallet.unwrap().payment_rules.zero_conf_limit, None);
    let node = json!({"rpcUser": "u", "rpcPassword": "p", "wallet": {"source": "node"}});
    assert!(config(services(node)).unwrap().services.is_none());
}

#[test]
fn services_that_cannot_work_are_named() {
    let broadcasters = |it: Value| services(json!({"services": {"broadcasters": [it]}}));
    for (settings, expected) in [
        (services(json!({"rpcUser": "u", "rpcPassword": "p"})), "wallet.source"),
        (json!({"wallet": {"source": "services"}}), "services.broadcasters names none"),
        (json!({"wallet": {"source": "node"}}), "no node is configured"),
        (services(json!({"wallet": {"zeroConfLimitSatoshis": "some"}})), "a number of satoshis"),
        (
            json!({"network": "testnet", "services": {"broadcasters": [{"kind": "arc", "url": ARCADE}]}}),
            "wallet.zeroConfLimitSatoshis must be set",
        ),
        (services(json!({"services": {"seenBy": 2}})), "services.seenBy must be from 1 to 1"),
        (services(json!({"services": {"acceptTimeoutSeconds": 0}})), "from 1 to 60"),
        (services(json!({"network": "regtest"})), "regtest has no seeds"),
        (broadcasters(json!({"kind": "arc", "url": "http://arc.example"})), "allowHttp"),
        (broadcasters(json!({"kind": "arc"})), "missing field `url`"),
        (
            broadcasters(json!({"kind": "arc", "url": ARCADE, "requestsPerSecond": 0})),
            "services.broadcasters.requestsPerSecond must be from 1 to 1000",
        ),
        (
            broadcasters(json!({"kind": "arc", "url": ARCADE, "apiKeyFile": "/no/such/key"})),
            "cannot read /no/such/key",
        ),
    ] {
        let message = error(settings.clone());
        assert!(message.contains(expected), "{settings}: {message}");
    }
    let local = json!({"kind": "arc", "url": "http://127.0.0.1:9090"});
    assert!(config(broadcasters(local)).is_ok());
}
