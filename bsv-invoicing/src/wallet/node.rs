//! The node, as a wallet asks it.

use bsv_network::NodeRpc;

/// How many calls are made at once for payments that strangers offer. They choose what such a call costs,
/// so that fewer are made than a node runs at once (4).
pub(crate) const RECEIVING_TURNS: usize = 3;
/// How many calls are made at once to follow transactions and the chain.
pub(crate) const FOLLOWING_TURNS: usize = 3;

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
