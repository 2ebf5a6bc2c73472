//! Events as they are stored. A row holds the details that can change later. Details that never
//! change, such as the id of an invoice, are read from other rows.

use minicbor::{Decode, Encode};

use crate::model::event::EventKind;
use crate::model::time::Timestamp;
use crate::model::transaction::BlockPlace;

/// An event as it is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct EventRow {
    /// When it happened.
    #[n(0)]
    pub at: Timestamp,
    /// What kind of thing happened.
    #[n(1)]
    pub kind: EventKind,
    /// The number of the subject: an invoice, a user, a payment by the wallet, a withdrawal, a
    /// transaction, or a webhook.
    #[n(2)]
    pub subject: u64,
    /// The details.
    #[n(3)]
    pub details: EventDetails,
    /// The block, if the event tells that something was mined.
    #[n(4)]
    pub block: Option<BlockPlace>,
}

/// The details of an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub enum EventDetails {
    /// There are no details.
    #[default]
    #[n(0)]
    None,
    /// The sum of the payments of an invoice that count, in satoshis.
    #[n(1)]
    Sum(#[n(0)] u64),
    /// For an event of an invoice: what a transaction pays to it.
    #[n(2)]
    Payment(#[n(0)] PaymentDetails),
    /// For an event of a transaction: what it pays to keys of one owner that belong to no invoice.
    #[n(3)]
    Receipt(#[n(0)] ReceiptDetails),
    /// For an event of a webhook: why it was disabled.
    #[n(4)]
    Webhook {
        /// Whether the endpoint answered that it no longer exists.
        #[n(0)]
        is_gone: bool,
        /// Since when the endpoint has accepted nothing.
        #[n(1)]
        failing_since: Timestamp,
    },
    /// For an event of a transaction that must wait because of the exposure.
    #[n(5)]
    Exposure(#[n(0)] ExposureDetails),
}

/// A transaction that must wait because too much counts by the word of services alone. Amounts are in
/// satoshis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct ExposureDetails {
    /// What the transaction would have added.
    #[n(0)]
    pub satoshis: u64,
    /// The sum of what counts by the word of services alone.
    #[n(1)]
    pub exposed: u64,
    /// The highest sum.
    #[n(2)]
    pub limit: u64,
}

/// What a transaction pays to an invoice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct PaymentDetails {
    /// The number of the transaction. It is 0 if no payment has changed the invoice, but its owner or a
    /// refund, and if the network has never shown the payment.
    #[n(0)]
    pub transaction: u64,
    /// What it pays to the invoice.
    #[n(1)]
    pub satoshis: u64,
    /// Whether it was first seen after the invoice had expired.
    #[n(2)]
    pub late: bool,
    /// The sums of the invoice after the payment.
    #[n(3)]
    pub sums: Sums,
}

/// What a transaction pays to keys of one owner that belong to no invoice. A stranger chooses the
/// number of outputs, so one event tells of all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct ReceiptDetails {
    /// The index of the output, if there is only one.
    #[n(0)]
    pub vout: Option<u32>,
    /// The number of outputs.
    #[n(1)]
    pub outputs: u64,
    /// Their sum.
    #[n(2)]
    pub satoshis: u64,
    /// The user whose keys they pay. The other keys of the wallet have none.
    #[n(3)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Sums {
    /// The sum of the payments that count in the balance.
    #[n(0)]
    pub paid: u64,
    /// What is still due.
    #[n(1)]
    pub due: u64,
    /// The part of `paid` that counts towards the invoice.
    #[n(2)]
    pub counted: u64,
}
