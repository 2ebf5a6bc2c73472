//! A node as the source.

use std::time::Duration;

use bsv_tx::{MerkleBranch, Transaction, Txid};

use super::answers::{Evidence, Fate, Offered, Shown, Sight, Verdict};
use crate::error::NodeError;
use crate::rpc::{
    BlockInfo, Mempool, MempoolEntry, MinedIn, NodeRpc, OutputState, Submitted, TransactionPlace,
};

/// The first wait for a node that has heard of a transaction and does not show it, for example
/// while it validates one from another node. The wait doubles each time.
const FIRST_WAIT: Duration = Duration::from_millis(20);
const WAITS: u32 = 8;

pub(super) fn sight(entry: MempoolEntry) -> Sight {
    Sight { entry, evidence: Evidence::Judged }
}

pub(super) async fn blind_spot(node: &NodeRpc) -> Result<Option<&'static str>, NodeError> {
    const NO_INDEX: &str = "the node does not find all mined transactions, so the outcome of some may \
                            stay unknown: run it with txindex=1";
    Ok((!node.has_transaction_index().await?).then_some(NO_INDEX))
}

pub(super) async fn header_at(node: &NodeRpc, height: u32) -> Result<Option<BlockInfo>, NodeError> {
    let Some(hash) = node.block_hash(height).await? else { return Ok(None) };
    Ok(node.block_header(&hash).await?.filter(|block| block.in_main_chain))
}

pub(super) async fn mined_in(node: &NodeRpc, txid: &Txid) -> Result<Option<MinedIn>, NodeError> {
    let proof = node.merkle_proof(txid).await?;
    if proof.is_some() {
        return Ok(proof);
    }
    Ok(match node.transaction_place(txid).await? {
        // Nodes give no proof of a transaction that is alone in its block.
        TransactionPlace::Block(block) => {
            let branch = MerkleBranch { position: 0, siblings: Vec::new() };
            Some(MinedIn { block, branch })
        }
        _ => None,
    })
}

pub(super) async fn offer(node: &NodeRpc, transaction: &Transaction) -> Result<Offered, NodeError> {
    match node.submit_transaction(transaction).await {
        Ok(Submitted::InMempool(entry)) => Ok(Offered::Unmined(sight(entry))),
        Ok(Submitted::NotShown) => Ok(Offered::NotShown),
        Err(error) => match error.verdict() {
            Some(reason) => Ok(Offered::Refused(Verdict::of_node(reason))),
            None => Err(error),
        },
    }
}

pub(super) async fn show(node: &NodeRpc, transaction: &Transaction) -> Result<Shown, NodeError> {
    let mut wait = FIRST_WAIT;
    for _ in 0..WAITS {
        let verdict = match offer(node, transaction).await? {
            Offered::Unmined(sight) => return Ok(Shown::Unmined(sight)),
            Offered::Refused(verdict) => Some(verdict),
            _ => None,
        };
        match (node.transaction_place(&transaction.txid()).await?, verdict) {
            (TransactionPlace::Block(_), _) => return Ok(Shown::Mined),
            (TransactionPlace::Nowhere, Some(verdict)) => return Ok(Shown::Refused(verdict)),
            _ => {}
        }
        tokio::time::sleep(wait).await;
        wait *= 2;
    }
    Ok(Shown::Nowhere)
}

pub(super) async fn fate(node: &NodeRpc, transaction: &Transaction) -> Result<Fate, NodeError> {
    let spent = transaction.inputs.iter().map(|input| input.previous_output);
    let outpoints: Vec<_> = spent.collect();
    let states = node.outputs(&outpoints, Mempool::Ignore).await?;
    let mut fate = Fate::Unclear;
    for (state, outpoint) in states.iter().zip(&outpoints) {
        if *state == OutputState::Missing && fate != Fate::Displaced {
            fate = match node.transaction_place(&outpoint.txid).await? {
                TransactionPlace::Block(_) => Fate::Displaced,
                TransactionPlace::Nowhere => Fate::Orphaned,
                _ => fate,
            };
        }
    }
    // The transaction itself may have been mined meanwhile.
    match node.transaction_place(&transaction.txid()).await? {
        TransactionPlace::Nowhere if node.has_transaction_index().await? => Ok(fate),
        _ => Ok(Fate::Unclear),
    }
}

impl Verdict {
    /// The verdict in the words of a node (1.0.13).
    fn of_node(reason: &str) -> Self {
        const ABOUT_OTHERS: [&str; 5] =
            ["257:", "258:", "Missing inputs", "double-spend", "mempool-chain"];
        let is_for_itself = !ABOUT_OTHERS.iter().any(|words| reason.contains(words));
        Self { reason: reason.to_owned(), is_for_itself, is_fee_too_low: false }
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
