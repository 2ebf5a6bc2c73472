use std::ops::Bound::{Excluded, Unbounded};

use crate::ledger::rows::Order::Ascending;
use crate::ledger::rows::{Deliveries, DeliveriesByTime, WalletStoreError, Webhooks};
use crate::ledger::{Books, Command, Refusal};
use crate::model::delivery::DELIVERIES_KEPT;
use crate::model::time::Timestamp;
use crate::model::webhook::WebhookId;

/// Deletes deliveries that are over and older than [`DELIVERIES_KEPT`], and those of deleted
/// webhooks.
#[derive(Clone, Copy, Debug)]
pub struct ForgetDeliveries {
    /// The time.
    pub now: Timestamp,
    /// How many deliveries are deleted, at most.
    pub limit: usize,
}

impl Command for ForgetDeliveries {
    /// How many deliveries were deleted.
    type Answer = usize;

    fn run(&self, books: &mut Books<'_>) -> Result<usize, WalletStoreError> {
        let mut forgotten = 0;
        for (id, _) in books.rows.range::<Webhooks>(..)? {
            let first = (id, true, Timestamp::from_micros(0), 0);
            let end = (id, true, self.now.before(DELIVERIES_KEPT), 0);
            let limit = self.limit - forgotten;
            let old = books.rows.first::<DeliveriesByTime>(first..end, Ascending, limit)?;
            forgotten += old.len();
            for (key @ (id, _, _, number), ()) in old {
                books.rows.remove::<DeliveriesByTime>(key)?;
                books.rows.remove::<Deliveries>((id, number))?;
            }
        }
        forgotten += self.forget_deleted(books, self.limit - forgotten)?;
        match forgotten {
            0 => Err(Refusal::NothingDue.into()),
            count => Ok(count),
        }
    }
}

impl ForgetDeliveries {
    /// Deletes deliveries of deleted webhooks.
    fn forget_deleted(
        &self,
        books: &mut Books<'_>,
        limit: usize,
    ) -> Result<usize, WalletStoreError> {
        let mut forgotten = 0;
        let mut from = Unbounded;
        while forgotten < limit {
            let next = books.rows.first::<Deliveries>((from, Unbounded), Ascending, 1)?;
            let Some(((id, _), _)) = next.first() else { break };
            if books.rows.get::<Webhooks>(id)?.is_none() {
                forgotten += forget_all(books, *id, limit - forgotten)?;
            }
            from = Excluded((*id, u64::MAX));
        }
        Ok(forgotten)
    }
}

/// Deletes deliveries of a webhook, up to `limit`.
fn forget_all(
    books: &mut Books<'_>,
    id: WebhookId,
    limit: usize,
) -> Result<usize, WalletStoreError> {
    let rows = books.rows.first::<Deliveries>((id, 0)..=(id, u64::MAX), Ascending, limit)?;
    for ((_, number), delivery) in &rows {
        let (is_over, at) = delivery.place();
        books.rows.remove::<DeliveriesByTime>((id, is_over, at, *number))?;
        books.rows.remove::<Deliveries>((id, *number))?;
    }
    Ok(rows.len())
}
