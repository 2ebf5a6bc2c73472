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

/// What happened. Payments to the wallet are named by the numbers of their transactions, payments by the
/// wallet by their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EventKind {
    /// An invoice was created.
    InvoiceCreated(InvoiceId),
    /// An invoice was not paid in time.
    InvoiceExpired(InvoiceId),
    /// An invoice was deleted.
    InvoiceDeleted(InvoiceId),
    /// An invoice was paid.
    InvoicePaid(InvoiceId),
    /// An invoice is not paid any more: what had paid it was displaced, or is invalid.
    InvoiceUnpaid(InvoiceId),
    /// A user was created.
    UserCreated(u64),
    /// The network shows a payment to the wallet, which counts from now on.
    PaymentReceived(u64),
    /// The network shows a payment to the wallet whose fee is too low for it to count.
    PaymentWaiting(u64),
    /// A payment to the wallet was mined.
    PaymentMined(u64),
    /// The block of a payment to the wallet left the chain.
    PaymentUnmined(u64),
    /// The network has not shown a payment to the wallet for a minute that it had shown before.
    PaymentContested(u64),
    /// The network shows a payment to the wallet again that was contested or lost.
    PaymentRestored(u64),
    /// Another transaction took the place of a payment to the wallet.
    PaymentDisplaced(u64),
    /// The network refused a payment to the wallet at several tips in a row; or had shown it, and refused it when
    /// it was offered once more.
    PaymentInvalid(u64),
    /// The wallet began a payment.
    OutgoingStarted(u64),
    /// The payee of a payment of the wallet has agreed to it.
    OutgoingAccepted(u64),
    /// The network shows a payment of the wallet whose fee may be too low for it to be mined.
    OutgoingWaiting(u64),
    /// The network has taken a payment of the wallet.
    OutgoingSettled(u64),
    /// A payment of the wallet was mined.
    OutgoingMined(u64),
    /// The block of a payment of the wallet left the chain.
    OutgoingUnmined(u64),
    /// The network has not shown a payment of the wallet for a minute that it had shown before.
    OutgoingContested(u64),
    /// The network shows a payment of the wallet again that was contested or lost.
    OutgoingRestored(u64),
    /// A payment of the wallet was refused by its payee.
    OutgoingRefused(u64),
    /// A payment of the wallet was cancelled.
    OutgoingCancelled(u64),
    /// Another transaction took the place of a payment of the wallet.
    OutgoingDisplaced(u64),
    /// The network refused a payment of the wallet at several tips in a row.
    OutgoingInvalid(u64),
    /// The network shows a transaction that takes a coin back from a payment of the wallet.
    CancellationShown(u64),
    /// A transaction that took a coin back from a payment of the wallet is lost.
    CancellationLost(u64),
}
