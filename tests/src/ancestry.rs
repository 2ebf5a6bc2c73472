//! Makes BEEFs from a node: transactions with the ancestors and proofs that wallets send along.

use std::collections::BTreeSet;

use bsv_network::NodeRpc;
use bsv_tx::{Ancestry, Beef, BeefVersion, Bump, MerkleBranch, Transaction, TxOut, Txid};
use serde_json::json;
use tokio::runtime::Runtime;

use crate::node::Node;

/// A transaction with its `unmined` ancestors, and with the mined transactions that these and it
/// spend.
///
/// # Panics
/// If the node does not have the mined ones.
pub fn beef(
    node: &Node,
    version: BeefVersion,
    subject: &Transaction,
    unmined: &[Transaction],
) -> Beef {
    let mut ancestry = Ancestry { transactions: unmined.to_vec(), ..Ancestry::default() };
    let known: BTreeSet<_> = unmined.iter().map(Transaction::txid).collect();
    let mined: BTreeSet<_> = [unmined, std::slice::from_ref(subject)]
        .concat()
        .iter()
        .flat_map(|transaction| transaction.inputs.iter())
        .map(|input| input.previous_output.txid)
        .filter(|txid| !known.contains(txid))
        .collect();
    for txid in mined {
        ancestry.bumps.push(bump(node, &txid));
        ancestry.transactions.push(transaction(node, &txid));
    }
    Beef::new(version, subject.clone(), ancestry).unwrap()
}

/// The path from a transaction in a block to the Merkle root.
///
/// # Panics
/// If the node does not have the transaction in a block.
pub fn bump(node: &Node, txid: &Txid) -> Bump {
    let rpc = NodeRpc::new(node.settings());
    let place = node.call("getrawtransaction", json!([txid.to_string(), true]));
    let block = place["blockhash"].as_str().unwrap().parse().unwrap();
    let (info, branch) = Runtime::new().unwrap().block_on(async {
        (rpc.block_header(&block).await.unwrap(), rpc.merkle_branch(&block, txid).await.unwrap())
    });
    let height = info.unwrap().height;
    // Nodes give no proof of a transaction that is alone in its block.
    let alone = MerkleBranch { position: 0, siblings: Vec::new() };
    Bump::of(height, &[(*txid, branch.unwrap_or(alone))]).unwrap()
}

/// A transaction that the node has.
///
/// # Panics
/// If it does not.
pub fn transaction(node: &Node, txid: &Txid) -> Transaction {
    let hex = node.call("getrawtransaction", json!([txid.to_string()]));
    Transaction::from_hex(hex.as_str().unwrap()).unwrap()
}

/// The outputs that a transaction spends. The node must have their transactions.
pub fn previous_outputs(node: &Node, spending: &Transaction) -> Vec<TxOut> {
    let outpoints = spending.inputs.iter().map(|input| input.previous_output);
    outpoints.map(|it| transaction(node, &it.txid).outputs[it.vout as usize].clone()).collect()
}
