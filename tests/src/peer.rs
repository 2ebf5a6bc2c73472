//! A peer of a node: it sends transactions to the node.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use bsv_tx::{Transaction, sha256d};

use crate::node::Node;

/// The bytes that every message of a regtest network begins with.
const MAGIC: [u8; 4] = [0xda, 0xb5, 0xbf, 0xfa];
const VERSION: u32 = 70_015;

/// A connection to a node.
#[derive(Debug)]
pub struct Peer {
    stream: TcpStream,
}

impl Peer {
    /// Connects to a node and shakes hands.
    ///
    /// # Panics
    /// If the node does not.
    pub fn of(node: &Node) -> Self {
        let stream = TcpStream::connect((node.host.as_str(), node.peer_port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let mut peer = Self { stream };
        peer.say("version", &version()).unwrap();
        loop {
            match peer.hear().expect("a node shakes hands").as_str() {
                "version" => peer.say("verack", &[]).unwrap(),
                "verack" => return peer,
                _ => {}
            }
        }
    }

    /// Sends the node a transaction that it has not asked for.
    ///
    /// # Panics
    /// If the connection breaks.
    pub fn give(&mut self, transaction: &Transaction) {
        self.say("tx", &transaction.to_bytes()).unwrap();
    }

    fn say(&mut self, command: &str, payload: &[u8]) -> io::Result<()> {
        let mut message = MAGIC.to_vec();
        let mut name = [0; 12];
        name[..command.len()].copy_from_slice(command.as_bytes());
        message.extend_from_slice(&name);
        message.extend_from_slice(&u32::try_from(payload.len()).unwrap().to_le_bytes());
        message.extend_from_slice(&sha256d(payload)[..4]);
        message.extend_from_slice(payload);
        self.stream.write_all(&message)
    }

    /// The name of the next message.
    fn hear(&mut self) -> io::Result<String> {
        let mut head = [0; 24];
        self.stream.read_exact(&mut head)?;
        let len = u32::from_le_bytes(head[16..20].try_into().unwrap());
        io::copy(&mut (&self.stream).take(len.into()), &mut io::sink())?;
        let name = String::from_utf8_lossy(&head[4..16]);
        Ok(name.trim_end_matches('\0').to_owned())
    }
}

/// The message that it offers nothing and knows no block.
fn version() -> Vec<u8> {
    let mut payload = VERSION.to_le_bytes().to_vec();
    // These are services, time, two addresses and a number that detects a connection to oneself.
    payload.extend_from_slice(&[0; 8 + 8 + 26 + 26]);
    payload.extend_from_slice(&[7; 8]);
    // These are an empty name, height 0, and relay.
    payload.extend_from_slice(&[0, 0, 0, 0, 0, 1]);
    payload
}
