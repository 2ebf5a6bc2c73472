//! Events as they are stored. A row carries what is told of things that change; other rows are read only for
//! what never does, such as the id of an invoice.

use crate::model::event::EventKind;
use crate::model::time::Timestamp;
use crate::model::transaction::BlockPlace;

/// An event as it is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventRow {
    /// When it happened.
    pub at: Timestamp,
    /// What kind of thing happened.
    pub kind: EventKind,
    /// The number of what it happened to: an invoice, a user, a payment by the wallet, a withdrawal, a
    /// transaction, or a webhook.
    pub subject: u64,
    /// What else is told.
    pub details: EventDetails,
    /// The block, of what was mined. Versions before schema 10 have not kept it.
    pub block: Option<BlockPlace>,
}

/// What is told with an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EventDetails {
    /// Nothing but the subject; or nothing else is known, of what a version before schema 10 wrote.
    #[default]
    None,
    /// All that was received for an invoice and counts, in satoshis.
    Sum(u64),
    /// Of an invoice: what a transaction pays to it.
    Payment(PaymentDetails),
    /// Of a transaction: an output that belongs to no invoice.
    Receipt {
        /// The index of the output.
        vout: u32,
        /// The amount.
        satoshis: u64,
        /// The user whose key it pays.
        user: Option<u64>,
    },
    /// Of a webhook: why it was disabled.
    Webhook {
        /// Whether it has answered that it is no more.
        is_gone: bool,
        /// Since when it has taken nothing.
        failing_since: Timestamp,
    },
}

/// What a transaction pays to an invoice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PaymentDetails {
    /// The number of the transaction; 0 stands for none: the owner has marked the invoice.
    pub transaction: u64,
    /// What it pays to the invoice.
    pub satoshis: u64,
    /// Whether it was first seen after the invoice had expired.
    pub late: bool,
    /// Where that leaves the invoice. Versions before schema 10 have not kept it.
    pub sums: Option<Sums>,
}

/// Where an invoice stands, in satoshis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sums {
    /// All that was received and counts.
    pub paid: u64,
    /// What is still asked for.
    pub due: u64,
}
