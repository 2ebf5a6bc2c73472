use std::time::Duration;

use bsv_tx::{BlockHash, MerkleBranch, OutPoint, Transaction, Txid};

use crate::error::NodeError;
use crate::rpc::{
    BlockInfo, BlockStream, ChainTip, FeedAddress, Mempool, MempoolEntry, MinedIn, NodeRpc,
    OutputState, Policy, Submitted, TransactionPlace,
};

/// The first wait for a node that has heard of a transaction and does not show it, for example
/// while it validates one from another node. The wait doubles each time.
const FIRST_WAIT: Duration = Duration::from_millis(20);
const WAITS: u32 = 8;

/// What tells a wallet of the network. All questions of a wallet are here.
///
/// Clones share connections. A question fails if the source cannot be asked, or if its answer makes
/// no sense.
#[derive(Clone, Debug)]
pub struct NetworkSource {
    node: NodeRpc,
}

/// What became of a transaction that was offered to the network once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Offered {
    /// It can be mined.
    Unmined(MempoolEntry),
    /// The network has not refused it, but does not show it as one that can be mined at once. It
    /// may be mined, time-locked, or not validated yet.
    NotShown,
    /// The network refuses it. It may have taken it before.
    Refused(Verdict),
}

/// Where the network shows a transaction that was offered to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shown {
    /// It can be mined.
    Unmined(MempoolEntry),
    /// It is in a block of the main chain.
    Mined,
    /// The network does not have it, and refuses it.
    Refused(Verdict),
    /// The network has heard of it but does not show it. It may be time-locked, or not validated
    /// yet.
    Nowhere,
}

/// Why the network refuses a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The words of the source.
    pub reason: String,
    /// Whether the transaction itself breaks a rule. Otherwise it conflicts with another one, its
    /// inputs are missing, it has too many unmined ancestors, or it is already known.
    pub is_for_itself: bool,
}

/// What stands behind the words of a source about a transaction that no block holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// A node has judged the transaction, and holds no other one that spends the same coins.
    Judged,
    /// Services say that the network has it, and the coins that it spends come from transactions in
    /// blocks. Another transaction may spend the same coins.
    Word,
    /// Services say that the network has it. It is not known where the coins that it spends come from,
    /// or what the newest block is. It counts by this as little as without it.
    Hearsay,
}

/// What the network knows about the coins of a transaction that it does not show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The transaction may still be mined.
    Unclear,
    /// The network does not know a coin that it spends.
    Orphaned,
    /// Another transaction in the main chain has spent one of its coins.
    Displaced,
}

impl NetworkSource {
    /// A node as the source.
    pub fn node(node: NodeRpc) -> Self {
        Self { node }
    }

    /// The same source with turns of its own. See [`NodeRpc::with_turns`].
    pub fn with_turns(self, turns: usize) -> Self {
        Self { node: self.node.with_turns(turns) }
    }

    /// The tip of the main chain.
    pub async fn tip(&self) -> Result<ChainTip, NodeError> {
        self.node.tip().await
    }

    /// The header of a block and its place, or `None` if the block is not known.
    pub async fn header(&self, hash: &BlockHash) -> Result<Option<BlockInfo>, NodeError> {
        self.node.block_header(hash).await
    }

    /// The header of the main chain's block at a height, or `None` if it has no such block now.
    pub async fn header_at(&self, height: u32) -> Result<Option<BlockInfo>, NodeError> {
        let Some(hash) = self.node.block_hash(height).await? else { return Ok(None) };
        Ok(self.header(&hash).await?.filter(|block| block.in_main_chain))
    }

    /// Starts to read the main chain's block at a height. `None` if it has no such block now.
    pub async fn block_at(&self, height: u32) -> Result<Option<BlockStream<'_>>, NodeError> {
        match self.node.block_hash(height).await? {
            Some(hash) => self.node.block(&hash).await,
            None => Ok(None),
        }
    }

    /// Starts to read a block once more that was read to its end. See [`NodeRpc::block_again`].
    pub async fn block_again(
        &self,
        read: BlockStream<'_>,
    ) -> Result<Option<BlockStream<'_>>, NodeError> {
        self.node.block_again(read).await
    }

    /// The transactions that can be mined.
    pub async fn unmined(&self) -> Result<Vec<Txid>, NodeError> {
        self.node.mempool().await
    }

    /// The entries of unmined transactions, in the same order. `None` for one that cannot be mined,
    /// or is mined.
    pub async fn entries(&self, txids: &[Txid]) -> Result<Vec<Option<MempoolEntry>>, NodeError> {
        self.node.mempool_entries(txids).await
    }

    /// All unmined ancestors of an unmined transaction.
    pub async fn unmined_ancestors(&self, txid: &Txid) -> Result<Vec<Txid>, NodeError> {
        self.node.mempool_ancestors(txid).await
    }

    /// The address at which the source publishes new transactions.
    pub async fn feed_address(&self) -> Result<FeedAddress, NodeError> {
        self.node.transaction_feed_address().await
    }

    /// A transaction, or `None` if the source does not have it.
    pub async fn transaction(&self, txid: &Txid) -> Result<Option<Transaction>, NodeError> {
        self.node.transaction(txid).await
    }

    /// Where the network has a transaction.
    pub async fn place(&self, txid: &Txid) -> Result<TransactionPlace, NodeError> {
        self.node.transaction_place(txid).await
    }

    /// Where the network has several transactions, in the same order.
    pub async fn places(&self, txids: &[Txid]) -> Result<Vec<TransactionPlace>, NodeError> {
        self.node.transaction_places(txids).await
    }

    /// Whether the source finds every mined transaction. Otherwise [`TransactionPlace::Nowhere`]
    /// proves nothing about one that may be mined.
    pub async fn finds_all_mined(&self) -> Result<bool, NodeError> {
        self.node.has_transaction_index().await
    }

    /// The block that holds a transaction, with the branch to its Merkle root. `None` if the source
    /// knows of no such block. Both are the source's claim: check them with
    /// [`NetworkSource::header`].
    pub async fn mined_in(&self, txid: &Txid) -> Result<Option<MinedIn>, NodeError> {
        let proof = self.node.merkle_proof(txid).await?;
        if proof.is_some() {
            return Ok(proof);
        }
        Ok(match self.place(txid).await? {
            // Nodes give no proof of a transaction that is alone in its block.
            TransactionPlace::Block(block) => {
                let branch = MerkleBranch { position: 0, siblings: Vec::new() };
                Some(MinedIn { block, branch })
            }
            TransactionPlace::Mempool | TransactionPlace::Nowhere => None,
        })
    }

    /// The states of coins, in the same order. What unmined transactions make exists, and what they
    /// spend is spent.
    pub async fn coins(&self, outpoints: &[OutPoint]) -> Result<Vec<OutputState>, NodeError> {
        self.node.outputs(outpoints, Mempool::Include).await
    }

    /// The limits of the network on transactions, and its fee rate.
    pub async fn policy(&self) -> Result<Policy, NodeError> {
        self.node.policy().await
    }

    /// Offers a transaction to the network once.
    ///
    /// Fails also if the source does not judge the transaction, for example because it has no room.
    /// The network may have the transaction nevertheless.
    pub async fn offer(&self, transaction: &Transaction) -> Result<Offered, NodeError> {
        match self.node.submit_transaction(transaction).await {
            Ok(Submitted::InMempool(entry)) => Ok(Offered::Unmined(entry)),
            Ok(Submitted::NotShown) => Ok(Offered::NotShown),
            Err(error) => match error.verdict() {
                Some(reason) => Ok(Offered::Refused(Verdict::of_node(reason))),
                None => Err(error),
            },
        }
    }

    /// Offers a transaction to the network until the network shows or refuses it, for up to 5
    /// seconds. A refused transaction is looked for, because it may have been sent before, and may
    /// be mined and spent meanwhile.
    ///
    /// Fails like [`NetworkSource::offer`].
    pub async fn show(&self, transaction: &Transaction) -> Result<Shown, NodeError> {
        let mut wait = FIRST_WAIT;
        for _ in 0..WAITS {
            let verdict = match self.offer(transaction).await? {
                Offered::Unmined(entry) => return Ok(Shown::Unmined(entry)),
                Offered::NotShown => None,
                Offered::Refused(verdict) => Some(verdict),
            };
            match (self.place(&transaction.txid()).await?, verdict) {
                (TransactionPlace::Block(_), _) => return Ok(Shown::Mined),
                (TransactionPlace::Nowhere, Some(verdict)) => return Ok(Shown::Refused(verdict)),
                (TransactionPlace::Mempool | TransactionPlace::Nowhere, _) => {}
            }
            tokio::time::sleep(wait).await;
            wait *= 2;
        }
        Ok(Shown::Nowhere)
    }

    /// What the main chain says about the coins of a transaction that the network does not show.
    /// What only the mempool shows may change and decides nothing.
    pub async fn fate(&self, transaction: &Transaction) -> Result<Fate, NodeError> {
        let spent = transaction.inputs.iter().map(|input| input.previous_output);
        let outpoints: Vec<_> = spent.collect();
        let states = self.node.outputs(&outpoints, Mempool::Ignore).await?;
        let mut fate = Fate::Unclear;
        for (state, outpoint) in states.iter().zip(&outpoints) {
            if *state == OutputState::Missing && fate != Fate::Displaced {
                fate = match self.place(&outpoint.txid).await? {
                    TransactionPlace::Block(_) => Fate::Displaced,
                    TransactionPlace::Nowhere => Fate::Orphaned,
                    TransactionPlace::Mempool => fate,
                };
            }
        }
        // The transaction itself may have been mined meanwhile.
        match self.place(&transaction.txid()).await? {
            TransactionPlace::Nowhere if self.finds_all_mined().await? => Ok(fate),
            _ => Ok(Fate::Unclear),
        }
    }
}

impl Verdict {
    /// The verdict in the words of a node (1.0.13).
    fn of_node(reason: &str) -> Self {
        const ABOUT_OTHERS: [&str; 5] =
            ["257:", "258:", "Missing inputs", "double-spend", "mempool-chain"];
        let is_for_itself = !ABOUT_OTHERS.iter().any(|words| reason.contains(words));
        Self { reason: reason.to_owned(), is_for_itself }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_told_apart() {
        for (reason, expected) in [
            ("16: mandatory-script-verify-flag-failed (Signature must be zero)", true),
            ("64: tx-size", true),
            ("16: bad-txns-vout-p2sh", true),
            ("258: txn-mempool-conflict", false),
            ("257: txn-already-known", false),
            ("18: txn-double-spend-detected", false),
            ("Missing inputs", false),
            ("64: too-long-mempool-chain", false),
        ] {
            assert_eq!(Verdict::of_node(reason).is_for_itself, expected, "{reason}");
        }
    }
}
