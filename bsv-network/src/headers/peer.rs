use std::fmt::Debug;
use std::io;
use std::net::SocketAddr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bsv_tx::{BlockHeader, Network};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, lookup_host};
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
    claims: u32,
    /// How many pings were sent.
    pings: u64,
    /// Whether the node has announced something that was not told yet.
    is_announced: bool,
}

/// How long connecting with one address, and the greeting, may take.
const GREETING_TIMEOUT: Duration = Duration::from_secs(10);
/// How long an answer may take.
const TIMEOUT: Duration = Duration::from_secs(30);
/// How long a node may send nothing until it is asked whether it is there.
const QUIET: Duration = Duration::from_secs(60);

impl Peer {
    /// Connects to a node at `address`, which is `host:port`. Of several addresses of the host, the
    /// first one counts at which a node greets.
    pub async fn connect(network: Network, address: &str) -> Result<Self, SourceError> {
        let mut last = silence(address, GREETING_TIMEOUT);
        for found in addresses(address).await? {
            match Self::connect_to(network, address, found).await {
                Ok(peer) => return Ok(peer),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// Connects to a node at an address, which is called `name` in errors.
    pub(super) async fn connect_to(
        network: Network,
        name: &str,
        address: SocketAddr,
    ) -> Result<Self, SourceError> {
        let connecting = async {
            let stream = TcpStream::connect(address).await.map_err(|it| failure(name, &it))?;
            // A ping follows each question. It would wait until the node has confirmed the question.
            stream.set_nodelay(true).map_err(|it| failure(name, &it))?;
            Self::greet(network, name, stream).await
        };
        match timeout(GREETING_TIMEOUT, connecting).await {
            Ok(connected) => connected,
            Err(_) => Err(silence(name, GREETING_TIMEOUT)),
        }
    }

    /// Greets a node at the other end of a stream, which is called `name` in errors. The greeting may
    /// take as long as the node likes.
    pub async fn greet(
        network: Network,
        name: &str,
        stream: impl AsyncRead + AsyncWrite + Debug + Send + Sync + Unpin + 'static,
    ) -> Result<Self, SourceError> {
        let mut wire = Wire::new(stream, network);
        let greeted = async {
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
            Ok(u32::try_from(claims.unwrap_or_default()).unwrap_or_default())
        };
        let claims = greeted.await.map_err(|error: io::Error| failure(name, &error))?;
        Ok(Self { wire, name: name.to_owned(), claims, pings: 0, is_announced: false })
    }

    /// The address.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The height that the node has claimed when the connection began. Nothing proves it.
    pub fn claimed_height(&self) -> u32 {
        self.claims
    }

    /// The next headers, at most 2,000: see
    /// [`HeaderSource::headers_after`](super::HeaderSource::headers_after).
    pub async fn headers_after(
        &mut self,
        locator: &Locator,
    ) -> Result<Vec<BlockHeader>, SourceError> {
        self.is_announced = false;
        let mut answer = None;
        let mut unknown = None;
        let asked = timeout(TIMEOUT, async {
            self.wire.send_getheaders(locator).await?;
            // A node answers in the order in which it is asked. It may also announce new blocks by
            // their headers meanwhile, which are fewer than those of the answer.
            self.hear_until_pong(|message| {
                let Message::Headers(headers) = message else { return message.is_announcement() };
                let is_another = answer.is_some() || unknown.is_some();
                let headers = in_order(headers, locator);
                let longest = answer.as_ref().map_or(0, Vec::len);
                match headers.first() {
                    Some(first) if !follows(first, locator) => unknown = Some(first.to_bytes()),
                    _ if headers.len() >= longest => answer = Some(headers),
                    _ => {}
                }
                is_another
            })
            .await
        });
        match asked.await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => return Err(failure(&self.name, &error)),
            Err(_) => return Err(silence(&self.name, TIMEOUT)),
        }
        match (answer, unknown) {
            (Some(headers), _) => Ok(headers),
            // A node that still fetches blocks itself does not answer `getheaders`.
            (None, None) => Ok(Vec::new()),
            (None, Some(first)) => Err(SourceError::nonsense(
                &self.name,
                "its headers follow no block that is known",
                &first,
            )),
        }
    }

    /// Waits until the node announces something, or the connection fails. What it has announced
    /// beside its last answer counts, too. After a minute of silence the node is asked whether it is
    /// there.
    pub async fn announcement(&mut self) -> Result<(), SourceError> {
        while !self.is_announced {
            let heard = match timeout(QUIET, self.wire.receive()).await {
                Ok(Ok(Message::Ping(nonce))) => self.wire.send_pong(nonce).await,
                Ok(message) => message.map(|message| self.is_announced = message.is_announcement()),
                Err(_) => {
                    let heard = self.hear_until_pong(|message| message.is_announcement());
                    match timeout(TIMEOUT, heard).await {
                        Ok(heard) => heard,
                        Err(_) => return Err(silence(&self.name, TIMEOUT)),
                    }
                }
            };
            heard.map_err(|error| failure(&self.name, &error))?;
        }
        self.is_announced = false;
        Ok(())
    }

    /// Sends a ping, and gives what comes before its answer to `take`, which answers whether that
    /// announces something.
    async fn hear_until_pong(&mut self, mut take: impl FnMut(Message) -> bool) -> io::Result<()> {
        self.pings += 1;
        self.wire.send_ping(self.pings).await?;
        loop {
            match self.wire.receive().await? {
                Message::Pong(nonce) if nonce == self.pings => return Ok(()),
                Message::Ping(nonce) => self.wire.send_pong(nonce).await?,
                message => self.is_announced |= take(message),
            }
        }
    }
}

/// The addresses of `host:port`.
pub(super) async fn addresses(name: &str) -> Result<Vec<SocketAddr>, SourceError> {
    match timeout(GREETING_TIMEOUT, lookup_host(name)).await {
        Ok(found) => Ok(found.map_err(|error| failure(name, &error))?.collect()),
        Err(_) => Err(silence(name, GREETING_TIMEOUT)),
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

/// Whether a header follows one of the blocks of a locator.
fn follows(header: &BlockHeader, locator: &Locator) -> bool {
    locator.iter().any(|(_, hash)| *hash == header.previous_block)
}

fn failure(name: &str, error: &io::Error) -> SourceError {
    let reason = error.to_string();
    match error.kind() {
        io::ErrorKind::InvalidData => SourceError::Nonsense { name: name.to_owned(), reason },
        _ => SourceError::unreachable(name, reason),
    }
}

fn silence(name: &str, after: Duration) -> SourceError {
    SourceError::unreachable(name, format!("no answer within {} s", after.as_secs()))
}

#[cfg(test)]
pub(super) mod tests {
    use bsv_tx::write_var_int;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::super::chain::HeaderChain;
    use super::super::checkpoint::Checkpoint;
    use super::super::messages::{decode, framed};
    use super::*;

    const MAIN: [u8; 4] = [0xe3, 0xe1, 0xf3, 0xe8];
    /// The headers of blocks 900,000 to 909,999 of the main network.
    pub(in super::super) const HEADERS: &[u8] =
        include_bytes!("../../tests/headers/main-900000-909999.headers");

    /// The message `headers` with some of these headers.
    pub(in super::super) fn headers(range: std::ops::Range<usize>) -> Vec<u8> {
        let mut contents = Vec::new();
        write_var_int(&mut contents, range.len() as u64);
        for header in range.map(|index| &HEADERS[index * 80..][..80]) {
            contents.extend_from_slice(header);
            contents.push(0);
        }
        framed(MAIN, "headers", &contents)
    }

    /// Plays a node that claims a height, and answers `getheaders` with messages, the pong among them where it says
    /// `None`.
    pub(in super::super) async fn play(
        mut stream: impl AsyncRead + AsyncWrite + Unpin,
        height: i32,
        messages: Vec<Option<Vec<u8>>>,
    ) {
        let mut version = [0; 80].to_vec();
        version.push(0);
        version.extend_from_slice(&height.to_le_bytes());
        stream.write_all(&framed(MAIN, "version", &version)).await.unwrap();
        stream.write_all(&framed(MAIN, "verack", &[])).await.unwrap();
        let mut arrived = Vec::new();
        loop {
            while let Some((found, length)) = decode(MAIN, &arrived).unwrap() {
                arrived.drain(..length);
                let Message::Ping(nonce) = found else { continue };
                for message_or_pong in &messages {
                    let pong = framed(MAIN, "pong", &nonce.to_le_bytes());
                    stream.write_all(message_or_pong.as_ref().unwrap_or(&pong)).await.unwrap();
                }
            }
            if stream.read_buf(&mut arrived).await.unwrap_or(0) == 0 {
                return;
            }
        }
    }

    /// A peer that answers with messages, and what it is asked for: what follows block 900,146.
    async fn asking(messages: Vec<Option<Vec<u8>>>) -> (Peer, Locator) {
        let (ours, theirs) = duplex(1 << 20);
        tokio::spawn(play(theirs, 909_999, messages));
        let peer = Peer::greet(Network::Livenet, "node", ours).await.unwrap();
        assert_eq!(peer.claimed_height(), 909_999);
        let checkpoint =
            Checkpoint::from_headers(Network::Livenet, 900_146, &HEADERS[..147 * 80], 0).unwrap();
        let locator = HeaderChain::new(Network::Livenet, &checkpoint).locator(None);
        (peer, locator)
    }

    /// What a peer makes of messages.
    async fn answer(messages: Vec<Option<Vec<u8>>>) -> Result<Vec<BlockHeader>, SourceError> {
        let (mut peer, locator) = asking(messages).await;
        peer.headers_after(&locator).await
    }

    #[tokio::test]
    async fn an_announcement_is_no_answer() {
        let length = |answer: Result<Vec<_>, _>| answer.unwrap().len();
        // The announcement of a block that follows what is known comes before the answer, or after.
        let early = answer(vec![Some(headers(147..148)), Some(headers(147..447)), None]);
        assert_eq!(length(early.await), 300);
        let late = answer(vec![Some(headers(147..447)), Some(headers(147..148)), None]);
        assert_eq!(length(late.await), 300);
        // One that follows nothing.
        let other = answer(vec![Some(headers(900..901)), Some(headers(0..0)), None]);
        assert_eq!(length(other.await), 0);
        let later = answer(vec![None, Some(headers(147..148))]);
        assert_eq!(length(later.await), 0);
        let nonsense = answer(vec![Some(headers(900..910)), None]).await.unwrap_err();
        assert!(matches!(nonsense, SourceError::Nonsense { .. }), "{nonsense}");
    }

    #[tokio::test(start_paused = true)]
    async fn an_announcement_beside_an_answer_is_told() {
        let inventory = framed(MAIN, "inv", &[0]);
        let two = vec![Some(headers(147..447)), Some(headers(447..448)), None];
        let with_inventory = vec![Some(inventory), Some(headers(147..447)), None];
        let alone = vec![Some(headers(147..447)), None];
        for (messages, is_told) in [(two, true), (with_inventory, true), (alone, false)] {
            let (mut peer, locator) = asking(messages).await;
            assert_eq!(peer.headers_after(&locator).await.unwrap().len(), 300);
            for is_told in [is_told, false] {
                let told = timeout(Duration::from_secs(1), peer.announcement()).await;
                assert_eq!(told.is_ok(), is_told);
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_node_that_is_silent_for_long_is_asked_whether_it_is_there() {
        let (ours, theirs) = duplex(1 << 20);
        tokio::spawn(play(theirs, 909_999, Vec::new()));
        let mut peer = Peer::greet(Network::Livenet, "node", ours).await.unwrap();
        let error = peer.announcement().await.unwrap_err();
        assert!(error.to_string().contains("no answer within 30 s"), "{error}");
    }
}
