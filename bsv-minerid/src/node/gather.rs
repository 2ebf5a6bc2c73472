use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use bsv_network::{Mempool, NodeError, NodeRpc, TransactionPlace};
use bsv_tx::{BlockHash, MerkleBranch, OutPoint, Transaction, Txid};

use crate::node::data_cache::DataCache;
use crate::verify::{BlockProof, DataOutputs, Evidence, MinerInfoEvidence, VctxState, verify};

/// All that a node has of the identity in a block.
#[derive(Clone, Debug)]
pub struct GatheredBlock {
    /// The coinbase transaction, and the proof that it is in the block.
    pub proof: BlockProof,
    /// The evidence besides the block.
    pub evidence: Evidence,
    /// Whether the block belongs to the main chain.
    pub in_main_chain: bool,
}

/// The most outputs and transactions that a node is asked for because of one block, since the miner
/// of the block chooses them.
const MOST_LOOK_UPS: usize = 64;

/// Fetches what [`verify`] needs to check the identity in a block, or `None` if the node does not
/// know the block.
///
/// Miner-info transactions and data come from the node's index of transactions (`txindex=1`).
/// Without the index they are missing. Data is also missing if no block of the main chain has it,
/// for example data of a block that has left the chain. Data that is in `data` is neither fetched
/// nor parsed again.
pub async fn gather(
    node: &NodeRpc,
    block: &BlockHash,
    data: &DataCache,
) -> Result<Option<GatheredBlock>, NodeError> {
    let Some(found) = node.block_coinbase(block).await? else { return Ok(None) };
    let proof = BlockProof {
        header: found.info.header,
        height: Some(found.info.height),
        branch: node
            .merkle_branch(block, &found.coinbase.txid())
            .await?
            .unwrap_or_else(|| MerkleBranch::of_coinbase(&[])),
        coinbase: found.coinbase,
    };
    let mut evidence = Evidence::default();
    let references = verify(&proof, &evidence).candidates;
    if let Some(txid) = references.iter().find_map(|candidate| candidate.miner_info) {
        evidence.miner_info = miner_info(node, block, &txid).await?;
    }
    let candidates = verify(&proof, &evidence).candidates;
    let claims: Vec<_> = candidates.into_iter().filter_map(|candidate| candidate.claim).collect();
    let vctxs = claims.iter().filter_map(|claim| claim.vctx);
    evidence.vctxs = vctx_states(node, vctxs.take(MOST_LOOK_UPS)).await?;
    let references = claims.iter().flat_map(|claim| &claim.data_refs);
    evidence.data = data_outputs(node, references.map(|reference| reference.txid), data).await?;
    let in_main_chain = found.info.in_main_chain;
    Ok(Some(GatheredBlock { proof, evidence, in_main_chain }))
}

async fn miner_info(
    node: &NodeRpc,
    block: &BlockHash,
    txid: &Txid,
) -> Result<MinerInfoEvidence, NodeError> {
    let Some(branch) = node.merkle_branch(block, txid).await? else {
        return Ok(MinerInfoEvidence::NotInBlock);
    };
    Ok(match node.transaction(txid).await? {
        Some(transaction) => MinerInfoEvidence::Found { transaction, branch: Some(branch) },
        None => MinerInfoEvidence::Unknown,
    })
}

async fn vctx_states(
    node: &NodeRpc,
    vctxs: impl Iterator<Item = OutPoint>,
) -> Result<HashMap<OutPoint, VctxState>, NodeError> {
    let mut states = HashMap::new();
    for vctx in vctxs {
        if node.unspent_output(&vctx, Mempool::Ignore).await?.is_some() {
            states.insert(vctx, VctxState::Unspent);
        } else if let Some(transaction) = mined_transaction(node, &vctx.txid).await?
            && transaction.outputs.len() > vctx.vout as usize
        {
            states.insert(vctx, VctxState::Spent);
        }
    }
    Ok(states)
}

async fn mined_transaction(node: &NodeRpc, txid: &Txid) -> Result<Option<Transaction>, NodeError> {
    match node.transaction_place(txid).await? {
        TransactionPlace::Block(_) => node.transaction(txid).await,
        _ => Ok(None),
    }
}

async fn data_outputs(
    node: &NodeRpc,
    txids: impl Iterator<Item = Txid>,
    cache: &DataCache,
) -> Result<HashMap<Txid, Arc<DataOutputs>>, NodeError> {
    let mut seen = HashSet::new();
    let mut found = HashMap::new();
    for txid in txids.filter(|txid| seen.insert(*txid)).take(MOST_LOOK_UPS) {
        if let Some(outputs) = cache.get(&txid) {
            found.insert(txid, outputs);
        } else if let Some(transaction) = mined_transaction(node, &txid).await? {
            found.insert(txid, cache.read(txid, &transaction));
        }
    }
    Ok(found)
}
