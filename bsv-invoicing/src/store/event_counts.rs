use std::sync::atomic::{AtomicU64, Ordering};

use crate::model::event::EventKind;

/// Counts of the events that were written since the store was opened.
#[derive(Debug, Default)]
pub struct EventCounts {
    invoices: [AtomicU64; INVOICES.len()],
    incoming: [AtomicU64; INCOMING.len()],
}

/// Kinds of events, and the name that they are counted under.
type Counted = (&'static [EventKind], &'static str);

const INVOICES: [Counted; 5] = [
    (&[EventKind::InvoiceCreated], "created"),
    (&[EventKind::InvoiceExpired], "expired"),
    (&[EventKind::InvoiceDeleted], "deleted"),
    (&[EventKind::InvoicePaid], "paid"),
    (&[EventKind::InvoiceUnpaid], "unpaid"),
];

const INCOMING: [Counted; 8] = [
    (&[EventKind::PaymentReceived, EventKind::ReceiptUnassigned], "received"),
    (&[EventKind::PaymentWaiting, EventKind::ReceiptWaiting], "waiting"),
    (&[EventKind::PaymentMined, EventKind::ReceiptMined], "mined"),
    (&[EventKind::PaymentUnmined, EventKind::ReceiptUnmined], "unmined"),
    (&[EventKind::PaymentContested, EventKind::ReceiptContested], "contested"),
    (&[EventKind::PaymentRestored, EventKind::ReceiptRestored], "restored"),
    (&[EventKind::PaymentDisplaced, EventKind::ReceiptDisplaced], "displaced"),
    (&[EventKind::PaymentInvalid, EventKind::ReceiptInvalid], "invalid"),
];

impl EventCounts {
    /// The numbers of events of invoices, by name.
    pub fn invoices(&self) -> impl Iterator<Item = (&'static str, u64)> {
        of(&INVOICES, &self.invoices)
    }

    /// The numbers of events of payments to the wallet, by name. A payment can have several events.
    pub fn incoming(&self) -> impl Iterator<Item = (&'static str, u64)> {
        of(&INCOMING, &self.incoming)
    }

    /// Counts events that are durable.
    pub(super) fn note(&self, told: &[EventKind]) {
        for kind in told {
            let invoices = INVOICES.iter().zip(&self.invoices);
            let mut all = invoices.chain(INCOMING.iter().zip(&self.incoming));
            if let Some((_, count)) = all.find(|((kinds, _), _)| kinds.contains(kind)) {
                count.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

fn of(
    kinds: &'static [Counted],
    counts: &[AtomicU64],
) -> impl Iterator<Item = (&'static str, u64)> {
    kinds.iter().zip(counts).map(|((_, name), count)| (*name, count.load(Ordering::Relaxed)))
}
