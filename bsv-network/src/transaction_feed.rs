//! The transactions that a node takes into its mempool, as it publishes them (ZMQ, topic `rawtx2`).

use std::time::Duration;

use bsv_tx::Transaction;
use futures_channel::mpsc;
use futures_util::StreamExt;
use thiserror::Error;
use tokio::time::timeout;
use zeromq::{Socket, SocketEvent, SocketRecv, SubSocket, ZmqMessage};

const TOPIC: &str = "rawtx2";
/// How long a connection may take to come about.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a node may take until it publishes to a new subscriber, which it does not confirm.
const SUBSCRIBING: Duration = Duration::from_secs(2);

/// A connection over which a node tells of transactions.
pub struct TransactionFeed {
    socket: SubSocket,
    events: mpsc::Receiver<SocketEvent>,
    /// The number of the next message, as the node counts them.
    next: Option<u32>,
    /// Whether the node has had the time to begin.
    has_waited: bool,
}

/// What a node has published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Published {
    /// A transaction.
    Transaction(Box<Transaction>),
    /// The first message came, or none for two seconds. What the node has published since the connection came about
    /// may be lost: look what the mempool has.
    Begun,
    /// Messages were lost, or not understood: look what the mempool has.
    Gap,
}

/// Why a feed brings nothing more.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FeedError {
    /// Nothing listens at the address, or it is none.
    #[error("cannot subscribe to {address}: {reason}")]
    Connect {
        /// The address.
        address: String,
        /// What is wrong.
        reason: String,
    },
    /// The connection has ended.
    #[error("the node has closed the connection for its notifications")]
    Ended,
}

impl TransactionFeed {
    /// Subscribes at an address such as `tcp://127.0.0.1:28332`.
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

    /// What the node publishes next.
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
                    // The socket would connect again by itself, and hide what was lost meanwhile.
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

    /// Reads a message: the topic, the transaction, and the number of the message in four bytes.
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
