use crate::ledger::Query;
use crate::ledger::rows::Order::{Ascending, Descending};
use crate::ledger::rows::{
    Damaged, Deliveries, DeliveriesByTime, Engine, Events, WalletStoreError, Webhooks, try_all,
};
use crate::model::delivery::Delivery;
use crate::model::event::EventKind;
use crate::model::time::Timestamp;
use crate::model::webhook::{Webhook, WebhookId};

/// How many deliveries are looked at for one page, at most, and how many of them are read at once.
const MAX_LOOKED_AT: usize = 10_000;
const READ_AT_ONCE: usize = 256;

/// All webhooks, in the order of their creation.
#[derive(Clone, Copy, Debug)]
pub struct GetWebhooks;

impl Query for GetWebhooks {
    type Answer = Vec<(WebhookId, Webhook)>;

    fn run(self, rows: &dyn Engine) -> Result<Self::Answer, WalletStoreError> {
        let mut webhooks = rows.range::<Webhooks>(..)?;
        webhooks.sort_by_key(|(id, webhook)| (webhook.created_at, *id));
        Ok(webhooks)
    }
}

/// A webhook.
#[derive(Clone, Copy, Debug)]
pub struct GetWebhook(pub WebhookId);

/// A webhook, with what is needed to go on sending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadedWebhook {
    /// The webhook.
    pub webhook: Webhook,
    /// The number of the last event that has a delivery; 0 if there is none. It may be after the
    /// cursor.
    pub last_delivery: u64,
    /// The time of the next attempt, if a delivery waits for one.
    pub next_attempt_at: Option<Timestamp>,
}

impl Query for GetWebhook {
    type Answer = Option<LoadedWebhook>;

    fn run(self, rows: &dyn Engine) -> Result<Self::Answer, WalletStoreError> {
        let Self(id) = self;
        let Some(webhook) = rows.get::<Webhooks>(&id)? else { return Ok(None) };
        let last = rows.first::<Deliveries>((id, 0)..=(id, u64::MAX), Descending, 1)?;
        let due = GetDueDeliveries { id, limit: 1 }.run(rows)?;
        Ok(Some(LoadedWebhook {
            webhook,
            last_delivery: last.first().map_or(0, |((_, number), _)| *number),
            next_attempt_at: due.first().map(|due| due.at),
        }))
    }
}

/// The next deliveries to a webhook that are sent again: up to `limit`, in the order of their
/// times.
#[derive(Clone, Copy, Debug)]
pub struct GetDueDeliveries {
    /// Which one.
    pub id: WebhookId,
    /// How many at most.
    pub limit: usize,
}

/// A delivery that waits for its next attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DueDelivery {
    /// The time of the attempt, at the earliest.
    pub at: Timestamp,
    /// The number of the event.
    pub number: u64,
}

impl Query for GetDueDeliveries {
    type Answer = Vec<DueDelivery>;

    fn run(self, rows: &dyn Engine) -> Result<Self::Answer, WalletStoreError> {
        let Self { id, limit } = self;
        let first = (id, false, Timestamp::from_micros(0), 0);
        let last = (id, false, Timestamp::MAX, u64::MAX);
        let due = rows.first::<DeliveriesByTime>(first..=last, Ascending, limit)?;
        Ok(due.into_iter().map(|((_, _, at, number), ())| DueDelivery { at, number }).collect())
    }
}

/// The delivery of an event to a webhook.
#[derive(Clone, Copy, Debug)]
pub struct GetDelivery {
    /// Which webhook.
    pub id: WebhookId,
    /// The number of the event.
    pub number: u64,
}

impl Query for GetDelivery {
    type Answer = Option<Delivery>;

    fn run(self, rows: &dyn Engine) -> Result<Self::Answer, WalletStoreError> {
        rows.get::<Deliveries>(&(self.id, self.number))
    }
}

/// Deliveries to a webhook, by the numbers of their events.
#[derive(Clone, Copy, Debug)]
pub struct GetDeliveries {
    /// Which one.
    pub id: WebhookId,
    /// Only those in the state of this name.
    pub state: Option<&'static str>,
    /// Only those after the event of this number.
    pub after: u64,
    /// How many at most.
    pub limit: usize,
}

/// A delivery and its event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedDelivery {
    /// The number of the event.
    pub number: u64,
    /// What kind of event it is.
    pub kind: EventKind,
    /// The delivery.
    pub delivery: Delivery,
}

impl Query for GetDeliveries {
    /// The deliveries, and the number of the event after which there may be more.
    type Answer = (Vec<ListedDelivery>, Option<u64>);

    fn run(self, rows: &dyn Engine) -> Result<Self::Answer, WalletStoreError> {
        let (matching, next) = self.matching(rows)?;
        let deliveries = try_all(matching, |(number, delivery)| {
            kind(rows, number).map(|kind| ListedDelivery { number, kind, delivery })
        })?;
        Ok((deliveries, next))
    }
}

/// Deliveries by the numbers of their events, and the number after which there may be more.
type Matching = (Vec<(u64, Delivery)>, Option<u64>);

impl GetDeliveries {
    fn matching(self, rows: &dyn Engine) -> Result<Matching, WalletStoreError> {
        let Self { id, state, after, limit } = self;
        let mut deliveries = Vec::new();
        let (mut last, mut looked_at) = (after, 0);
        while looked_at < MAX_LOOKED_AT {
            let Some(from) = last.checked_add(1) else { return Ok((deliveries, None)) };
            let at_once = match state {
                None => READ_AT_ONCE.min(limit.saturating_add(1)),
                Some(_) => READ_AT_ONCE,
            };
            let read = rows.first::<Deliveries>((id, from)..=(id, u64::MAX), Ascending, at_once)?;
            let is_all = read.len() < at_once;
            for ((_, number), delivery) in read {
                if deliveries.len() == limit {
                    return Ok((deliveries, Some(last)));
                }
                (last, looked_at) = (number, looked_at + 1);
                if state.is_none_or(|state| state == delivery.state.name()) {
                    deliveries.push((number, delivery));
                }
            }
            if is_all {
                return Ok((deliveries, None));
            }
        }
        Ok((deliveries, Some(last)))
    }
}

fn kind(rows: &dyn Engine, number: u64) -> Result<EventKind, WalletStoreError> {
    let row = rows.get::<Events>(&number)?;
    let lost = || Damaged(format!("a delivery of event {number}, which there is not"));
    Ok(row.ok_or_else(lost)?.kind)
}
