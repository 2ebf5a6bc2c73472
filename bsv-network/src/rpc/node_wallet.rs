use bsv_tx::{Transaction, TxOut};
use serde_json::json;

use super::NodeRpc;
use crate::answers::{Funded, Signed, read};
use crate::error::NodeError;
use crate::transport::Repeatable;

impl NodeRpc {
    /// A signed transaction of the node's wallet that makes `outputs`, in this order and with the
    /// change, if any, at any place among them (`fundrawtransaction`, `signrawtransaction`). The
    /// wallet chooses coins and fee. It is not sent.
    ///
    /// The coins are locked: the wallet spends them in nothing else until
    /// [`NodeRpc::unlock_coins`] or the node's restart. After [`NodeError::Unreachable`] coins may
    /// be locked too. The wallet chooses before it locks: two calls at once may be given the same.
    ///
    /// Fails with [`NodeError::Rejected`] where the wallet has too little, is locked or absent, or
    /// there are no outputs.
    pub async fn wallet_transaction(&self, outputs: &[TxOut]) -> Result<Transaction, NodeError> {
        let draft =
            Transaction { version: 1, inputs: Vec::new(), outputs: outputs.to_vec(), lock_time: 0 };
        let method = "fundrawtransaction";
        let params = (draft.to_hex(), json!({ "lockUnspents": true }));
        let result = self.transport.call(method, &params, self.timeout, Repeatable::No).await?;
        let Funded { hex: funded, changepos } = read(method, &result)?;
        let signed = if has_outputs(&funded, changepos, outputs) {
            self.sign(&funded).await
        } else {
            Err(NodeError::unexpected(method, "other outputs than asked for".to_owned()))
        };
        if signed.is_err() {
            // What went wrong before is what to tell.
            let _ = self.unlock_coins(&funded).await;
        }
        signed
    }

    async fn sign(&self, funded: &Transaction) -> Result<Transaction, NodeError> {
        let method = "signrawtransaction";
        let Signed { hex: signed, complete } = self.ask(method, &[funded.to_hex()]).await?;
        let mut unsigned = signed.clone();
        for (input, before) in unsigned.inputs.iter_mut().zip(&funded.inputs) {
            input.unlocking_script = before.unlocking_script.clone();
        }
        if !complete || unsigned != *funded {
            let reason = "it is not the same transaction with all signatures".to_owned();
            return Err(NodeError::unexpected(method, reason));
        }
        Ok(signed)
    }

    /// Gives the coins that `transaction` spends back to the node's wallet, which had locked them
    /// (`lockunspent`). Harmless to repeat, and for other coins.
    ///
    /// Fails with [`NodeError::Rejected`] where the node runs without a wallet.
    pub async fn unlock_coins(&self, transaction: &Transaction) -> Result<(), NodeError> {
        let coins: Vec<_> = transaction
            .inputs
            .iter()
            .map(|input| input.previous_output)
            .map(|coin| json!({ "txid": coin.txid.to_string(), "vout": coin.vout }))
            .collect();
        let method = "lockunspent";
        match self.ask(method, &(true, coins)).await? {
            true => Ok(()),
            false => Err(NodeError::unexpected(method, "it unlocked nothing".to_owned())),
        }
    }
}

/// Whether the outputs of a funded transaction are those asked for, and perhaps change.
fn has_outputs(funded: &Transaction, changepos: i64, asked: &[TxOut]) -> bool {
    let mut outputs = funded.outputs.clone();
    match usize::try_from(changepos) {
        Ok(place) if place < outputs.len() => drop(outputs.remove(place)),
        Ok(_) => return false,
        Err(_) => {}
    }
    outputs == asked
}
