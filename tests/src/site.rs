//! An installation of the service: a data directory, its settings, and the programs that use it.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use rustix::fs::statvfs;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::build::{cli_program, server_program};
use crate::http::{Client, Reply};
use crate::node::Node;
use crate::openapi;
use crate::postgres::Postgres;
use crate::sockets::ListeningSockets;
use crate::source;

/// The server of wallets that tests have in a database, though they do not ask for one. No test kills it.
static POSTGRES: LazyLock<Postgres> = LazyLock::new(|| Postgres::start_with(&["fsync=off"]));

/// A data directory, in memory where there is room, and the settings that server and command line share.
#[derive(Debug)]
pub struct Site {
    dir: TempDir,
    settings: Value,
    prefix: Vec<String>,
    environment: Vec<(String, OsString)>,
}

/// The result of a program that has ended.
#[derive(Clone, Debug)]
pub struct Done {
    /// The exit code, or -1 if a signal ended it.
    pub code: i32,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
}

/// A running server, killed when dropped.
#[derive(Debug)]
pub struct Server {
    child: Child,
    /// The server's standard output. It is kept open, so that more lines can be read.
    stdout: BufReader<ChildStdout>,
    started: Instant,
    minerid: Option<Client>,
    wallet: Option<Client>,
    payments: Option<Client>,
    node_listener: Option<Client>,
    /// The path of the control socket.
    control: Option<PathBuf>,
    /// The time from the start of the program to the line that says it listens.
    pub start_time: Duration,
}

impl Site {
    /// A new data directory, on regtest and without a node. Listeners take free ports. With the environment variable
    /// `BSV_TEST_STORE=postgres` the wallets of all sites lie in databases of one server, with
    /// `BSV_TEST_SOURCE=services` they ask services in front of their nodes.
    pub fn new() -> Self {
        Self::with(json!({}))
    }

    /// A new data directory whose service uses `node`.
    pub fn on(node: &Node) -> Self {
        Self::with(json!({
            "rpcHost": node.host, "rpcPort": node.port,
            "rpcUser": node.user, "rpcPassword": node.password,
        }))
    }

    /// A new data directory with these settings, and port 0 for listeners unless they name one.
    pub fn with(mut settings: Value) -> Self {
        settings.as_object_mut().unwrap().entry("port").or_insert(json!(0));
        for listener in ["wallet", "payments"] {
            if settings[listener]["port"].is_null() {
                settings[listener]["port"] = json!(0);
            }
        }
        if std::env::var_os("BSV_TEST_STORE").is_some_and(|store| store == "postgres")
            && settings["wallet"]["enabled"] != json!(false)
            && settings["wallet"]["store"].is_null()
        {
            settings["wallet"]["store"] = json!({ "url": POSTGRES.fresh_url() });
        }
        source::turn(&mut settings);
        Self { dir: dir_in_memory(), settings, prefix: Vec::new(), environment: Vec::new() }
    }

    /// Moves the data directory to the disk, where kills and full disks mean what they mean to operators. No program may
    /// use it yet.
    pub fn keep_on_disk(&mut self) {
        let dir = TempDir::new().unwrap();
        copy_dir(self.data_dir(), dir.path());
        self.dir = dir;
    }

    /// Copies the keystore of another site, as operators do for a second server of one wallet.
    pub fn take_keystore_of(&self, other: &Self) {
        let [from, to] = [other, self].map(|site| site.network_dir().join("keystore"));
        copy_dir(&from, &to);
        // It belongs to the process that uses the other one.
        let _ = fs::remove_file(to.join("lock"));
    }

    /// Makes the service use another node from its next start on.
    pub fn move_to(&mut self, node: &Node) {
        let settings = self.settings.as_object_mut().unwrap();
        settings.insert("rpcHost".to_owned(), json!(node.host));
        settings.insert("rpcPort".to_owned(), json!(node.port));
        settings.insert("rpcUser".to_owned(), json!(node.user));
        settings.insert("rpcPassword".to_owned(), json!(node.password));
        source::turn(&mut self.settings);
    }

    /// Has a block hold what the wallet has received, where it spends nothing else.
    ///
    /// # Panics
    /// If the wallet does not learn of the block.
    pub fn prove(&self, wallet: &Client) {
        source::prove(&self.settings, wallet);
    }

    /// Waits until the wallet has the newest header, where it asks services. Nodes are asked for theirs.
    ///
    /// # Panics
    /// If that takes too long.
    pub fn wait_for_header(&self, wallet: &Client) {
        source::wait_for_header(&self.settings, wallet);
    }

    /// What `books verify` finds in all blocks, or, where the wallet asks services, in those that it knows.
    ///
    /// # Panics
    /// If it finds a difference.
    pub fn verified_books(&self) -> Value {
        let blocks: &[&str] = match self.settings["wallet"]["source"] == "services" {
            true => &[],
            false => &["--from-height", "0"],
        };
        let books = self.cli_json(&[&["books", "verify"], blocks].concat());
        assert_eq!(books["differences"], json!([]), "{books}");
        books
    }

    /// A site with the same settings on a copy of the data directory. The copy is in memory and has
    /// the state on the disk. The programs of the copy do not run under the command of
    /// [`run_under`](Self::run_under).
    pub fn copy(&self) -> Self {
        let dir = dir_in_memory();
        copy_dir(self.data_dir(), dir.path());
        Self { dir, settings: self.settings.clone(), prefix: vec![], environment: vec![] }
    }

    /// Starts the programs through `command` and its arguments, for example a command that limits
    /// the programs. The program and its arguments are appended.
    pub fn run_under(&mut self, command: &[&str]) {
        self.prefix = command.iter().map(ToString::to_string).collect();
    }

    /// Sets a setting.
    pub fn set(&mut self, name: &str, value: Value) {
        self.settings.as_object_mut().unwrap().insert(name.to_owned(), value);
    }

    /// Sets a member of a section of the settings.
    pub fn change(&mut self, section: &str, member: &str, value: Value) {
        self.settings[section][member] = value;
    }

    /// Leaves a setting out.
    pub fn unset(&mut self, name: &str) {
        self.settings.as_object_mut().unwrap().remove(name);
    }

    /// Sets an environment variable for the programs.
    pub fn set_env(&mut self, name: &str, value: impl AsRef<OsStr>) {
        self.environment.push((name.to_owned(), value.as_ref().to_owned()));
    }

    /// The data directory.
    pub fn data_dir(&self) -> &Path {
        self.dir.path()
    }

    /// The directory of the network in it.
    pub fn network_dir(&self) -> PathBuf {
        self.dir.path().join(self.settings["network"].as_str().unwrap_or("regtest"))
    }

    /// Starts the server and waits until it listens.
    ///
    /// # Panics
    /// If it does not, with its standard error.
    pub fn server(&self) -> Server {
        let started = Instant::now();
        let child = self.server_command().stdout(Stdio::piped()).spawn().unwrap();
        Server::wait_until_listening(child, started)
            .unwrap_or_else(|_| panic!("the server did not start, see its standard error"))
    }

    /// Starts the server and waits until it listens or has ended. The error is its standard error.
    pub fn try_server(&self) -> Result<Server, Done> {
        let started = Instant::now();
        let mut command = self.server_command();
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        Server::wait_until_listening(child, started)
    }

    /// Starts the server so that it logs to a file, and waits until it listens.
    ///
    /// # Panics
    /// If it does not.
    pub fn server_logging_to(&self, log: &Path) -> Server {
        let started = Instant::now();
        let mut command = self.server_command();
        command.stdout(Stdio::piped()).stderr(fs::File::create(log).unwrap());
        Server::wait_until_listening(command.spawn().unwrap(), started)
            .unwrap_or_else(|_| panic!("the server did not start, see {}", log.display()))
    }

    /// Starts the server so that it logs JSON to a file, including its start lines, and waits until
    /// it listens.
    ///
    /// # Panics
    /// If it does not.
    pub fn server_logging_json_to(&self, log: &Path) -> Server {
        let started = Instant::now();
        let mut command = self.server_command();
        command.args(["--log", "json"]).stdout(Stdio::piped());
        let child = command.stderr(fs::File::create(log).unwrap()).spawn().unwrap();
        let mut server = Server::of(child, started);
        let mut known = 0;
        while !server.has_listener_of_all() {
            let text = fs::read_to_string(log).unwrap();
            let whole = text.rfind('\n').map_or("", |end| &text[..end]);
            for line in whole.lines().skip(known) {
                known += 1;
                let line: Value = serde_json::from_str(line).unwrap();
                if line["message"] == "listening" {
                    let [name, url] = ["listener", "url"].map(|it| line[it].as_str().unwrap());
                    server.note_listener(name, url);
                }
            }
            assert!(server.is_alive(), "the server did not start: {text}");
        }
        server
    }

    /// Starts the server with sockets that already listen, and waits until it answers.
    ///
    /// # Panics
    /// If it does not.
    pub fn server_on(&self, sockets: &ListeningSockets) -> Server {
        let started = Instant::now();
        let mut command = sockets.hand_over(&self.server_command());
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        Server::wait_until_listening(child, started)
            .unwrap_or_else(|_| panic!("the server did not start, see its standard error"))
    }

    /// The command that starts the server.
    pub fn server_command(&self) -> Command {
        self.command(server_program(), &[])
    }

    /// Runs the command line and waits until it ends.
    pub fn cli(&self, arguments: &[&str]) -> Done {
        Done::of(&mut self.command(cli_program(), arguments))
    }

    /// Runs the command line, which must succeed, and returns its trimmed output.
    ///
    /// # Panics
    /// If it fails, with its standard error.
    pub fn cli_ok(&self, arguments: &[&str]) -> String {
        let done = self.cli(arguments);
        assert_eq!(done.code, 0, "bsv-cli {arguments:?}: {}", done.stderr);
        done.stdout.trim().to_owned()
    }

    /// Runs the command line with `--json`, which must succeed, and returns its output.
    ///
    /// # Panics
    /// If it fails, with its standard error.
    pub fn cli_json(&self, arguments: &[&str]) -> Value {
        let arguments = [arguments, &["--json"]].concat();
        serde_json::from_str(&self.cli_ok(&arguments)).unwrap()
    }

    /// Starts the command line without waiting.
    pub fn cli_command(&self, arguments: &[&str]) -> Command {
        self.command(cli_program(), arguments)
    }

    fn command(&self, program: &Path, arguments: &[&str]) -> Command {
        let mut words = self.prefix.clone();
        words.push(program.to_str().unwrap().to_owned());
        let mut command = Command::new(&words[0]);
        command
            .args(&words[1..])
            .args(arguments)
            .arg("--data-dir")
            .arg(self.data_dir())
            .env("BSV_CONFIG", self.settings.to_string())
            .env_remove("BSV_KEYSTORE_PASSPHRASE")
            .env_remove("BSV_LOG")
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null());
        command
    }
}

impl Done {
    /// Runs a program and waits until it ends.
    pub fn of(command: &mut Command) -> Self {
        let output = command.output().unwrap();
        Self {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

impl Default for Site {
    fn default() -> Self {
        Self::new()
    }
}

impl Server {
    fn of(mut child: Child, started: Instant) -> Self {
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (minerid, wallet, payments, node_listener) = (None, None, None, None);
        let (start_time, control) = (started.elapsed(), None);
        Self {
            child,
            stdout,
            started,
            minerid,
            wallet,
            payments,
            node_listener,
            control,
            start_time,
        }
    }

    fn wait_until_listening(child: Child, started: Instant) -> Result<Self, Done> {
        let mut server = Self::of(child, started);
        let mut said = String::new();
        while !server.has_listener_of_all() {
            let mut line = String::new();
            server.stdout.read_line(&mut line).unwrap();
            said.push_str(&line);
            let told = line.trim().strip_prefix("listening ").and_then(|line| line.split_once(' '));
            let Some((name, url)) = told else { return Err(server.end(said)) };
            server.note_listener(name, url);
        }
        Ok(server)
    }

    /// Whether it has printed the line of the last listener.
    fn has_listener_of_all(&self) -> bool {
        self.control.is_some()
    }

    fn note_listener(&mut self, name: &str, url: &str) {
        if name == "control" {
            self.control = Some(PathBuf::from(url));
            self.start_time = self.started.elapsed();
            return;
        }
        let client = Client::at(url);
        client.iter().for_each(|client| openapi::watch(client.address(), name));
        *match name {
            "wallet" => &mut self.wallet,
            "payments" => &mut self.payments,
            "node" => &mut self.node_listener,
            _ => &mut self.minerid,
        } = client;
    }

    /// Ends a server that does not listen.
    fn end(mut self, said: String) -> Done {
        let _ = self.child.kill();
        let mut stderr = String::new();
        if let Some(mut pipe) = self.child.stderr.take() {
            pipe.read_to_string(&mut stderr).unwrap();
        }
        let code = self.child.wait().unwrap().code().unwrap_or(-1);
        Done { code, stdout: said, stderr }
    }

    /// Host and port of the miner identity listener.
    pub fn address(&self) -> &str {
        self.minerid().address()
    }

    /// The miner identity listener.
    pub fn minerid(&self) -> &Client {
        self.minerid.as_ref().expect("the miner identity service is enabled")
    }

    /// The wallet listener.
    pub fn wallet(&self) -> &Client {
        self.wallet.as_ref().expect("the wallet is enabled")
    }

    /// The payments listener.
    pub fn payments(&self) -> &Client {
        self.payments.as_ref().expect("the wallet is enabled")
    }

    /// The listener for the node.
    pub fn node_listener(&self) -> &Client {
        self.node_listener.as_ref().expect("the settings have it")
    }

    /// The process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// `GET path`.
    pub fn get(&self, path: &str) -> Reply {
        self.request("GET", path, b"")
    }

    /// `POST path` with a JSON body.
    pub fn post(&self, path: &str, body: impl AsRef<[u8]>) -> Reply {
        self.request("POST", path, body.as_ref())
    }

    /// Any request, with its path sent as it is.
    ///
    /// # Panics
    /// If the server does not answer.
    pub fn request(&self, method: &str, path: &str, body: &[u8]) -> Reply {
        self.try_request(method, path, body).unwrap()
    }

    /// Any request. It may stay without an answer if the server is killed meanwhile.
    pub fn try_request(&self, method: &str, path: &str, body: &[u8]) -> std::io::Result<Reply> {
        self.minerid().try_request(method, path, body)
    }

    /// The body of `GET path`, which must be answered with 200.
    ///
    /// # Panics
    /// If it is not.
    pub fn text(&self, path: &str) -> String {
        let reply = self.get(path);
        assert_eq!(reply.status, 200, "{path}: {}", reply.body);
        reply.body
    }

    /// Whether the server still runs a moment later.
    pub fn is_alive(&mut self) -> bool {
        std::thread::sleep(Duration::from_millis(20));
        self.child.try_wait().unwrap().is_none()
    }

    /// Kills the server as a crash would.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Sends the signal SIGHUP to the server.
    pub fn hang_up(&self) {
        kill_process(Pid::from_child(&self.child), Signal::HUP).unwrap();
    }

    /// Asks the server to stop, without waiting until it has.
    pub fn begin_stop(&self) {
        kill_process(Pid::from_child(&self.child), Signal::TERM).unwrap();
    }

    /// Asks the server to stop, and returns its exit code.
    pub fn stop(mut self) -> i32 {
        self.begin_stop();
        self.child.wait().unwrap().code().unwrap_or(-1)
    }

    /// Waits until the server has ended by itself. Answers its exit code.
    pub fn wait(mut self) -> i32 {
        self.child.wait().unwrap().code().unwrap_or(-1)
    }

    /// Compares the wallet's events with its OpenAPI file, if the server still runs and the test
    /// has not failed.
    fn check_events(&mut self) {
        let is_running = matches!(self.child.try_wait(), Ok(None));
        if let Some(wallet) = &self.wallet
            && is_running
            && !std::thread::panicking()
        {
            // Some servers do not answer at the end of their test.
            let _ = wallet.try_send("GET", "/api/v1/events?limit=1000", &[], b"");
        }
    }

    /// The memory that is resident, in bytes.
    pub fn resident_memory(&self) -> u64 {
        self.memory("VmRSS:")
    }

    /// Starts a new measurement of the peak of resident memory.
    pub fn reset_peak_memory(&self) {
        fs::write(format!("/proc/{}/clear_refs", self.child.id()), "5").unwrap();
    }

    /// The peak of resident memory since the measurement started, in bytes.
    pub fn peak_memory(&self) -> u64 {
        self.memory("VmHWM:")
    }

    fn memory(&self, name: &str) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
    }
}

/// A directory in memory, so that programs do not wait for the disk, or on the disk if there is no room.
fn dir_in_memory() -> TempDir {
    const MEMORY: &str = "/dev/shm";
    /// What some tests write at once, in bytes.
    const ROOM: u64 = 500 << 20;
    let has_room = statvfs(MEMORY).is_ok_and(|it| it.f_bavail.saturating_mul(it.f_frsize) >= ROOM);
    let dir = has_room.then(|| TempDir::with_prefix_in("bsv-site-", MEMORY).ok()).flatten();
    dir.unwrap_or_else(|| TempDir::new().unwrap())
}

/// Copies a directory with all files in it, without sockets.
pub fn copy_dir(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let (kind, to) = (entry.file_type().unwrap(), to.join(entry.file_name()));
        if kind.is_dir() {
            copy_dir(&entry.path(), &to);
        } else if kind.is_file() {
            fs::copy(entry.path(), &to).unwrap();
        }
    }
    fs::set_permissions(to, fs::metadata(from).unwrap().permissions()).unwrap();
}

impl Drop for Server {
    fn drop(&mut self) {
        self.check_events();
        // Another server may get this address next.
        let listeners = [&self.minerid, &self.wallet, &self.payments];
        listeners.into_iter().flatten().for_each(|client| openapi::forget(client.address()));
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
