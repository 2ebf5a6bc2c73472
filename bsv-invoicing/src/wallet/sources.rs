//! The source that tells a wallet of the network.

use std::fmt;

use bsv_network::NetworkSource;
use bsv_network::broadcasters::Urgency;

use crate::error::Error;

/// How many calls are made at once for payments that strangers offer. Strangers choose how much
/// work such a call is, so there are fewer than a node runs at once (4).
pub(crate) const RECEIVING_TURNS: usize = 3;
/// How many large payments that strangers offer are sent at once. They have turns of their own, so
/// that small ones do not wait for them.
const LARGE_TURNS: usize = 1;
/// From this many bytes on, a payment with its ancestors is large.
const LARGE: usize = 100_000;
/// How many calls are made at once to follow transactions and the chain.
pub(crate) const FOLLOWING_TURNS: usize = 3;

/// A source with separate turns for each purpose, so that no purpose waits for the calls of another.
#[derive(Clone, Debug)]
pub(crate) struct Sources {
    /// For payments that strangers offer.
    pub(crate) receiving: NetworkSource,
    /// For sending the large ones of them.
    receiving_large: NetworkSource,
    /// For following transactions and the chain.
    pub(crate) following: NetworkSource,
    /// For everything that the owner asks for.
    pub(crate) operating: NetworkSource,
}

impl Sources {
    pub(crate) fn new(source: NetworkSource) -> Self {
        Self {
            receiving: source.clone().with_turns(RECEIVING_TURNS),
            receiving_large: source.clone().with_turns(LARGE_TURNS),
            following: source.clone().with_turns(FOLLOWING_TURNS).with_urgency(Urgency::Later),
            operating: source,
        }
    }

    /// The source for sending a payment of so many bytes, ancestors included.
    pub(crate) fn receiving_of(&self, len: usize, urgency: Urgency) -> NetworkSource {
        let source = if len < LARGE { &self.receiving } else { &self.receiving_large };
        source.clone().with_urgency(urgency)
    }
}

/// The error when the source cannot be asked and nothing was changed.
pub(crate) fn away(error: impl fmt::Display) -> Error {
    Error::NetworkAway(error.to_string())
}

/// The error when the source cannot be asked and the outcome of a payment is not known.
pub(crate) fn unknown(error: impl fmt::Display) -> Error {
    Error::OutcomeUnknown(error.to_string())
}
