use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{interval, timeout};

/// How many payers there are, each with an address of its own, and the time from one of its
/// payments to the next.
const PAYERS: u8 = 10;
const PACE: Duration = Duration::from_millis(250);
/// How many payments all of them make together.
pub(super) const PAYMENTS_PER_SECOND: u32 = PAYERS as u32 * 4;
/// How long a payer waits for an answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// The results of honest payers' requests.
#[derive(Debug, Default)]
pub(super) struct Paid {
    /// How long each successful request took, in microseconds, shortest first.
    times: Vec<u32>,
    /// How many requests failed.
    pub(super) failures: u32,
    /// How often a payer found that its kept connection had been closed, and opened another one.
    pub(super) reopened: u32,
}

impl Paid {
    /// How many requests were sent.
    pub(super) fn count(&self) -> usize {
        self.times.len() + self.failures as usize
    }

    /// This share of the successful requests took less time than this, in milliseconds.
    pub(super) fn quantile(&self, share: f64) -> f64 {
        let index = (self.times.len() as f64 * share) as usize;
        let time = self.times.get(index.min(self.times.len().saturating_sub(1)));
        time.map_or(f64::INFINITY, |micros| f64::from(*micros) / 1e3)
    }
}

/// Pays with each of these requests once: reads the terms, and posts the payment. Every other
/// payment has a connection of its own. The others of a payer share one connection.
pub(super) fn pay(address: &str, payments: Vec<Vec<u8>>) -> Paid {
    let address: SocketAddr = address.parse().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let all = runtime.block_on(async {
        let mut payers = JoinSet::new();
        for payer in 0..PAYERS {
            let own = payments.iter().skip(payer.into()).step_by(PAYERS.into());
            payers.spawn(pay_at_pace(address, payer, own.cloned().collect()));
        }
        payers.join_all().await
    });
    let mut paid = Paid::default();
    for Paid { times, failures, reopened } in all {
        paid.times.extend(times);
        paid.failures += failures;
        paid.reopened += reopened;
    }
    paid.times.sort_unstable();
    paid
}

async fn pay_at_pace(address: SocketAddr, payer: u8, payments: Vec<Vec<u8>>) -> Paid {
    let from = Ipv4Addr::new(127, 0, 2, payer + 1);
    let mut paid = Paid::default();
    let mut kept = None;
    // The payers do not all start at once.
    tokio::time::sleep(PACE / u32::from(PAYERS) * u32::from(payer)).await;
    let mut pace = interval(PACE);
    for (number, payment) in payments.iter().enumerate() {
        pace.tick().await;
        if number % 2 == 0 {
            let mut own = None;
            paid.ask(address, from, &mut own, &terms_request(payment)).await;
            paid.ask(address, from, &mut own, payment).await;
        } else {
            paid.ask(address, from, &mut kept, &terms_request(payment)).await;
            paid.ask(address, from, &mut kept, payment).await;
        }
    }
    paid
}

/// The request for the terms of a payment.
fn terms_request(payment: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(payment);
    let path = text.split(' ').nth(1).unwrap();
    format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n").into_bytes()
}

impl Paid {
    /// Sends a request, over a new connection if there is none or it is closed, and notes how long
    /// all of this takes.
    async fn ask(
        &mut self,
        address: SocketAddr,
        from: Ipv4Addr,
        connection: &mut Option<TcpStream>,
        request: &[u8],
    ) {
        let begun = Instant::now();
        let answered = timeout(PATIENCE, async {
            if let Some(kept) = connection.as_mut() {
                match exchange(kept, request).await {
                    // The server had closed the connection.
                    Err(_) => self.reopened += 1,
                    answered => return answered,
                }
            }
            let socket = TcpSocket::new_v4()?;
            socket.bind((from, 0).into())?;
            let stream = socket.connect(address).await?;
            stream.set_nodelay(true)?;
            exchange(connection.insert(stream), request).await
        });
        match answered.await {
            Ok(Ok(answer)) if answer.starts_with("HTTP/1.1 20") => {
                self.times.push(u32::try_from(begun.elapsed().as_micros()).unwrap_or(u32::MAX));
            }
            failed => {
                *connection = None;
                self.failures += 1;
                eprintln!("  a payer's request fails: {failed:?}");
            }
        }
    }
}

/// Sends a request, and reads its answer.
async fn exchange(stream: &mut TcpStream, request: &[u8]) -> io::Result<String> {
    stream.write_all(request).await?;
    let mut answer = Vec::new();
    loop {
        if stream.read_buf(&mut answer).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let text = String::from_utf8_lossy(&answer);
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let mut lines = head.lines();
        let len = lines.find_map(|line| line.strip_prefix("content-length: "));
        if body.len() >= len.unwrap_or("0").parse().map_err(io::Error::other)? {
            return Ok(text.into_owned());
        }
    }
}
