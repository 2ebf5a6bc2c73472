//! The end of the event log. The wallet reads and writes these events once for all who follow the log.

use std::collections::VecDeque;
use std::sync::{Arc, PoisonError, RwLock};

use tokio::sync::{Mutex, MutexGuard};

use crate::model::event::{EventQuery, WrittenEvent, WrittenPage};

/// The most events that the tail keeps.
pub(super) const MAX_KEPT: u64 = 4096;
/// The most bytes of JSON that the tail keeps.
const MAX_BYTES_KEPT: usize = 4 << 20;

/// The newest events that were read.
#[derive(Debug, Default)]
pub(super) struct EventTail {
    kept: RwLock<Kept>,
    reading: Mutex<()>,
}

/// Events without a gap between them.
#[derive(Debug, Default)]
struct Kept {
    events: VecDeque<Arc<WrittenEvent>>,
    bytes: usize,
}

impl EventTail {
    /// The number of the last kept event.
    pub(super) fn last(&self) -> Option<u64> {
        let kept = self.kept.read().unwrap_or_else(PoisonError::into_inner);
        kept.events.back().map(|event| event.number)
    }

    /// Waits for the turn to read more of the log. One task reads it for all.
    pub(super) async fn reading(&self) -> MutexGuard<'_, ()> {
        self.reading.lock().await
    }

    /// Keeps events that were read. If there is a gap before them, the tail forgets its earlier events.
    pub(super) fn keep(&self, events: Vec<Arc<WrittenEvent>>) {
        let mut kept = self.kept.write().unwrap_or_else(PoisonError::into_inner);
        for event in events {
            if kept.events.back().is_some_and(|last| last.number + 1 != event.number) {
                *kept = Kept::default();
            }
            kept.bytes += event.json.len();
            kept.events.push_back(event);
        }
        while kept.events.len() as u64 > MAX_KEPT || kept.bytes > MAX_BYTES_KEPT {
            let Some(oldest) = kept.events.pop_front() else { break };
            kept.bytes -= oldest.json.len();
        }
    }

    /// A page of kept events, or `None` if the event after `query.after` is not kept.
    pub(super) fn page(&self, query: EventQuery) -> Option<WrittenPage> {
        let EventQuery { after, filter, limit } = query;
        let kept = self.kept.read().unwrap_or_else(PoisonError::into_inner);
        let (first, last) = (kept.events.front()?.number, kept.events.back()?.number);
        if after + 1 < first || after > last {
            return None;
        }
        let mut page = WrittenPage { events: Vec::new(), next: after, last };
        let start = usize::try_from(after + 1 - first).ok()?;
        for event in kept.events.range(start..) {
            if page.events.len() == limit {
                break;
            }
            page.next = event.number;
            if filter.has(event.kind) {
                page.events.push(Arc::clone(event));
            }
        }
        Some(page)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::event::{EventFilter, EventKind};

    fn events(numbers: std::ops::RangeInclusive<u64>, len: usize) -> Vec<Arc<WrittenEvent>> {
        let kind = |number| match number % 2 {
            0 => EventKind::UserCreated,
            _ => EventKind::InvoiceCreated,
        };
        let event = |number| WrittenEvent { number, kind: kind(number), json: vec![b'x'; len] };
        numbers.map(|number| Arc::new(event(number))).collect()
    }

    fn numbers(tail: &EventTail, after: u64, types: &str, limit: usize) -> Option<Vec<u64>> {
        let filter: EventFilter = types.parse().unwrap();
        let page = tail.page(EventQuery { after, filter, limit })?;
        Some(page.events.iter().map(|event| event.number).collect())
    }

    #[test]
    fn a_page_is_told_only_if_nothing_before_it_is_missing() {
        let tail = EventTail::default();
        assert_eq!((tail.last(), numbers(&tail, 0, "*", 9)), (None, None));
        tail.keep(events(5..=9, 10));
        assert_eq!(tail.last(), Some(9));
        assert_eq!(numbers(&tail, 3, "*", 9), None);
        assert_eq!(numbers(&tail, 4, "*", 9), Some(vec![5, 6, 7, 8, 9]));
        assert_eq!(numbers(&tail, 4, "*", 2), Some(vec![5, 6]));
        assert_eq!(numbers(&tail, 6, "user.*", 9), Some(vec![8]));
        assert_eq!(numbers(&tail, 9, "*", 9), Some(vec![]));
        assert_eq!(numbers(&tail, 10, "*", 9), None);
        let query = EventQuery { after: 4, filter: "user.*".parse().unwrap(), limit: 1 };
        let page = tail.page(query).unwrap();
        assert_eq!((page.next, page.last, page.is_end()), (6, 9, false));
    }

    #[test]
    fn what_does_not_go_on_replaces_what_was_kept() {
        let tail = EventTail::default();
        tail.keep(events(5..=9, 10));
        tail.keep(events(10..=11, 10));
        assert_eq!(numbers(&tail, 8, "*", 9), Some(vec![9, 10, 11]));
        tail.keep(events(13..=14, 10));
        assert_eq!(numbers(&tail, 11, "*", 9), None);
        assert_eq!(numbers(&tail, 12, "*", 9), Some(vec![13, 14]));
    }

    #[test]
    fn the_oldest_are_forgotten_by_number_and_by_length() {
        let tail = EventTail::default();
        tail.keep(events(1..=MAX_KEPT + 2, 1));
        assert_eq!(numbers(&tail, 1, "*", 1), None);
        assert_eq!(numbers(&tail, 2, "*", 1), Some(vec![3]));
        let tail = EventTail::default();
        tail.keep(events(1..=5, MAX_BYTES_KEPT / 4));
        assert_eq!(numbers(&tail, 0, "*", 1), None);
        assert_eq!(numbers(&tail, 1, "*", 9), Some(vec![2, 3, 4, 5]));
    }
}
