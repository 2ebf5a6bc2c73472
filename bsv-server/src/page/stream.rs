//! A stream with the state of an invoice, which is sent at each change.

use std::sync::Arc;
use std::time::Duration;

use bsv_invoicing::{Checkout, Error};
use bytes::Bytes;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, sleep_until};

use super::state;
use crate::http::event_stream::Pace;
use crate::wallet_store::Wallet;

/// How long a stream waits before it looks again. Each stream looks after a change of any invoice,
/// and there may be many streams.
const PAUSE: Duration = Duration::from_millis(40);

/// A stream that ends when the state of its invoice is final.
pub(super) struct StateStream {
    wallet: Arc<Wallet>,
    id: String,
    parts: mpsc::Sender<Option<Bytes>>,
    pace: Pace,
    /// The state that the reader has.
    told: Option<Checkout>,
}

impl StateStream {
    pub(super) fn new(wallet: Arc<Wallet>, id: &str, parts: mpsc::Sender<Option<Bytes>>) -> Self {
        Self { wallet, id: id.to_owned(), parts, pace: Pace::USUAL, told: None }
    }

    /// Sends states until the state is final, `stopped` completes, or the stream has lived long
    /// enough.
    pub(super) async fn run(mut self, stopped: impl Future<Output = ()> + Send) {
        let (parts, pace) = (self.parts.clone(), self.pace);
        crate::http::event_stream::run(parts, pace, stopped, self.send_all()).await;
    }

    async fn send_all(&mut self) -> Result<(), Error> {
        let mut last = self.wallet.last_event();
        let mut block = self.pace.retry_block();
        let mut heartbeat_at = Instant::now() + self.pace.silence;
        loop {
            let Ok(room) = self.parts.reserve().await else {
                return std::future::pending().await;
            };
            last.mark_unchanged();
            let checkout = match self.wallet.checkout(&self.id).await {
                Ok(checkout) => checkout,
                Err(Error::UnknownInvoice(_)) => return Ok(()),
                Err(error) => return Err(error),
            };
            let is_final = checkout.is_final();
            if self.told.as_ref() != Some(&checkout) {
                let json = state::to_json(&checkout, self.wallet.expiry_time());
                let json = String::from_utf8_lossy(&json);
                block.push_str(&format!("event: state\ndata: {json}\n\n"));
                self.told = Some(checkout);
            } else if Instant::now() >= heartbeat_at {
                block.push_str(":\n\n");
            }
            if !block.is_empty() {
                room.send(Some(std::mem::take(&mut block).into()));
                heartbeat_at = Instant::now() + self.pace.silence;
            }
            if is_final {
                return Ok(());
            }
            sleep(PAUSE).await;
            tokio::select! {
                Ok(()) = last.changed() => {}
                () = sleep_until(heartbeat_at) => {}
            }
        }
    }
}
