use bsv_tx::{BlockHash, BlockHeader, MerkleBranch, Txid};

use super::{NodeRpc, code, same_txid};
use crate::answers::{HeaderInfo, MerkleProof, Parsed};
use crate::error::NodeError;

/// Where a transaction was mined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MinedIn {
    /// The block.
    pub block: BlockHash,
    /// The way from the transaction to the root of the block's tree.
    pub branch: MerkleBranch,
}

/// A block, as far as its header and its place tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockInfo {
    /// The header, with the Merkle root and the hash of the block before.
    pub header: BlockHeader,
    /// The height; the first block has height 0.
    pub height: u32,
    /// Whether the block belongs to the main chain.
    pub in_main_chain: bool,
}

impl NodeRpc {
    /// In which block the transaction `txid` is, and the way to its Merkle root, or `None` if it is
    /// in none that the node knows of (`getmerkleproof2`). The node needs `txindex=1`.
    ///
    /// The block may be one off the main chain, and the root of the branch is the node's claim:
    /// compare both with [`NodeRpc::block_header`].
    pub async fn merkle_proof(&self, txid: &Txid) -> Result<Option<MinedIn>, NodeError> {
        let method = "getmerkleproof2";
        let proof: MerkleProof = match self.ask(method, &("", txid.to_string())).await {
            Err(NodeError::Rejected { code: code::NOT_FOUND, .. }) => return Ok(None),
            result => result?,
        };
        same_txid(method, &proof.txid, txid)?;
        let block = proof.target;
        let branch = proof.into_branch();
        if branch.siblings.len() > MerkleBranch::MAX_SIBLINGS || branch.root(txid).is_none() {
            let reason = format!(
                "a branch of {} nodes does not lead from position {} to a root",
                branch.siblings.len(),
                branch.position
            );
            return Err(NodeError::unexpected(method, reason));
        }
        Ok(Some(MinedIn { block, branch }))
    }

    /// Whether the node keeps an index of all transactions (`txindex=1`), which its words about one that
    /// does not exist tell. Without it, it does not find a mined transaction whose outputs are all
    /// spent.
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
    /// (`getblockheader`). Whatever the node says, the header is the one that `hash` names.
    pub async fn block_header(&self, hash: &BlockHash) -> Result<Option<BlockInfo>, NodeError> {
        let method = "getblockheader";
        let info: HeaderInfo = match self.ask(method, &(hash.to_string(), true)).await {
            Err(NodeError::Rejected { code: code::NOT_FOUND, .. }) => return Ok(None),
            result => result?,
        };
        let header = info.header();
        if header.block_hash() != *hash {
            let reason = format!("it is about block {}, not {hash}", header.block_hash());
            return Err(NodeError::unexpected(method, reason));
        }
        Ok(Some(BlockInfo { header, height: info.height, in_main_chain: info.confirmations > 0 }))
    }

    /// The block of the main chain at `height`, or `None` beyond its end (`getblockhash`).
    pub async fn block_hash(&self, height: u32) -> Result<Option<BlockHash>, NodeError> {
        // The node takes no larger integers.
        if i32::try_from(height).is_err() {
            return Ok(None);
        }
        match self.ask("getblockhash", &[height]).await {
            Err(NodeError::Rejected { code: code::INVALID_PARAMETER, .. }) => Ok(None),
            result => result.map(|Parsed(hash)| Some(hash)),
        }
    }
}
