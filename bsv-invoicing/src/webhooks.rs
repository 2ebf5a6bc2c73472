//! Webhooks: sending events to endpoints that their owner chooses.
//!
//! The log of events is the outbox. A webhook is a cursor into the log. Events that could not be
//! delivered are sent again on a [`schedule`]. Every event is sent at least once, and first
//! attempts begin in the order of the events. If the process is killed, the events that are under
//! way are sent again: at most 8 for each webhook.

mod client;
mod counts;
mod endpoint;
mod message;
mod outbox;
pub mod schedule;
mod secret;
mod wallet_clock;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::{self, JoinSet};

pub use self::client::{WebhookAnswer, WebhookClient, WebhookClock, WebhookRequest};
pub use self::counts::AttemptCounts;
pub use self::secret::{WebhookSecret, signatures};
pub use self::wallet_clock::WalletClock;

use self::endpoint::Endpoint;
pub(crate) use self::message::Secrets;

use self::message::Message;
use crate::error::Error;
use crate::ledger::Refusal;
use crate::ledger::webhooks::{ForgetDeliveries, GetWebhook, GetWebhooks};
use crate::model::delivery::{Attempt, MAX_ANSWER_KEPT};
use crate::model::event::LogName;
use crate::model::time::Timestamp;
use crate::model::webhook::WebhookId;
use crate::store::{WalletStore, WalletStoreError};
use crate::wallet::Wallet;

/// The pause after the store has failed.
const PAUSE: Duration = Duration::from_secs(1);
/// How often old deliveries are deleted, and how many in one step.
const FORGETTING_PERIOD: Duration = Duration::from_secs(60 * 60);
const FORGOTTEN_AT_ONCE: usize = 1000;

/// Sends the events of a wallet to its webhooks.
#[derive(Debug)]
pub struct WebhookSender<C, K> {
    wallet: Arc<Wallet>,
    client: C,
    clock: K,
}

impl<C: WebhookClient, K: WebhookClock> WebhookSender<C, K> {
    /// For the webhooks of this wallet.
    pub fn new(wallet: Arc<Wallet>, client: C, clock: K) -> Arc<Self> {
        Arc::new(Self { wallet, client, clock })
    }

    /// Sends events until `shutdown` completes, and then stops at once. Each webhook has its own
    /// task, so that none waits for another.
    pub async fn run(self: Arc<Self>, shutdown: impl Future<Output = ()> + Send) {
        let mut tasks = JoinSet::new();
        tokio::select! {
            biased;
            () = shutdown => {}
            () = self.keep_running(&mut tasks) => {}
            () = self.forget_deliveries() => {}
        }
        tasks.shutdown().await;
    }

    /// Makes one attempt to send a test message to a webhook. The attempt is not recorded.
    pub async fn test(&self, id: WebhookId) -> Result<Attempt, Error> {
        let loaded = self.wallet.store().get(GetWebhook(id)).await?;
        let webhook = loaded.ok_or(Refusal::UnknownWebhook(id))?.webhook;
        let secrets = self.wallet.secrets_of(id, &webhook)?;
        let at = self.clock.now();
        let message = Message::test(id, self.log(), self.clock.random(), at);
        let (attempt, _) = self.attempt(message.request(webhook.url, &secrets, at), at).await;
        Ok(attempt)
    }

    /// Makes an attempt that begins now. Returns the attempt, and the wait that the endpoint asks
    /// for.
    async fn attempt(&self, request: WebhookRequest, at: Timestamp) -> (Attempt, Option<Duration>) {
        let WebhookAnswer { outcome, mut answer, retry_after } = self.client.send(request).await;
        self.wallet.webhook_attempts.note(outcome);
        answer.truncate(answer.floor_char_boundary(MAX_ANSWER_KEPT));
        let milliseconds = self.clock.now().as_micros().saturating_sub(at.as_micros()) / 1000;
        let milliseconds = u32::try_from(milliseconds).unwrap_or(u32::MAX);
        (Attempt { at, milliseconds, outcome, answer }, retry_after)
    }

    fn log(&self) -> LogName {
        self.wallet.event_log()
    }

    async fn pause(&self) {
        self.clock.sleep_until(self.clock.now().after(PAUSE)).await;
    }

    /// Runs a task for each webhook.
    async fn keep_running(self: &Arc<Self>, tasks: &mut JoinSet<()>) {
        let mut changes = self.wallet.webhook_changes();
        let mut running = HashMap::new();
        loop {
            changes.mark_unchanged();
            match self.wallet.store().get(GetWebhooks).await {
                Ok(webhooks) => {
                    for (id, _) in webhooks {
                        running
                            .entry(id)
                            .or_insert_with(|| tasks.spawn(Arc::clone(self).keep_sending(id)).id());
                    }
                }
                Err(error) => {
                    tracing::warn!("the webhooks cannot be read: {error}");
                    self.pause().await;
                    continue;
                }
            }
            tokio::select! {
                Ok(()) = changes.changed() => {}
                Some(ended) = tasks.join_next_with_id() => {
                    let ended: task::Id = ended.map_or_else(|error| error.id(), |(id, ())| id);
                    running.retain(|_, task| *task != ended);
                }
            }
        }
    }

    /// Sends events to a webhook until it is deleted. Tries again after failures.
    async fn keep_sending(self: Arc<Self>, id: WebhookId) {
        self.client.prepare().await;
        loop {
            let sent = match Endpoint::load(Arc::clone(&self), id).await {
                Ok(Some(endpoint)) => endpoint.run().await,
                Ok(None) => return,
                Err(error) => Err(error),
            };
            match sent {
                Ok(()) => return,
                Err(error) => {
                    tracing::error!("sending to webhook {id} pauses for a second: {error}");
                }
            }
            self.pause().await;
        }
    }

    /// Deletes old deliveries from time to time.
    async fn forget_deliveries(&self) {
        loop {
            let forget = ForgetDeliveries { now: self.clock.now(), limit: FORGOTTEN_AT_ONCE };
            let next = match self.wallet.store().execute(forget).await {
                Ok(_) => PAUSE,
                Err(WalletStoreError::Refused(_)) => FORGETTING_PERIOD,
                Err(error) => {
                    tracing::warn!("old deliveries cannot be deleted: {error}");
                    FORGETTING_PERIOD
                }
            };
            self.clock.sleep_until(self.clock.now().after(next)).await;
        }
    }
}
