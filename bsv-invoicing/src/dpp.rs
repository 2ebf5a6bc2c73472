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
mod dialect;
mod json;
mod payment;
mod posted;
mod proof;
mod received;
mod terms;

pub(crate) use acknowledgement::refusal;
pub use acknowledgement::{Acknowledgement, AnswerError, MAX_WORDS_LEN};
pub use channel::ChannelMessage;
pub use dialect::Dialect;
pub use payment::{MAX_REFUND_TO_LEN, Payment, PaymentError};
pub use posted::read_posted_transaction;
pub use proof::{MerkleProof, ProofError};
pub use received::{MAX_DESTINATIONS, ReceivedTerms, TermsError};
pub use terms::{Destination, FeeRate, Fees, Merchant, Terms};

pub use crate::model::outgoing::PeerChannel;

/// The most bytes of terms and of a payment (BRC-55).
pub const MAX_MESSAGE_LEN: usize = 10_000_000;

/// The most bytes of an acknowledgement, which may hold a payment (BRC-55).
pub const MAX_ACKNOWLEDGEMENT_LEN: usize = 11_000_000;
