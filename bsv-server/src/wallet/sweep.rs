use std::sync::Arc;
use std::time::Duration;

use bsv_invoicing::{Following, Wallet};
use tokio::time::sleep;

/// How often it is looked for what time makes due.
const PERIOD: Duration = Duration::from_secs(1);
/// How often it is tried at least what fails.
const LONGEST_PAUSE: Duration = Duration::from_secs(8);

/// Does what time makes due, for as long as it is polled. While the disk fails, it is tried again.
pub(crate) async fn sweep(wallet: Arc<Wallet>) {
    let mut has_failed = false;
    loop {
        match wallet.sweep().await {
            Ok(has_more) => {
                has_failed = false;
                if has_more {
                    continue;
                }
            }
            Err(error) => {
                if !has_failed {
                    tracing::warn!("it cannot be noted that invoices have expired: {error}");
                }
                has_failed = true;
            }
        }
        sleep(PERIOD).await;
    }
}

/// Looks after the wallet's transactions, for as long as it is polled. While the node is away, it is
/// tried again, less and less often.
pub(crate) async fn follow(wallet: Arc<Wallet>) {
    if !wallet.has_node() {
        return;
    }
    let mut following = Following::default();
    let mut pause = PERIOD;
    loop {
        match wallet.follow(&mut following).await {
            Ok(()) => {
                if pause > PERIOD {
                    tracing::info!("the wallet's transactions are looked after again");
                }
                pause = PERIOD;
            }
            Err(error) => {
                if pause == PERIOD {
                    tracing::warn!("the wallet's transactions cannot be looked after: {error}");
                }
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        }
        sleep(pause).await;
    }
}
