//! The events that are sent to a webhook for the first time, and the progress of that.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crate::ledger::webhooks::LoadedWebhook;
use crate::model::event::{WrittenEvent, WrittenPage};

/// An event that is to be sent for the first time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Unsent {
    pub(super) event: Arc<WrittenEvent>,
    /// The number of the previous event that was sent; 0 stands for none.
    pub(super) previous: u64,
}

/// The progress of a webhook in the log.
#[derive(Debug)]
pub(super) struct Outbox {
    /// The number of the last event that was read.
    read: u64,
    /// The number of the last event up to `read` that is sent to the webhook; 0 if there is none.
    last_sent: u64,
    /// The number of the last event that had a delivery when the webhook was loaded.
    last_delivery: u64,
    /// The events that were read and are not sent yet.
    queue: VecDeque<Unsent>,
    /// The events that are being sent, or are sent and not recorded. Each is stored with the
    /// previous event that was sent.
    open: BTreeMap<u64, u64>,
    /// Whether the whole log was read.
    is_at_end: bool,
}

impl Outbox {
    /// Continues where the webhook stopped.
    pub(super) fn new(loaded: &LoadedWebhook) -> Self {
        Self {
            read: loaded.webhook.cursor,
            last_sent: loaded.webhook.last_sent,
            last_delivery: loaded.last_delivery,
            queue: VecDeque::new(),
            open: BTreeMap::new(),
            is_at_end: false,
        }
    }

    /// Whether the log must be read before anything can be sent.
    pub(super) fn is_to_be_read(&self) -> bool {
        self.queue.is_empty() && !self.is_at_end
    }

    /// Whether the whole log was read and all events were taken.
    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty() && self.is_at_end
    }

    /// The event after which the log is read, and the last event that may have a delivery.
    pub(super) fn position(&self) -> (u64, u64) {
        (self.read, self.last_delivery)
    }

    /// Adds events that were read. Events whose numbers are in `sent` are skipped, but count as the
    /// previous event of the next one.
    pub(super) fn add(&mut self, page: WrittenPage, sent: &[u64]) {
        (self.read, self.is_at_end) = (page.next, page.is_end());
        for event in page.events {
            let previous = std::mem::replace(&mut self.last_sent, event.number);
            if sent.binary_search(&event.number).is_err() {
                self.queue.push_back(Unsent { event, previous });
            }
        }
    }

    /// Records that the log may have more events.
    pub(super) fn read_on(&mut self) {
        self.is_at_end = false;
    }

    /// Makes the events that are not sent yet be read again, for example after the types have
    /// changed.
    pub(super) fn read_again(&mut self) {
        if let Some(Unsent { event, previous }) = self.queue.front() {
            (self.read, self.last_sent) = (event.number - 1, *previous);
        }
        self.queue.clear();
        self.is_at_end = false;
    }

    /// Takes the next event. It is open from now on.
    pub(super) fn take(&mut self) -> Option<Unsent> {
        let next = self.queue.pop_front()?;
        self.open.insert(next.event.number, next.previous);
        Some(next)
    }

    /// Whether this event is being sent for the first time, or was and is not recorded.
    pub(super) fn is_open(&self, number: u64) -> bool {
        self.open.contains_key(&number)
    }

    /// The outcome of an event is being recorded.
    pub(super) fn close(&mut self, number: u64) {
        self.open.remove(&number);
    }

    /// The number of the event up to which everything is done, and of the last event up to there
    /// that was sent.
    pub(super) fn cursor(&self) -> (u64, u64) {
        let first_open = self.open.first_key_value().map(|(number, previous)| (*number, *previous));
        let first_queued = self.queue.front().map(|it| (it.event.number, it.previous));
        match first_open.or(first_queued) {
            Some((number, previous)) => (number - 1, previous),
            None => (self.read, self.last_sent),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::event::EventKind;
    use crate::model::time::Timestamp;
    use crate::model::webhook::{Webhook, WebhookState};

    fn outbox() -> Outbox {
        let webhook = Webhook {
            url: String::new(),
            types: "*".to_owned(),
            description: String::new(),
            in_order: false,
            state: WebhookState::Enabled,
            created_at: Timestamp::from_micros(0),
            cursor: 10,
            last_sent: 9,
            holding: None,
            secret: Vec::new(),
            former_secret: None,
            last_success_at: None,
            failing_since: None,
            failures: 0,
        };
        Outbox::new(&LoadedWebhook { webhook, last_delivery: 0, next_attempt_at: None })
    }

    fn page(numbers: &[u64], next: u64, last: u64) -> WrittenPage {
        let event = |number: &u64| {
            let event =
                WrittenEvent { number: *number, kind: EventKind::UserCreated, json: vec![] };
            Arc::new(event)
        };
        WrittenPage { events: numbers.iter().map(event).collect(), next, last }
    }

    #[test]
    fn the_cursor_is_before_the_first_open_event() {
        let mut outbox = outbox();
        assert_eq!(outbox.cursor(), (10, 9));
        outbox.add(page(&[12, 13, 17], 20, 30), &[]);
        assert_eq!(outbox.cursor(), (11, 9));
        let taken = [(); 3].map(|()| outbox.take().unwrap().event.number);
        assert_eq!((taken, outbox.take()), ([12, 13, 17], None));
        assert_eq!(outbox.cursor(), (11, 9));
        outbox.close(13);
        assert_eq!(outbox.cursor(), (11, 9));
        outbox.close(12);
        assert_eq!(outbox.cursor(), (16, 13));
        assert!(outbox.is_open(17) && !outbox.is_open(13));
        outbox.close(17);
        assert_eq!(outbox.cursor(), (20, 17));
        assert!(outbox.is_to_be_read() && !outbox.is_empty());
        outbox.add(page(&[], 30, 30), &[]);
        assert!(!outbox.is_to_be_read() && outbox.is_empty());
    }

    #[test]
    fn events_that_are_not_sent_are_read_again_after_the_types_change() {
        let mut outbox = outbox();
        outbox.add(page(&[12, 13, 17], 20, 20), &[]);
        outbox.take();
        outbox.read_again();
        assert_eq!(outbox.position(), (12, 0));
        assert_eq!(outbox.cursor(), (11, 9));
        assert!(outbox.is_to_be_read());
        outbox.close(12);
        outbox.add(page(&[], 20, 20), &[]);
        outbox.read_again();
        assert_eq!(outbox.cursor(), (20, 12));
    }

    #[test]
    fn sent_events_are_skipped_but_count_as_previous_events() {
        let mut outbox = outbox();
        outbox.add(page(&[11, 12, 13, 15], 15, 20), &[12, 14]);
        let mut taken = Vec::new();
        while let Some(Unsent { event, previous }) = outbox.take() {
            taken.push((event.number, previous));
        }
        assert_eq!(taken, [(11, 9), (13, 12), (15, 13)]);
    }
}
