//! Streams read by the EventSource of browsers and of Node.js.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use bsv_tests::build::workspace;
use bsv_tests::fetch::{chromium, node_js, python_with};
use serde_json::json;

use crate::events::{EVENTS, Shop, log};

/// The types of the events that the shop makes in these tests.
const TYPES: [&str; 3] = ["invoice.created", "invoice.deleted", "user.created"];

/// A program that prints the events of its EventSource.
struct EventSource {
    program: Child,
    lines: BufReader<ChildStdout>,
    /// Some of these programs end with it.
    _input: ChildStdin,
}

impl EventSource {
    fn run(command: &mut Command, url: &str) -> Self {
        let command = command.arg(url).args(TYPES).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut program = command.spawn().unwrap();
        let lines = BufReader::new(program.stdout.take().unwrap());
        let input = program.stdin.take().unwrap();
        Self { program, lines, _input: input }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        assert!(self.lines.read_line(&mut line).unwrap() > 0, "the program has ended");
        line.trim_end().to_owned()
    }

    /// The ids of the next events, from the stream and from the events themselves.
    fn ids(&mut self, count: usize) -> Vec<String> {
        let mut ids = Vec::new();
        while ids.len() < count {
            match self.line() {
                line if line == "open" => {}
                line => ids.push(line),
            }
        }
        ids
    }
}

impl Drop for EventSource {
    fn drop(&mut self) {
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}

/// Checks that no event is lost or repeated while the server is killed and stopped.
fn check_resuming(mut command: Command) {
    let mut shop = Shop::start();
    let address = shop.client().address().to_owned();
    let port: u16 = address.rsplit_once(':').unwrap().1.parse().unwrap();
    shop.site.set("wallet", json!({ "port": port }));
    let mut count = shop.fill(3);
    let mut source = EventSource::run(&mut command, &format!("http://{address}{EVENTS}/stream"));
    assert_eq!(source.line(), "open");
    let mut ids = source.ids(count);
    for is_killed in [true, false] {
        let Shop { site, server } = shop;
        match is_killed {
            true => server.kill(),
            false => assert_eq!(server.stop(), 0),
        }
        shop = Shop::start_on(site);
        let more = shop.fill(4);
        ids.extend(source.ids(more));
        count += more;
    }
    // A repeated event would come before this one.
    shop.create_user();
    ids.extend(source.ids(1));
    let expected = log(shop.client()).into_iter().map(|event| {
        let id = event["id"].as_str().unwrap();
        format!("{} {id}", id.strip_prefix("evt_").unwrap().replace('_', "-"))
    });
    assert_eq!(ids, expected.collect::<Vec<_>>());
    assert_eq!(ids.len(), count + 1);
}

#[test]
fn chromium_resumes_over_restarts() {
    let mut python = python_with("browser");
    python.arg(workspace().join("tests/python/event_source.py")).arg(chromium());
    check_resuming(python);
}

#[test]
fn node_js_resumes_over_restarts() {
    let mut node = node_js();
    node.arg(workspace().join("tests/npm/event_source.cjs"));
    check_resuming(node);
}
