use std::ops::RangeInclusive;

use crate::ledger::Query;
use crate::ledger::rows::{Deliveries, Engine, WalletStoreError};
use crate::model::webhook::WebhookId;

/// Which of these events already have a delivery to a webhook, in the order of their numbers.
#[derive(Clone, Debug)]
pub struct GetSent {
    /// The webhook.
    pub id: WebhookId,
    /// The numbers of the events.
    pub numbers: RangeInclusive<u64>,
}

impl Query for GetSent {
    type Answer = Vec<u64>;

    fn run(self, rows: &dyn Engine) -> Result<Vec<u64>, WalletStoreError> {
        let Self { id, numbers } = self;
        let (first, last) = numbers.into_inner();
        let deliveries = rows.range::<Deliveries>((id, first)..=(id, last))?;
        Ok(deliveries.into_iter().map(|((_, number), _)| number).collect())
    }
}
