//! What settings do, and which source of them counts.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::thread;

use bsv_tests::build::{cli_program, server_program};
use bsv_tests::{Node, Site, node};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::programs::{Server, Source, check_refused, configured, names_in, run_ok};

/// Takes one request for the node and refuses it. Returns the head of the request.
fn node_that_refuses(listener: TcpListener) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut head = Vec::new();
        let mut byte = [0];
        while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap() == 1 {
            head.push(byte[0]);
        }
        let answer = "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
        let _ = stream.write_all(answer.as_bytes());
        String::from_utf8(head).unwrap()
    })
}

#[test]
fn every_setting_of_the_specification_takes_effect_from_either_source() {
    // This is the Base64 of rpc-me:rpc-secret.
    const CREDENTIALS: &str = "Basic cnBjLW1lOnJwYy1zZWNyZXQ=";
    for network in ["livenet", "testnet", "regtest"] {
        for source in [Source::File, Source::Environment] {
            let dir = TempDir::new().unwrap();
            let at = |name: &str| dir.path().join(name);
            let node = TcpListener::bind("127.0.0.2:0").unwrap();
            let port = node::free_port();
            let [wallet_port, payments_port] = [(); 2].map(|()| node::free_port());
            let settings = json!({
                "port": port,
                "wallet": {"port": wallet_port},
                "payments": {"port": payments_port},
                "minerIdDataPath": at("elsewhere/ids"),
                "keystore": at("elsewhere/keys"),
                "network": network,
                "rpcHost": "127.0.0.2",
                "rpcPort": node.local_addr().unwrap().port(),
                "rpcUser": "rpc-me",
                "rpcPassword": "rpc-secret",
                "allowPlainKeystore": true,
            });
            let asked = node_that_refuses(node);
            let server =
                Server::start(&mut configured(server_program(), dir.path(), source, &settings));
            let control = at("data").join(network).join("control.sock");
            let lines = [
                format!("listening minerid http://127.0.0.1:{port}"),
                format!("listening wallet http://127.0.0.1:{wallet_port}"),
                format!("listening payments http://127.0.0.1:{payments_port}"),
                format!("listening control {}", control.display()),
            ];
            assert_eq!(server.lines, lines);
            let opened = format!(
                "open http://127.0.0.1:{wallet_port}/api/v1/openapi.json for a description of all calls"
            );
            assert_eq!(
                server.first_steps,
                [&opened, "next: bsv-cli invoice create --satoshis 5000"]
            );
            let head = asked.join().unwrap();
            assert!(head.starts_with("POST / HTTP/1.1\r\n"), "{head}");
            assert!(head.contains(CREDENTIALS), "{head}");

            let cli = |arguments: &[&str]| {
                let mut command = configured(cli_program(), dir.path(), source, &settings);
                run_ok(command.args(arguments))
            };
            cli(&["generateminerid", "--name", "pool"]);
            assert_eq!(server.get("/minerid/pool").status, 200);
            assert_eq!(names_in(&at("elsewhere/ids")), ["lock", "minerid.redb"]);
            let keys = names_in(&at("elsewhere/keys"));
            let wallet = ["wallet.adopted.key", "wallet.seed.key"];
            assert_eq!(keys, [&["keystore.json", "lock", "pool_1.key"][..], &wallet].concat());
            assert_eq!(names_in(&at("data")), [network]);
            let names = ["control.sock", "lock", "wallet.redb"];
            assert_eq!(names_in(&at("data").join(network)), names);
            server.stop();

            let shown: Value = serde_json::from_str(&cli(&["config", "show", "--json"])).unwrap();
            for (name, value) in settings.as_object().unwrap() {
                match name.as_str() {
                    "rpcPassword" => assert_eq!(shown[name], "<redacted>"),
                    "allowPlainKeystore" => {}
                    "wallet" => assert_eq!(shown[name]["port"], wallet_port),
                    "payments" => assert_eq!(shown[name]["port"], payments_port),
                    _ => assert_eq!(&shown[name], value, "{name}"),
                }
            }
        }
    }
}

#[test]
fn without_settings_everything_is_in_the_data_directory() {
    let site = Site::new();
    let server = site.server();
    site.cli_ok(&["generateminerid", "--name", "pool"]);
    assert_eq!(names_in(site.data_dir()), ["regtest"]);
    let expected = ["control.sock", "keystore", "lock", "minerid", "wallet.redb"];
    assert_eq!(names_in(&site.network_dir()), expected);
    for (path, mode) in [
        ("", 0o700),
        ("control.sock", 0o600),
        ("keystore", 0o700),
        ("keystore/pool_1.key", 0o600),
        ("keystore/keystore.json", 0o600),
        ("keystore/wallet.seed.key", 0o600),
    ] {
        let metadata = fs::metadata(site.network_dir().join(path)).unwrap();
        assert_eq!(metadata.permissions().mode() & 0o777, mode, "{path}");
    }
    assert_eq!(server.stop(), 0);
    let refused = site.cli(&["generatevctx", "--name", "pool"]);
    assert_eq!(refused.code, 1);
    assert!(
        refused.stderr.contains("set rpcUser and rpcPassword, or rpcCookieFile"),
        "{}",
        refused.stderr
    );
}

#[test]
fn the_environment_overrides_the_file_setting_by_setting() {
    let dir = TempDir::new().unwrap();
    let file = json!({
        "port": 1, "network": "testnet", "rpcUser": "file", "rpcPassword": "p",
        "rpcHost": "node", "allowedHosts": ["a", "b"], "minerid": {"enabled": false},
    });
    let show = |environment: &Value| -> Value {
        let mut command = configured(cli_program(), dir.path(), Source::File, &file);
        command.env("BSV_CONFIG", environment.to_string()).args(["config", "show", "--json"]);
        serde_json::from_str(&run_ok(&mut command)).unwrap()
    };
    let shown = show(&json!({}));
    assert_eq!(shown["network"], "testnet");
    assert_eq!(
        shown["minerid"],
        json!({"enabled": false, "askNodeMs": 300, "staleCopy": "answer"})
    );
    let shown = show(&json!({
        "port": 2, "rpcUser": "environment", "allowedHosts": ["c"], "minerid": {"enabled": true},
    }));
    for (name, value) in [
        ("port", json!(2)),
        ("network", json!("testnet")),
        ("rpcUser", json!("environment")),
        ("rpcHost", json!("node")),
        ("rpcPassword", json!("<redacted>")),
        ("allowedHosts", json!(["c"])),
        ("minerid", json!({"enabled": true, "askNodeMs": 300, "staleCopy": "answer"})),
    ] {
        assert_eq!(shown[name], value, "{name}");
    }
    assert_eq!(show(&json!({"minerid": {}}))["minerid"]["enabled"], json!(false));
}

#[test]
fn a_listener_can_use_ipv6_and_another_loopback_address() {
    for (host, start) in [("::1", "[::1]:"), ("127.0.0.5", "127.0.0.5:")] {
        let site = Site::with(json!({"host": host}));
        let server = site.server();
        assert!(server.address().starts_with(start), "{}", server.address());
        assert_eq!(server.get("/minerid/x").status, 422);
        assert_eq!(server.stop(), 0);
    }
}

#[test]
fn a_disabled_service_opens_nothing() {
    for source in [Source::File, Source::Environment] {
        let dir = TempDir::new().unwrap();
        let off = json!({"enabled": false});
        let settings = json!({"port": 0, "minerid": off, "wallet": off});
        let check_cli = || {
            for arguments in [
                &["miner", "list"][..],
                &["generateminerid", "-n", "a"],
                &["miner", "script", "-n", "a", "-t", "1"],
            ] {
                let mut command = configured(cli_program(), dir.path(), source, &settings);
                check_refused(command.args(arguments), &["the miner identity service is disabled"]);
            }
        };
        check_cli();
        assert!(!dir.path().join("data").exists());
        let server =
            Server::start(&mut configured(server_program(), dir.path(), source, &settings));
        let network_dir = dir.path().join("data/regtest");
        let control = network_dir.join("control.sock");
        assert_eq!(server.lines, [format!("listening control {}", control.display())]);
        check_cli();
        assert_eq!(names_in(&network_dir), ["control.sock", "lock"]);
        server.stop();
    }
}

#[test]
fn config_show_prints_the_effective_settings_and_no_secret() {
    let dir = TempDir::new().unwrap();
    let settings = json!({
        "network": "testnet", "rpcUser": "me", "rpcPassword": "hidden-password",
        "allowedHosts": ["pool.internal"], "tls": {"certificate": "/a.pem", "key": "/a.key"},
    });
    let show = |arguments: &[&str]| {
        let mut command = configured(cli_program(), dir.path(), Source::File, &settings);
        command.env("BSV_KEYSTORE_PASSPHRASE", "hidden-passphrase").args(arguments);
        let shown = run_ok(&mut command);
        assert!(!shown.contains("hidden"), "{shown}");
        shown
    };
    let text = show(&["config", "show"]);
    let data = dir.path().join("data/testnet");
    for line in [
        "network = \"testnet\"",
        &format!("# The data is in {}.", data.display()),
        &format!("keystore = \"{}\"", data.join("keystore").display()),
        &format!("minerIdDataPath = \"{}\"", data.join("minerid").display()),
        "# The keystore's passphrase is set.",
        "host = \"127.0.0.1\"",
        "port = 9002",
        "[tls]",
        "certificate = \"/a.pem\"",
        "rpcHost = \"127.0.0.1\"",
        "rpcPort = 18332",
        "rpcUser = \"me\"",
        "rpcPassword = \"<redacted>\"",
        "allowedHosts = [\"pool.internal\"]",
        "[minerid]",
    ] {
        assert!(text.lines().any(|shown| shown == line), "{line} in {text}");
    }
    let json: Value = serde_json::from_str(&show(&["config", "show", "--json"])).unwrap();
    assert_eq!(json["rpcPort"], 18332);
    assert_eq!(json["keystorePassphrase"], "set");
    assert!(!data.exists(), "showing makes no data directory");
}

#[test]
fn the_cookie_file_of_the_node_takes_the_place_of_a_password() {
    let mut node = Node::start_with(&["rpcpassword="]);
    let mut site = Site::with(json!({ "rpcPort": node.port, "rpcCookieFile": node.cookie_file() }));
    let server = site.server();
    for _ in 0..2 {
        assert!(site.cli_ok(&["config", "check", "--node"]).contains("it answers"));
        assert_eq!(site.cli_json(&["status"])["node"]["state"], "reachable");
        node.restart();
    }
    drop(server);
    site.set("rpcUser", json!("me"));
    check_refused(&mut site.server_command(), &["rpcCookieFile takes the place of rpcUser"]);
}
