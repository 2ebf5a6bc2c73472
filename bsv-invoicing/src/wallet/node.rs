//! The node, as a wallet asks it.

use bsv_network::{NodeError, NodeRpc};

use crate::error::Error;

/// How many calls are made at once for payments that strangers offer. They choose what such a call costs,
/// so that fewer are made than a node runs at once (4).
pub(crate) const RECEIVING_TURNS: usize = 3;
/// How many calls are made at once to follow transactions and the chain.
pub(crate) const FOLLOWING_TURNS: usize = 3;

/// Why a node does not tell what became of a transaction.
pub(crate) const NO_INDEX: &str = "the node does not find all mined transactions: run it with \
                                   txindex=1, without which it is not known what became of some";

/// A node, with turns for each purpose: none waits for the calls of another.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    /// For payments that strangers offer.
    pub(crate) receiving: NodeRpc,
    /// For following transactions and the chain.
    pub(crate) following: NodeRpc,
    /// For what the owner has the wallet do.
    pub(crate) operating: NodeRpc,
}

impl Node {
    pub(crate) fn new(node: NodeRpc) -> Self {
        Self {
            receiving: node.clone().with_turns(RECEIVING_TURNS),
            following: node.clone().with_turns(FOLLOWING_TURNS),
            operating: node,
        }
    }
}

/// That nothing was changed because the node cannot be used.
pub(crate) fn away(error: NodeError) -> Error {
    Error::NetworkAway(error.to_string())
}

/// That it is not known what became of a payment, because the node cannot be used.
pub(crate) fn unknown(error: NodeError) -> Error {
    Error::OutcomeUnknown(error.to_string())
}
