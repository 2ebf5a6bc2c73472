//! How fast the wallet reads several new blocks.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use bsv_tests::{Client, Server};
use bsv_tx::BlockHash;

use super::fill::Shown;
use super::node::ChainNode;
use super::traffic::{Contents, foreign, paying};
use crate::report::{Bar, Report};

/// How many blocks are mined at a time, and how many transactions each holds: about 8 MB.
const BLOCKS: usize = 8;
const TRANSACTIONS: u64 = 35_000;

/// Measures once for each of these invoices. The last block of each measurement pays the invoice.
pub(super) fn measure(node: &ChainNode, server: &Server, invoices: &[Shown], report: &mut Report) {
    let mut transactions: Vec<_> = (0..TRANSACTIONS).map(foreign).collect();
    let strangers = Contents::new(&transactions);
    for (round, invoice) in invoices.iter().enumerate() {
        eprintln!("round {} of {}: reading blocks", round + 1, invoices.len());
        let payment = paying(TRANSACTIONS + round as u64, 1000, &invoice.destination.script);
        *transactions.last_mut().unwrap() = payment;
        let mut contents = vec![strangers.clone(); BLOCKS - 1];
        contents.push(Contents::new(&transactions));
        let bytes: usize = contents.iter().map(|contents| contents.hex.len() / 2).sum();
        node.mine(contents);
        let elapsed = wait_until_paid(server.wallet(), &invoice.path, node);
        let rate = bytes as f64 / 1e6 / elapsed.as_secs_f64();
        let bare = bytes as f64 / 1e6 / bare_transfer(node).as_secs_f64();
        report.figure("bare transfer of the same blocks, hexadecimal: MB/s of block", bare);
        report.compare("blocks read: MB/s of block", rate, Bar::AtLeast(50.0));
        report.figure("blocks read: share of the bare transfer", rate / bare);
    }
}

/// How long it takes from the wallet's first call for a block until it shows the payment in the
/// last block.
fn wait_until_paid(wallet: &Client, path: &str, node: &ChainNode) -> Duration {
    while wallet.get(path).body == "[]" {
        thread::sleep(Duration::from_millis(1));
    }
    node.first_read().expect("it is in a block").elapsed()
}

/// How long it takes to fetch the same blocks one after the other, and to do nothing with them.
fn bare_transfer(node: &ChainNode) -> Duration {
    let blocks = node.last_blocks(BLOCKS);
    let mut stream = TcpStream::connect(node.address()).unwrap();
    stream.set_nodelay(true).unwrap();
    let mut buffer = vec![0; 1 << 20];
    let begun = Instant::now();
    for block in blocks {
        transfer(&mut stream, &block, &mut buffer);
    }
    begun.elapsed()
}

fn transfer(stream: &mut TcpStream, block: &BlockHash, buffer: &mut [u8]) {
    let body = format!(r#"{{"id":0,"method":"getblock","params":["{block}",0]}}"#);
    let len = body.len();
    let head = format!("POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len}\r\n\r\n");
    stream.write_all([head, body].concat().as_bytes()).unwrap();
    let mut last = 0;
    // Only the end of an answer holds a closing brace.
    while last != b'}' {
        let len = stream.read(buffer).unwrap();
        assert_ne!(len, 0, "the stand-in hung up");
        last = buffer[len - 1];
    }
}
