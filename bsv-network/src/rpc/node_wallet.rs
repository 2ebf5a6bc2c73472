use bsv_tx::{Transaction, TxOut};
use serde_json::json;

use super::NodeRpc;
use crate::answers::{Funded, Signed, read};
use crate::error::NodeError;
use crate::transport::Repeatable;

impl NodeRpc {
    /// Makes a signed transaction of the node's wallet with `outputs`, in this order
    /// (`fundrawtransaction`, `signrawtransaction`). A change output, if any, may stand anywhere
    /// among them. The wallet chooses the coins and the fee. The transaction is not sent.
    ///
    /// The wallet locks the coins: it does not spend them elsewhere until [`NodeRpc::unlock_coins`]
    /// or the node's restart. After [`NodeError::Unreachable`], coins may be locked too. The wallet
    /// chooses coins before it locks them, so two calls at once may get the same coins.
    ///
    /// Fails with [`NodeError::Rejected`] if the wallet has too little, is locked or absent, or if
    /// `outputs` is empty.
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
            Err(NodeError::unexpected(method, "the outputs are not the requested ones".to_owned()))
        };
        if signed.is_err() {
            // Ignored: the first error is the one to report.
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
            let reason = "the signed transaction differs, or lacks signatures".to_owned();
            return Err(NodeError::unexpected(method, reason));
        }
        Ok(signed)
    }

    /// Unlocks the coins that `transaction` spends in the node's wallet (`lockunspent`). The call
    /// can be repeated, and does no harm for other coins.
    ///
    /// Fails with [`NodeError::Rejected`] if the node runs without a wallet.
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

/// Whether a funded transaction has the requested outputs, and at most a change output besides.
fn has_outputs(funded: &Transaction, changepos: i64, asked: &[TxOut]) -> bool {
    let mut outputs = funded.outputs.clone();
    match usize::try_from(changepos) {
        Ok(place) if place < outputs.len() => drop(outputs.remove(place)),
        Ok(_) => return false,
        Err(_) => {}
    }
    outputs == asked
}
