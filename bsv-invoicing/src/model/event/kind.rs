use std::fmt;

use minicbor::{Decode, Encode};

macro_rules! event_kinds {
    ($($(#[$doc:meta])* $kind:ident = $number:literal, $name:literal;)*) => {
        /// What kind of thing happened. The store keeps its number. Its name is the `type` of the
        /// API.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
        #[cbor(index_only)]
        #[non_exhaustive]
        pub enum EventKind { $($(#[$doc])* #[n($number)] $kind = $number,)* }

        impl EventKind {
            /// All kinds.
            pub const ALL: &'static [Self] = &[$(Self::$kind,)*];

            /// The kind of this number.
            pub fn of_number(number: u8) -> Option<Self> {
                match number {
                    $($number => Some(Self::$kind),)*
                    _ => None,
                }
            }

            /// The `type` of the API. It consists of small letters, dots and underscores.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$kind => $name,)*
                }
            }
        }
    };
}

event_kinds! {
    /// An invoice was created.
    InvoiceCreated = 1, "invoice.created";
    /// A user was created.
    UserCreated = 2, "user.created";
    /// An invoice was not paid in time.
    InvoiceExpired = 3, "invoice.expired";
    /// An invoice was deleted.
    InvoiceDeleted = 4, "invoice.deleted";
    /// An invoice is paid from now on.
    InvoicePaid = 5, "invoice.paid";
    /// An invoice is no longer paid: its payment was displaced or is invalid.
    InvoiceUnpaid = 6, "invoice.unpaid";
    /// The wallet began a payment.
    OutgoingStarted = 7, "outgoing.started";
    /// The network has taken a payment by the wallet.
    OutgoingSettled = 8, "outgoing.settled";
    /// The payee of a payment by the wallet has refused it.
    OutgoingRefused = 9, "outgoing.refused";
    /// A payment by the wallet was cancelled.
    OutgoingCancelled = 10, "outgoing.cancelled";
    /// Another transaction took the place of a payment by the wallet.
    OutgoingDisplaced = 11, "outgoing.displaced";
    /// The payee of a payment by the wallet has agreed to it.
    OutgoingAccepted = 12, "outgoing.accepted";
    /// The network shows a payment by the wallet whose fee may be too low for it to be mined.
    OutgoingWaiting = 13, "outgoing.waiting";
    /// A payment by the wallet was mined.
    OutgoingMined = 14, "outgoing.mined";
    /// The block of a payment by the wallet left the chain.
    OutgoingUnmined = 15, "outgoing.unmined";
    /// The network has shown a payment by the wallet before, and has not shown it for a minute.
    OutgoingContested = 16, "outgoing.contested";
    /// The network shows a payment by the wallet again that it had stopped showing.
    OutgoingRestored = 17, "outgoing.restored";
    /// The network refused a payment by the wallet at several tips in a row.
    OutgoingInvalid = 18, "outgoing.invalid";
    /// The network shows a payment of an invoice, which counts from now on.
    PaymentReceived = 19, "invoice.payment_received";
    /// The network shows a payment of an invoice whose fee is too low for it to count.
    PaymentWaiting = 20, "invoice.payment_waiting";
    /// A payment of an invoice was mined.
    PaymentMined = 21, "invoice.payment_mined";
    /// The block of a payment of an invoice left the chain.
    PaymentUnmined = 22, "invoice.payment_unmined";
    /// The network has shown a payment of an invoice before, and has not shown it for a minute.
    PaymentContested = 23, "invoice.payment_contested";
    /// The network shows a payment of an invoice again that it had stopped showing.
    PaymentRestored = 24, "invoice.payment_restored";
    /// Another transaction took the place of a payment of an invoice.
    PaymentDisplaced = 25, "invoice.payment_displaced";
    /// The network refused a payment of an invoice at several tips in a row, or it had shown the
    /// payment and refused it when the wallet offered it again.
    PaymentInvalid = 26, "invoice.payment_invalid";
    /// The network shows a transaction that takes a coin back from a payment by the wallet.
    CancellationShown = 27, "outgoing.cancellation_shown";
    /// The network no longer shows a transaction that took a coin back from a payment by the
    /// wallet.
    CancellationLost = 28, "outgoing.cancellation_lost";
    /// The owner of an invoice has marked it as paid.
    InvoiceMarked = 29, "invoice.marked";
    /// The network has taken a refund of an invoice.
    InvoiceRefunded = 30, "invoice.refunded";
    /// The network has taken the last transaction of a withdrawal.
    WithdrawalSettled = 31, "withdrawal.settled";
    /// The network shows money for a script of the wallet that belongs to no invoice. It counts from now on.
    ReceiptUnassigned = 32, "receipt.unassigned";
    /// The same, with a fee that is too low for it to count.
    ReceiptWaiting = 33, "receipt.waiting";
    /// Money that belongs to no invoice was mined.
    ReceiptMined = 34, "receipt.mined";
    /// The block of money that belongs to no invoice left the chain.
    ReceiptUnmined = 35, "receipt.unmined";
    /// The network has not shown money that belongs to no invoice for a minute.
    ReceiptContested = 36, "receipt.contested";
    /// The network shows money that belongs to no invoice again.
    ReceiptRestored = 37, "receipt.restored";
    /// Another transaction took the place of one with money that belongs to no invoice.
    ReceiptDisplaced = 38, "receipt.displaced";
    /// The network refused a transaction with money that belongs to no invoice.
    ReceiptInvalid = 39, "receipt.invalid";
    /// The network shows a transaction that spends coins of the wallet and that the wallet did not
    /// make.
    TransactionFound = 40, "transaction.found";
    /// The same, with a fee that may be too low for it to be mined.
    TransactionWaiting = 41, "transaction.waiting";
    /// Such a transaction was mined.
    TransactionMined = 42, "transaction.mined";
    /// The block of such a transaction left the chain.
    TransactionUnmined = 43, "transaction.unmined";
    /// The network has not shown such a transaction for a minute.
    TransactionContested = 44, "transaction.contested";
    /// The network shows such a transaction again.
    TransactionRestored = 45, "transaction.restored";
    /// Another transaction took the place of such a transaction.
    TransactionDisplaced = 46, "transaction.displaced";
    /// The network refused such a transaction.
    TransactionInvalid = 47, "transaction.invalid";
    /// A webhook was disabled: its endpoint accepted nothing for 120 hours, or answered 410.
    WebhookDisabled = 48, "webhook.disabled";
    /// A refund has begun that counts against what an invoice is paid with, or such a refund has come to
    /// nothing.
    InvoiceSumsChanged = 49, "invoice.sums_changed";
    /// So much counts by the word of services alone that a payment waits for its block.
    ExposureReached = 50, "exposure.reached";
}

impl EventKind {
    /// The kind for money of no invoice that corresponds to this kind for a payment of an invoice.
    pub(crate) fn of_receipt(self) -> Self {
        match self {
            Self::PaymentReceived => Self::ReceiptUnassigned,
            Self::PaymentWaiting => Self::ReceiptWaiting,
            Self::PaymentMined => Self::ReceiptMined,
            Self::PaymentUnmined => Self::ReceiptUnmined,
            Self::PaymentContested => Self::ReceiptContested,
            Self::PaymentRestored => Self::ReceiptRestored,
            Self::PaymentDisplaced => Self::ReceiptDisplaced,
            Self::PaymentInvalid => Self::ReceiptInvalid,
            other => other,
        }
    }

    /// The kind for a transaction that the wallet did not make, and that corresponds to this kind
    /// for a payment of an invoice.
    pub(crate) fn of_transaction(self) -> Self {
        match self {
            Self::PaymentReceived => Self::TransactionFound,
            Self::PaymentWaiting => Self::TransactionWaiting,
            Self::PaymentMined => Self::TransactionMined,
            Self::PaymentUnmined => Self::TransactionUnmined,
            Self::PaymentContested => Self::TransactionContested,
            Self::PaymentRestored => Self::TransactionRestored,
            Self::PaymentDisplaced => Self::TransactionDisplaced,
            Self::PaymentInvalid => Self::TransactionInvalid,
            other => other,
        }
    }

    /// Whether events of this kind name a block.
    pub(crate) fn is_mined(self) -> bool {
        matches!(
            self,
            Self::OutgoingMined | Self::PaymentMined | Self::ReceiptMined | Self::TransactionMined
        )
    }
}

impl fmt::Display for EventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_the_form_of_the_contract_and_numbers_fit_a_mask() {
        for kind in EventKind::ALL {
            assert!(kind.name().bytes().all(|c| matches!(c, b'a'..=b'z' | b'_' | b'.')), "{kind}");
            assert_eq!(EventKind::of_number(*kind as u8), Some(*kind));
            assert!((*kind as u8) < 128);
            let same_name = EventKind::ALL.iter().filter(|other| other.name() == kind.name());
            assert_eq!(same_name.count(), 1, "{kind}");
        }
    }
}
