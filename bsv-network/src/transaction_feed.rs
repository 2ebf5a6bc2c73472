//! The transactions that a node publishes when it takes them into its mempool (ZMQ, topic
//! `rawtx2`).

use std::time::Duration;

use bsv_tx::Transaction;
use futures_channel::mpsc;
use futures_util::StreamExt;
use thiserror::Error;
use tokio::time::timeout;
use zeromq::{Socket, SocketEvent, SocketRecv, SubSocket, ZmqMessage};

const TOPIC: &str = "rawtx2";
/// How long opening a connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a node may take to start publishing to a new subscriber. The node does not confirm a
/// subscription.
const SUBSCRIBING: Duration = Duration::from_secs(2);

/// A connection over which a node publishes transactions.
pub struct TransactionFeed {
    socket: SubSocket,
    events: mpsc::Receiver<SocketEvent>,
    /// The expected number of the next message.
    next: Option<u32>,
    /// Whether the node has had the time to start publishing.
    has_waited: bool,
}

/// What the node has published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Published {
    /// A transaction.
    Transaction(Box<Transaction>),
    /// The first message came, or none for two seconds. Earlier transactions since the connection
    /// was opened may be lost: read the mempool.
    Begun,
    /// Messages were lost or unreadable: read the mempool.
    Gap,
}

/// Why a feed has ended.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FeedError {
    /// Nothing listens at the address, or the address is invalid.
    #[error("cannot subscribe to {address}: {reason}")]
    Connect {
        /// The address.
        address: String,
        /// Why it failed.
        reason: String,
    },
    /// The connection has ended.
    #[error("the node has closed the connection for its notifications")]
    Ended,
}

impl TransactionFeed {
    /// Subscribes to the node at an address such as `tcp://127.0.0.1:28332`.
    pub async fn connect(address: &str) -> Result<Self, FeedError> {
        let failed = |reason: String| FeedError::Connect { address: address.to_owned(), reason };
        let mut socket = SubSocket::new();
        let events = socket.monitor();
        let connected = timeout(CONNECT_TIMEOUT, socket.connect(address)).await;
        let connected = connected.map_err(|_| failed("it does not answer".to_owned()))?;
        connected.map_err(|error| failed(error.to_string()))?;
        socket.subscribe(TOPIC).await.map_err(|error| failed(error.to_string()))?;
        Ok(Self { socket, events, next: None, has_waited: false })
    }

    /// The node's next message.
    pub async fn next(&mut self) -> Result<Published, FeedError> {
        if self.has_waited || self.next.is_some() {
            return self.receive().await;
        }
        let first = timeout(SUBSCRIBING, self.receive()).await;
        self.has_waited = true;
        first.unwrap_or(Ok(Published::Begun))
    }

    async fn receive(&mut self) -> Result<Published, FeedError> {
        loop {
            tokio::select! {
                biased;
                event = self.events.next() => match event {
                    // The socket would reconnect by itself, and hide that messages were lost.
                    Some(SocketEvent::Disconnected(_)) | None => return Err(FeedError::Ended),
                    Some(_) => {}
                },
                message = self.socket.recv() => {
                    return match message {
                        Ok(message) => Ok(self.read(&message)),
                        Err(_) => Err(FeedError::Ended),
                    };
                }
            }
        }
    }

    /// Reads a message: the topic, the transaction, and the message's number in four bytes.
    fn read(&mut self, message: &ZmqMessage) -> Published {
        let number = message.get(2).and_then(|bytes| bytes.as_ref().try_into().ok());
        let (Some(body), Some(number)) = (message.get(1), number.map(u32::from_le_bytes)) else {
            return Published::Gap;
        };
        match self.next.replace(number.wrapping_add(1)) {
            None => return Published::Begun,
            Some(expected) if expected != number => return Published::Gap,
            Some(_) => {}
        }
        match Transaction::from_bytes(body) {
            Ok(transaction) => Published::Transaction(Box::new(transaction)),
            Err(_) => Published::Gap,
        }
    }
}

impl std::fmt::Debug for TransactionFeed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TransactionFeed").field("next", &self.next).finish_non_exhaustive()
    }
}
