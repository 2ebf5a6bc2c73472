//! Pages of the log of events.

use crate::ledger::Query;
use crate::ledger::rows::Order::Ascending;
use crate::ledger::rows::{AllFigures, Engine, Events, WalletStoreError, try_all};
use crate::ledger::told::event;
use crate::model::event::{EventFilter, EventPage, EventQuery, MAX_EVENTS_LOOKED_AT};

/// How many rows are read at once.
const ROWS_AT_ONCE: usize = 1000;

/// A page of events.
#[derive(Clone, Copy, Debug)]
pub struct GetEventPage(pub EventQuery);

impl Query for GetEventPage {
    type Answer = EventPage;

    fn run(self, rows: &dyn Engine) -> Result<EventPage, WalletStoreError> {
        let Self(EventQuery { after, filter, limit }) = self;
        let last = rows.get::<AllFigures>(&())?.unwrap_or_default().last_event;
        let mut page = EventPage { events: Vec::new(), next: after, last };
        let mut looked_at = 0;
        while looked_at < MAX_EVENTS_LOOKED_AT && page.events.len() < limit && !page.is_end() {
            let at_once = match filter == EventFilter::ALL {
                true => ROWS_AT_ONCE.min(limit - page.events.len()),
                false => ROWS_AT_ONCE,
            };
            let read = rows.first::<Events>(page.next + 1.., Ascending, at_once)?;
            if read.is_empty() {
                break;
            }
            let mut matching = Vec::new();
            for (number, row) in read {
                if page.events.len() + matching.len() == limit {
                    break;
                }
                looked_at += 1;
                page.next = number;
                if filter.has(row.kind) {
                    matching.push((number, row));
                }
            }
            page.events.extend(try_all(matching, |(number, row)| event(rows, number, &row))?);
        }
        Ok(page)
    }
}
