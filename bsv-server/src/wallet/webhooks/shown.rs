//! Webhooks and deliveries, in the format for callers.

use bsv_invoicing::ledger::webhooks::ListedDelivery;
use bsv_invoicing::{
    Attempt, AttemptOutcome, LogName, Timestamp, Webhook, WebhookId, WebhookState,
};
use serde::Serialize;

/// A webhook, without its secret.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct WebhookJson<'a> {
    id: String,
    url: &'a str,
    types: &'a str,
    description: &'a str,
    in_order: bool,
    state: &'static str,
    created_at: String,
    cursor: u64,
    behind: u64,
    last_success_at: Option<String>,
    failing_since: Option<String>,
    next_attempt_at: Option<String>,
}

impl<'a> WebhookJson<'a> {
    /// `last` is the number of the last event.
    pub(super) fn new(
        id: WebhookId,
        webhook: &'a Webhook,
        next_attempt_at: Option<Timestamp>,
        last: u64,
    ) -> Self {
        let is_enabled = webhook.state == WebhookState::Enabled;
        Self {
            id: id.to_string(),
            url: &webhook.url,
            types: &webhook.types,
            description: &webhook.description,
            in_order: webhook.in_order,
            state: webhook.state.name(),
            created_at: webhook.created_at.to_string(),
            cursor: webhook.cursor,
            behind: last.saturating_sub(webhook.cursor),
            last_success_at: webhook.last_success_at.map(|at| at.to_string()),
            failing_since: webhook.failing_since.map(|at| at.to_string()),
            next_attempt_at: next_attempt_at.filter(|_| is_enabled).map(|at| at.to_string()),
        }
    }
}

/// A new webhook, with its secret.
#[derive(Serialize)]
pub(super) struct CreatedJson<'a> {
    #[serde(flatten)]
    pub(super) webhook: WebhookJson<'a>,
    pub(super) secret: &'a str,
}

/// A new secret.
#[derive(Serialize)]
pub(super) struct SecretJson<'a> {
    pub(super) secret: &'a str,
}

/// The number of events that are sent again.
#[derive(Serialize)]
pub(super) struct ReplayJson {
    pub(super) count: u64,
}

/// One attempt to send an event.
#[derive(Serialize)]
pub(super) struct AttemptJson<'a> {
    at: String,
    milliseconds: u32,
    status: Option<u16>,
    failure: Option<&'static str>,
    answer: &'a str,
}

impl<'a> AttemptJson<'a> {
    pub(super) fn new(attempt: &'a Attempt) -> Self {
        let failure = match attempt.outcome {
            AttemptOutcome::Answered(_) => None,
            AttemptOutcome::Failed(failure) => Some(failure.name()),
        };
        Self {
            at: attempt.at.to_string(),
            milliseconds: attempt.milliseconds,
            status: attempt.outcome.status(),
            failure,
            answer: &attempt.answer,
        }
    }
}

/// The delivery of an event to a webhook.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct DeliveryJson<'a> {
    number: u64,
    event_id: String,
    r#type: &'static str,
    state: &'static str,
    next_attempt_at: Option<String>,
    attempts: Vec<AttemptJson<'a>>,
}

impl<'a> DeliveryJson<'a> {
    pub(super) fn new(listed: &'a ListedDelivery, log: LogName) -> Self {
        let ListedDelivery { number, kind, delivery } = listed;
        Self {
            number: *number,
            event_id: log.event_id(*number),
            r#type: kind.name(),
            state: delivery.state.name(),
            next_attempt_at: delivery.state.next_attempt_at().map(|at| at.to_string()),
            attempts: delivery.attempts.iter().map(AttemptJson::new).collect(),
        }
    }
}
