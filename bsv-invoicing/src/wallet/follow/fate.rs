//! What has become of a transaction that the network does not show.

use bsv_network::{Mempool, NodeRpc, OutputState, TransactionPlace};
use bsv_tx::Transaction;

use crate::error::Error;
use crate::wallet::node::away;

/// What has become of a transaction that the network does not show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It may still be mined: what only the mempool says may change.
    Unclear,
    /// The network does not know what it spends.
    Orphaned,
    /// Something that it spends was made in a block of the main chain, and spent there by another one.
    Displaced,
}

pub(super) async fn fate(node: &NodeRpc, transaction: &Transaction) -> Result<Fate, Error> {
    let outpoints: Vec<_> = transaction.inputs.iter().map(|input| input.previous_output).collect();
    let states = node.outputs(&outpoints, Mempool::Ignore).await.map_err(away)?;
    let mut fate = Fate::Unclear;
    for (state, outpoint) in states.iter().zip(&outpoints) {
        if *state == OutputState::Missing && fate != Fate::Displaced {
            fate = match node.transaction_place(&outpoint.txid).await.map_err(away)? {
                TransactionPlace::Block(_) => Fate::Displaced,
                TransactionPlace::Nowhere => Fate::Orphaned,
                TransactionPlace::Mempool => fate,
            };
        }
    }
    // Meanwhile it may have been mined itself.
    match node.transaction_place(&transaction.txid()).await.map_err(away)? {
        TransactionPlace::Nowhere if node.has_transaction_index().await.map_err(away)? => Ok(fate),
        _ => Ok(Fate::Unclear),
    }
}

/// Whether the words of a refusal are about the transaction itself, and not about others: not that it
/// conflicts with one, that what it spends is missing, or that it is known already.
pub(super) fn is_for_itself(refusal: &str) -> bool {
    const ABOUT_OTHERS: [&str; 5] = ["257:", "258:", "Missing inputs", "mempool", "double-spend"];
    !ABOUT_OTHERS.iter().any(|words| refusal.contains(words))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_told_apart() {
        for (refusal, expected) in [
            ("16: mandatory-script-verify-flag-failed (Signature must be zero)", true),
            ("64: tx-size", true),
            ("16: bad-txns-vout-p2sh", true),
            ("258: txn-mempool-conflict", false),
            ("257: txn-already-known", false),
            ("18: txn-double-spend-detected", false),
            ("Missing inputs", false),
            ("66: mempool full", false),
            ("Transaction already in the mempool", false),
        ] {
            assert_eq!(is_for_itself(refusal), expected, "{refusal}");
        }
    }
}
