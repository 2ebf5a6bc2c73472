//! Events as they are stored.

use crate::ledger::damaged::Damaged;
use crate::model::time::Timestamp;

/// An event as it is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventRow {
    /// When it happened.
    pub at: Timestamp,
    /// What happened.
    pub code: EventCode,
    /// The number of what it happened to: an invoice, a user, a transaction that pays the wallet, or a
    /// payment by the wallet.
    pub subject: u64,
}

macro_rules! event_codes {
    ($($name:ident = $number:literal,)*) => {
        /// What happened, as it is stored.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(missing_docs, reason = "EventKind says what each means")]
        pub enum EventCode { $($name = $number,)* }

        impl EventCode {
            /// The code of this number.
            pub fn of_number(number: u8) -> Result<Self, Damaged> {
                match number {
                    $($number => Ok(Self::$name),)*
                    _ => Err(Damaged("an event of an unknown kind".to_owned())),
                }
            }
        }
    };
}

event_codes! {
    InvoiceCreated = 1,
    UserCreated = 2,
    InvoiceExpired = 3,
    InvoiceDeleted = 4,
    InvoicePaid = 5,
    InvoiceUnpaid = 6,
    OutgoingStarted = 7,
    OutgoingSettled = 8,
    OutgoingRefused = 9,
    OutgoingCancelled = 10,
    OutgoingDisplaced = 11,
    OutgoingAccepted = 12,
    OutgoingWaiting = 13,
    OutgoingMined = 14,
    OutgoingUnmined = 15,
    OutgoingContested = 16,
    OutgoingRestored = 17,
    OutgoingInvalid = 18,
    PaymentReceived = 19,
    PaymentWaiting = 20,
    PaymentMined = 21,
    PaymentUnmined = 22,
    PaymentContested = 23,
    PaymentRestored = 24,
    PaymentDisplaced = 25,
    PaymentInvalid = 26,
    CancellationShown = 27,
    CancellationLost = 28,
}
