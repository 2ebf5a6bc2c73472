//! Making and changing webhooks. [`WebhookSender`](crate::webhooks::WebhookSender) sends events to
//! them.

use std::sync::Arc;
use std::time::Duration;

use bsv_tx::KeyError;
use tokio::sync::watch;

use crate::error::Error;
use crate::ledger::Refusal;
use crate::ledger::webhooks::{
    ChangeWebhook, CreateWebhook, DeleteWebhook, GetDeliveries, GetLags, GetWebhook, GetWebhooks,
    Lag, ListedDelivery, LoadedWebhook, Redeliver, Replay, RotateSecret, filter_of,
};
use crate::model::delivery::Attempt;
use crate::model::event::{EventFilter, EventKind};
use crate::model::fields::{BodyError, FieldErrors};
use crate::model::invoice::MAX_DESCRIPTION_LEN;
use crate::model::webhook::{ReplayDraft, Webhook, WebhookChange, WebhookDraft, WebhookId};
use crate::store::{WalletStore, WalletStoreError};
use crate::wallet::Wallet;
use crate::wallet::outbound::{HttpWebhooks, check_webhook_url};
use crate::webhooks::{AttemptCounts, Secrets, WalletClock, WebhookSecret, WebhookSender};

/// The longest list of types of a webhook, in bytes.
const MAX_TYPES_LEN: usize = 2048;
/// How many events are looked at in one step of a replay.
const REPLAYED_AT_ONCE: usize = 1000;

impl Wallet {
    /// The sender of this wallet's events. It sends while it runs.
    pub(crate) fn webhook_sender(
        self: &Arc<Self>,
    ) -> Arc<WebhookSender<Arc<HttpWebhooks>, WalletClock>> {
        let client = Arc::clone(&self.webhook_client);
        WebhookSender::new(Arc::clone(self), client, WalletClock(Arc::clone(self)))
    }

    /// Makes one attempt to send a test message to a webhook, or a sample event of a kind. The
    /// attempt is not recorded.
    pub async fn test_webhook(
        self: &Arc<Self>,
        id: WebhookId,
        sample: Option<EventKind>,
    ) -> Result<Attempt, Error> {
        self.webhook_sender().test(id, sample).await
    }

    /// Counts of the attempts to send to webhooks, by outcome.
    pub fn webhook_attempts(&self) -> &AttemptCounts {
        &self.webhook_attempts
    }

    /// Creates a webhook. Also returns its secret, which is shown only this once.
    pub async fn create_webhook(
        &self,
        draft: WebhookDraft,
    ) -> Result<(WebhookId, Webhook, WebhookSecret), Error> {
        let WebhookDraft { url, types, description, .. } = &draft;
        self.check_webhook(Some(url), Some(types), Some(description))?;
        let id = WebhookId::random().map_err(KeyError::NoRandomness)?;
        let (secret, sealed) = self.new_secret(id)?;
        let create = CreateWebhook { id, draft, secret: sealed, now: self.now() };
        let webhook = self.store.execute(create).await?;
        self.tell_webhooks_changed();
        Ok((id, webhook, secret))
    }

    /// All webhooks, in the order of their creation.
    pub async fn webhooks(&self) -> Result<Vec<(WebhookId, LoadedWebhook)>, Error> {
        let mut webhooks = Vec::new();
        for (id, _) in self.store.get(GetWebhooks).await? {
            // A webhook that was deleted meanwhile is left out.
            webhooks.extend(self.store.get(GetWebhook(id)).await?.map(|loaded| (id, loaded)));
        }
        Ok(webhooks)
    }

    /// How far each webhook is behind.
    pub async fn webhook_lags(&self) -> Result<Vec<Lag>, Error> {
        Ok(self.store.get(GetLags).await?)
    }

    /// A webhook.
    pub async fn webhook(&self, id: WebhookId) -> Result<LoadedWebhook, Error> {
        let loaded = self.store.get(GetWebhook(id)).await?;
        loaded.ok_or_else(|| Error::UnknownWebhook(id.to_string()))
    }

    /// Changes a webhook. Attempts that are under way at that moment do not change.
    pub async fn change_webhook(
        &self,
        id: WebhookId,
        change: WebhookChange,
    ) -> Result<Webhook, Error> {
        let WebhookChange { url, types, description, .. } = &change;
        self.check_webhook(url.as_deref(), types.as_deref(), description.as_deref())?;
        let webhook = self.store.execute(ChangeWebhook { id, change }).await?;
        self.tell_webhooks_changed();
        Ok(webhook)
    }

    /// Gives a webhook a new secret, which is shown only this once. The previous one still signs
    /// for `grace`, at most [`MAX_SECRET_GRACE`](crate::webhooks::MAX_SECRET_GRACE). Fails while an earlier
    /// previous secret still signs.
    pub async fn rotate_webhook_secret(
        &self,
        id: WebhookId,
        grace: Duration,
    ) -> Result<WebhookSecret, Error> {
        let (secret, sealed) = self.new_secret(id)?;
        let rotate = RotateSecret { id, secret: sealed, grace, now: self.now() };
        self.store.execute(rotate).await?;
        self.tell_webhooks_changed();
        Ok(secret)
    }

    /// Deletes a webhook.
    pub async fn delete_webhook(&self, id: WebhookId) -> Result<(), Error> {
        self.store.execute(DeleteWebhook { id }).await?;
        self.tell_webhooks_changed();
        Ok(())
    }

    /// The delivery of an event to a webhook.
    pub async fn delivery(&self, id: WebhookId, number: u64) -> Result<ListedDelivery, Error> {
        self.webhook(id).await?;
        let after = number.saturating_sub(1);
        let query = GetDeliveries { id, state: None, after, limit: 1 };
        let (found, _) = self.store.get(query).await?;
        let found = found.into_iter().find(|delivery| delivery.number == number);
        Ok(found.ok_or(Refusal::UnknownDelivery { id, number })?)
    }

    /// Deliveries to a webhook in the order of their events, and the number of the event after
    /// which there may be more.
    pub async fn deliveries(
        &self,
        query: GetDeliveries,
    ) -> Result<(Vec<ListedDelivery>, Option<u64>), Error> {
        self.webhook(query.id).await?;
        Ok(self.store.list(query).await?)
    }

    /// Sends an event to a webhook again.
    pub async fn redeliver(&self, id: WebhookId, number: u64) -> Result<(), Error> {
        self.store.execute(Redeliver { id, number, now: self.now() }).await?;
        self.tell_webhooks_changed();
        Ok(())
    }

    /// Sends events to a webhook again. Returns how many.
    pub async fn replay(&self, id: WebhookId, draft: ReplayDraft) -> Result<u64, Error> {
        let ReplayDraft { mut after, until, only_failed } = draft;
        let (now, limit) = (self.now(), REPLAYED_AT_ONCE);
        let mut count = 0;
        loop {
            let replay = Replay { id, after, until, only_failed, limit, now };
            let replayed = self.store.execute(replay).await?;
            count += replayed.count as u64;
            self.tell_webhooks_changed();
            match replayed.next {
                Some(next) => after = next,
                None => return Ok(count),
            }
        }
    }

    /// Checks the owner's values. The error names all invalid ones at once.
    fn check_webhook(
        &self,
        url: Option<&str>,
        types: Option<&str>,
        description: Option<&str>,
    ) -> Result<(), BodyError> {
        let settings = &self.settings;
        let mut errors = FieldErrors::default();
        if let Some(Err(reason)) = url.map(|url| check_webhook_url(url, settings)) {
            errors.add("url", reason);
        }
        if let Some(types) = types {
            match types.parse::<EventFilter>() {
                _ if types.len() > MAX_TYPES_LEN => {
                    errors.add("types", format!("must have at most {MAX_TYPES_LEN} bytes"));
                }
                Err(error) => errors.add("types", error.to_string()),
                Ok(_) => {}
            }
        }
        if let Some(description) = description {
            errors.check_len("description", description, MAX_DESCRIPTION_LEN);
        }
        errors.into_result()
    }

    /// A number that changes whenever the webhooks change.
    pub(crate) fn webhook_changes(&self) -> watch::Receiver<u64> {
        self.webhook_changes.subscribe()
    }

    pub(super) fn tell_webhooks_changed(&self) {
        self.webhook_changes.send_modify(|count| *count += 1);
    }

    /// Which events are sent to a webhook.
    pub(crate) fn filter_of(&self, webhook: &Webhook) -> Result<EventFilter, Error> {
        Ok(filter_of(webhook).map_err(WalletStoreError::from)?)
    }

    /// The secrets of a webhook.
    pub(crate) fn secrets_of(&self, id: WebhookId, webhook: &Webhook) -> Result<Secrets, Error> {
        let open = |sealed: &[u8]| {
            let opened = self.keystore.open_sealed(&sealed_for(id), sealed);
            let secret = opened.and_then(|bytes| WebhookSecret::from_bytes(&bytes));
            secret.ok_or_else(|| Error::BadWebhookSecret(id.to_string()))
        };
        let former = webhook.former_secret.as_ref();
        let former = former.map(|former| Ok::<_, Error>((open(&former.sealed)?, former.until)));
        Ok(Secrets { current: open(&webhook.secret)?, former: former.transpose()? })
    }

    /// A new secret, plain and sealed.
    fn new_secret(&self, id: WebhookId) -> Result<(WebhookSecret, Vec<u8>), Error> {
        let secret = WebhookSecret::random().map_err(KeyError::NoRandomness)?;
        let sealed = self.keystore.seal(&sealed_for(id), secret.as_bytes())?;
        Ok((secret, sealed))
    }
}

/// The name that a sealed secret is bound to.
fn sealed_for(id: WebhookId) -> String {
    format!("webhook {id}")
}
