//! The network's own protocol, as far as headers need it.

use std::fmt::Debug;
use std::io;
use std::time::Duration;

use bsv_tx::{BlockHeader, DecodeError, Network, Reader, sha256d, write_var_int};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::task::coop::consume_budget;
use tokio::time::timeout;

use super::chain::Locator;
use super::source_error::shown;

/// The version of the protocol (`PROTOCOL_VERSION` of nodes).
const VERSION: i32 = 70_016;
/// Nodes ban clients whose name contains that of another chain.
const USER_AGENT: &[u8] = concat!("/bsv-server:", env!("CARGO_PKG_VERSION"), "/").as_bytes();

/// The bytes before the contents of a message: the network, the command, the length and a check
/// sum.
const PREFIX: usize = 4 + COMMAND + 4 + 4;
const COMMAND: usize = 12;
/// The longest contents that are read: above 50,000 announcements and 2,000 headers.
const MOST_BYTES: usize = 2 << 20;
/// How long a peer may take to receive a message.
const SEND_TIMEOUT: Duration = Duration::from_secs(30);

/// A message of a node.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Message {
    Version {
        /// The height that the node claims.
        height: i32,
    },
    Verack,
    Ping(u64),
    Pong(u64),
    Headers(Vec<BlockHeader>),
    /// The node announces something.
    Inventory,
    Other,
}

impl Message {
    pub(super) fn is_announcement(&self) -> bool {
        matches!(self, Self::Headers(_) | Self::Inventory)
    }
}

/// A stream of bytes in both directions.
trait Stream: AsyncRead + AsyncWrite + Debug + Send + Sync + Unpin {}

impl<S: AsyncRead + AsyncWrite + Debug + Send + Sync + Unpin> Stream for S {}

/// A connection with a node.
#[derive(Debug)]
pub(super) struct Wire {
    stream: Box<dyn Stream>,
    magic: [u8; 4],
    /// What has arrived.
    arrived: Vec<u8>,
    /// How many bytes of it were read.
    read: usize,
    /// What has not been sent yet.
    unsent: Vec<u8>,
}

impl Wire {
    pub(super) fn new(
        stream: impl AsyncRead + AsyncWrite + Debug + Send + Sync + Unpin + 'static,
        network: Network,
    ) -> Self {
        let magic = match network {
            Network::Livenet => [0xe3, 0xe1, 0xf3, 0xe8],
            Network::Testnet => [0xf4, 0xe5, 0xf3, 0xf4],
            Network::Regtest => [0xda, 0xb5, 0xbf, 0xfa],
        };
        Self { stream: Box::new(stream), magic, arrived: Vec::new(), read: 0, unsent: Vec::new() }
    }

    /// Introduces this client. `now` is in seconds since 1970.
    pub(super) async fn send_version(&mut self, now: u64) -> io::Result<()> {
        self.send("version", &version(now, 0)).await
    }

    pub(super) async fn send_verack(&mut self) -> io::Result<()> {
        self.send("verack", &[]).await?;
        // Nodes then announce new blocks by their headers.
        self.send("sendheaders", &[]).await
    }

    pub(super) async fn send_ping(&mut self, nonce: u64) -> io::Result<()> {
        self.send("ping", &nonce.to_le_bytes()).await
    }

    pub(super) async fn send_pong(&mut self, nonce: u64) -> io::Result<()> {
        self.send("pong", &nonce.to_le_bytes()).await
    }

    pub(super) async fn send_getheaders(&mut self, locator: &Locator) -> io::Result<()> {
        self.send("getheaders", &getheaders(locator)).await
    }

    /// Sends a message. If this is cancelled, the rest of the message comes before the next one.
    async fn send(&mut self, command: &str, contents: &[u8]) -> io::Result<()> {
        self.unsent.extend_from_slice(&framed(self.magic, command, contents));
        let sent = async {
            while !self.unsent.is_empty() {
                let length = self.stream.write(&self.unsent).await?;
                if length == 0 {
                    return Err(io::ErrorKind::WriteZero.into());
                }
                self.unsent.drain(..length);
            }
            Ok(())
        };
        timeout(SEND_TIMEOUT, sent).await?
    }

    /// The next message. If this is cancelled, nothing is lost.
    pub(super) async fn receive(&mut self) -> io::Result<Message> {
        // A peer may send messages faster than they are read.
        consume_budget().await;
        loop {
            if let Some((message, length)) = decode(self.magic, &self.arrived[self.read..])? {
                self.read += length;
                return Ok(message);
            }
            self.arrived.drain(..self.read);
            self.read = 0;
            if self.stream.read_buf(&mut self.arrived).await? == 0 {
                let closed = "it has closed the connection";
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, closed));
            }
        }
    }
}

/// The contents of `version`: a client without services that wants no transactions.
fn version(now: u64, nonce: u64) -> Vec<u8> {
    // No services, and no address.
    const NOBODY: [u8; 26] = [0; 26];
    let mut contents = Vec::new();
    contents.extend_from_slice(&VERSION.to_le_bytes());
    contents.extend_from_slice(&0_u64.to_le_bytes());
    contents.extend_from_slice(&now.to_le_bytes());
    contents.extend_from_slice(&NOBODY);
    contents.extend_from_slice(&NOBODY);
    contents.extend_from_slice(&nonce.to_le_bytes());
    write_var_int(&mut contents, USER_AGENT.len() as u64);
    contents.extend_from_slice(USER_AGENT);
    contents.extend_from_slice(&0_i32.to_le_bytes());
    contents.push(0);
    contents
}

/// The contents of `getheaders`: the blocks of a locator, and no last block.
fn getheaders(locator: &Locator) -> Vec<u8> {
    let mut contents = VERSION.to_le_bytes().to_vec();
    write_var_int(&mut contents, locator.len() as u64);
    for (_, hash) in locator {
        contents.extend_from_slice(hash.as_bytes());
    }
    contents.extend_from_slice(&[0; 32]);
    contents
}

/// A message of a network with these first bytes. The command has 12 bytes at most.
pub fn framed(magic: [u8; 4], command: &str, contents: &[u8]) -> Vec<u8> {
    let mut bytes = magic.to_vec();
    let mut name = [0; COMMAND];
    name[..command.len()].copy_from_slice(command.as_bytes());
    bytes.extend_from_slice(&name);
    bytes.extend_from_slice(&(contents.len() as u32).to_le_bytes());
    bytes.extend_from_slice(&sha256d(contents)[..4]);
    bytes.extend_from_slice(contents);
    bytes
}

/// Decodes the message at the front of `arrived`, with its length. `None` if it has not arrived
/// whole.
pub(super) fn decode(magic: [u8; 4], arrived: &[u8]) -> io::Result<Option<(Message, usize)>> {
    let nonsense = |what: &str| {
        let error = format!("{what}: {}", shown(arrived));
        io::Error::new(io::ErrorKind::InvalidData, error)
    };
    let Some((prefix, rest)) = arrived.split_at_checked(PREFIX) else { return Ok(None) };
    let mut reader = Reader::new(prefix);
    let read = |reader: &mut Reader<'_>| {
        Ok::<_, DecodeError>((
            reader.array()?,
            reader.array::<COMMAND>()?,
            reader.u32()?,
            reader.array()?,
        ))
    };
    let (network, command, length, sum): ([u8; 4], _, _, [u8; 4]) =
        read(&mut reader).map_err(|_| nonsense("a message without a beginning"))?;
    if network != magic {
        return Err(nonsense("a message of another network"));
    }
    let length = length as usize;
    if length > MOST_BYTES {
        return Err(nonsense("a message that is too long"));
    }
    let Some(contents) = rest.get(..length) else { return Ok(None) };
    if sha256d(contents)[..4] != sum {
        return Err(nonsense("a message with a wrong check sum"));
    }
    let name = command.split(|byte| *byte == 0).next().unwrap_or_default();
    let message = contents_of(name, contents)
        .map_err(|error| nonsense(&format!("{} that cannot be read ({error})", shown(name))))?;
    Ok(Some((message, PREFIX + length)))
}

fn contents_of(command: &[u8], contents: &[u8]) -> Result<Message, DecodeError> {
    let mut reader = Reader::new(contents);
    Ok(match command {
        b"version" => {
            // The version, the services, the time, two addresses and a nonce.
            reader.take(4 + 8 + 8 + 26 + 26 + 8)?;
            reader.var_bytes()?;
            Message::Version { height: reader.i32()? }
        }
        b"verack" => Message::Verack,
        b"ping" => Message::Ping(reader.u64()?),
        b"pong" => Message::Pong(reader.u64()?),
        b"inv" => Message::Inventory,
        b"headers" => {
            let headers = reader.list(BlockHeader::LEN + 1, |reader| {
                let header = BlockHeader::read(reader)?;
                // The number of transactions, which is always 0.
                reader.var_int()?;
                Ok(header)
            })?;
            reader.finish()?;
            Message::Headers(headers)
        }
        _ => Message::Other,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAIN: [u8; 4] = [0xe3, 0xe1, 0xf3, 0xe8];

    #[test]
    fn messages_have_the_bytes_that_nodes_expect() {
        let hash = "00000000000000002530fb16feba5e3beffd243e5ba89264f27f0f425cbd5436";
        let asked = getheaders(&vec![(916_817, hash.parse().unwrap())]);
        let expected = "e3e1f3e867657468656164657273000045000000d1f92a5480110100013654bd5c420f7ff26492a85b3e24fdef3b5ebafe16fb302500000000000000000000000000000000000000000000000000000000000000000000000000000000";
        assert_eq!(hex::encode(framed(MAIN, "getheaders", &asked)), expected);
        let expected = "e3e1f3e876657261636b000000000000000000005df6e0e2";
        assert_eq!(hex::encode(framed(MAIN, "verack", &[])), expected);
        let introduced = version(1_795_824_000, 0x1122_3344_5566_7788);
        let before_the_name = "801101000000000000000000";
        assert_eq!(hex::encode(&introduced[..12]), before_the_name);
    }

    #[test]
    fn a_message_is_read_once_it_is_whole() {
        let bytes = hex::decode("e3e1f3e8686561646572730000000000010000001406e05800").unwrap();
        for length in 0..bytes.len() {
            assert_eq!(decode(MAIN, &bytes[..length]).unwrap(), None);
        }
        let (message, length) = decode(MAIN, &bytes).unwrap().unwrap();
        assert_eq!((message, length), (Message::Headers(Vec::new()), bytes.len()));
    }

    #[test]
    fn nonsense_is_an_error_that_shows_its_first_bytes() {
        let altered = |at: usize| {
            let mut bytes = framed(MAIN, "ping", &7_u64.to_le_bytes());
            bytes[at] ^= 0x80;
            decode(MAIN, &bytes).unwrap_err().to_string()
        };
        assert!(altered(0).starts_with("a message of another network: c"), "{}", altered(0));
        assert!(altered(19).starts_with("a message that is too long"), "{}", altered(19));
        assert!(altered(24).starts_with("a message with a wrong check sum"), "{}", altered(24));
        let short = framed(MAIN, "ping", &[7]);
        let error = decode(MAIN, &short).unwrap_err().to_string();
        assert!(error.starts_with("ping that cannot be read"), "{error}");
        let most = [2, 0, 0].repeat(2_000);
        assert!(decode(MAIN, &framed(MAIN, "headers", &most)).is_err());
    }

    #[tokio::test]
    async fn a_message_that_is_cut_off_by_a_cancellation_is_sent_whole() {
        // Four bytes fit at once.
        let (ours, mut theirs) = tokio::io::duplex(4);
        let mut wire = Wire::new(ours, Network::Livenet);
        assert!(timeout(Duration::from_millis(10), wire.send_pong(1)).await.is_err());
        let sent = tokio::spawn(async move { wire.send_pong(2).await });
        let mut arrived = Vec::new();
        theirs.read_to_end(&mut arrived).await.unwrap();
        sent.await.unwrap().unwrap();
        let pong = |nonce: u64| framed(MAIN, "pong", &nonce.to_le_bytes());
        assert_eq!(arrived, [pong(1), pong(2)].concat());
    }
}
