//! Every setting from every source has its effect.

mod verdicts;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use bsv_store::DirLock;
use bsv_tests::build::{cli_program, server_program};
use bsv_tests::{Done, Node, Reply, Site, http, node};
use serde_json::{Value, json};
use tempfile::TempDir;

/// The source of settings.
#[derive(Clone, Copy, Debug)]
enum Source {
    File,
    Environment,
}

/// A server that was started by hand.
struct Server {
    child: Child,
    stdout: BufReader<std::process::ChildStdout>,
    /// The lines of the listeners.
    lines: Vec<String>,
    /// The lines that say what to do first.
    first_steps: Vec<String>,
}

/// `program` with no settings and no data directory.
fn bare(program: &Path) -> Command {
    let mut command = Command::new(program);
    for variable in ["BSV_CONFIG", "BSV_KEYSTORE_PASSPHRASE", "BSV_LOG", "XDG_DATA_HOME", "HOME"] {
        command.env_remove(variable);
    }
    command.stdin(Stdio::null());
    command
}

/// `program` on the data directory `dir/data`, with settings from one source. The wallet and
/// payments get free ports unless the settings name ports.
fn configured(program: &Path, dir: &Path, source: Source, settings: &Value) -> Command {
    let mut command = bare(program);
    let mut settings = settings.clone();
    for listener in ["wallet", "payments"] {
        if settings[listener].is_null() {
            settings[listener] = json!({"port": 0});
        }
    }
    let settings = &settings;
    command.arg("--data-dir").arg(dir.join("data"));
    match source {
        Source::Environment => {
            command.env("BSV_CONFIG", settings.to_string());
        }
        Source::File => {
            command.arg("--config").arg(write_toml(dir, settings));
        }
    }
    command
}

fn write_toml(dir: &Path, settings: &Value) -> PathBuf {
    let path = dir.join("settings.toml");
    let mut text = String::new();
    let (tables, values): (Vec<_>, Vec<_>) =
        settings.as_object().unwrap().iter().partition(|(_, value)| value.is_object());
    for (name, value) in values {
        text.push_str(&format!("{name} = {value}\n"));
    }
    for (name, table) in tables {
        text.push_str(&format!("[{name}]\n"));
        for (name, value) in table.as_object().unwrap() {
            text.push_str(&format!("{name} = {value}\n"));
        }
    }
    fs::write(&path, text).unwrap();
    path
}

fn run_ok(command: &mut Command) -> String {
    let done = Done::of(command);
    assert_eq!(done.code, 0, "{command:?}: {}", done.stderr);
    done.stdout
}

/// Checks that the program ends with exit code 1, an empty standard output and this reason.
fn check_refused(command: &mut Command, reasons: &[&str]) {
    let done = Done::of(command);
    assert_eq!((done.code, done.stdout.as_str()), (1, ""), "{command:?}: {}", done.stderr);
    for reason in reasons {
        assert!(done.stderr.contains(reason), "{command:?}: {}", done.stderr);
    }
}

impl Server {
    /// Starts a server and waits until all its listeners are open.
    fn start(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut lines: Vec<String> = Vec::new();
        while lines.last().is_none_or(|line| !line.starts_with("next: ")) {
            let mut line = String::new();
            stdout.read_line(&mut line).unwrap();
            assert!(!line.is_empty(), "{command:?} ended after {lines:?}");
            lines.push(line.trim_end().to_owned());
        }
        let is_listener = |line: &String| line.starts_with("listening ");
        let (lines, first_steps) = lines.into_iter().partition(is_listener);
        Self { child, stdout, lines, first_steps }
    }

    fn address(&self) -> &str {
        self.lines[0].strip_prefix("listening minerid http://").unwrap()
    }

    /// The path of the control socket.
    fn control(&self) -> &str {
        self.lines.last().unwrap().strip_prefix("listening control ").unwrap()
    }

    fn get(&self, path: &str) -> Reply {
        get(self.address(), path)
    }

    fn signal(&self, signal: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-s", signal, &pid]).status().unwrap().success());
    }

    /// Waits for the end. Returns the exit code and the rest of the output.
    fn wait(mut self) -> (i32, String) {
        let mut rest = String::new();
        self.stdout.read_to_string(&mut rest).unwrap();
        (self.child.wait().unwrap().code().unwrap_or(-1), rest)
    }

    fn stop(self) {
        self.signal("TERM");
        assert_eq!(self.wait(), (0, String::new()));
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn get(address: &str, path: &str) -> Reply {
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    http::exchange(address, request.as_bytes(), "GET").unwrap()
}

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

fn names_in(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<_> = entries.map(|name| name.into_string().unwrap()).collect();
    names.sort();
    names
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

#[test]
fn a_port_that_is_taken_is_named() {
    let holder = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = holder.local_addr().unwrap();
    let site = Site::with(json!({"port": address.port()}));
    let reason = format!("cannot listen on {address}: ");
    check_refused(&mut site.server_command(), &[&reason]);
    drop(holder);
    assert_eq!(site.server().address(), address.to_string());
}

#[test]
fn the_data_directory_has_a_default_for_each_user() {
    let dir = TempDir::new().unwrap();
    let home = dir.path().join("home");
    let xdg = dir.path().join("xdg");
    let port = json!({"port": 0, "wallet": {"port": 0}, "payments": {"port": 0}}).to_string();
    let start = |variables: &[(&str, &Path)]| {
        let mut command = bare(server_program());
        command.env("BSV_CONFIG", &port).envs(variables.iter().copied());
        command
    };
    for (variables, expected) in [
        (&[("XDG_DATA_HOME", xdg.as_path())][..], xdg.join("bsv-server")),
        (&[("HOME", &home)], home.join(".local/share/bsv-server")),
        (&[("HOME", &home), ("XDG_DATA_HOME", &xdg)], xdg.join("bsv-server")),
        (
            &[("HOME", &home), ("XDG_DATA_HOME", "relative".as_ref())],
            home.join(".local/share/bsv-server"),
        ),
    ] {
        let server = Server::start(&mut start(variables));
        assert!(expected.join("regtest/control.sock").exists(), "{variables:?}");
        let mut cli = bare(cli_program());
        cli.env("BSV_CONFIG", &port).envs(variables.iter().copied());
        run_ok(cli.args(["miner", "list"]));
        server.stop();
        fs::remove_dir_all(expected).unwrap();
    }
    check_refused(&mut start(&[]), &["no data directory: give --data-dir"]);
    assert!(!Path::new("relative").exists());
}

#[test]
fn a_relative_data_directory_is_taken_from_where_the_program_starts() {
    let dir = TempDir::new().unwrap();
    let mut command = bare(server_program());
    command.current_dir(dir.path()).args(["--data-dir", "here"]);
    command.env(
        "BSV_CONFIG",
        json!({"port": 0, "wallet": {"port": 0}, "payments": {"port": 0}, "keystore": "keys"})
            .to_string(),
    );
    let server = Server::start(&mut command);
    let control = dir.path().join("here/regtest/control.sock").canonicalize().unwrap();
    assert_eq!(server.control(), control.to_str().unwrap());
    assert!(dir.path().join("keys/keystore.json").exists());
    server.stop();
}

#[test]
fn the_holder_of_a_directory_is_named() {
    let site = Site::new();
    let server = site.server();
    let holder = format!("is in use by bsv-server (process {})", server.id());
    check_refused(&mut site.server_command(), &[&holder, "regtest is in use"]);
    let (keys, ids) = (site.network_dir().join("keystore"), site.network_dir().join("minerid"));
    for (setting, dir) in [("keystore", keys), ("minerIdDataPath", ids)] {
        let other = Site::with(json!({setting: dir}));
        let reason = format!("{} {holder}", dir.display());
        check_refused(&mut other.server_command(), &[&reason]);
        check_refused(&mut other.cli_command(&["generateminerid", "-n", "a"]), &[&reason]);
    }
    assert_eq!(server.stop(), 0);
    assert_eq!(site.server().stop(), 0);
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

#[test]
fn a_server_that_cannot_listen_makes_nothing() {
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = other.local_addr().unwrap();
    let site = Site::with(json!({ "wallet": { "port": address.port() } }));
    check_refused(&mut site.server_command(), &[&format!("cannot listen on {address}")]);
    assert_eq!(fs::read_dir(site.data_dir()).unwrap().count(), 0);
    drop(other);
    assert_eq!(site.server().stop(), 0);
}

#[test]
fn a_starting_server_waits_for_a_command_that_holds_the_directory() {
    let site = Site::new();
    let lock = DirLock::acquire(&site.network_dir(), "bsv-cli").unwrap();
    let starting = thread::spawn({
        let mut command = site.server_command();
        move || Server::start(&mut command)
    });
    // A server that does not wait would have ended by then.
    thread::sleep(Duration::from_secs(1));
    assert!(!starting.is_finished());
    drop(lock);
    starting.join().unwrap().stop();
}

#[test]
fn root_makes_no_files_in_a_directory_of_another_user() {
    let site = Site::new();
    if chown(site.data_dir(), Some(12_345), None).is_err() {
        eprintln!("SKIPPED: only root can give a directory to another user");
        return;
    }
    for mut command in [site.server_command(), site.cli_command(&["init"])] {
        check_refused(&mut command, &["belongs to user 12345", "sudo -u '#12345'"]);
    }
    assert_eq!(fs::read_dir(site.data_dir()).unwrap().count(), 0);
}

#[test]
fn a_data_directory_with_a_very_long_path_still_has_a_control_socket() {
    let dir = TempDir::new().unwrap();
    let deep: PathBuf =
        [dir.path(), "a".repeat(120).as_ref(), "b".repeat(120).as_ref()].iter().collect();
    let settings = json!({"port": 0});
    let server =
        Server::start(&mut configured(server_program(), &deep, Source::Environment, &settings));
    let control = deep.join("data/regtest/control.sock");
    assert_eq!(server.control(), control.to_str().unwrap());
    assert_eq!(fs::metadata(&control).unwrap().permissions().mode() & 0o777, 0o600);
    let cli = |arguments: &[&str]| {
        let mut command = configured(cli_program(), &deep, Source::Environment, &settings);
        run_ok(command.args(arguments))
    };
    cli(&["generateminerid", "-n", "pool"]);
    let key = cli(&["getcurrentminerid", "-n", "pool"]);
    assert_eq!(server.get("/minerid/pool").body, key.trim());
    server.stop();
    assert_eq!(cli(&["getcurrentminerid", "-n", "pool"]), key);
}

#[test]
fn a_signal_ends_the_server_after_the_requests_in_flight() {
    for signal in ["TERM", "INT"] {
        let site = Site::new();
        let server = Server::start(&mut site.server_command());
        site.cli_ok(&["generateminerid", "-n", "pool"]);
        let mut idle = TcpStream::connect(server.address()).unwrap();
        let mut request = TcpStream::connect(server.address()).unwrap();
        request
            .write_all(
                b"POST /opreturn/pool/rotate HTTP/1.1\r\nHost: localhost\r\n\
                  Expect: 100-continue\r\nContent-Length: 2\r\n\r\n",
            )
            .unwrap();
        // The signal comes as soon as the request is in flight.
        let mut told = [0; 25];
        request.read_exact(&mut told).unwrap();
        assert_eq!(&told, b"HTTP/1.1 100 Continue\r\n\r\n");
        request.write_all(b"{").unwrap();
        let key = server.get("/minerid/pool").body;

        server.signal(signal);
        while TcpStream::connect(server.address()).is_ok() {
            thread::sleep(Duration::from_millis(10));
        }
        request.write_all(b"}").unwrap();
        let mut answer = String::new();
        request.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("OK"), "{answer}");
        assert_eq!(idle.read(&mut [0]).unwrap(), 0);
        assert_eq!(server.wait(), (0, String::new()));

        let control = site.network_dir().join("control.sock");
        assert!(control.exists(), "a socket that is left over is replaced");
        let server = site.server();
        assert_ne!(server.text("/minerid/pool"), key);
        assert_eq!(site.cli_ok(&["getcurrentminerid", "-n", "pool"]), server.text("/minerid/pool"));
        assert_eq!(server.stop(), 0);
    }
}

#[test]
fn a_socket_from_before_a_crash_is_replaced() {
    let site = Site::new();
    let server = site.server();
    site.cli_ok(&["generateminerid", "-n", "pool"]);
    server.kill();
    let control = site.network_dir().join("control.sock");
    assert!(control.exists());
    let server = site.server();
    assert_eq!(site.cli_ok(&["getcurrentminerid", "-n", "pool"]), server.text("/minerid/pool"));
    assert_eq!(server.stop(), 0);
}
