use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;

use super::{Endpoint, FAILURES_BEFORE_PROBING};
use crate::error::Error;
use crate::ledger::Refusal;
use crate::ledger::webhooks::{AttemptMade, NoteAttempts};
use crate::model::time::Timestamp;
use crate::model::webhook::Webhook;
use crate::store::{WalletStore, WalletStoreError};
use crate::webhooks::client::{WebhookClient, WebhookClock};
use crate::webhooks::schedule::probe_wait;

/// The pause after the store could not record something.
const PAUSE: Duration = Duration::from_secs(1);
/// A cursor that has moved past events which are not for the endpoint is stored after this many
/// events, or after this time.
const CURSOR_NOTED_AFTER: u64 = 1000;
const CURSOR_NOTED_LATE: Duration = Duration::from_secs(10);

/// The attempts to record, and the webhook after that or the error.
pub(super) type Noted = (Vec<AttemptMade>, Result<Webhook, WalletStoreError>);

impl<C: WebhookClient, K: WebhookClock> Endpoint<C, K> {
    /// Starts to record all attempts that have ended, in one step, unless others are being
    /// recorded or may end at any moment. Returns when something must be recorded, if that depends on time.
    pub(super) fn begin_noting(&mut self) -> Option<Timestamp> {
        if self.is_noting || self.is_gathering() {
            return None;
        }
        let now = self.sender.clock.now();
        let note_at = match self.ended.is_empty() {
            false => self.note_after,
            true => self.cursor_due(now)?.max(self.note_after),
        };
        if now < note_at {
            return Some(note_at);
        }
        self.cursor_behind_since = None;
        let attempts = std::mem::take(&mut self.ended);
        for made in &attempts {
            self.outbox.close(made.number);
        }
        let (cursor, last_sent) = self.outbox.cursor();
        let note = NoteAttempts { id: self.id, attempts: attempts.clone(), cursor, last_sent };
        let wallet = Arc::clone(&self.sender.wallet);
        self.noting_count = attempts.len();
        self.is_noting = true;
        let noting = async move { (attempts, wallet.store().execute(note).await) };
        self.noting = Some(noting.boxed()).into();
        None
    }

    /// When to store a cursor that has moved without an attempt.
    fn cursor_due(&mut self, now: Timestamp) -> Option<Timestamp> {
        let behind = self.outbox.cursor().0.saturating_sub(self.webhook.cursor);
        match behind {
            0 => {
                self.cursor_behind_since = None;
                None
            }
            CURSOR_NOTED_AFTER.. => Some(now),
            _ => Some(self.cursor_behind_since.get_or_insert(now).after(CURSOR_NOTED_LATE)),
        }
    }

    /// Continues after attempts were recorded, or could not be. Returns whether the webhook still
    /// exists.
    pub(super) fn take_noted(&mut self, (attempts, outcome): Noted) -> Result<bool, Error> {
        self.noting = None.into();
        self.is_noting = false;
        self.noting_count = 0;
        match outcome {
            Ok(webhook) => self.go_on(&attempts, webhook).map(|()| true),
            Err(WalletStoreError::Refused(Refusal::UnknownWebhook(_))) => Ok(false),
            Err(error) => {
                tracing::warn!("deliveries to webhook {} cannot be recorded: {error}", self.id);
                self.ended.splice(0..0, attempts);
                self.note_after = self.sender.clock.now().after(PAUSE);
                Ok(true)
            }
        }
    }

    fn go_on(&mut self, attempts: &[AttemptMade], webhook: Webhook) -> Result<(), Error> {
        for made in attempts {
            self.retries.close(made.number);
        }
        self.set(webhook)?;
        if self.webhook.failures == 0 {
            self.probes = 0;
        } else if let Some(last) = attempts.last() {
            self.probes += u32::from(self.is_probe);
            if self.webhook.failures >= FAILURES_BEFORE_PROBING {
                self.left_alone_until = last.attempt.ended_at().after(probe_wait(self.probes));
            }
        }
        if attempts.iter().any(|made| !made.attempt.outcome.is_success()) {
            self.retries.forget_page();
        }
        Ok(())
    }
}
