//! The messages of the Direct Payment Protocol, for payer and payee alike.
//!
//! A payer GETs a payment URL and reads [`Terms`], posts a transaction to it, which the payee reads as
//! [`Payment`], and is answered an [`Acknowledgement`]. Through the peer channel in it the payer
//! later reads [`ChannelMessage`]s with a [`MerkleProof`].
//!
//! Nothing here talks to anybody. What is read is checked, since strangers have written it: reading
//! takes time and memory in proportion to a message's size, and the caller limits that size (the
//! protocol's limits are [`MAX_MESSAGE_LEN`] and [`MAX_ACKNOWLEDGEMENT_LEN`]). Members that the
//! protocol does not have are ignored.

mod acknowledgement;
mod channel;
mod json;
mod payment;
mod proof;
mod received;
mod terms;

pub(crate) use acknowledgement::refusal;
pub use acknowledgement::{Acknowledgement, AnswerError, MAX_WORDS_LEN};
pub use channel::ChannelMessage;
pub use payment::{MAX_REFUND_TO_LEN, Payment, PaymentError};
pub use proof::{MerkleProof, ProofError};
pub use received::{MAX_DESTINATIONS, ReceivedTerms, TermsError};
pub use terms::{Destination, FeeRate, Fees, Merchant, Terms};

pub use crate::model::payment::PeerChannel;

/// The most bytes of terms and of a payment (BRC-55).
pub const MAX_MESSAGE_LEN: usize = 10_000_000;

/// The most bytes of an acknowledgement, which may hold a payment (BRC-55).
pub const MAX_ACKNOWLEDGEMENT_LEN: usize = 11_000_000;

/// How the messages are written. A payment's dialect shows in its members, and so does that of terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// What wallets spoke in 2022, after the Go library of this name.
    GoDpp,
    /// BRC-27 with the hybrid payment mode (BRC-54), over HTTP (BRC-55).
    Brc,
    /// BIP270, the simplified payment protocol.
    Bip270,
}

/// The one payment mode of BRC-27 that is spoken here, the hybrid payment mode (BRC-54).
const HYBRID_MODE: &str = "ef63d9775da5";

impl Dialect {
    /// A short name, which stays the same and can be stored.
    pub fn name(self) -> &'static str {
        match self {
            Self::GoDpp => "go-dpp",
            Self::Brc => "brc-27",
            Self::Bip270 => "bip-270",
        }
    }

    /// The dialect of this [`name`](Self::name).
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::GoDpp, Self::Brc, Self::Bip270].into_iter().find(|dialect| dialect.name() == name)
    }

    /// The `Content-Type` of terms.
    pub fn terms_type(self) -> &'static str {
        match self {
            Self::GoDpp | Self::Brc => "application/json",
            Self::Bip270 => "application/bitcoinsv-paymentrequest",
        }
    }

    /// The `Content-Type` of a payment.
    pub fn payment_type(self) -> &'static str {
        match self {
            Self::GoDpp | Self::Brc => "application/json",
            Self::Bip270 => "application/bitcoinsv-payment",
        }
    }

    /// The `Content-Type` of an acknowledgement.
    pub fn acknowledgement_type(self) -> &'static str {
        match self {
            Self::GoDpp | Self::Brc => "application/json",
            Self::Bip270 => "application/bitcoinsv-paymentack",
        }
    }
}
