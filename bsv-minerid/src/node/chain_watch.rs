//! What is known of the chain, for requests and for the loop that follows it.

use std::sync::{Mutex, MutexGuard, PoisonError};

use bsv_network::{ChainTip, NodeRpc};
use bsv_tx::BlockHash;

use crate::node::blocks::ReadBlocks;

/// The state of the chain, and the node that reports it. While the node is unreachable, the last
/// state holds.
#[derive(Debug, Default)]
pub(crate) struct ChainWatch {
    pub(super) node: Option<NodeRpc>,
    /// Held while the node is asked, so that other callers wait for the answer.
    pub(super) observed: tokio::sync::Mutex<Observed>,
    known: Mutex<Known>,
    /// The last blocks that were read for announcements.
    pub(crate) read_blocks: ReadBlocks,
}

/// The state of the last question to the node.
#[derive(Debug, Default)]
pub(super) struct Observed {
    pub(super) tip: Option<BlockHash>,
    /// Whether the node has had the time to list the miner id of that block.
    pub(super) is_settled: bool,
}

/// The state that requests are compared with.
#[derive(Debug, Default)]
pub(super) struct Known {
    pub(super) tip: Option<ChainTip>,
    /// The last request that led to a question, and the tip known then.
    asked_for: Option<(ChainSign, Option<ChainTip>)>,
    /// Whether the node has let somebody wait in vain since it last answered. No request waits then.
    pub(super) is_silent: bool,
}

/// What a request for a document tells about the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChainSign {
    /// The height of the block that is being mined.
    Height(u32),
    /// The block before the one that is being mined.
    PreviousBlock(BlockHash),
}

impl ChainSign {
    /// Whether the request implies another tip than this one.
    fn is_beyond(self, tip: &ChainTip) -> bool {
        match self {
            Self::Height(height) => height > tip.height.saturating_add(1),
            Self::PreviousBlock(hash) => hash != tip.hash,
        }
    }
}

impl ChainWatch {
    /// Whether a request implies another tip than the known one, and the node was not asked because
    /// of it yet, and answers.
    pub(super) fn is_news(&self, sign: ChainSign) -> bool {
        let known = self.known();
        !known.is_silent
            && known.tip.is_none_or(|tip| sign.is_beyond(&tip))
            && known.asked_for != Some((sign, known.tip))
    }

    pub(super) fn note_asked_for(&self, sign: ChainSign) {
        let mut known = self.known();
        known.asked_for = Some((sign, known.tip));
    }

    pub(super) fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
