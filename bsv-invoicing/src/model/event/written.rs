use std::sync::Arc;

use crate::model::event::{Event, EventKind, EventPage, LogName};

/// An event as outsiders get it, written once for all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenEvent {
    /// The number.
    pub number: u64,
    /// What kind of thing happened.
    pub kind: EventKind,
    /// The event as JSON, as [`Event::to_json`] answers it.
    pub json: Vec<u8>,
}

impl WrittenEvent {
    /// Writes an event of the log of this name.
    pub fn new(event: &Event, log: LogName) -> Self {
        Self { number: event.number, kind: event.kind, json: event.to_json(log).into_bytes() }
    }
}

/// Some written events, in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenPage {
    /// The events.
    pub events: Vec<Arc<WrittenEvent>>,
    /// The number of the last event that was looked at: those after it are on the next page.
    pub next: u64,
    /// The number of the last event that there is.
    pub last: u64,
}

impl WrittenPage {
    /// Writes a page of the log of this name.
    pub(crate) fn new(page: &EventPage, log: LogName) -> Self {
        let events = page.events.iter().map(|event| Arc::new(WrittenEvent::new(event, log)));
        Self { events: events.collect(), next: page.next, last: page.last }
    }

    /// Whether there is nothing after what was looked at.
    pub fn is_end(&self) -> bool {
        self.next >= self.last
    }
}
