//! Rival chains.

use bsv_tx::{BlockHash, Transaction};
use serde_json::{Value, json};

use crate::node::Node;
use crate::purse::send;

/// A node that builds another chain on the same blocks and is not connected.
#[derive(Debug)]
pub struct Rival {
    /// The node.
    pub node: Node,
    /// The height up to which both have the same blocks.
    common: u64,
}

impl Rival {
    /// A rival with the current blocks of `node` and an empty mempool.
    pub fn of(node: &Node) -> Self {
        Self::from(Node::start(), node)
    }

    /// Such a rival, made of a node that has no block yet.
    pub fn from(rival: Node, node: &Node) -> Self {
        let rival = Self { node: rival, common: height(node) };
        copy(node, &rival.node, 1);
        assert_eq!(tip(&rival.node), tip(node));
        rival
    }

    /// Mines blocks, the first with these transactions.
    pub fn mine(&self, transactions: &[&Transaction], blocks: u32) -> Vec<BlockHash> {
        for transaction in transactions {
            send(&self.node, transaction);
        }
        self.node.mine(blocks)
    }

    /// Mines blocks with the transactions of its mempool until its chain is longer than the one of
    /// `node`.
    pub fn outgrow(&self, node: &Node) {
        let missing = height(node) + 1 - height(&self.node);
        self.node.mine(u32::try_from(missing).unwrap());
    }

    /// Follows the chain of `node`, which continues from the blocks that both have.
    pub fn follow(&mut self, node: &Node) {
        copy(node, &self.node, self.common + 1);
        assert_eq!(tip(&self.node), tip(node));
        self.common = height(node);
    }

    /// Shows its chain to `node`, which makes it the main chain if it is longer.
    pub fn show_to(&self, node: &Node) {
        copy(&self.node, node, self.common + 1);
    }
}

/// The last block of the main chain.
pub fn tip(node: &Node) -> Value {
    node.call("getbestblockhash", json!([]))
}

/// The height of the tip.
pub fn height(node: &Node) -> u64 {
    node.call("getblockcount", json!([])).as_u64().unwrap()
}

fn copy(from: &Node, to: &Node, first: u64) {
    for height in first..=height(from) {
        let hash = from.call("getblockhash", json!([height]));
        let block = from.call("getblock", json!([hash, false]));
        to.call("submitblock", json!([block]));
    }
}

/// Restarts a node with an empty mempool.
pub fn restart_empty(node: &mut Node) {
    restart_empty_with(node, &[]);
}

/// Restarts a node with further settings and an empty mempool.
pub fn restart_empty_with(node: &mut Node, settings: &[&str]) {
    node.stop();
    let _ = std::fs::remove_file(node.directory().join("regtest/mempool.dat"));
    node.restart_with(settings);
    assert_eq!(node.call("getrawmempool", json!([])), json!([]));
}
