use std::sync::Arc;
use std::time::Duration;

use crate::error::Error;
use crate::ledger::Refusal;
use crate::ledger::webhooks::GetWebhook;
use crate::model::delivery::{Attempt, MAX_ANSWER_KEPT};
use crate::model::event::{EventKind, LogName};
use crate::model::time::Timestamp;
use crate::model::webhook::WebhookId;
use crate::store::WalletStore;
use crate::wallet::Wallet;
use crate::webhooks::client::{WebhookAnswer, WebhookClient, WebhookClock, WebhookRequest};
use crate::webhooks::message::Message;

/// The pause after the store has failed.
pub(super) const PAUSE: Duration = Duration::from_secs(1);

/// Sends the events of a wallet to its webhooks.
#[derive(Debug)]
pub struct WebhookSender<C, K> {
    pub(super) wallet: Arc<Wallet>,
    pub(super) client: C,
    pub(super) clock: K,
}

impl<C: WebhookClient, K: WebhookClock> WebhookSender<C, K> {
    /// For the webhooks of this wallet.
    pub fn new(wallet: Arc<Wallet>, client: C, clock: K) -> Arc<Self> {
        Arc::new(Self { wallet, client, clock })
    }

    /// Makes one attempt to send a test message to a webhook, or a sample event of a kind. The
    /// attempt is not recorded.
    pub async fn test(&self, id: WebhookId, sample: Option<EventKind>) -> Result<Attempt, Error> {
        let loaded = self.wallet.store().get(GetWebhook(id)).await?;
        let webhook = loaded.ok_or(Refusal::UnknownWebhook(id))?.webhook;
        let secrets = self.wallet.secrets_of(id, &webhook)?;
        let (at, random) = (self.clock.now(), self.clock.random());
        let message = match sample {
            Some(kind) => Message::sample(kind, random, at),
            None => Message::test(id, self.log(), random, at),
        };
        let (attempt, _) = self.attempt(message.request(webhook.url, &secrets, at), at).await;
        Ok(attempt)
    }

    /// Makes an attempt that begins now. Returns the attempt, and the wait that the endpoint asks
    /// for.
    pub(super) async fn attempt(
        &self,
        request: WebhookRequest,
        at: Timestamp,
    ) -> (Attempt, Option<Duration>) {
        let WebhookAnswer { outcome, mut answer, retry_after } = self.client.send(request).await;
        self.wallet.webhook_attempts.note(outcome);
        answer.truncate(answer.floor_char_boundary(MAX_ANSWER_KEPT));
        let milliseconds = self.clock.now().as_micros().saturating_sub(at.as_micros()) / 1000;
        let milliseconds = u32::try_from(milliseconds).unwrap_or(u32::MAX);
        (Attempt { at, milliseconds, outcome, answer }, retry_after)
    }

    pub(super) fn log(&self) -> LogName {
        self.wallet.event_log()
    }

    pub(super) async fn pause(&self) {
        self.clock.sleep_until(self.clock.now().after(PAUSE)).await;
    }
}
