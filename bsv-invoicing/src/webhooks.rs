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
mod sample;
pub mod schedule;
mod secret;
mod sender;
mod wallet_clock;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::{self, JoinSet};

pub use self::client::{WebhookAnswer, WebhookClient, WebhookClock, WebhookRequest};
pub use self::counts::AttemptCounts;
pub use self::secret::{WebhookSecret, signatures};
pub use self::sender::WebhookSender;
pub use self::wallet_clock::WalletClock;

pub use crate::model::delivery::{
    Attempt, AttemptFailure, AttemptOutcome, DELIVERIES_KEPT, Delivery, DeliveryState,
    MAX_ANSWER_KEPT, MAX_ATTEMPTS_KEPT,
};
pub use crate::model::webhook::{
    FormerSecret, MAX_SECRET_GRACE, MAX_WEBHOOKS, ReplayDraft, SecretDraft, TestDraft, Webhook,
    WebhookChange, WebhookDraft, WebhookId, WebhookIdParseError, WebhookState,
};
pub use crate::wallet::outbound::{HttpWebhooks, OwnListeners};

use self::endpoint::Endpoint;
pub(crate) use self::message::Secrets;

use self::sender::PAUSE;
use crate::ledger::webhooks::{ForgetDeliveries, GetWebhooks};
use crate::store::{WalletStore, WalletStoreError};

/// How often old deliveries are deleted, and how many in one step.
const FORGETTING_PERIOD: Duration = Duration::from_secs(60 * 60);
const FORGOTTEN_AT_ONCE: usize = 1000;

impl<C: WebhookClient, K: WebhookClock> WebhookSender<C, K> {
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
