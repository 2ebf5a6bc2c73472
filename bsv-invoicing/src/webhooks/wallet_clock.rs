use std::sync::Arc;
use std::time::Duration;

use crate::model::time::Timestamp;
use crate::wallet::Wallet;
use crate::webhooks::client::WebhookClock;

/// The longest sleep before the time is read again, because the system's clock may be changed.
const LONGEST_SLEEP: Duration = Duration::from_secs(60);

/// The wallet's clock for webhooks.
#[derive(Debug)]
pub struct WalletClock(pub Arc<Wallet>);

impl WebhookClock for WalletClock {
    fn now(&self) -> Timestamp {
        self.0.now()
    }

    async fn sleep_until(&self, at: Timestamp) {
        loop {
            let left = at.as_micros().saturating_sub(self.now().as_micros());
            if left == 0 {
                return;
            }
            // Timers count milliseconds.
            let left = Duration::from_micros(left) + Duration::from_millis(1);
            tokio::time::sleep(left.min(LONGEST_SLEEP)).await;
        }
    }

    fn random(&self) -> u32 {
        let mut bytes = [0; 4];
        match getrandom::fill(&mut bytes) {
            Ok(()) => u32::from_le_bytes(bytes),
            // The middle value gives the waits of the schedule.
            Err(_) => u32::MAX / 2,
        }
    }
}
