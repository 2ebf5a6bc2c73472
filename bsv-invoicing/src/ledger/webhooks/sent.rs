use std::ops::RangeInclusive;

use crate::ledger::Query;
use crate::ledger::rows::{Deliveries, ReadRows};
use crate::model::webhook::WebhookId;

/// Which of the events of these numbers a webhook was sent, or is sent again, in their order.
#[derive(Clone, Debug)]
pub struct GetSent {
    /// Which webhook.
    pub id: WebhookId,
    /// Which events.
    pub numbers: RangeInclusive<u64>,
}

impl Query for GetSent {
    type Answer = Vec<u64>;

    fn run<R: ReadRows>(self, rows: &R) -> Result<Vec<u64>, R::Error> {
        let Self { id, numbers } = self;
        let (first, last) = numbers.into_inner();
        let deliveries = rows.range::<Deliveries>((id, first)..=(id, last))?;
        Ok(deliveries.into_iter().map(|((_, number), _)| number).collect())
    }
}
