use std::time::Duration;

use bsv_tx::{BlockHash, BlockHeader, MerkleBranch, Transaction, Txid};
use serde_json::value::RawValue;

use super::{NodeRpc, code, same_txid};
use crate::answers::{CoinbaseInfo, HeaderInfo, MerkleProof, read};
use crate::error::NodeError;

/// The block that mined a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MinedIn {
    /// The block.
    pub block: BlockHash,
    /// The path from the transaction to the block's Merkle root.
    pub branch: MerkleBranch,
}

/// The header of a block and its place in the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockInfo {
    /// The header, with the Merkle root and the hash of the previous block.
    pub header: BlockHeader,
    /// The height. The first block has height 0.
    pub height: u32,
    /// Whether the block belongs to the main chain.
    pub in_main_chain: bool,
}

/// A block's coinbase transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockCoinbase {
    /// The header and the place of the block.
    pub info: BlockInfo,
    /// The coinbase transaction.
    pub coinbase: Transaction,
}

impl NodeRpc {
    /// The block that holds the transaction `txid`, and the branch to its Merkle root
    /// (`getmerkleproof2`). Answers `None` if the node knows of no such block. The node needs
    /// `txindex=1`.
    ///
    /// The block may be off the main chain, and the branch's root is only the node's claim. Compare
    /// both with [`NodeRpc::block_header`].
    pub async fn merkle_proof(&self, txid: &Txid) -> Result<Option<MinedIn>, NodeError> {
        let method = "getmerkleproof2";
        let proof: MerkleProof = match self.ask(method, &("", txid.to_string())).await {
            Err(NodeError::Rejected { code: code::NOT_FOUND, .. }) => return Ok(None),
            result => result?,
        };
        same_txid(method, &proof.txid, txid)?;
        let block = proof.target;
        let branch = sound_branch(method, txid, proof)?;
        Ok(Some(MinedIn { block, branch }))
    }

    /// A block's place and its coinbase transaction, or `None` if the node does not know the block
    /// (`getblock`). The header matches `hash`. The node only claims that the transaction belongs
    /// to the block; [`NodeRpc::merkle_branch`] proves it.
    pub async fn block_coinbase(
        &self,
        hash: &BlockHash,
    ) -> Result<Option<BlockCoinbase>, NodeError> {
        const HEADER_AND_COINBASE: u8 = 3;
        let method = "getblock";
        let params = (hash.to_string(), HEADER_AND_COINBASE);
        let answer: Box<RawValue> = match self.ask(method, &params).await {
            Err(NodeError::Rejected { code: code::NOT_FOUND, .. }) => return Ok(None),
            result => result?,
        };
        let info = block_info(method, hash, read(method, &answer)?)?;
        let CoinbaseInfo { tx } = read(method, &answer)?;
        match <[_; 1]>::try_from(tx) {
            Ok([coinbase]) => Ok(Some(BlockCoinbase { info, coinbase: coinbase.hex })),
            Err(tx) => {
                let reason = format!("{} transactions instead of one", tx.len());
                Err(NodeError::unexpected(method, reason))
            }
        }
    }

    /// The branch from the transaction `txid` to the Merkle root of the block `hash`, or `None` if
    /// the transaction is not in that block (`getmerkleproof2`). The node needs no index of
    /// transactions.
    ///
    /// Nodes give no proof for a block with a single transaction. The id of that transaction is the
    /// root.
    pub async fn merkle_branch(
        &self,
        hash: &BlockHash,
        txid: &Txid,
    ) -> Result<Option<MerkleBranch>, NodeError> {
        let method = "getmerkleproof2";
        let params = (hash.to_string(), txid.to_string());
        let proof: MerkleProof = match self.ask(method, &params).await {
            Err(NodeError::Rejected { code: code::NOT_FOUND, .. }) => return Ok(None),
            result => result?,
        };
        same_txid(method, &proof.txid, txid)?;
        if proof.target != *hash {
            let reason = format!("the answer is about block {}, not {hash}", proof.target);
            return Err(NodeError::unexpected(method, reason));
        }
        sound_branch(method, txid, proof).map(Some)
    }

    /// Whether the node keeps an index of all transactions (`txindex=1`). The node's message about
    /// a transaction that does not exist tells. Without the index, the node does not find a mined
    /// transaction whose outputs are all spent.
    pub async fn has_transaction_index(&self) -> Result<bool, NodeError> {
        let nothing = Txid::from_bytes([0; 32]).to_string();
        match self.ask::<String>("getrawtransaction", &(nothing, false)).await {
            Err(NodeError::Rejected { code: code::NOT_FOUND, message, .. }) => {
                Ok(!message.contains("-txindex"))
            }
            result => result.map(|_| true),
        }
    }

    /// The header of a block and its place, or `None` if the node does not know the block
    /// (`getblockheader`). The header is checked to match `hash`.
    pub async fn block_header(&self, hash: &BlockHash) -> Result<Option<BlockInfo>, NodeError> {
        let method = "getblockheader";
        let info: HeaderInfo = match self.ask(method, &(hash.to_string(), true)).await {
            Err(NodeError::Rejected { code: code::NOT_FOUND, .. }) => return Ok(None),
            result => result?,
        };
        block_info(method, hash, info).map(Some)
    }

    /// Waits until the main chain has this height, at most for `patience` (`waitforblockheight`).
    /// During the wait, the call occupies one of the few calls that a node runs at once.
    pub async fn wait_for_height(&self, height: u32, patience: Duration) -> Result<(), NodeError> {
        let millis = u64::try_from(patience.as_millis()).unwrap_or(u64::MAX);
        let waiting = self.clone().with_timeout(patience.saturating_add(self.timeout));
        let _: Box<RawValue> = waiting.ask("waitforblockheight", &(height, millis)).await?;
        Ok(())
    }

    /// The block of the main chain at `height`, or `None` beyond its end (`getblockhash`).
    pub async fn block_hash(&self, height: u32) -> Result<Option<BlockHash>, NodeError> {
        // The node accepts no larger integers.
        if i32::try_from(height).is_err() {
            return Ok(None);
        }
        match self.ask("getblockhash", &[height]).await {
            Err(NodeError::Rejected { code: code::INVALID_PARAMETER, .. }) => Ok(None),
            result => result.map(Some),
        }
    }
}

fn block_info(method: &str, hash: &BlockHash, info: HeaderInfo) -> Result<BlockInfo, NodeError> {
    let header = info.header();
    if header.block_hash() != *hash {
        let reason = format!("the answer is about block {}, not {hash}", header.block_hash());
        return Err(NodeError::unexpected(method, reason));
    }
    Ok(BlockInfo { header, height: info.height, in_main_chain: info.confirmations > 0 })
}

fn sound_branch(method: &str, txid: &Txid, proof: MerkleProof) -> Result<MerkleBranch, NodeError> {
    let branch = proof.into_branch();
    if branch.siblings.len() > MerkleBranch::MAX_SIBLINGS || branch.root(txid).is_none() {
        let reason = format!(
            "a branch of {} nodes does not lead from position {} to a root",
            branch.siblings.len(),
            branch.position
        );
        return Err(NodeError::unexpected(method, reason));
    }
    Ok(branch)
}
