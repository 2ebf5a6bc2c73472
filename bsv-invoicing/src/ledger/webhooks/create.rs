use crate::ledger::rows::{WalletStoreError, Webhooks};
use crate::ledger::{Books, Command, Refusal};
use crate::model::time::Timestamp;
use crate::model::webhook::{MAX_WEBHOOKS, Webhook, WebhookDraft, WebhookId, WebhookState};

/// Creates a webhook.
#[derive(Clone, Debug)]
pub struct CreateWebhook {
    /// Its id. No other webhook may have it.
    pub id: WebhookId,
    /// What the owner asks for.
    pub draft: WebhookDraft,
    /// The secret, sealed.
    pub secret: Vec<u8>,
    /// The time.
    pub now: Timestamp,
}

impl Command for CreateWebhook {
    type Answer = Webhook;

    fn run(&self, books: &mut Books<'_>) -> Result<Webhook, WalletStoreError> {
        let webhooks = books.rows.range::<Webhooks>(..)?;
        if webhooks.len() >= MAX_WEBHOOKS {
            return Err(Refusal::TooManyWebhooks(MAX_WEBHOOKS).into());
        }
        if webhooks.iter().any(|(id, _)| *id == self.id) {
            return Err(Refusal::WebhookIdTaken(self.id).into());
        }
        let last = books.figures.last_event;
        let WebhookDraft { url, types, description, in_order, after } = self.draft.clone();
        let cursor = after.unwrap_or(last);
        if cursor > last {
            return Err(Refusal::CursorAhead { after: cursor, last }.into());
        }
        let webhook = Webhook {
            url,
            types,
            description,
            in_order,
            state: WebhookState::Enabled,
            created_at: self.now,
            cursor,
            last_sent: 0,
            holding: None,
            secret: self.secret.clone(),
            former_secret: None,
            last_success_at: None,
            failing_since: None,
            failures: 0,
        };
        books.rows.put::<Webhooks>(self.id, &webhook)?;
        books.count_webhook_change()?;
        Ok(webhook)
    }
}
