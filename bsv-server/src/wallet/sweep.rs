use std::sync::Arc;
use std::time::Duration;

use crate::wallet_store::Wallet;
use bsv_invoicing::{Following, Watched};
use bsv_network::FeedAddress;
use tokio::time::sleep;

/// How often it is looked for what time makes due.
const PERIOD: Duration = Duration::from_secs(1);
/// How often it is tried at least what fails.
const LONGEST_PAUSE: Duration = Duration::from_secs(8);

/// How often it is looked whether the node publishes its transactions.
const FEED_PERIOD: Duration = Duration::from_secs(60);

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

/// Watches the node's mempool for what pays the wallet, for as long as it is polled.
pub(crate) async fn watch_mempool(wallet: Arc<Wallet>) {
    if !wallet.has_node() {
        return;
    }
    let mut has_warned = false;
    let mut pause = PERIOD;
    loop {
        match wallet.watch_mempool().await {
            Ok(Watched::UntilEnd) => pause = PERIOD,
            Ok(Watched::Once(address)) => {
                if !has_warned {
                    warn_of_no_feed(&address);
                }
                has_warned = true;
                pause = FEED_PERIOD;
            }
            Err(error) => {
                if pause == PERIOD {
                    tracing::warn!("the node's mempool cannot be watched: {error}");
                }
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        }
        sleep(pause).await;
    }
}

fn warn_of_no_feed(address: &FeedAddress) {
    let why = match address {
        FeedAddress::Elsewhere(address) => format!(
            "the node publishes its transactions at {address}, which only its own machine reaches: \
             have it listen where this machine reaches it, or set wallet.zmq"
        ),
        _ => "the node does not publish its transactions: start it with zmqpubrawtx2".to_owned(),
    };
    tracing::warn!(
        "{why}. Until then, what is paid without a payment message is seen when it is mined"
    );
}
