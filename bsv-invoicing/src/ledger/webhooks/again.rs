//! Sending events again because the owner asks for it.

use crate::ledger::rows::Order::{Ascending, Descending};
use crate::ledger::rows::{Damaged, Deliveries, Events, WalletStoreError};
use crate::ledger::{Books, Command, Refusal};
use crate::model::delivery::{Delivery, DeliveryState};
use crate::model::event::EventFilter;
use crate::model::time::Timestamp;
use crate::model::webhook::{Webhook, WebhookId};

/// Sends one event again.
#[derive(Clone, Copy, Debug)]
pub struct Redeliver {
    /// The webhook.
    pub id: WebhookId,
    /// The number of the event. It must have a delivery.
    pub number: u64,
    /// The time.
    pub now: Timestamp,
}

impl Command for Redeliver {
    type Answer = ();

    fn run(&self, books: &mut Books<'_>) -> Result<(), WalletStoreError> {
        let key @ (id, number) = (self.id, self.number);
        books.webhook(id)?;
        let known = books.rows.get::<Deliveries>(&key)?;
        let known = known.ok_or(Refusal::UnknownDelivery { id, number })?;
        let mut delivery = known.clone();
        delivery.begin_again(self.now);
        books.count_webhook_change()?;
        books.put_delivery(key, Some(&known), &delivery)
    }
}

/// Sends the events of a range again, in their order. Events after the cursor are left out, because
/// they are sent anyway.
#[derive(Clone, Copy, Debug)]
pub struct Replay {
    /// The webhook.
    pub id: WebhookId,
    /// The range begins after the event of this number.
    pub after: u64,
    /// The number of the last event of the range.
    pub until: u64,
    /// Whether only events whose delivery has failed are sent again.
    pub only_failed: bool,
    /// How many events or deliveries are looked at, at most.
    pub limit: usize,
    /// The time.
    pub now: Timestamp,
}

/// How far a replay has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replayed {
    /// How many events are sent again.
    pub count: usize,
    /// The number of the event after which to go on, if the range is not finished.
    pub next: Option<u64>,
}

impl Command for Replay {
    type Answer = Replayed;

    fn run(&self, books: &mut Books<'_>) -> Result<Replayed, WalletStoreError> {
        let webhook = books.webhook(self.id)?;
        let until = self.until.min(webhook.cursor);
        if self.after >= until {
            return Ok(Replayed { count: 0, next: None });
        }
        books.count_webhook_change()?;
        match self.only_failed {
            true => self.replay_failed(books, until),
            false => self.replay_all(books, &webhook, until),
        }
    }
}

impl Replay {
    fn replay_failed(
        &self,
        books: &mut Books<'_>,
        until: u64,
    ) -> Result<Replayed, WalletStoreError> {
        let range = (self.id, self.after + 1)..=(self.id, until);
        let looked_at = books.rows.first::<Deliveries>(range, Ascending, self.limit)?;
        let is_all = looked_at.len() < self.limit;
        let last = looked_at.last().map(|((_, number), _)| *number);
        let mut count = 0;
        for (key, known) in looked_at {
            if known.state == DeliveryState::Failed {
                let mut delivery = known.clone();
                delivery.begin_again(self.now);
                books.put_delivery(key, Some(&known), &delivery)?;
                count += 1;
            }
        }
        Ok(Replayed { count, next: last.filter(|_| !is_all) })
    }

    fn replay_all(
        &self,
        books: &mut Books<'_>,
        webhook: &Webhook,
        until: u64,
    ) -> Result<Replayed, WalletStoreError> {
        let filter = filter_of(webhook)?;
        let before = (self.id, 0)..=(self.id, self.after);
        let before = books.rows.first::<Deliveries>(before, Descending, 1)?;
        let mut previous = before.first().map_or(0, |((_, number), _)| *number);
        let events = books.rows.first::<Events>(self.after + 1..=until, Ascending, self.limit)?;
        let is_all = events.len() < self.limit;
        let last = events.last().map(|(number, _)| *number);
        let mut count = 0;
        for (number, row) in events {
            let key = (self.id, number);
            let known = books.rows.get::<Deliveries>(&key)?;
            if known.is_none() && !filter.has(row.kind) {
                continue;
            }
            let mut delivery = known.clone().unwrap_or_else(|| Delivery::due(previous, self.now));
            delivery.begin_again(self.now);
            books.put_delivery(key, known.as_ref(), &delivery)?;
            previous = number;
            count += 1;
        }
        Ok(Replayed { count, next: last.filter(|_| !is_all) })
    }
}

/// Which events are sent to a webhook.
pub(crate) fn filter_of(webhook: &Webhook) -> Result<EventFilter, Damaged> {
    webhook.types.parse().map_err(|error| Damaged(format!("the types of a webhook: {error}")))
}
