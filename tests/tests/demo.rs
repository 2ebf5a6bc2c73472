//! The demonstration, as a reader uses it.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread;
use std::time::Duration;

use bsv_tests::{Client, free_port};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;

struct Demo {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Demo {
    fn start(dir: &Path, arguments: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_demo"));
        command.arg("--dir").arg(dir).args(arguments);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it was built");
        let input = child.stdin.take().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Self { child, input, output }
    }

    /// Reads up to a line that contains `part`.
    fn until(&mut self, part: &str) -> String {
        let mut read = String::new();
        loop {
            let begin = read.len();
            assert!(self.output.read_line(&mut read).unwrap() > 0, "{part}: {read}");
            if read[begin..].contains(part) {
                return read[begin..].trim().to_owned();
            }
        }
    }

    fn type_in(&mut self, line: &str) {
        writeln!(self.input, "{line}").unwrap();
    }

    /// The payment page that is shown: the listener, and the path.
    fn page(&mut self) -> (Client, String) {
        let url = self.until("/pay/");
        let place = url.find("/pay/").unwrap();
        (Client::at(&url[..place]).unwrap(), url[place..].to_owned())
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }
}

fn state(payments: &Client, page: &str) -> String {
    let reply = payments.get(&format!("{page}/state"));
    let state: Value = serde_json::from_str(&reply.body).unwrap();
    state["state"].as_str().unwrap_or_else(|| panic!("{}", reply.body)).to_owned()
}

/// How many processes have a path as an argument or in their environment.
fn processes_of(dir: &Path) -> usize {
    let dir = dir.to_str().unwrap();
    let names_it = |process: &Path| {
        ["cmdline", "environ"].iter().any(|file| {
            let text = fs::read(process.join(file)).unwrap_or_default();
            String::from_utf8_lossy(&text).contains(dir)
        })
    };
    let processes = fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().path());
    processes.filter(|process| names_it(process)).count()
}

#[test]
fn the_demonstration_stays_and_goes_on_where_it_was() {
    let parent = TempDir::new().unwrap();
    let dir = parent.path().join("demo");
    // Other tests may have the ports of the documents.
    let ports = || {
        let ports = ["minerid", "wallet", "payments", "webhook"].map(|name| (name, free_port()));
        let ports: BTreeMap<_, _> = ports.into();
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join("demo.json"), json!(ports).to_string()).unwrap();
    };
    ports();
    // A start that is interrupted has marked its directory before it puts anything else there.
    let interrupted = parent.path().join("interrupted");
    let mut demo = Demo::start(&interrupted, &[]);
    demo.until("Everything is in");
    assert!(interrupted.join("demo.json").exists());
    demo.signal(Signal::KILL);
    demo.child.wait().unwrap();
    let mut demo = Demo::start(&dir, &[]);
    let (payments, page) = demo.page();
    assert_eq!(payments.get(&page).status, 200);
    assert_eq!(state(&payments, &page), "pending");
    demo.type_in("p");
    let id = page.strip_prefix("/pay/").unwrap();
    demo.until(&format!("webhook: invoice.paid {id}"));
    assert_eq!(state(&payments, &page), "paid");
    demo.type_in("b");
    demo.until("The node has accepted block");
    demo.until("$ bsv-cli miner verify --block");
    demo.until("Demo Pool");
    demo.signal(Signal::INT);
    demo.until("The next start goes on here");
    assert!(demo.child.wait().unwrap().success());
    assert_eq!(processes_of(&dir), 0);

    let mut demo = Demo::start(&dir, &[]);
    let (again, next) = demo.page();
    assert_eq!((again.address(), state(&again, &page)), (payments.address(), "paid".to_owned()));
    assert_eq!(state(&again, &next), "pending");
    // Nothing that it has started outlives it.
    demo.signal(Signal::KILL);
    demo.child.wait().unwrap();
    while processes_of(&dir) > 0 {
        thread::sleep(Duration::from_millis(50));
    }

    let mut demo = Demo::start(&dir, &["--fresh"]);
    let (fresh, _) = demo.page();
    assert_eq!(fresh.get(&page).status, 404);
    demo.type_in("q");
    demo.until("The next start goes on here");
    assert!(demo.child.wait().unwrap().success());

    // It deletes nothing that it has not made.
    let other = parent.path().join("other");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("thesis"), "of years").unwrap();
    let mut demo = Demo::start(&other, &["--fresh"]);
    assert!(!demo.child.wait().unwrap().success());
    assert!(other.join("thesis").exists());
}
