use std::sync::Arc;

use crate::model::event::{Event, EventKind, EventPage, LogName};

/// An event with its JSON, which is written once for all who receive the event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenEvent {
    /// The number.
    pub number: u64,
    /// The kind of the event.
    pub kind: EventKind,
    /// The event as JSON: the result of [`Event::to_json`].
    pub json: Vec<u8>,
}

impl WrittenEvent {
    /// Writes an event of the log with this name.
    pub fn new(event: &Event, log: LogName) -> Self {
        Self { number: event.number, kind: event.kind, json: event.to_json(log).into_bytes() }
    }
}

/// A page of written events.
pub type WrittenPage = EventPage<Arc<WrittenEvent>>;

impl WrittenPage {
    /// Writes a page of the log with this name.
    pub(crate) fn new(page: &EventPage, log: LogName) -> Self {
        let events = page.events.iter().map(|event| Arc::new(WrittenEvent::new(event, log)));
        Self { events: events.collect(), next: page.next, last: page.last }
    }
}
