//! The directory of the demonstration, and the programs that run on it.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use bsv_tests::{Node, build, free_port};
use serde_json::{Value, json};

/// The directory, and what stays the same at each start.
pub(crate) struct Site {
    dir: PathBuf,
    state: PathBuf,
    /// The ports of the listeners and of the receiver of webhooks.
    pub(crate) ports: Ports,
}

#[derive(Clone, Copy)]
pub(crate) struct Ports {
    pub(crate) minerid: u16,
    pub(crate) wallet: u16,
    pub(crate) payments: u16,
    pub(crate) webhook: u16,
}

/// The running server, and the command line beside it.
pub(crate) struct Programs {
    dir: PathBuf,
    pub(crate) ports: Ports,
    server: Child,
}

/// The file that marks the directory of a demonstration.
const STATE: &str = "demo.json";

impl Site {
    /// Whether a directory is that of a demonstration.
    pub(crate) fn is_in(dir: &Path) -> bool {
        dir.join(STATE).is_file()
    }

    /// Marks a directory, so that a start that is interrupted can be repeated.
    pub(crate) fn mark(dir: &Path) {
        if !Self::is_in(dir) {
            fs::write(dir.join(STATE), "{}").unwrap();
        }
    }

    pub(crate) fn new(dir: &Path, node: &Node) -> Self {
        let state = dir.join(STATE);
        let known: Value = fs::read_to_string(&state)
            .map_or(Value::Null, |text| serde_json::from_str(&text).unwrap_or_default());
        // The ports of the documents, so that their commands fit, unless something else has one.
        let port = |name: &str, usual: u16| match known[name].as_u64() {
            Some(port) => port.try_into().unwrap(),
            None if TcpListener::bind(("127.0.0.1", usual)).is_ok() => usual,
            None => free_port(),
        };
        let ports = Ports {
            minerid: port("minerid", 9002),
            wallet: port("wallet", 8443),
            payments: port("payments", 8445),
            webhook: port("webhook", 8446),
        };
        let site = Self { dir: dir.to_owned(), state, ports };
        let height = known["height"].as_u64().unwrap_or_default();
        site.note_height(height);
        site.write_settings(node);
        site
    }

    fn write_settings(&self, node: &Node) {
        let Ports { minerid, wallet, payments, .. } = self.ports;
        let settings = format!(
            "port = {minerid}\nrpcPort = {}\nrpcUser = \"{}\"\nrpcPassword = \"{}\"\n\n\
             [wallet]\nport = {wallet}\n\n[wallet.merchant]\nname = \"A demonstration\"\n\n\
             [payments]\nport = {payments}\n\n[webhooks]\nallowNetworks = [\"127.0.0.0/8\"]\n",
            node.port, node.user, node.password
        );
        fs::write(self.dir.join("settings.toml"), settings).unwrap();
    }

    /// Remembers how far the chain has come.
    pub(crate) fn note_height(&self, height: u64) {
        let Ports { minerid, wallet, payments, webhook } = self.ports;
        let state = json!({
            "minerid": minerid, "wallet": wallet, "payments": payments, "webhook": webhook,
            "height": height,
        });
        fs::write(&self.state, state.to_string()).unwrap();
    }

    /// Whether the demonstration has seen more blocks than the node has now.
    pub(crate) fn is_ahead_of(&self, node: &Node) -> bool {
        let known: Value = serde_json::from_str(&fs::read_to_string(&self.state).unwrap()).unwrap();
        known["height"].as_u64().unwrap_or_default() > super::height(node)
    }

    /// Starts the server, and waits until it listens.
    pub(crate) fn start(&self) -> Programs {
        let log = File::options().create(true).append(true).open(self.dir.join("server.log"));
        // The shell stops the server when the demonstration ends in any way.
        const UNTIL_INPUT_ENDS: &str = "\"$@\" & cat >/dev/null; kill $!; wait $!";
        let mut command = Command::new("sh");
        command.args(["-c", UNTIL_INPUT_ENDS, "sh"]).arg(build::server_program());
        in_directory(&mut command, &self.dir)
            // An interrupt from the keyboard is for the demonstration.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log.unwrap());
        let mut server = command.spawn().unwrap();
        let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
        if !lines.any(|line| line.is_ok_and(|line| line.starts_with("listening control "))) {
            panic!("the server did not start: see {}", self.dir.join("server.log").display());
        }
        // What else the server prints is read, so that it never waits for a reader.
        std::thread::spawn(move || lines.for_each(drop));
        Programs { dir: self.dir.clone(), ports: self.ports, server }
    }
}

fn in_directory<'c>(command: &'c mut Command, dir: &Path) -> &'c mut Command {
    command
        .env("BSV_CONFIG_FILE", dir.join("settings.toml"))
        .env("BSV_DATA_DIR", dir.join("data"))
        .env_remove("BSV_CONFIG")
}

impl Programs {
    /// Prints what makes the commands work in another terminal.
    pub(crate) fn print_environment(&self) {
        let programs = build::cli_program().parent().unwrap().display();
        println!("\nThe commands work in another terminal after");
        println!("  export PATH={programs}:$PATH");
        println!("  export BSV_CONFIG_FILE={}", self.dir.join("settings.toml").display());
        println!("  export BSV_DATA_DIR={}\n", self.dir.join("data").display());
    }

    /// Runs the command line and shows it.
    pub(crate) fn show(&self, arguments: &[&str]) {
        print_command(arguments);
        let output = self.cli(arguments).output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        String::from_utf8_lossy(&text).lines().for_each(|line| println!("  {line}"));
    }

    /// Runs the command line with `--json`, shows the command, and answers the result.
    pub(crate) fn show_json(&self, arguments: &[&str]) -> Value {
        print_command(arguments);
        self.ask(arguments)
    }

    /// The result of the command line, which must succeed.
    pub(crate) fn ask(&self, arguments: &[&str]) -> Value {
        let output = self.cli(&[arguments, &["--json"]].concat()).output().unwrap();
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "bsv-cli {arguments:?}: {complaint}");
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// Writes a file into the directory of the demonstration, and answers its path.
    pub(crate) fn keep(&self, name: &str, text: &str) -> PathBuf {
        let path = self.dir.join(name);
        fs::write(&path, text).unwrap();
        path
    }

    fn cli(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(build::cli_program());
        in_directory(&mut command, &self.dir).args(arguments).stdin(Stdio::null());
        command
    }
}

impl Drop for Programs {
    fn drop(&mut self) {
        drop(self.server.stdin.take());
        let _ = self.server.wait();
    }
}

fn print_command(arguments: &[&str]) {
    let quoted = |word: &&str| match word.contains(' ') {
        true => format!("'{word}'"),
        false => (*word).to_owned(),
    };
    let words: Vec<_> = arguments.iter().map(quoted).collect();
    println!("\n$ bsv-cli {}", words.join(" "));
}
