use crate::model::event::{Event, EventFilter, LogName};

/// Which events are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventQuery {
    /// Only those after the one of this number.
    pub after: u64,
    /// Only those of these kinds.
    pub filter: EventFilter,
    /// How many at most, from 1 on.
    pub limit: usize,
}

/// Some events, in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventPage<E = Event> {
    /// The events.
    pub events: Vec<E>,
    /// The number of the last event that was looked at. The next page starts after it.
    pub next: u64,
    /// The number of the last event in the log.
    pub last: u64,
}

/// How many events are looked at for one page at most. This bounds the cost of a page, even if the
/// filter selects few events. A page that ends for this reason has fewer events than its limit, and
/// [`next`](EventPage::next) is less than [`last`](EventPage::last).
pub const MAX_EVENTS_LOOKED_AT: usize = 10_000;

impl EventPage {
    /// The page as the API shows it, in the log of this name.
    pub fn to_json(&self, log: LogName) -> Vec<u8> {
        let mut json = format!("{{\"log\":\"{log}\",\"events\":[").into_bytes();
        for (place, event) in self.events.iter().enumerate() {
            if place > 0 {
                json.push(b',');
            }
            event.write_json(log, &mut json);
        }
        json.extend(format!("],\"next\":{},\"last\":{}}}", self.next, self.last).into_bytes());
        json
    }
}

impl<E> EventPage<E> {
    /// Whether the log has no events after this page.
    pub fn is_end(&self) -> bool {
        self.next >= self.last
    }
}
