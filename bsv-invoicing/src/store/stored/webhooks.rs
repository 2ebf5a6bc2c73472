//! The format of webhooks and their deliveries in their tables.

use super::Stored;
use crate::ledger::rows::Damaged;
use crate::model::delivery::{Attempt, AttemptFailure, AttemptOutcome, Delivery, DeliveryState};
use crate::model::time::Timestamp;
use crate::model::webhook::{FormerSecret, Webhook, WebhookState};

/// The owner's part: URL, types, description, whether events come in order, state, and time of
/// creation. The progress: cursor, last event sent, and the event that others wait for. The
/// secrets: the sealed secret, and the former one with the time until which it signs. The health:
/// the last success, the time since when attempts fail, and the number of failures in a row.
pub(super) type WebhookStored = (
    (&'static str, &'static str, &'static str, bool, u8, u64),
    (u64, u64, Option<u64>),
    (&'static [u8], Option<(&'static [u8], u64)>),
    (Option<u64>, Option<u64>, u32),
);

const ENABLED: u8 = 1;
const DISABLED: u8 = 2;
const GONE: u8 = 3;

pub(super) fn stored(row: &Webhook) -> Stored<'_, WebhookStored> {
    let state = match row.state {
        WebhookState::Enabled => ENABLED,
        WebhookState::Disabled => DISABLED,
        WebhookState::Gone => GONE,
    };
    let former = row.former_secret.as_ref();
    (
        (&row.url, &row.types, &row.description, row.in_order, state, row.created_at.as_micros()),
        (row.cursor, row.last_sent, row.holding),
        (&row.secret, former.map(|former| (former.sealed.as_slice(), former.until.as_micros()))),
        (
            row.last_success_at.map(Timestamp::as_micros),
            row.failing_since.map(Timestamp::as_micros),
            row.failures,
        ),
    )
}

pub(super) fn read(row: Stored<'_, WebhookStored>) -> Result<Webhook, Damaged> {
    let (
        (url, types, description, in_order, state, created_at),
        (cursor, last_sent, holding),
        (secret, former_secret),
        (last_success_at, failing_since, failures),
    ) = row;
    Ok(Webhook {
        url: url.to_owned(),
        types: types.to_owned(),
        description: description.to_owned(),
        in_order,
        state: match state {
            ENABLED => WebhookState::Enabled,
            DISABLED => WebhookState::Disabled,
            GONE => WebhookState::Gone,
            _ => return Err(Damaged("a webhook in an unknown state".to_owned())),
        },
        created_at: Timestamp::from_micros(created_at),
        cursor,
        last_sent,
        holding,
        secret: secret.to_vec(),
        former_secret: former_secret.map(|(sealed, until)| FormerSecret {
            sealed: sealed.to_vec(),
            until: Timestamp::from_micros(until),
        }),
        last_success_at: last_success_at.map(Timestamp::from_micros),
        failing_since: failing_since.map(Timestamp::from_micros),
        failures,
    })
}

/// The previous event, state, time of the next attempt, number of tries, and the attempts: time,
/// milliseconds, failure (0 stands for none), status and answer.
pub(super) type DeliveryStored = (u64, u8, u64, u32, Vec<(u64, u32, u8, u16, &'static str)>);

const PENDING: u8 = 1;
const DELIVERED: u8 = 2;
const FAILED: u8 = 3;

pub(super) fn stored_delivery(row: &Delivery) -> Stored<'_, DeliveryStored> {
    let (state, next_attempt_at) = match row.state {
        DeliveryState::Pending { next_attempt_at } => (PENDING, next_attempt_at.as_micros()),
        DeliveryState::Delivered => (DELIVERED, 0),
        DeliveryState::Failed => (FAILED, 0),
    };
    let attempts = row.attempts.iter().map(|Attempt { at, milliseconds, outcome, answer }| {
        let (failure, status) = match *outcome {
            AttemptOutcome::Answered(status) => (0, status),
            AttemptOutcome::Failed(failure) => (failure as u8, 0),
        };
        (at.as_micros(), *milliseconds, failure, status, answer.as_str())
    });
    (row.previous, state, next_attempt_at, row.tries, attempts.collect())
}

pub(super) fn read_delivery(row: Stored<'_, DeliveryStored>) -> Result<Delivery, Damaged> {
    let (previous, state, next_attempt_at, tries, attempts) = row;
    let state = match state {
        PENDING => {
            DeliveryState::Pending { next_attempt_at: Timestamp::from_micros(next_attempt_at) }
        }
        DELIVERED => DeliveryState::Delivered,
        FAILED => DeliveryState::Failed,
        _ => return Err(Damaged("a delivery in an unknown state".to_owned())),
    };
    let attempts = attempts.into_iter().map(|(at, milliseconds, failure, status, answer)| {
        let outcome = match (failure, AttemptFailure::of_number(failure)) {
            (0, _) => AttemptOutcome::Answered(status),
            (_, Some(failure)) => AttemptOutcome::Failed(failure),
            (_, None) => return Err(Damaged("an attempt with an unknown failure".to_owned())),
        };
        let (at, answer) = (Timestamp::from_micros(at), answer.to_owned());
        Ok(Attempt { at, milliseconds, outcome, answer })
    });
    Ok(Delivery { previous, state, tries, attempts: attempts.collect::<Result<_, _>>()? })
}
