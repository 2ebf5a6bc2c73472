//! A stream with the state of an invoice, which is sent at each change.

use std::mem;
use std::sync::Arc;
use std::time::Duration;

use bsv_invoicing::{Checkout, Error, Wallet};
use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::{Instant, sleep, sleep_until};

use super::state;
use crate::http::Slot;
use crate::http::event_stream::{Blocks, Pace};

/// How long a stream waits before it looks again. Each stream looks after a change of any invoice,
/// and there may be many streams.
const PAUSE: Duration = Duration::from_millis(40);

/// A stream that ends when the state of its invoice is final.
pub(super) struct StateStream {
    wallet: Arc<Wallet>,
    id: String,
    last: watch::Receiver<u64>,
    pace: Pace,
    /// The beginning of the next block.
    block: String,
    /// The state that the reader has.
    told: Option<Checkout>,
    heartbeat_at: Instant,
    _place: (OwnedSemaphorePermit, Slot),
}

impl StateStream {
    pub(super) fn new(wallet: Arc<Wallet>, id: &str, place: (OwnedSemaphorePermit, Slot)) -> Self {
        let pace = Pace::USUAL;
        Self {
            last: wallet.last_event(),
            wallet,
            id: id.to_owned(),
            pace,
            block: pace.retry_block(),
            told: None,
            heartbeat_at: Instant::now() + pace.silence,
            _place: place,
        }
    }

    /// Waits until the invoice may have changed, or the heartbeat is due.
    async fn next_look(&mut self) {
        sleep(PAUSE).await;
        tokio::select! {
            Ok(()) = self.last.changed() => {}
            () = sleep_until(self.heartbeat_at) => {}
        }
    }
}

impl Blocks for StateStream {
    type Error = Error;

    async fn next(&mut self) -> Result<Option<Bytes>, Error> {
        loop {
            if let Some(told) = &self.told {
                if told.is_final() {
                    return Ok(None);
                }
                self.next_look().await;
            }
            self.last.mark_unchanged();
            let checkout = match self.wallet.checkout(&self.id).await {
                Ok(checkout) => checkout,
                Err(Error::UnknownInvoice(_)) => return Ok(None),
                Err(error) => return Err(error),
            };
            if self.told.as_ref() != Some(&checkout) {
                let json = state::to_json(&checkout, self.wallet.expiry_time());
                let json = String::from_utf8_lossy(&json);
                self.block.push_str(&format!("event: state\ndata: {json}\n\n"));
                self.told = Some(checkout);
            } else if Instant::now() >= self.heartbeat_at {
                self.block.push_str(":\n\n");
            }
            if !self.block.is_empty() {
                self.heartbeat_at = Instant::now() + self.pace.silence;
                return Ok(Some(mem::take(&mut self.block).into()));
            }
        }
    }
}
