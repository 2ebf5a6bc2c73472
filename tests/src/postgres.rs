//! A real PostgreSQL server of its own.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::faults::Faults;
use crate::fetch::postgres_programs;
use crate::node::free_port;
use crate::tls;

/// How long a server may take until it answers.
const START_TIMEOUT: Duration = Duration::from_secs(60);
/// Who the server runs as where the tests run as root, which it refuses.
pub(crate) const NOBODY: u32 = 65534;
/// What the socket is named after of a server that listens at no port.
const DEFAULT_PORT: u16 = 5432;

/// A PostgreSQL server in a directory of its own, which listens on a Unix socket there and, with TLS, at a port. It runs
/// until this is dropped or the process ends, however it ends.
///
/// Its methods panic where the server refuses: they are for tests.
#[derive(Debug)]
pub struct Postgres {
    directory: TempDir,
    settings: Vec<String>,
    /// The environment of the server.
    variables: Vec<(&'static str, PathBuf)>,
    port: u16,
    running: Option<Child>,
    schemas: AtomicU64,
}

impl Postgres {
    /// Makes a server with a database, and starts it.
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// The same with settings, like `fsync=off`.
    pub fn start_with(settings: &[&str]) -> Self {
        let mut server = Self::in_new_directory(DEFAULT_PORT);
        server.settings = settings.iter().map(|&setting| setting.to_owned()).collect();
        server.make();
        server.launch();
        server
    }

    /// The same with TLS at a port of 127.0.0.1, and the [certificate](tls::file) of this name.
    pub fn start_with_tls(name: &str) -> Self {
        let mut server = Self::in_new_directory(free_port());
        server.settings = vec!["listen_addresses=127.0.0.1".to_owned(), "ssl=on".to_owned()];
        for (kind, setting) in [("pem", "ssl_cert_file"), ("key", "ssl_key_file")] {
            let file = server.directory().join(kind);
            fs::copy(tls::file(&format!("{name}.{kind}")), &file).unwrap();
            fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
            give_to_nobody(&file);
            server.settings.push(format!("{setting}={}", file.display()));
        }
        server.make();
        server.launch();
        server
    }

    /// The same with a disk for its tables that can be full, and what controls that.
    pub fn start_with_faults() -> (Self, Faults) {
        let mut server = Self::in_new_directory(DEFAULT_PORT);
        server.make();
        let control = server.directory().join("faults");
        let faults = Faults::below(&server.data().join("base"), control.clone());
        give_to_nobody(&control);
        server.variables = faults.variables().to_vec();
        server.launch();
        (server, faults)
    }

    /// A standby of this server, which waits for it at each commit from then on.
    pub fn standby(&self) -> Self {
        let mut standby = Self::in_new_directory(self.port);
        standby.follow(self);
        standby
    }

    /// Becomes a standby of another server, which waits for it at each commit from then on. Its own
    /// data are gone. It must not run.
    pub fn follow(&mut self, primary: &Self) {
        let _ = fs::remove_dir_all(self.data());
        let mut copy = self.program("pg_basebackup");
        copy.args(["-U", "postgres", "-R", "-X", "stream", "-c", "fast", "--no-sync", "-h"]);
        run(copy.arg(primary.directory()).arg("-D").arg(self.data()));
        self.launch();
        primary.query("ALTER SYSTEM SET synchronous_standby_names = '*'");
        primary.query("SELECT pg_reload_conf()");
        let count = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'";
        let deadline = Instant::now() + START_TIMEOUT;
        while primary.query(count) != "1" {
            assert!(Instant::now() < deadline, "the standby does not follow");
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Makes the server that a standby follows wait for it no longer, and cuts the standby off. From then on it has
    /// nothing of what that server commits.
    pub fn cut_off(&self, primary: &Self) {
        primary.query("ALTER SYSTEM RESET synchronous_standby_names");
        self.query("ALTER SYSTEM SET primary_conninfo = ''");
        for server in [primary, self] {
            server.query("SELECT pg_reload_conf()");
        }
        let deadline = Instant::now() + START_TIMEOUT;
        while primary.query("SELECT count(*) FROM pg_stat_replication") != "0" {
            assert!(Instant::now() < deadline, "the standby still follows");
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Makes a standby take changes.
    pub fn promote(&self) {
        assert_eq!(self.query("SELECT pg_promote()"), "t");
    }

    /// Has all its processes stand still.
    pub fn freeze(&self) {
        self.signal_all(Signal::STOP);
    }

    /// Has all its processes go on.
    pub fn thaw(&self) {
        self.signal_all(Signal::CONT);
    }

    fn signal_all(&self, signal: Signal) {
        let pid = self.pid();
        for pid in [pid].into_iter().chain(children_of(pid)) {
            // One that has just ended need not be signalled.
            let _ = kill_process(Pid::from_raw(pid).unwrap(), signal);
        }
    }

    /// The directory of the Unix socket.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Its port, or what its socket is named after.
    pub fn port(&self) -> u16 {
        self.port
    }

    fn in_new_directory(port: u16) -> Self {
        let directory = tempfile::Builder::new().prefix("bsv-pg-").tempdir().unwrap();
        give_to_nobody(directory.path());
        let schemas = AtomicU64::new(0);
        let (settings, variables) = (Vec::new(), Vec::new());
        Self { directory, settings, variables, port, running: None, schemas }
    }

    fn make(&self) {
        let fixed =
            ["--no-sync", "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "-D"];
        run(self.program("initdb").args(fixed).arg(self.data()));
    }

    fn pid(&self) -> i32 {
        let pid = fs::read_to_string(self.data().join("postmaster.pid")).unwrap();
        pid.lines().next().unwrap().parse().unwrap()
    }

    /// Starts the server again after [`kill`](Self::kill).
    pub fn launch(&mut self) {
        let mut start = self.watched(&postgres_programs().join("postgres"));
        start.arg("-D").arg(self.data()).arg("-k").arg(self.directory.path());
        for setting in ["listen_addresses=", "log_min_messages=panic", "max_connections=300"] {
            start.args(["-c", setting]);
        }
        for setting in &self.settings {
            start.args(["-c", setting]);
        }
        start.envs(self.variables.iter().map(|(name, value)| (name, value)));
        self.running = Some(start.spawn().expect("every system has a POSIX shell"));
        let deadline = Instant::now() + START_TIMEOUT;
        while !self.is_ready() {
            assert!(Instant::now() < deadline, "PostgreSQL did not start");
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Kills the server as a crash does. Its data stay.
    pub fn kill(&mut self) {
        let pid = self.pid();
        let sessions = children_of(pid);
        kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
        if let Some(mut running) = self.running.take() {
            // This line tells the shell to keep the directory.
            let mut stdin = running.stdin.take().unwrap();
            std::io::Write::write_all(&mut stdin, b"\n").unwrap();
            running.wait().unwrap();
        }
        // No server starts on the same data while a session of the old one runs.
        while sessions.iter().any(|pid| state_of(*pid).is_some_and(|(state, _)| state != 'Z')) {
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// The URL of a schema that nothing else uses.
    pub fn fresh_url(&self) -> String {
        self.url(&format!("wallet_{}", self.schemas.fetch_add(1, Ordering::Relaxed)))
    }

    /// The URL of a schema.
    pub fn url(&self, schema: &str) -> String {
        let host = self.directory.path().display();
        format!("postgresql:///postgres?host={host}&user=postgres&schema={schema}")
    }

    /// The URL of a schema of whichever of two servers takes changes.
    pub fn url_of_either(servers: [&Self; 2], schema: &str) -> String {
        let hosts = servers.map(|it| it.directory().display().to_string().replace('/', "%2F"));
        format!("postgresql://postgres@{}/postgres?schema={schema}", hosts.join(","))
    }

    /// What a query answers, a line for each row.
    pub fn query(&self, sql: &str) -> String {
        let mut ask = self.program("psql");
        ask.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-U", "postgres", "-h"]);
        let answer = run(ask.arg(self.directory.path()).args(["-c", sql]));
        String::from_utf8(answer.stdout).unwrap().trim_end().to_owned()
    }

    fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    fn is_ready(&self) -> bool {
        let mut ask = self.program("pg_isready");
        ask.args(["-q", "-h"]).arg(self.directory.path());
        ask.status().is_ok_and(|status| status.success())
    }

    fn program(&self, name: &str) -> Command {
        let mut program = Command::new(postgres_programs().join(name));
        program.current_dir(self.directory.path()).env("LC_ALL", "C");
        program.env("PGPORT", self.port.to_string());
        as_nobody(&mut program);
        program
    }

    /// A command that ends when this process does.
    fn watched(&self, program: &Path) -> Command {
        let mut shell = Command::new("sh");
        shell
            .args(["-c", include_str!("watch.sh"), "watch.sh"])
            .arg(self.directory.path())
            .arg(program)
            .current_dir(self.directory.path())
            .env("LC_ALL", "C")
            .env("PGPORT", self.port.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0);
        as_nobody(&mut shell);
        shell
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        if let Some(mut running) = self.running.take() {
            // This closes the shell's standard input first.
            let _ = running.wait();
        }
    }
}

/// The processes that a process has started, and that run.
fn children_of(parent: i32) -> Vec<i32> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid| state_of(*pid).is_some_and(|(_, of)| of == parent)).collect()
}

/// The state of a process, and the process that has started it.
fn state_of(pid: i32) -> Option<(char, i32)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat.rsplit_once(") ")?.1.split(' ');
    Some((fields.next()?.chars().next()?, fields.next()?.parse().ok()?))
}

pub(crate) fn give_to_nobody(path: &Path) {
    if rustix::process::geteuid().is_root() {
        chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
    }
}

fn as_nobody(command: &mut Command) {
    if rustix::process::geteuid().is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
}

fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?} failed: {errors}");
    output
}
