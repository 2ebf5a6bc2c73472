use std::sync::atomic::{AtomicU64, Ordering};

use crate::ledger::events::EventCode;

/// How often what was told in the log of events since the store was opened.
#[derive(Debug, Default)]
pub struct EventCounts {
    invoices: [AtomicU64; INVOICES.len()],
    incoming: [AtomicU64; INCOMING.len()],
}

type Counted = (EventCode, &'static str);

const INVOICES: [Counted; 5] = [
    (EventCode::InvoiceCreated, "created"),
    (EventCode::InvoiceExpired, "expired"),
    (EventCode::InvoiceDeleted, "deleted"),
    (EventCode::InvoicePaid, "paid"),
    (EventCode::InvoiceUnpaid, "unpaid"),
];

const INCOMING: [Counted; 8] = [
    (EventCode::PaymentReceived, "received"),
    (EventCode::PaymentWaiting, "waiting"),
    (EventCode::PaymentMined, "mined"),
    (EventCode::PaymentUnmined, "unmined"),
    (EventCode::PaymentContested, "contested"),
    (EventCode::PaymentRestored, "restored"),
    (EventCode::PaymentDisplaced, "displaced"),
    (EventCode::PaymentInvalid, "invalid"),
];

impl EventCounts {
    /// What happened to invoices, by name, and how often.
    pub fn invoices(&self) -> impl Iterator<Item = (&'static str, u64)> {
        of(&INVOICES, &self.invoices)
    }

    /// What became of payments to the wallet, by name, and how often. A payment may be told of several times.
    pub fn incoming(&self) -> impl Iterator<Item = (&'static str, u64)> {
        of(&INCOMING, &self.incoming)
    }

    /// Counts events that are on the disk.
    pub(super) fn note(&self, told: &[EventCode]) {
        for code in told {
            let invoices = INVOICES.iter().zip(&self.invoices);
            let mut all = invoices.chain(INCOMING.iter().zip(&self.incoming));
            if let Some((_, count)) = all.find(|((counted, _), _)| counted == code) {
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
