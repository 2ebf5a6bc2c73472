//! How soon the wallet sees a payment that nobody posts to it.

use std::time::{Duration, Instant};

use bsv_tests::Server;
use bsv_tx::sha256;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::sleep;

use super::feed::Feed;
use super::fill::Shown;
use super::node::ChainNode;
use super::traffic::paying;
use crate::client::{Load, read_answer};
use crate::report::{Bar, Report};
use crate::wallet::BareCommits;

/// The first number of the payments. All numbers of strangers' transactions are smaller.
const FIRST_NUMBER: u64 = 1 << 40;

/// Publishes a payment for each of these invoices, between strangers' transactions.
pub(super) fn measure(
    feed: &Feed,
    node: &ChainNode,
    server: &Server,
    invoices: &[Shown],
    commits: &mut BareCommits,
    report: &mut Report,
) {
    let (begun, before) = (Instant::now(), feed.published());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let [seen, bare] = runtime.block_on(pay_all(feed, node, server, invoices, commits));
    let published = f64::from(feed.published() - before) / begun.elapsed().as_secs_f64();
    report.figure("strangers' transactions meanwhile: per second", published);
    for share in [0.5, 0.99] {
        let name = if share == 0.5 { "p50" } else { "p99" };
        report.figure(format!("bare commit, then a question: {name} in ms"), bare.quantile(share));
        report.figure(format!("published until listed: {name} in ms"), seen.quantile(share));
    }
    let beyond = seen.quantile(0.99) - bare.quantile(0.99);
    let what = "published until listed: p99 beyond that of a bare commit and a question, in ms";
    report.compare(what, beyond, Bar::AtMost(2.0));
    let beyond = seen.quantile(0.99) - bare.quantile(0.5);
    report.figure("published until listed: p99 beyond the p50 of these, in ms", beyond);
}

/// Measures two things in turn: how long a published payment takes until the wallet lists it, and
/// how long a bare commit and a call to the node take.
async fn pay_all(
    feed: &Feed,
    node: &ChainNode,
    server: &Server,
    invoices: &[Shown],
    commits: &mut BareCommits,
) -> [Load; 2] {
    let begun = Instant::now();
    let mut wallet = Connection::open(server.wallet().address()).await;
    let mut asking = Connection::open(node.address()).await;
    let [mut seen, mut bare] = [const { Vec::new() }; 2];
    for (number, Shown { path, destination }) in (FIRST_NUMBER..).zip(invoices) {
        sleep(pause(number)).await;
        let payment = paying(number, destination.satoshis, &destination.script);
        let list = format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
        let published_at = feed.publish(&payment).await;
        while wallet.ask(&list).await == b"[]" {}
        seen.push(micros(published_at));

        let question = question(&payment.txid().to_string());
        let begun = Instant::now();
        commits.commit();
        asking.ask(&question).await;
        bare.push(micros(begun));
    }
    [seen, bare].map(|times| Load::of(times, begun.elapsed().as_secs_f64(), Vec::new()))
}

/// The call to the node that the wallet makes before it records a published transaction.
fn question(txid: &str) -> String {
    let body = format!(r#"{{"id":0,"method":"getmempoolentry","params":["{txid}"]}}"#);
    let len = body.len();
    format!("POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len}\r\n\r\n{body}")
}

/// A random pause from 5 to 21 milliseconds.
fn pause(number: u64) -> Duration {
    let [low, high, ..] = sha256(&number.to_le_bytes());
    Duration::from_micros(5_000 + u64::from(u16::from_le_bytes([low, high])) / 4)
}

fn micros(since: Instant) -> u32 {
    u32::try_from(since.elapsed().as_micros()).unwrap()
}

/// A connection that is kept open.
struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Connection {
    async fn open(address: &str) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        Self { stream, buffer: vec![0; 64 << 10] }
    }

    /// Sends a request. Returns the body of the answer.
    async fn ask(&mut self, request: &str) -> &[u8] {
        self.stream.write_all(request.as_bytes()).await.unwrap();
        let body = read_answer(&mut self.stream, &mut self.buffer).await;
        &self.buffer[body]
    }
}
