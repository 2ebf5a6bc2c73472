//! Events as they are stored. A row holds the details that can change later. Details that never
//! change, such as the id of an invoice, are read from other rows.

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
    /// The number of the subject: an invoice, a user, a payment by the wallet, a withdrawal, a
    /// transaction, or a webhook.
    pub subject: u64,
    /// The details.
    pub details: EventDetails,
    /// The block, if the event tells that something was mined. Versions before schema 10 did not
    /// store it.
    pub block: Option<BlockPlace>,
}

/// The details of an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EventDetails {
    /// There are no details, or a version before schema 10 wrote the event without them.
    #[default]
    None,
    /// The sum of the payments of an invoice that count, in satoshis.
    Sum(u64),
    /// For an event of an invoice: what a transaction pays to it.
    Payment(PaymentDetails),
    /// For an event of a transaction: what it pays to keys of one owner that belong to no invoice.
    Receipt(ReceiptDetails),
    /// For an event of a webhook: why it was disabled.
    Webhook {
        /// Whether the endpoint answered that it no longer exists.
        is_gone: bool,
        /// Since when the endpoint has accepted nothing.
        failing_since: Timestamp,
    },
}

/// What a transaction pays to an invoice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PaymentDetails {
    /// The number of the transaction, or 0 if the owner has marked the invoice as paid.
    pub transaction: u64,
    /// What it pays to the invoice.
    pub satoshis: u64,
    /// Whether it was first seen after the invoice had expired.
    pub late: bool,
    /// The sums of the invoice after the payment. Versions before schema 10 did not store them.
    pub sums: Option<Sums>,
}

/// What a transaction pays to keys of one owner that belong to no invoice. A stranger chooses the
/// number of outputs, so one event tells of all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiptDetails {
    /// The index of the output, if there is only one.
    pub vout: Option<u32>,
    /// The number of outputs.
    pub outputs: u64,
    /// Their sum.
    pub satoshis: u64,
    /// The user whose keys they pay. The other keys of the wallet have none.
    pub user: Option<u64>,
}

impl ReceiptDetails {
    /// Counts one more output.
    pub(crate) fn add(&mut self, vout: u32, satoshis: u64) {
        self.vout = (self.outputs == 0).then_some(vout);
        self.outputs += 1;
        self.satoshis = self.satoshis.saturating_add(satoshis);
    }
}

/// The sums of an invoice, in satoshis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sums {
    /// The sum of the payments that count.
    pub paid: u64,
    /// What is still due.
    pub due: u64,
}
