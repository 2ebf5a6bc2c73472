use std::collections::{BTreeSet, VecDeque};

use super::{Endpoint, MAX_UNFINISHED};
use crate::error::Error;
use crate::ledger::queries::GetEvents;
use crate::ledger::webhooks::{DueDelivery, GetDelivery, GetDueDeliveries};
use crate::model::event::WrittenEvent;
use crate::store::WalletStore;
use crate::webhooks::client::{WebhookClient, WebhookClock};
use crate::webhooks::message::Message;

/// How many retries are read at once. Those that are under way are among them.
const PAGE: usize = 2 * MAX_UNFINISHED;

/// The retries of a webhook.
#[derive(Debug, Default)]
pub(super) struct Retries {
    /// The next retries in the order of time, as they were last read. `None` if they have changed
    /// since.
    page: Option<VecDeque<DueDelivery>>,
    /// The numbers of the events whose retry is under way or not recorded yet.
    under_way: BTreeSet<u64>,
}

impl Retries {
    pub(super) fn under_way(&self) -> usize {
        self.under_way.len()
    }

    /// Makes the next look read the retries again.
    pub(super) fn forget_page(&mut self) {
        self.page = None;
    }

    /// The attempt for this event is recorded.
    pub(super) fn close(&mut self, number: u64) {
        self.under_way.remove(&number);
    }
}

impl<C: WebhookClient, K: WebhookClock> Endpoint<C, K> {
    /// The next retry.
    pub(super) async fn next_retry(&mut self) -> Result<Option<DueDelivery>, Error> {
        if self.retries.page.is_none() {
            let page = match self.webhook.holding {
                Some(number) => self.holding(number).await?,
                None => {
                    let query = GetDueDeliveries { id: self.id, limit: PAGE };
                    self.sender.wallet.store().get(query).await?
                }
            };
            let is_free = |due: &DueDelivery| {
                !self.retries.under_way.contains(&due.number) && !self.outbox.is_open(due.number)
            };
            self.retries.page = Some(page.into_iter().filter(is_free).collect());
        }
        Ok(self.retries.page.as_ref().and_then(|page| page.front()).copied())
    }

    /// The retry of the event that later ones wait for.
    async fn holding(&mut self, number: u64) -> Result<Vec<DueDelivery>, Error> {
        let delivery = self.sender.wallet.store().get(GetDelivery { id: self.id, number }).await?;
        let at = delivery.and_then(|delivery| delivery.state.next_attempt_at());
        Ok(at.map(|at| DueDelivery { at, number }).into_iter().collect())
    }

    /// Begins the retry of the event with this number. It is the first of the page.
    pub(super) async fn start_retry(&mut self, number: u64) -> Result<(), Error> {
        let store = self.sender.wallet.store();
        let delivery = store.get(GetDelivery { id: self.id, number }).await?;
        let event = store.get(GetEvents(number - 1, 1)).await?.into_iter().next();
        if let Some(page) = &mut self.retries.page {
            page.pop_front();
            if page.is_empty() {
                self.retries.page = None;
            }
        }
        if let Some((delivery, event)) = delivery.zip(event) {
            self.retries.under_way.insert(number);
            let log = self.sender.log();
            let event = WrittenEvent::new(&event, log);
            let message = Message::of(&event, delivery.previous, log);
            self.start(number, delivery.previous, message);
        }
        Ok(())
    }
}
