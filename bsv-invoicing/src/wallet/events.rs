//! Reading the log of events, and waiting for new ones.

use tokio::sync::watch;

use crate::error::Error;
use crate::ledger::queries::{GetEvents, GetFigures};
use crate::ledger::{GetEventPage, Refusal};
use crate::model::event::{Event, EventFilter, EventPage, EventQuery, LogName, WrittenPage};
use crate::store::WalletStore;
use crate::wallet::Wallet;
use crate::wallet::event_tail::MAX_KEPT;

/// Up to this many events after the one that was read last are read without another thread.
const FEW: u64 = 32;
/// How many events are read at a time for all who follow the log.
const READ_FOR_ALL: usize = 128;

impl Wallet {
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
            true => Err(Refusal::CursorAhead { after: query.after, last: page.last }.into()),
            false => Ok(page),
        }
    }

    /// Returns a page of events to a caller that follows the log. The newest events are read once
    /// for all such callers. The page's last event is that of [`last_event`](Self::last_event), so
    /// an event that was written a moment ago may be missing.
    ///
    /// # Errors
    /// Fails if the log has no event with the number `query.after`, or if the store fails.
    pub async fn follow_events(&self, query: EventQuery) -> Result<WrittenPage, Error> {
        let known = *self.store.last_event().borrow();
        if query.after <= known && known - query.after < MAX_KEPT {
            self.read_tail(query.after, known).await?;
            if let Some(page) = self.event_tail.page(query) {
                return Ok(page);
            }
        }
        Ok(WrittenPage::new(&self.event_page(query).await?, self.log))
    }

    /// Reads the end of the log up to the event with the number `known`. If the tail ends too far
    /// before that event, the tail begins again after the event with the number `after`.
    async fn read_tail(&self, after: u64, known: u64) -> Result<(), Error> {
        let is_read = || self.event_tail.last().is_some_and(|last| last >= known);
        while !is_read() {
            let _turn = self.event_tail.reading().await;
            let last = self.event_tail.last().filter(|last| known.saturating_sub(*last) < MAX_KEPT);
            let after = last.unwrap_or(after);
            if after >= known {
                break;
            }
            let query = EventQuery { after, filter: EventFilter::ALL, limit: READ_FOR_ALL };
            let page = self.store.get(GetEventPage(query)).await?;
            if page.events.is_empty() {
                break;
            }
            self.event_tail.keep(WrittenPage::new(&page, self.log).events);
        }
        Ok(())
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
