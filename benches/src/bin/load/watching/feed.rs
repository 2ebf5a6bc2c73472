//! Publishes transactions as a node publishes those of its mempool (ZMQ `rawtx2`), on a thread of
//! this process.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use bsv_tx::Transaction;
use bytes::Bytes;
use tokio::sync::{mpsc, oneshot};
use tokio::time::interval;
use zeromq::{PubSocket, Socket, SocketSend, ZmqMessage};

use super::traffic::foreign;

/// How often a stranger's transaction is published: 500 times per second.
const PACE: Duration = Duration::from_millis(2);
/// How many different transactions of strangers there are. They are published again and again.
const DIFFERENT: u64 = 1000;

pub(super) struct Feed {
    pub(super) address: String,
    flow: Arc<Flow>,
    payments: mpsc::UnboundedSender<Payment>,
}

/// Whether transactions of strangers are published, and how many were.
#[derive(Default)]
struct Flow {
    is_on: AtomicBool,
    published: AtomicU32,
}

/// A transaction to publish, and a channel for the time at which it is published.
type Payment = (Bytes, oneshot::Sender<Instant>);

impl Feed {
    /// Begins to listen. Publishes nothing yet.
    pub(super) fn start() -> Self {
        let flow = Arc::new(Flow::default());
        let (payments, to_publish) = mpsc::unbounded_channel();
        let (bound, address) = std::sync::mpsc::channel();
        let its_flow = Arc::clone(&flow);
        thread::spawn(move || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let mut socket = PubSocket::new();
                bound.send(socket.bind("tcp://127.0.0.1:0").await.unwrap().to_string()).unwrap();
                Publisher { socket, number: 0 }.publish_all(&its_flow, to_publish).await;
            });
        });
        Self { address: address.recv().unwrap(), flow, payments }
    }

    /// Switches the transactions of strangers on or off.
    pub(super) fn flow(&self, is_on: bool) {
        self.flow.is_on.store(is_on, Ordering::Relaxed);
    }

    /// How many transactions of strangers were published in all.
    pub(super) fn published(&self) -> u32 {
        self.flow.published.load(Ordering::Relaxed)
    }

    /// Publishes this transaction, and answers when.
    pub(super) async fn publish(&self, transaction: &Transaction) -> Instant {
        let (told, published_at) = oneshot::channel();
        self.payments.send((transaction.to_bytes().into(), told)).unwrap();
        published_at.await.unwrap()
    }
}

struct Publisher {
    socket: PubSocket,
    /// The number of the next message.
    number: u32,
}

impl Publisher {
    /// Publishes payments, and transactions of strangers while they are on, until the [`Feed`] is
    /// dropped.
    async fn publish_all(mut self, flow: &Flow, mut payments: mpsc::UnboundedReceiver<Payment>) {
        let strangers = (0..DIFFERENT).map(|number| Bytes::from(foreign(number).to_bytes()));
        let mut strangers = strangers.collect::<Vec<_>>().into_iter().cycle();
        let mut pace = interval(PACE);
        loop {
            tokio::select! {
                _ = pace.tick() => {
                    if flow.is_on.load(Ordering::Relaxed) {
                        self.publish(strangers.next().unwrap()).await;
                        flow.published.fetch_add(1, Ordering::Relaxed);
                    }
                }
                payment = payments.recv() => {
                    let Some((transaction, told)) = payment else { return };
                    let _ = told.send(Instant::now());
                    self.publish(transaction).await;
                }
            }
        }
    }

    async fn publish(&mut self, transaction: Bytes) {
        let number = Bytes::copy_from_slice(&self.number.to_le_bytes());
        self.number = self.number.wrapping_add(1);
        let frames = vec![Bytes::from_static(b"rawtx2"), transaction, number];
        self.socket.send(ZmqMessage::try_from(frames).unwrap()).await.unwrap();
    }
}
