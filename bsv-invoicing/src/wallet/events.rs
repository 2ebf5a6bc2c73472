//! Reading the log of events, and waiting for new ones.

use tokio::sync::watch;

use crate::error::Error;
use crate::ledger::GetEventPage;
use crate::ledger::queries::{GetEvents, GetFigures};
use crate::model::event::{Event, EventPage, EventQuery, LogName};
use crate::store::WalletStore;
use crate::wallet::Wallet;

/// Up to this many events after the one that was read last are read without another thread.
const FEW: u64 = 32;

impl<S: WalletStore> Wallet<S> {
    /// Up to `limit` events after the one of this number, in order.
    pub async fn events(&self, after: u64, limit: usize) -> Result<Vec<Event>, Error> {
        Ok(self.store.list(GetEvents(after, limit)).await?)
    }

    /// The name of the log of events.
    pub fn event_log(&self) -> LogName {
        self.log
    }

    /// The number of the last event. It changes after each commit with an event. Newer events may
    /// already be readable.
    pub fn last_event(&self) -> watch::Receiver<u64> {
        self.store.last_event()
    }

    /// The number of the last event that can be read.
    pub async fn latest_event(&self) -> Result<u64, Error> {
        Ok(self.store.get(GetFigures).await?.last_event)
    }

    /// A page of events, in order. Fails if the event after which the query starts does not exist.
    pub async fn event_page(&self, query: EventQuery) -> Result<EventPage, Error> {
        let known = *self.store.last_event().borrow();
        let page = match known.saturating_sub(query.after) {
            ..=FEW => self.store.get(GetEventPage(query)).await?,
            _ => self.store.list(GetEventPage(query)).await?,
        };
        match query.after > page.last {
            true => Err(Error::CursorAhead { after: query.after, last: page.last }),
            false => Ok(page),
        }
    }

    /// Waits for a page with events, or until `end` completes. A page without events is returned at
    /// once if there are more events to look at after it.
    pub async fn await_events(
        &self,
        mut query: EventQuery,
        end: impl Future<Output = ()> + Send,
    ) -> Result<EventPage, Error> {
        let mut last = self.store.last_event();
        tokio::pin!(end);
        loop {
            // An event that is written from now on wakes the loop.
            last.mark_unchanged();
            let page = self.event_page(query).await?;
            if !page.events.is_empty() || !page.is_end() {
                return Ok(page);
            }
            query.after = page.next;
            tokio::select! {
                biased;
                () = &mut end => return Ok(page),
                Ok(()) = last.changed() => {}
            }
        }
    }
}
