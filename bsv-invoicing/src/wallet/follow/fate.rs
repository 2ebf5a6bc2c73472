//! The fate of a transaction that the network does not show.

use bsv_network::{Mempool, NodeRpc, OutputState, TransactionPlace};
use bsv_tx::Transaction;

use crate::error::Error;
use crate::wallet::node::away;

/// The fate of a transaction that the network does not show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It may still be mined. What only the mempool shows may change.
    Unclear,
    /// The network does not know a coin that it spends.
    Orphaned,
    /// Another transaction in the main chain has spent one of its coins.
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
    // The transaction itself may have been mined meanwhile.
    match node.transaction_place(&transaction.txid()).await.map_err(away)? {
        TransactionPlace::Nowhere if node.has_transaction_index().await.map_err(away)? => Ok(fate),
        _ => Ok(Fate::Unclear),
    }
}

/// Whether the text of a refusal is about the transaction itself. It is not if the transaction
/// conflicts with another one, if its inputs are missing, if it has too many ancestors in the
/// mempool, or if it is already known.
pub(crate) fn is_for_itself(refusal: &str) -> bool {
    const ABOUT_OTHERS: [&str; 5] =
        ["257:", "258:", "Missing inputs", "double-spend", "mempool-chain"];
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
            ("64: too-long-mempool-chain", false),
        ] {
            assert_eq!(is_for_itself(refusal), expected, "{refusal}");
        }
    }
}
