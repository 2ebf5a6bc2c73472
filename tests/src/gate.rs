//! A way to a node that can be shut for some calls, so that others can do something meanwhile.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::node::Node;
use crate::site::Site;

/// Passes calls on to a node, and its answers back.
#[derive(Debug)]
pub struct Gate {
    settings: Value,
    bar: Arc<Bar>,
}

/// Where a call is held up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// Before the node has it.
    Call,
    /// When the node has answered.
    Answer,
}

#[derive(Debug, Default)]
struct Bar {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    shut: Option<(&'static str, Hold)>,
    /// How many calls wait.
    waiting: usize,
    /// How often what waited was cut off.
    cuts: usize,
}

impl Gate {
    /// A gate before `node`, open.
    pub fn before(node: &Node) -> Self {
        let listener = TcpListener::bind((node.host.as_str(), 0)).unwrap();
        let settings = json!({
            "rpcHost": node.host, "rpcPort": listener.local_addr().unwrap().port(),
            "rpcUser": node.user, "rpcPassword": node.password,
        });
        let bar = Arc::new(Bar::default());
        let (its_bar, node) = (Arc::clone(&bar), (node.host.clone(), node.port));
        thread::spawn(move || {
            for caller in listener.incoming().flatten() {
                let (bar, node) = (Arc::clone(&its_bar), node.clone());
                // A connection that breaks tells both sides all there is to know.
                thread::spawn(move || bar.pass_call(caller, &node));
            }
        });
        Self { settings, bar }
    }

    /// A new data directory whose service reaches the node through this gate.
    pub fn site(&self) -> Site {
        Site::with(self.settings.clone())
    }

    /// Holds up the calls of a method from now on, and the batches that hold one.
    pub fn shut(&self, method: &'static str, hold: Hold) {
        self.bar.lock().shut = Some((method, hold));
    }

    /// Waits until so many calls are held up.
    ///
    /// # Panics
    /// If that takes more than half a minute.
    pub fn wait_for(&self, calls: usize) {
        let fewer = |state: &mut State| state.waiting < calls;
        let waited =
            self.bar.changed.wait_timeout_while(self.bar.lock(), Duration::from_secs(30), fewer);
        assert!(waited.unwrap().0.waiting >= calls, "{calls} calls have not come");
    }

    /// Lets what waits go on, and what comes pass.
    pub fn open(&self) {
        self.bar.lock().shut = None;
        self.bar.changed.notify_all();
    }

    /// Cuts what waits off, as if its connection broke, and lets what comes pass.
    pub fn cut(&self) {
        self.bar.lock().cuts += 1;
        self.open();
    }
}

impl Bar {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    fn pass_call(&self, mut caller: TcpStream, node: &(String, u16)) -> io::Result<()> {
        let (call, methods) = read_call(&mut BufReader::new(&caller))?;
        self.pass(&methods, Hold::Call)?;
        let mut node = TcpStream::connect(node)?;
        node.write_all(&call)?;
        let mut answer = Vec::new();
        node.read_to_end(&mut answer)?;
        self.pass(&methods, Hold::Answer)?;
        caller.write_all(&answer)
    }

    fn pass(&self, methods: &[String], hold: Hold) -> io::Result<()> {
        let mut state = self.lock();
        let cuts = state.cuts;
        let is_shut = |state: &mut State| {
            let is_held = |(method, held)| held == hold && methods.iter().any(|m| m == method);
            state.shut.is_some_and(is_held) && state.cuts == cuts
        };
        if is_shut(&mut state) {
            state.waiting += 1;
            self.changed.notify_all();
            state = self.changed.wait_while(state, is_shut).unwrap();
            state.waiting -= 1;
        }
        if state.cuts == cuts { Ok(()) } else { Err(io::ErrorKind::ConnectionReset.into()) }
    }
}

/// Reads a call, or a batch of them, and makes it the last one of its connection. Answers also the
/// methods.
fn read_call(stream: &mut impl BufRead) -> io::Result<(Vec<u8>, Vec<String>)> {
    let mut call = Vec::new();
    let mut len = 0;
    loop {
        let start = call.len();
        stream.read_until(b'\n', &mut call)?;
        let line = String::from_utf8_lossy(&call[start..]).to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            len = value.trim().parse().map_err(io::Error::other)?;
        }
        if line.trim().is_empty() {
            call.truncate(start);
            break;
        }
    }
    call.extend_from_slice(b"Connection: close\r\n\r\n");
    let mut body = vec![0; len];
    stream.read_exact(&mut body)?;
    call.extend_from_slice(&body);
    let calls = match serde_json::from_slice(&body)? {
        Value::Array(calls) => calls,
        call => vec![call],
    };
    let method = |call: &Value| call["method"].as_str().unwrap_or_default().to_owned();
    Ok((call, calls.iter().map(method).collect()))
}
