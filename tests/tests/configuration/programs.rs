//! Programs that are started by hand.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use bsv_tests::{Done, Reply, http};
use serde_json::{Value, json};

/// The source of settings.
#[derive(Clone, Copy, Debug)]
pub(super) enum Source {
    File,
    Environment,
}

/// A server that was started by hand.
pub(super) struct Server {
    child: Child,
    stdout: BufReader<std::process::ChildStdout>,
    /// The lines of the listeners.
    pub(super) lines: Vec<String>,
    /// The lines that say what to do first.
    pub(super) first_steps: Vec<String>,
}

/// `program` with no settings and no data directory.
pub(super) fn bare(program: &Path) -> Command {
    let mut command = Command::new(program);
    for variable in ["BSV_CONFIG", "BSV_KEYSTORE_PASSPHRASE", "BSV_LOG", "XDG_DATA_HOME", "HOME"] {
        command.env_remove(variable);
    }
    command.stdin(Stdio::null());
    command
}

/// `program` on the data directory `dir/data`, with settings from one source. The wallet and
/// payments get free ports unless the settings name ports.
pub(super) fn configured(program: &Path, dir: &Path, source: Source, settings: &Value) -> Command {
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

pub(super) fn run_ok(command: &mut Command) -> String {
    let done = Done::of(command);
    assert_eq!(done.code, 0, "{command:?}: {}", done.stderr);
    done.stdout
}

/// Checks that the program ends with exit code 1, an empty standard output and this reason.
pub(super) fn check_refused(command: &mut Command, reasons: &[&str]) {
    let done = Done::of(command);
    assert_eq!((done.code, done.stdout.as_str()), (1, ""), "{command:?}: {}", done.stderr);
    for reason in reasons {
        assert!(done.stderr.contains(reason), "{command:?}: {}", done.stderr);
    }
}

impl Server {
    /// Starts a server and waits until all its listeners are open.
    pub(super) fn start(command: &mut Command) -> Self {
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

    pub(super) fn address(&self) -> &str {
        self.lines[0].strip_prefix("listening minerid http://").unwrap()
    }

    /// The path of the control socket.
    pub(super) fn control(&self) -> &str {
        self.lines.last().unwrap().strip_prefix("listening control ").unwrap()
    }

    pub(super) fn get(&self, path: &str) -> Reply {
        get(self.address(), path)
    }

    pub(super) fn signal(&self, signal: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-s", signal, &pid]).status().unwrap().success());
    }

    /// Waits for the end. Returns the exit code and the rest of the output.
    pub(super) fn wait(mut self) -> (i32, String) {
        let mut rest = String::new();
        self.stdout.read_to_string(&mut rest).unwrap();
        (self.child.wait().unwrap().code().unwrap_or(-1), rest)
    }

    pub(super) fn stop(self) {
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

pub(super) fn get(address: &str, path: &str) -> Reply {
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    http::exchange(address, request.as_bytes(), "GET").unwrap()
}

pub(super) fn names_in(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<_> = entries.map(|name| name.into_string().unwrap()).collect();
    names.sort();
    names
}
