use std::sync::Arc;
use std::time::Duration;

use bsv_invoicing::Wallet;
use tokio::time::sleep;

/// How often it is looked for what time makes due.
const PERIOD: Duration = Duration::from_secs(1);

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
