use crate::model::invoice_id::InvoiceId;
use crate::model::time::Timestamp;

/// Something that happened in the wallet.
///
/// Events are numbered from 1 on without a gap, in the order in which they happened, and each is
/// stored in the same step as the change it tells of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// The number.
    pub number: u64,
    /// When it happened; never before the event before it.
    pub at: Timestamp,
    /// What happened.
    pub kind: EventKind,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EventKind {
    /// An invoice was created.
    InvoiceCreated(InvoiceId),
    /// An invoice was not paid in time.
    InvoiceExpired(InvoiceId),
    /// An invoice was deleted.
    InvoiceDeleted(InvoiceId),
    /// A user was created.
    UserCreated(u64),
    /// An invoice was paid.
    InvoicePaid(InvoiceId),
    /// Another transaction took the place of the one that paid an invoice.
    InvoicePaymentDisplaced(InvoiceId),
    /// The wallet began a payment.
    PaymentStarted(u64),
    /// A payment of the wallet was accepted.
    PaymentSettled(u64),
    /// A payment of the wallet was refused.
    PaymentRefused(u64),
    /// A payment of the wallet was cancelled.
    PaymentCancelled(u64),
    /// Another transaction took the place of a payment of the wallet.
    PaymentDisplaced(u64),
}
