//! The loops that keep a wallet alive in a long-running process.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use bsv_network::FeedAddress;
use tokio::sync::watch;
use tokio::time::sleep;

use crate::error::Error;
use crate::ledger::queries::GetWebhookChanges;
use crate::model::process::Task;
use crate::store::WalletStore;
use crate::wallet::Wallet;
use crate::wallet::claims::Held;
use crate::wallet::follow::Following;
use crate::wallet::sources::Sources;
use crate::wallet::watch::{Search, Watched};

/// How often the sweep runs, and how long a loop pauses.
const PERIOD: Duration = Duration::from_secs(1);
/// The longest pause between attempts after failures.
const LONGEST_PAUSE: Duration = Duration::from_secs(8);

/// How often the process that follows the chain looks at what others have changed, at most.
const NOTICING_PERIOD: Duration = Duration::from_millis(100);
/// How often the log tells of work that fails again and again.
const WARNING_PERIOD: Duration = Duration::from_secs(10 * 60);
/// How often the wallet checks whether the node publishes its transactions.
const FEED_PERIOD: Duration = Duration::from_secs(60);
/// How often services are asked for their fees, if they have not told them lately.
const FEE_PERIOD: Duration = Duration::from_secs(60);

impl Wallet {
    /// Keeps the wallet alive until `shutdown` completes: expires invoices, follows transactions,
    /// finds payments that come without a payment message, and sends events to webhooks. Failures
    /// are logged, and the work is tried again.
    ///
    /// A process runs this once for as long as the wallet is open. When it has ended, all its work
    /// has stopped. The next run repeats unfinished work or finds out its outcome.
    pub async fn run(self: Arc<Self>, shutdown: impl Future<Output = ()> + Send) {
        let (stop, stopped) = watch::channel(());
        let stopped = || {
            let mut stopped = stopped.clone();
            async move {
                // This ends when the sender is dropped.
                let _ = stopped.changed().await;
            }
        };
        let shutdown = async {
            shutdown.await;
            drop(stop);
        };
        tokio::join!(
            shutdown,
            self.lead(&stopped),
            // Each process watches for payments to the scripts that it has shown.
            until(stopped(), self.keep_watching_mempool()),
            until(stopped(), self.keep_asking_fees()),
            until(stopped(), self.keep_listening()),
        );
    }

    /// Does what one process does for all that have the wallet open, as soon as no other process
    /// does it.
    async fn lead<F: Future<Output = ()> + Send>(
        self: &Arc<Self>,
        stopped: &(impl Fn() -> F + Sync),
    ) {
        let held = tokio::select! {
            biased;
            () = stopped() => return,
            held = self.claim_following() => held,
            () = self.keep_informed() => return,
        };
        until(stopped(), self.load_scripts_of_others()).await;
        tokio::join!(
            until(stopped(), self.keep_swept()),
            self.keep_following(stopped()),
            self.webhook_sender().run(stopped()),
            until(stopped(), self.keep_noticing_others()),
            until(stopped(), self.read_mempool_of_others()),
        );
        self.let_go(held);
    }

    /// Waits until no other process follows the chain.
    async fn claim_following(self: &Arc<Self>) -> Held {
        let mut failing = Failing::default();
        loop {
            match self.claim(Task::Following).await {
                Ok(Some(held)) => return held,
                Ok(None) => drop(failing.end()),
                Err(error) => failing.warn("it is not known who follows the chain", &error),
            }
            sleep(PERIOD).await;
        }
    }

    /// Takes note of the scripts that other processes have shown until now. The process that followed the
    /// chain before does not list them any more.
    async fn load_scripts_of_others(&self) {
        let mut failing = Failing::default();
        while self.store.changes_by_others().is_some()
            && let Err(error) = self.load_scripts().await
        {
            failing.warn("the scripts to watch cannot be read", &error);
            sleep(PERIOD).await;
        }
    }

    /// Takes note of what other processes change: the webhooks, and the scripts to watch.
    async fn keep_noticing_others(&self) {
        let Some(mut steps) = self.store.changes_by_others() else { return };
        let (mut webhook_changes, mut failing) = (None, Failing::default());
        loop {
            while let Err(error) = self.notice_others(&mut webhook_changes).await {
                failing.warn("what other servers change is not known", &error);
                sleep(PERIOD).await;
            }
            failing.end();
            sleep(NOTICING_PERIOD).await;
            if steps.changed().await.is_err() {
                return;
            }
        }
    }

    /// Finds payments that are in the mempool since a moment when their scripts were known only to a
    /// process that is gone.
    async fn read_mempool_of_others(&self) {
        let mut failing = Failing::default();
        while self.store.changes_by_others().is_some()
            && let Ok(sources) = self.sources()
            && sources.following.reads_blocks()
            && let Err(error) = self.read_mempool(&sources.following, &mut Search::default()).await
        {
            failing.warn("the node's mempool cannot be read", &error);
            sleep(PERIOD).await;
        }
    }

    async fn notice_others(&self, webhook_changes: &mut Option<u64>) -> Result<(), Error> {
        let count = self.store.get(GetWebhookChanges()).await?;
        if webhook_changes.replace(count) != Some(count) {
            self.tell_webhooks_changed();
        }
        self.load_new_scripts().await
    }

    /// Takes note of the node's tip and fee rate while another process follows the chain.
    async fn keep_informed(&self) {
        let mut last = None;
        loop {
            if let Ok(sources) = self.sources()
                && let Err(error) = self.note_tip(&sources.following, &mut last).await
            {
                tracing::debug!("the tip of the chain is not known: {error}");
            }
            sleep(PERIOD).await;
        }
    }

    /// Keeps the fees of services known.
    async fn keep_asking_fees(&self) {
        let Ok(Sources { following: source, .. }) = self.sources() else { return };
        if !source.takes_extended() {
            return;
        }
        loop {
            source.ask_fees().await;
            if let Ok(policy) = source.policy().await {
                self.fee_floor.store(policy.mining_fee_rate, Ordering::Relaxed);
            }
            sleep(FEE_PERIOD).await;
        }
    }

    /// Runs the sweep again and again. While the disk fails, it keeps trying.
    async fn keep_swept(&self) {
        let mut failing = Failing::default();
        loop {
            match self.sweep().await {
                Ok(has_more) => {
                    failing.end();
                    if has_more {
                        continue;
                    }
                }
                Err(error) => failing.warn("the expiry of invoices cannot be recorded", &error),
            }
            sleep(PERIOD).await;
        }
    }

    async fn keep_following(self: &Arc<Self>, shutdown: impl Future<Output = ()> + Send) {
        let mut following = Following::default();
        until(shutdown, self.follow_again_and_again(&mut following)).await;
        following.end().await;
    }

    /// Follows the wallet's transactions. While the node is away, it tries less and less often.
    async fn follow_again_and_again(self: &Arc<Self>, following: &mut Following) {
        if !self.has_source() {
            return;
        }
        let (mut pause, mut failing) = (PERIOD, Failing::default());
        loop {
            match self.follow(following).await {
                Ok(()) => {
                    if failing.end() {
                        tracing::info!("the wallet's transactions are followed again");
                    }
                    pause = PERIOD;
                }
                Err(error) => {
                    failing.warn("the wallet's transactions cannot be followed", &error);
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
            }
            sleep(pause).await;
        }
    }

    /// Watches the node's mempool for payments to the wallet.
    async fn keep_watching_mempool(&self) {
        if !self.sources().is_ok_and(|sources| sources.following.reads_blocks()) {
            return;
        }
        let mut has_warned = false;
        let (mut pause, mut failing) = (PERIOD, Failing::default());
        loop {
            match self.watch_mempool().await {
                Ok(Watched::UntilEnd) => {
                    failing.end();
                    pause = PERIOD;
                }
                Ok(Watched::Once(address)) => {
                    failing.end();
                    if !has_warned {
                        warn_of_no_feed(&address);
                    }
                    has_warned = true;
                    pause = FEED_PERIOD;
                }
                Err(error) => {
                    failing.warn("the node's mempool cannot be watched", &error);
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
            }
            sleep(pause).await;
        }
    }
}

/// Warns while the same work fails again and again: at once, and then from time to time.
#[derive(Default)]
struct Failing {
    warned_at: Option<Instant>,
}

impl Failing {
    /// Takes note of a failure. Returns whether to warn of it.
    fn note(&mut self, now: Instant) -> bool {
        let is_due = self.warned_at.is_none_or(|at| now.duration_since(at) >= WARNING_PERIOD);
        if is_due {
            self.warned_at = Some(now);
        }
        is_due
    }

    /// Warns of a failure, unless it has just done that.
    fn warn(&mut self, what: &str, error: &Error) {
        if self.note(Instant::now()) {
            tracing::warn!("{what}: {error}");
        }
    }

    /// Takes note that the work has succeeded. Returns whether it failed before.
    fn end(&mut self) -> bool {
        self.warned_at.take().is_some()
    }
}

/// Does `work` until `shutdown` completes.
async fn until(shutdown: impl Future<Output = ()>, work: impl Future<Output = ()>) {
    tokio::select! {
        biased;
        () = shutdown => {}
        () = work => {}
    }
}

fn warn_of_no_feed(address: &FeedAddress) {
    let why = match address {
        FeedAddress::Elsewhere(address) => format!(
            "the node publishes its transactions at {address}, which only its own machine reaches: \
             let it publish at an address that this machine reaches, or configure the wallet with \
             such an address"
        ),
        _ => "the node does not publish its transactions: start it with zmqpubrawtx2".to_owned(),
    };
    tracing::warn!(
        "{why}. Until then, the wallet sees payments without a payment message only when they are \
         mined"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_tells_of_repeated_failures_from_time_to_time() {
        let (mut failing, begun) = (Failing::default(), Instant::now());
        let told =
            |failing: &mut Failing, seconds| failing.note(begun + Duration::from_secs(seconds));
        let seconds = (0..3600).filter(|second| told(&mut failing, *second));
        assert_eq!(seconds.collect::<Vec<_>>(), [0, 600, 1200, 1800, 2400, 3000]);
        assert!(failing.end());
        assert!(!failing.end());
        assert!(told(&mut failing, 3601), "a failure after a success is a new one");
    }
}
