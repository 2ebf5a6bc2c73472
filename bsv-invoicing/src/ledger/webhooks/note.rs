use std::time::Duration;

use crate::ledger::events::{EventDetails, EventRow};
use crate::ledger::rows::{Deliveries, WalletStoreError, Webhooks};
use crate::ledger::{Books, Command};
use crate::model::delivery::{Attempt, Delivery, DeliveryState};
use crate::model::event::EventKind;
use crate::model::time::Timestamp;
use crate::model::webhook::{Webhook, WebhookId, WebhookState};
use crate::webhooks::schedule::DISABLED_AFTER;

/// Records attempts to send events to a webhook, and the new cursor.
#[derive(Clone, Debug)]
pub struct NoteAttempts {
    /// Which one.
    pub id: WebhookId,
    /// The attempts, in the order in which they ended.
    pub attempts: Vec<AttemptMade>,
    /// The number of the event up to which the webhook is done, these attempts included.
    pub cursor: u64,
    /// The number of the last event up to the cursor that was sent; 0 if there is none.
    pub last_sent: u64,
}

/// An attempt, and what decides when the next one is made.
#[derive(Clone, Debug)]
pub struct AttemptMade {
    /// The number of the event.
    pub number: u64,
    /// The number of the previous event that was sent; 0 if there is none.
    pub previous: u64,
    /// The URL that it was sent to.
    pub url: String,
    /// The attempt.
    pub attempt: Attempt,
    /// How long the endpoint asks to wait (`Retry-After`).
    pub retry_after: Option<Duration>,
    /// A uniformly random number.
    pub random: u32,
}

impl Command for NoteAttempts {
    /// The changed webhook.
    type Answer = Webhook;

    fn run(&self, books: &mut Books<'_>) -> Result<Webhook, WalletStoreError> {
        let mut webhook = books.webhook(self.id)?;
        let before = webhook.state;
        for made in &self.attempts {
            let key = (self.id, made.number);
            let known = books.rows.get::<Deliveries>(&key)?;
            let mut delivery =
                known.clone().unwrap_or_else(|| Delivery::due(made.previous, made.attempt.at));
            delivery.add(&made.attempt, made.retry_after, made.random);
            books.put_delivery(key, known.as_ref(), &delivery)?;
            webhook.hold(made.number, delivery.state);
            // What a former endpoint answers says nothing about this one.
            if made.url == webhook.url {
                webhook.judge(&made.attempt);
            }
        }
        if self.cursor > webhook.cursor {
            (webhook.cursor, webhook.last_sent) = (self.cursor, self.last_sent);
        }
        books.rows.put::<Webhooks>(self.id, &webhook)?;
        if webhook.state != before {
            let now = self.attempts.last().map_or(webhook.created_at, |it| it.attempt.ended_at());
            books.tell_disabled(self.id, &webhook, now)?;
        }
        Ok(webhook)
    }
}

impl Webhook {
    /// Holds later events back while this one is pending, if their order counts.
    fn hold(&mut self, number: u64, state: DeliveryState) {
        let is_pending = state.next_attempt_at().is_some();
        if self.in_order && is_pending {
            self.holding = Some(number);
        } else {
            self.holding.take_if(|holding| *holding == number);
        }
    }

    /// Counts an attempt for or against the endpoint, which may disable the webhook.
    fn judge(&mut self, attempt: &Attempt) {
        let ended_at = attempt.ended_at();
        if attempt.outcome.is_success() {
            self.last_success_at = self.last_success_at.max(Some(ended_at));
            self.forget_failures();
            return;
        }
        self.failures = self.failures.saturating_add(1);
        let since = *self.failing_since.get_or_insert(attempt.at);
        if self.state == WebhookState::Enabled {
            if attempt.outcome.is_gone() {
                self.state = WebhookState::Gone;
            } else if ended_at >= since.after(DISABLED_AFTER) {
                self.state = WebhookState::Disabled;
            }
        }
    }
}

impl Books<'_> {
    /// Writes the event that a webhook was disabled because of its answers.
    fn tell_disabled(
        &mut self,
        id: WebhookId,
        webhook: &Webhook,
        now: Timestamp,
    ) -> Result<(), WalletStoreError> {
        let is_gone = webhook.state == WebhookState::Gone;
        let failing_since = webhook.failing_since.unwrap_or(now);
        let row = EventRow {
            at: self.next_event_at(now),
            kind: EventKind::WebhookDisabled,
            subject: id.to_number(),
            details: EventDetails::Webhook { is_gone, failing_since },
            block: None,
        };
        self.append_row(&row)
    }
}
