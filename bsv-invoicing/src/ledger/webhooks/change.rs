use std::time::Duration;

use crate::ledger::rows::{WalletStoreError, WebhookChanges, Webhooks};
use crate::ledger::{Books, Command, Refusal};
use crate::model::time::Timestamp;
use crate::model::webhook::{
    FormerSecret, MAX_SECRET_GRACE, Webhook, WebhookChange, WebhookId, WebhookState,
};

/// Changes a webhook.
#[derive(Clone, Debug)]
pub struct ChangeWebhook {
    /// Which one.
    pub id: WebhookId,
    /// The change.
    pub change: WebhookChange,
}

impl Command for ChangeWebhook {
    type Answer = Webhook;

    fn run(&self, books: &mut Books<'_>) -> Result<Webhook, WalletStoreError> {
        let mut webhook = books.webhook(self.id)?;
        let WebhookChange { url, types, description, in_order, is_enabled } = self.change.clone();
        if let Some(url) = url.filter(|url| *url != webhook.url) {
            webhook.url = url;
            webhook.forget_failures();
        }
        webhook.types = types.unwrap_or(webhook.types);
        webhook.description = description.unwrap_or(webhook.description);
        if let Some(in_order) = in_order.filter(|in_order| *in_order != webhook.in_order) {
            webhook.in_order = in_order;
            webhook.holding = None;
        }
        match is_enabled {
            Some(true) if webhook.state != WebhookState::Enabled => {
                webhook.state = WebhookState::Enabled;
                webhook.forget_failures();
            }
            Some(false) => webhook.state = WebhookState::Disabled,
            Some(true) | None => {}
        }
        books.rows.put::<Webhooks>(self.id, &webhook)?;
        books.count_webhook_change()?;
        Ok(webhook)
    }
}

/// Gives a webhook a new secret. The previous one still signs for a while.
#[derive(Clone, Debug)]
pub struct RotateSecret {
    /// Which one.
    pub id: WebhookId,
    /// The new secret, sealed.
    pub secret: Vec<u8>,
    /// How long the previous secret still signs, at most [`MAX_SECRET_GRACE`].
    pub grace: Duration,
    /// The time.
    pub now: Timestamp,
}

impl Command for RotateSecret {
    type Answer = Webhook;

    fn run(&self, books: &mut Books<'_>) -> Result<Webhook, WalletStoreError> {
        let mut webhook = books.webhook(self.id)?;
        if let Some(former) = webhook.former_secret.take_if(|former| former.until > self.now) {
            return Err(Refusal::TwoSecrets(former.until).into());
        }
        let until = self.now.after(self.grace.min(MAX_SECRET_GRACE));
        let sealed = std::mem::replace(&mut webhook.secret, self.secret.clone());
        webhook.former_secret = (until > self.now).then_some(FormerSecret { sealed, until });
        books.rows.put::<Webhooks>(self.id, &webhook)?;
        books.count_webhook_change()?;
        Ok(webhook)
    }
}

/// Deletes a webhook. [`ForgetDeliveries`](super::ForgetDeliveries) deletes its deliveries.
#[derive(Clone, Copy, Debug)]
pub struct DeleteWebhook {
    /// Which one.
    pub id: WebhookId,
}

impl Command for DeleteWebhook {
    type Answer = ();

    fn run(&self, books: &mut Books<'_>) -> Result<(), WalletStoreError> {
        books.webhook(self.id)?;
        books.count_webhook_change()?;
        books.rows.remove::<Webhooks>(self.id).map(drop)
    }
}

impl Books<'_> {
    /// Counts a change, so that the process that sends to webhooks takes note of it.
    pub(super) fn count_webhook_change(&mut self) -> Result<(), WalletStoreError> {
        let count = self.rows.get::<WebhookChanges>(&())?.unwrap_or_default();
        self.rows.put::<WebhookChanges>((), &count.wrapping_add(1))
    }
}
