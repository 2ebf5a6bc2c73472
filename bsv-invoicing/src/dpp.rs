//! The messages of the Direct Payment Protocol, for payer and payee alike.
//!
//! A payer GETs a payment URL and reads [`Terms`]. The payer then posts a transaction to the URL.
//! The payee reads it as a [`Payment`] and answers with an [`Acknowledgement`], which may name a
//! peer channel. From the channel the payer later reads [`ChannelMessage`]s with a [`MerkleProof`].
//!
//! This module does no I/O. Strangers write the messages, so everything that is read is checked.
//! Reading takes time and memory in proportion to the size of a message. The caller must limit that
//! size: the protocol's limits are [`MAX_MESSAGE_LEN`] and [`MAX_ACKNOWLEDGEMENT_LEN`]. Members
//! that the protocol does not have are ignored.

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
pub use acknowledgement::{Acknowledgement, AnswerError, MAX_REPEATED_LEN, MAX_WORDS_LEN};
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
