use crate::ledger::Query;
use crate::ledger::rows::{AllFigures, Engine, Events, WalletStoreError, Webhooks};
use crate::ledger::webhooks::GetDueDeliveries;
use crate::model::time::Timestamp;
use crate::model::webhook::WebhookId;

/// How many pending deliveries are looked at. They are in the order in which they are due, and
/// there may be many.
const LOOKED_AT: usize = 64;

/// Finds how far each webhook is behind.
#[derive(Clone, Copy, Debug)]
pub struct GetLags;

/// How far a webhook is behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lag {
    /// Which one.
    pub id: WebhookId,
    /// The number of events after its cursor.
    pub events: u64,
    /// The time of the oldest event that the webhook does not have: among the events after its
    /// cursor, and the next 64 that are sent again.
    pub oldest: Option<Timestamp>,
}

impl Query for GetLags {
    type Answer = Vec<Lag>;

    fn run(self, rows: &dyn Engine) -> Result<Vec<Lag>, WalletStoreError> {
        let last = rows.get::<AllFigures>(&())?.unwrap_or_default().last_event;
        let mut lags = Vec::new();
        for (id, webhook) in rows.range::<Webhooks>(..)? {
            let due = GetDueDeliveries { id, limit: LOOKED_AT }.run(rows)?;
            let first_after = (webhook.cursor < last).then_some(webhook.cursor + 1);
            let oldest = due.iter().map(|due| due.number).chain(first_after).min();
            let oldest = match oldest {
                Some(number) => rows.get::<Events>(&number)?.map(|row| row.at),
                None => None,
            };
            lags.push(Lag { id, events: last.saturating_sub(webhook.cursor), oldest });
        }
        Ok(lags)
    }
}
