//! A real PostgreSQL server of its own.

use std::fs;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::fetch::postgres_programs;

/// How long a server may take until it answers.
const START_TIMEOUT: Duration = Duration::from_secs(60);
/// Who the server runs as where the tests run as root, which it refuses.
const NOBODY: u32 = 65534;

/// A PostgreSQL server in a directory of its own, which listens on a Unix socket there. It runs until this is dropped or
/// the process ends, however it ends.
///
/// Its methods panic where the server refuses: they are for tests.
#[derive(Debug)]
pub struct Postgres {
    directory: TempDir,
    settings: Vec<String>,
    running: Option<Child>,
    schemas: AtomicU64,
}

impl Postgres {
    /// Makes a server with a database, and starts it.
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// The same with settings, like `synchronous_commit=off`.
    pub fn start_with(settings: &[&str]) -> Self {
        let directory = tempfile::Builder::new().prefix("bsv-pg-").tempdir().unwrap();
        if rustix::process::geteuid().is_root() {
            chown(directory.path(), Some(NOBODY), Some(NOBODY)).unwrap();
        }
        let settings = settings.iter().map(|&setting| setting.to_owned()).collect();
        let mut server = Self { directory, settings, running: None, schemas: AtomicU64::new(0) };
        let fixed =
            ["--no-sync", "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "-D"];
        let mut make = server.program("initdb");
        run(make.args(fixed).arg(server.data()));
        server.launch();
        server
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
        self.running = Some(start.spawn().expect("every system has a POSIX shell"));
        let deadline = Instant::now() + START_TIMEOUT;
        while !self.is_ready() {
            assert!(Instant::now() < deadline, "PostgreSQL did not start");
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Kills the server as a crash does. Its data stay.
    pub fn kill(&mut self) {
        let pid = fs::read_to_string(self.data().join("postmaster.pid")).unwrap();
        let pid: i32 = pid.lines().next().unwrap().parse().unwrap();
        let sessions = children_of(pid);
        let pid = rustix::process::Pid::from_raw(pid).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
        if let Some(mut running) = self.running.take() {
            // It is told that the directory stays.
            let mut stdin = running.stdin.take().unwrap();
            std::io::Write::write_all(&mut stdin, b"\n").unwrap();
            running.wait().unwrap();
        }
        // As long as one is left, no server starts on the same data.
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

    /// What a query answers, a line for each row.
    pub fn query(&self, sql: &str) -> String {
        let mut ask = self.program("psql");
        ask.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-U", "postgres", "-h"]);
        let answer = run(ask.arg(self.directory.path()).args(["-c", sql]));
        String::from_utf8(answer.stdout).unwrap().trim_end().to_owned()
    }

    fn data(&self) -> std::path::PathBuf {
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
