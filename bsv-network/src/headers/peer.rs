use std::io;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bsv_tx::{BlockHeader, Network};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::chain::{Locator, MOST_AT_ONCE};
use super::messages::{Message, Wire};
use super::source_error::SourceError;

/// A node of the network, which gives headers by the network's own protocol.
#[derive(Debug)]
pub struct Peer {
    wire: Wire,
    name: String,
    /// The height that the node claims to have.
    claims: i32,
}

/// How long connecting, and each answer, may take.
const TIMEOUT: Duration = Duration::from_secs(30);

impl Peer {
    /// Connects to a node at `address`, which is `host:port`.
    pub async fn connect(network: Network, address: &str) -> Result<Self, SourceError> {
        let name = address.to_owned();
        let connected = timeout(TIMEOUT, async {
            let mut wire = Wire::new(TcpStream::connect(address).await?, network);
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
            wire.send_version(now).await?;
            let (mut claims, mut is_acknowledged) = (None, false);
            while claims.is_none() || !is_acknowledged {
                match wire.receive().await? {
                    Message::Version { height } => {
                        claims = Some(height);
                        wire.send_verack().await?;
                    }
                    Message::Verack => is_acknowledged = true,
                    _ => {}
                }
            }
            Ok((wire, claims.unwrap_or_default()))
        });
        match connected.await {
            Ok(Ok((wire, claims))) => Ok(Self { wire, name, claims }),
            Ok(Err(error)) => Err(failure(&name, &error)),
            Err(_) => Err(silence(&name)),
        }
    }

    /// The address.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The height that the node has claimed when the connection began. Nothing proves it.
    pub fn claimed_height(&self) -> i32 {
        self.claims
    }

    /// The next headers, at most 2,000: see
    /// [`HeaderSource::headers_after`](super::HeaderSource::headers_after).
    pub async fn headers_after(
        &mut self,
        locator: &Locator,
    ) -> Result<Vec<BlockHeader>, SourceError> {
        let asked = timeout(TIMEOUT, async {
            self.wire.send_getheaders(locator).await?;
            loop {
                match self.wire.receive().await? {
                    Message::Headers(headers) => {
                        let headers = in_order(headers, locator);
                        // Nodes also announce new blocks by their headers.
                        if headers.is_empty() || follow(&headers, locator) {
                            return Ok(headers);
                        }
                    }
                    Message::Ping(nonce) => self.wire.send_pong(nonce).await?,
                    _ => {}
                }
            }
        });
        match asked.await {
            Ok(answer) => answer.map_err(|error| failure(&self.name, &error)),
            Err(_) => Err(silence(&self.name)),
        }
    }

    /// Waits until the node announces something, or closes the connection.
    pub async fn announcement(&mut self) -> Result<(), SourceError> {
        loop {
            match self.wire.receive().await.map_err(|error| failure(&self.name, &error))? {
                Message::Headers(_) | Message::Inventory => return Ok(()),
                Message::Ping(nonce) => {
                    let sent = self.wire.send_pong(nonce).await;
                    sent.map_err(|error| failure(&self.name, &error))?;
                }
                _ => {}
            }
        }
    }
}

/// Headers after the locator's block, the lowest first. Some versions of Teranode give the highest
/// first, and begin with the locator's block.
fn in_order(mut headers: Vec<BlockHeader>, locator: &Locator) -> Vec<BlockHeader> {
    let descends = |pair: &[BlockHeader]| pair[0].previous_block == pair[1].block_hash();
    if headers.len() > 1 && headers.windows(2).all(descends) {
        headers.reverse();
    }
    let is_known = headers.first().is_some_and(|first| {
        let first = first.block_hash();
        locator.iter().any(|(_, hash)| *hash == first)
    });
    if is_known {
        headers.remove(0);
    }
    headers.truncate(MOST_AT_ONCE);
    headers
}

/// Whether headers follow one of the blocks of a locator.
fn follow(headers: &[BlockHeader], locator: &Locator) -> bool {
    headers
        .first()
        .is_some_and(|first| locator.iter().any(|(_, hash)| *hash == first.previous_block))
}

fn failure(name: &str, error: &io::Error) -> SourceError {
    let (name, reason) = (name.to_owned(), error.to_string());
    match error.kind() {
        io::ErrorKind::InvalidData => SourceError::Nonsense { name, reason },
        _ => SourceError::Unreachable { name, reason },
    }
}

fn silence(name: &str) -> SourceError {
    let reason = format!("no answer within {} s", TIMEOUT.as_secs());
    SourceError::Unreachable { name: name.to_owned(), reason }
}
