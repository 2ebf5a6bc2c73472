//! Servers that consist of hyper and the unavoidable work, and of nothing else.

use std::future::ready;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};

use bytes::Bytes;
use clap::ValueEnum;
use secp256k1::{Message, SecretKey, ecdsa};
use tokio::net::TcpListener;

use crate::http;

/// What a bare server does for each request.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Work {
    /// Answers with the same bytes each time.
    Constant,
    /// Makes an ECDSA signature, and answers with it in hexadecimal.
    Signature,
}

/// A bare server in its own process, which ends when this value is dropped.
#[derive(Debug)]
pub(crate) struct BareServer {
    child: Child,
    pub(crate) address: String,
}

impl BareServer {
    /// Starts a server whose constant answer has this length, in bytes.
    pub(crate) fn start(work: Work, answer_len: usize) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["bare", work.to_possible_value().unwrap().get_name(), &answer_len.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut address = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut address).unwrap();
        Self { child, address: address.trim().to_owned() }
    }

    /// The process id.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for BareServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Serves until standard input ends. It ends with the process that holds the other end of the pipe.
pub(crate) fn run(work: Work, answer_len: usize) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.spawn(serve(work, Bytes::from(vec![b'0'; answer_len])));
    let _ = std::io::stdin().read(&mut [0]);
    runtime.shutdown_background();
}

async fn serve(work: Work, constant: Bytes) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    println!("{}", listener.local_addr().unwrap());
    let key = SecretKey::from_secret_bytes([7; 32]).unwrap();
    let answer = move |body: Bytes| {
        ready(match work {
            Work::Constant => constant.clone(),
            Work::Signature => Bytes::from(sign(&key, &body)),
        })
    };
    http::serve(listener, answer).await;
}

/// Signs something that depends on the length of the body.
fn sign(key: &SecretKey, body: &Bytes) -> String {
    let mut digest = [7; 32];
    digest[..8].copy_from_slice(&body.len().to_le_bytes());
    hex::encode(ecdsa::sign(Message::from_digest(digest), key).serialize_der())
}
