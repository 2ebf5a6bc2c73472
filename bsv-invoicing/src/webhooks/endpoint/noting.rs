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

/// How long the store is left alone when it could not note something.
const PAUSE: Duration = Duration::from_secs(1);
/// After how many events that are not for an endpoint, or after which time, it is noted that they were passed over.
const CURSOR_NOTED_AFTER: u64 = 1000;
const CURSOR_NOTED_LATE: Duration = Duration::from_secs(10);

/// The attempts that were to be noted, and the webhook after that.
pub(super) type Noted = (Vec<AttemptMade>, Result<Webhook, WalletStoreError>);

impl<S: WalletStore, C: WebhookClient, K: WebhookClock> Endpoint<S, C, K> {
    /// Notes all attempts that have ended, in one step, unless others are being noted. Answers when there is
    /// something to note, if time decides that.
    pub(super) fn begin_noting(&mut self) -> Option<Timestamp> {
        if self.is_noting {
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

    /// When it is to be noted that the cursor has moved without an attempt.
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

    /// Goes on after attempts were noted, or could not be. Answers whether the webhook is there.
    pub(super) fn take_noted(&mut self, (attempts, outcome): Noted) -> Result<bool, Error> {
        self.noting = None.into();
        self.is_noting = false;
        self.noting_count = 0;
        match outcome {
            Ok(webhook) => self.go_on(&attempts, webhook).map(|()| true),
            Err(WalletStoreError::Refused(Refusal::UnknownWebhook(_))) => Ok(false),
            Err(error) => {
                tracing::warn!("what was sent to webhook {} cannot be noted: {error}", self.id);
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
        let was_probing = self.is_probing();
        self.set(webhook)?;
        if self.webhook.failures == 0 {
            self.probes = 0;
        } else if let Some(last) = attempts.last() {
            self.probes += u32::from(was_probing);
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
