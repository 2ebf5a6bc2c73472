//! A way to a node that can be shut for some calls, so that others can do something meanwhile.

use std::io::{self, BufRead, BufReader, Write};
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
                thread::spawn(move || bar.pass_calls(&caller, &node));
            }
        });
        Self { settings, bar }
    }

    /// A new data directory whose service reaches the node through this gate.
    pub fn site(&self) -> Site {
        Site::with(self.settings.clone())
    }

    /// Holds up the calls of a method from now on.
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

    fn pass_calls(&self, caller: &TcpStream, node: &(String, u16)) -> io::Result<()> {
        let mut calls = BufReader::new(caller);
        loop {
            let call = read_message(&mut calls)?;
            let method = method_of(&call);
            self.pass(&method, Hold::Call)?;
            let mut node = TcpStream::connect(node)?;
            node.write_all(&call)?;
            let answer = read_message(&mut BufReader::new(node))?;
            self.pass(&method, Hold::Answer)?;
            let mut caller = caller;
            caller.write_all(&answer)?;
        }
    }

    fn pass(&self, method: &str, hold: Hold) -> io::Result<()> {
        let mut state = self.lock();
        let cuts = state.cuts;
        let is_shut = |state: &mut State| state.shut == Some((method, hold)) && state.cuts == cuts;
        if is_shut(&mut state) {
            state.waiting += 1;
            self.changed.notify_all();
            state = self.changed.wait_while(state, is_shut).unwrap();
            state.waiting -= 1;
        }
        if state.cuts == cuts { Ok(()) } else { Err(io::ErrorKind::ConnectionReset.into()) }
    }
}

/// Reads an HTTP message whose length its head tells.
fn read_message(stream: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let mut message = Vec::new();
    let mut len = 0;
    loop {
        let start = message.len();
        if stream.read_until(b'\n', &mut message)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let line = String::from_utf8_lossy(&message[start..]).to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            len = value.trim().parse().map_err(io::Error::other)?;
        }
        if line.trim().is_empty() {
            break;
        }
    }
    let body = message.len();
    message.resize(body + len, 0);
    stream.read_exact(&mut message[body..])?;
    Ok(message)
}

fn method_of(call: &[u8]) -> String {
    let body = call.windows(4).position(|window| window == b"\r\n\r\n").unwrap() + 4;
    let call: Value = serde_json::from_slice(&call[body..]).unwrap();
    call["method"].as_str().unwrap().to_owned()
}
