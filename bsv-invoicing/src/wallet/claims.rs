//! Work that only one process does at a time, and in it only one task.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::FutureExt;
use sha2::{Digest, Sha256};
use tokio::time::{Instant, sleep};

use crate::error::Error;
use crate::ledger::{Claim, Command, LetGo, LetGoAll};
use crate::model::process::Task;
use crate::store::WalletStore;
use crate::wallet::Wallet;

/// How long a caller waits for another process that makes the same payment.
const PATIENCE: Duration = Duration::from_secs(5);
const PERIOD: Duration = Duration::from_millis(100);
/// How long the wallet pauses before it tries again to let go of a task.
const LETTING_GO_PERIOD: Duration = Duration::from_secs(1);

/// What this process has claimed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Held {
    task: Task,
    number: u64,
}

impl Wallet {
    /// Makes the payment with this name. Waits while the payment is followed in the background, and
    /// for a while if another process makes it. Fails if another caller makes it.
    ///
    /// The work goes on even if the caller stops waiting.
    pub(super) async fn alone<T, W>(
        self: &Arc<Self>,
        name: &str,
        work: impl FnOnce(Arc<Self>) -> W + Send + 'static,
    ) -> Result<T, Error>
    where
        T: Send + 'static,
        W: Future<Output = Result<T, Error>> + Send + 'static,
    {
        let place = self.paying.place(name).await?;
        let (wallet, task) = (Arc::clone(self), task_of(name));
        in_background(async move {
            let _place = place;
            let held = wallet.claim_in_time(task).await?;
            let done = AssertUnwindSafe(work(Arc::clone(&wallet))).catch_unwind().await;
            wallet.let_go(held);
            done.unwrap_or_else(|_| Err(interrupted()))
        })
        .await
    }

    /// Makes the payment with this name in the background, unless somebody makes it already.
    pub(super) async fn alone_if_free<T>(
        self: &Arc<Self>,
        name: &str,
        work: impl Future<Output = Result<T, Error>>,
    ) -> Result<Option<T>, Error> {
        let Ok(_place) = self.paying.begin(name, false) else { return Ok(None) };
        let Some(held) = self.claim(task_of(name)).await? else { return Ok(None) };
        let done = work.await;
        self.let_go(held);
        done.map(Some)
    }

    /// Claims a task for this process, unless another process has it.
    pub(super) async fn claim(self: &Arc<Self>, task: Task) -> Result<Option<Held>, Error> {
        let number = self.next_claim();
        let claimed = self.store.execute(Claim { task, number }).await;
        // It may be claimed although the answer was lost.
        let is_ours = claimed.inspect_err(|_| self.let_go(Held { task, number }))?;
        Ok(is_ours.then_some(Held { task, number }))
    }

    async fn claim_in_time(self: &Arc<Self>, task: Task) -> Result<Held, Error> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(held) = self.claim(task).await? {
                return Ok(held);
            }
            if Instant::now() >= deadline {
                return Err(Error::PaymentRunning);
            }
            sleep(PERIOD).await;
        }
    }

    /// The number of the next claim.
    pub(super) fn next_claim(&self) -> u64 {
        self.claims.fetch_add(1, Ordering::Relaxed)
    }

    /// What this process has claimed with the command that offers a payment.
    pub(super) fn offering(&self, transaction: u64, claim: u64) -> Held {
        Held { task: Task::Offering(transaction), number: claim }
    }

    /// Lets go of a task in the background.
    pub(super) fn let_go(self: &Arc<Self>, Held { task, number }: Held) {
        self.until_done(LetGo { task, number });
    }

    /// Lets go in the background of everything that is claimed or reserved under a number.
    pub(super) fn let_go_all(self: &Arc<Self>, number: u64) {
        self.until_done(LetGoAll { number });
    }

    /// Runs a command in the background. While the store fails, this tries again.
    fn until_done(self: &Arc<Self>, command: impl Command<Answer = ()> + Copy) {
        let wallet = Arc::downgrade(self);
        tokio::spawn(async move {
            while let Some(wallet) = wallet.upgrade()
                && wallet.store.execute(command).await.is_err()
            {
                drop(wallet);
                sleep(LETTING_GO_PERIOD).await;
            }
        });
    }
}

/// Does work that goes on even if the caller stops waiting.
pub(super) async fn in_background<T: Send + 'static>(
    work: impl Future<Output = Result<T, Error>> + Send + 'static,
) -> Result<T, Error> {
    tokio::spawn(work).await.unwrap_or_else(|_| Err(interrupted()))
}

fn task_of(name: &str) -> Task {
    Task::Paying(Sha256::digest(name).into())
}

fn interrupted() -> Error {
    Error::OutcomeUnknown("the payment was interrupted".to_owned())
}
