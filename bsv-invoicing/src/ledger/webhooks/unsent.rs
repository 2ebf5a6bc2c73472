use std::collections::BTreeSet;

use crate::ledger::rows::{Deliveries, ReadRows};
use crate::ledger::{GetEventPage, Query};
use crate::model::event::{Event, EventFilter, EventQuery};
use crate::model::webhook::WebhookId;

/// The next events that were not sent to a webhook yet.
#[derive(Clone, Copy, Debug)]
pub struct GetUnsent {
    /// Which one.
    pub id: WebhookId,
    /// Which events are sent to it.
    pub filter: EventFilter,
    /// Only events after the one with this number.
    pub after: u64,
    /// The number of the last event up to `after` that was sent; 0 if there is none.
    pub last_sent: u64,
    /// The number of the last event that may have a delivery. An event with a delivery was sent.
    pub last_delivery: u64,
    /// How many at most.
    pub limit: usize,
}

/// An event to send for the first time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsent {
    /// The event.
    pub event: Event,
    /// The number of the previous event that was sent; 0 if there is none.
    pub previous: u64,
}

/// Events to send, in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnsentPage {
    /// The events.
    pub unsent: Vec<Unsent>,
    /// The number of the last event that was looked at.
    pub next: u64,
    /// The number of the last event up to `next` that was sent, these included.
    pub last_sent: u64,
    /// The number of the last event in the log.
    pub last: u64,
}

impl Query for GetUnsent {
    type Answer = UnsentPage;

    fn run<R: ReadRows>(self, rows: &R) -> Result<UnsentPage, R::Error> {
        let Self { id, filter, after, mut last_sent, last_delivery, limit } = self;
        let page = GetEventPage(EventQuery { after, filter, limit }).run(rows)?;
        let mut sent = BTreeSet::new();
        if after < last_delivery && after < page.next {
            let range = (id, after + 1)..=(id, page.next);
            let rows = rows.range::<Deliveries>(range)?;
            sent.extend(rows.into_iter().map(|((_, number), _)| number));
        }
        let mut unsent = Vec::with_capacity(page.events.len());
        for event in page.events {
            let (number, previous) = (event.number, last_sent);
            if !sent.contains(&number) {
                unsent.push(Unsent { event, previous });
            }
            last_sent = number;
        }
        Ok(UnsentPage { unsent, next: page.next, last_sent, last: page.last })
    }
}
