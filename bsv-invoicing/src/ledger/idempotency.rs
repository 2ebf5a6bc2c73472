//! Idempotency keys as they are stored.

use minicbor::{Decode, Encode};

use crate::model::outgoing::OutgoingPurpose;
use crate::model::time::Timestamp;

/// The route of an idempotency key. Each route has its own keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Route {
    /// Creating invoices.
    Invoices = 1,
    /// Creating users.
    Users = 2,
    /// Paying.
    Pay = 3,
    /// Withdrawing.
    Withdrawals = 4,
    /// Refunding.
    Refunds = 5,
}

impl Route {
    /// The route of this number.
    pub fn of_number(number: u8) -> Option<Self> {
        [Self::Invoices, Self::Users, Self::Pay, Self::Withdrawals, Self::Refunds]
            .into_iter()
            .find(|route| *route as u8 == number)
    }

    /// The route of payments for this purpose, if callers can ask for such payments.
    pub(crate) fn of_purpose(purpose: &OutgoingPurpose) -> Option<Self> {
        match purpose {
            OutgoingPurpose::Url(_) => Some(Self::Pay),
            OutgoingPurpose::Withdrawal(_) => Some(Self::Withdrawals),
            OutgoingPurpose::Refund { .. } => Some(Self::Refunds),
            OutgoingPurpose::Consolidation => None,
        }
    }
}

/// The answer to a request with an idempotency key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Answered {
    /// The hash of the request.
    #[cbor(n(0), with = "minicbor::bytes")]
    pub request_hash: [u8; 32],
    /// The number of the resource that it created.
    #[n(1)]
    pub number: u64,
    /// When it was answered.
    #[n(2)]
    pub at: Timestamp,
}
