//! A gate before a node. It can hold up some calls, so that a test can do something meanwhile, and
//! it can refuse calls in the node's place.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::node::Node;
use crate::site::Site;

/// The error code of a node for an unknown method.
const UNKNOWN_METHOD: i64 = -32601;

/// Passes calls to a node, and the node's answers back.
#[derive(Debug)]
pub struct Gate {
    port: u16,
    settings: Value,
    bar: Arc<Bar>,
}

/// Where a call is held up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// Before the node gets it.
    Call,
    /// After the node has answered.
    Answer,
}

/// The refusal of a method in the node's place.
#[derive(Clone, Copy, Debug)]
pub struct Refusal {
    /// The method.
    pub method: &'static str,
    /// The code.
    pub code: i64,
    /// The message.
    pub message: &'static str,
}

#[derive(Debug, Default)]
struct Bar {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    shut: Option<(&'static str, Hold)>,
    refusal: Option<Refusal>,
    /// The text in the calls that are refused.
    refused_words: String,
    /// The calls after which a block is mined, and how many blocks are.
    race: Option<(&'static str, usize)>,
    /// How many calls wait.
    waiting: usize,
    /// How often waiting calls were let through.
    openings: usize,
    /// How often waiting calls were cut off.
    cuts: usize,
    /// All calls so far, with the other calls of their batches.
    heard: Vec<String>,
}

impl Gate {
    /// An open gate before `node`.
    pub fn before(node: &Node) -> Self {
        let listener = TcpListener::bind((node.host.as_str(), 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let settings = json!({
            "rpcHost": node.host, "rpcPort": port,
            "rpcUser": node.user, "rpcPassword": node.password,
        });
        let bar = Arc::new(Bar::default());
        let (its_bar, node) = (Arc::clone(&bar), (node.host.clone(), node.port));
        thread::spawn(move || {
            for caller in listener.incoming().flatten() {
                let (bar, node) = (Arc::clone(&its_bar), node.clone());
                // Both sides notice if the connection breaks.
                thread::spawn(move || bar.pass_call(caller, &node));
            }
        });
        Self { port, settings, bar }
    }

    /// A new data directory whose service reaches the node through this gate.
    pub fn site(&self) -> Site {
        Site::with(self.settings.clone())
    }

    /// The settings of a service that reaches the node through this gate.
    pub fn settings(&self) -> Value {
        self.settings.clone()
    }

    /// Its port, at the node's address.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Holds up calls of a method from now on, and batches with such a call.
    pub fn shut(&self, method: &'static str, hold: Hold) {
        self.bar.lock().shut = Some((method, hold));
    }

    /// Waits until this many calls are held up.
    ///
    /// # Panics
    /// If that takes more than half a minute.
    pub fn wait_for(&self, calls: usize) {
        let fewer = |state: &mut State| state.waiting < calls;
        let waited =
            self.bar.changed.wait_timeout_while(self.bar.lock(), Duration::from_secs(30), fewer);
        assert!(waited.unwrap().0.waiting >= calls, "{calls} calls have not come");
    }

    /// Lets new calls pass. Waiting calls keep waiting.
    pub fn let_pass(&self) {
        self.bar.lock().shut = None;
    }

    /// Lets waiting and new calls pass.
    pub fn open(&self) {
        let mut state = self.bar.lock();
        state.shut = None;
        state.openings += 1;
        drop(state);
        self.bar.changed.notify_all();
    }

    /// Breaks the connections of waiting calls, and lets new calls pass.
    pub fn cut(&self) {
        self.bar.lock().cuts += 1;
        self.open();
    }

    /// Refuses calls of a method from now on, without passing them to the node. The node answers
    /// the other calls of their batches.
    pub fn refuse(&self, refusal: Refusal) {
        self.refuse_about("", refusal);
    }

    /// Refuses like [`refuse`](Self::refuse), but only calls that contain this text.
    pub fn refuse_about(&self, words: &str, refusal: Refusal) {
        let mut state = self.bar.lock();
        state.refusal = Some(refusal);
        words.clone_into(&mut state.refused_words);
    }

    /// Has the node mine a block after each call of a method, up to this many blocks.
    pub fn race(&self, method: &'static str, blocks: usize) {
        self.bar.lock().race = Some((method, blocks));
    }

    /// Refuses nothing any more.
    pub fn accept(&self) {
        self.bar.lock().refusal = None;
    }

    /// The number of calls of a method so far, alone or in batches, that contain this text.
    pub fn heard(&self, method: &str, words: &str) -> usize {
        let heard = &self.bar.lock().heard;
        heard.iter().filter(|call| call.contains(method) && call.contains(words)).count()
    }
}

impl Bar {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    fn pass_call(&self, mut caller: TcpStream, node: &(String, u16)) -> io::Result<()> {
        let (head, mut body) = read_message(&mut BufReader::new(&caller))?;
        self.lock().heard.push(body.to_string());
        let methods: Vec<_> = calls_in(&mut body).iter().map(method_of).collect();
        self.pass(&methods, Hold::Call)?;
        let refusal = {
            let state = self.lock();
            let is_about = |call: &Value| call.to_string().contains(&state.refused_words);
            state.refusal.filter(|it| {
                calls_in(&mut body)
                    .iter()
                    .any(|call| method_of(call) == it.method && is_about(call))
            })
        };
        let answer = match refusal {
            Some(refusal) => refusal.answer(node, &head, body)?,
            None => ask(node, &head, &body)?,
        };
        if self.is_block_due(&methods) {
            ask(node, &head, &json!({ "id": 0, "method": "generate", "params": [1] }))?;
        }
        self.pass(&methods, Hold::Answer)?;
        caller.write_all(&answer)
    }

    /// Whether a block is to be mined after these calls.
    fn is_block_due(&self, methods: &[String]) -> bool {
        match &mut self.lock().race {
            Some((method, blocks)) if *blocks > 0 && methods.iter().any(|m| m == method) => {
                *blocks -= 1;
                true
            }
            _ => false,
        }
    }

    fn pass(&self, methods: &[String], hold: Hold) -> io::Result<()> {
        let mut state = self.lock();
        let State { openings, cuts, .. } = *state;
        let is_held = |(method, held)| held == hold && methods.iter().any(|m| m == method);
        if state.shut.is_some_and(is_held) {
            state.waiting += 1;
            self.changed.notify_all();
            let is_shut = |state: &mut State| state.openings == openings;
            state = self.changed.wait_while(state, is_shut).unwrap();
            state.waiting -= 1;
        }
        if state.cuts == cuts { Ok(()) } else { Err(io::ErrorKind::ConnectionReset.into()) }
    }
}

impl Refusal {
    /// The node's answer, with the answers to refused calls added.
    fn answer(self, node: &(String, u16), head: &str, mut body: Value) -> io::Result<Vec<u8>> {
        for call in calls_in(&mut body).iter_mut().filter(|it| method_of(it) == self.method) {
            call["method"] = json!("no method of a node");
        }
        // This makes the answer come in one piece.
        let head = head.replacen("HTTP/1.1", "HTTP/1.0", 1);
        let answer = ask(node, &head, &body)?;
        let (head, mut body) = read_message(&mut answer.as_slice())?;
        let answers = calls_in(&mut body).iter_mut();
        for answer in answers.filter(|it| it["error"]["code"] == UNKNOWN_METHOD) {
            answer["error"] = json!({ "code": self.code, "message": self.message });
        }
        Ok(message(&head, &body))
    }
}

/// The single call, or the calls of a batch.
fn calls_in(body: &mut Value) -> &mut [Value] {
    match body {
        Value::Array(calls) => calls,
        call => std::slice::from_mut(call),
    }
}

fn method_of(call: &Value) -> String {
    call["method"].as_str().unwrap_or_default().to_owned()
}

fn ask(node: &(String, u16), head: &str, body: &Value) -> io::Result<Vec<u8>> {
    let mut node = TcpStream::connect(node)?;
    node.write_all(&message(head, body))?;
    let mut answer = Vec::new();
    node.read_to_end(&mut answer)?;
    Ok(answer)
}

/// Reads the head of a message, without its length, and its body.
fn read_message(stream: &mut impl BufRead) -> io::Result<(String, Value)> {
    let (mut head, mut len) = (String::new(), u64::MAX);
    loop {
        let mut line = String::new();
        stream.read_line(&mut line)?;
        match line.to_ascii_lowercase().strip_prefix("content-length:") {
            Some(value) => len = value.trim().parse().map_err(io::Error::other)?,
            None if line.trim().is_empty() => break,
            None => head.push_str(&line),
        }
    }
    let mut body = Vec::new();
    stream.take(len).read_to_end(&mut body)?;
    Ok((head, serde_json::from_slice(&body)?))
}

/// A message that is the last one of its connection.
fn message(head: &str, body: &Value) -> Vec<u8> {
    let body = body.to_string();
    let lines = format!("Content-Length: {}\r\nConnection: close\r\n\r\n", body.len());
    [head, &lines, &body].concat().into_bytes()
}
