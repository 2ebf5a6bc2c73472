//! Chromium as a payer's browser.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::Mutex;

use serde_json::{Value, json};

use crate::build::workspace;
use crate::fetch::{chromium, python_with};

/// A browser that runs until this is dropped.
#[derive(Debug)]
pub struct Browser {
    program: Child,
    talk: Mutex<Talk>,
}

#[derive(Debug)]
struct Talk {
    commands: ChildStdin,
    answers: BufReader<ChildStdout>,
}

/// A page of a browser, with cookies and permissions of its own.
#[derive(Debug)]
pub struct Page<'a> {
    browser: &'a Browser,
    number: u64,
}

/// The activity of a page.
#[derive(Clone, Debug)]
pub struct Told {
    /// The URLs that it asked for.
    pub requests: Vec<String>,
    /// Errors and warnings of its script, and of the browser about the page.
    pub complaints: Vec<String>,
}

impl Browser {
    /// Starts Chromium.
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// Starts Chromium with further flags.
    ///
    /// # Panics
    /// If Chromium is not available.
    pub fn start_with(flags: &[&str]) -> Self {
        let mut python = python_with("browser");
        python.arg(workspace().join("tests/python/browser.py")).arg(chromium()).args(flags);
        let mut program = python.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let commands = program.stdin.take().unwrap();
        let answers = BufReader::new(program.stdout.take().unwrap());
        Self { program, talk: Mutex::new(Talk { commands, answers }) }
    }

    /// Opens an empty page. `options` are those of playwright's `new_context`, such as
    /// `{"color_scheme": "dark"}`, and three more. `init` is a script that runs in every document
    /// before the document's own scripts. `block` is a pattern of URLs that are not loaded.
    /// `wallet` is a URL: the function `askWallet(call, args)` of the page posts below it,
    /// regardless of the page's policy.
    pub fn open(&self, options: Value) -> Page<'_> {
        let number = self.ask(0, "open", &json!([options])).as_u64().unwrap();
        Page { browser: self, number }
    }

    fn ask(&self, page: u64, action: &str, arguments: &Value) -> Value {
        let mut talk = self.talk.lock().unwrap();
        writeln!(talk.commands, "{}", json!([page, action, arguments])).unwrap();
        let mut line = String::new();
        talk.answers.read_line(&mut line).unwrap();
        drop(talk);
        let answer: Value = serde_json::from_str(&line).expect("the browser runs");
        assert_eq!(answer.get("error"), None, "{action} {arguments:.200}");
        answer["ok"].clone()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}

impl Page<'_> {
    fn ask(&self, action: &str, arguments: Value) -> Value {
        self.browser.ask(self.number, action, &arguments)
    }

    /// Goes to a URL. Returns the status.
    pub fn goto(&self, url: &str) -> u64 {
        self.ask("goto", json!([url])).as_u64().unwrap()
    }

    /// The value of a script, or of its promise.
    pub fn run(&self, script: &str) -> Value {
        self.ask("run", json!([script]))
    }

    /// The value of a function that is called with `argument`.
    pub fn run_with(&self, function: &str, argument: Value) -> Value {
        self.ask("run", json!([function, argument]))
    }

    /// Waits until the value of a script is true.
    ///
    /// # Panics
    /// If it is not within a minute.
    pub fn wait(&self, script: &str) {
        self.ask("wait", json!([script]));
    }

    /// The visible text of the element that a selector finds.
    pub fn text(&self, selector: &str) -> String {
        let script = "selector => document.querySelector(selector).innerText";
        self.run_with(script, json!(selector)).as_str().unwrap().to_owned()
    }

    /// Clicks on the element that a selector finds.
    pub fn click(&self, selector: &str) {
        self.ask("click", json!([selector]));
    }

    /// Presses a key, such as `Tab`.
    pub fn press(&self, key: &str) {
        self.ask("press", json!([key]));
    }

    /// Runs a file of scripts.
    pub fn add(&self, path: &Path) {
        self.ask("add", json!([path]));
    }

    /// Writes a picture of the whole page, as PNG.
    pub fn screenshot(&self, path: &Path) {
        self.ask("screenshot", json!([path]));
    }

    /// Prints the page, as PDF.
    pub fn pdf(&self, path: &Path) {
        self.ask("pdf", json!([path]));
    }

    /// The activity of the page since the last call.
    pub fn told(&self) -> Told {
        let told = self.ask("told", json!([]));
        let texts = |name: &str| serde_json::from_value(told[name].clone()).unwrap();
        Told { requests: texts("requests"), complaints: texts("complaints") }
    }
}

impl Drop for Page<'_> {
    fn drop(&mut self) {
        // A failing test may have ended the browser.
        if !std::thread::panicking() {
            self.ask("close", json!([]));
        }
    }
}
