use std::borrow::Cow;

use bsv_tx::{
    BlockHash, BlockHeader, MerkleBranch, MerkleRoot, PublicKey, Script, Sibling, Transaction, Txid,
};
use serde::{Deserialize, Deserializer, de};
use serde_json::value::RawValue;

use crate::amount::Amount;
use crate::error::NodeError;

/// `getblockchaininfo`.
#[derive(Deserialize)]
pub(crate) struct BlockchainInfo {
    pub(crate) blocks: u32,
    pub(crate) bestblockhash: BlockHash,
    pub(crate) mediantime: u32,
}

/// `getblockchaininfo`: the node's progress.
#[derive(Deserialize)]
pub(crate) struct SyncInfo {
    pub(crate) blocks: u32,
    pub(crate) headers: u32,
}

/// `gettxout`, if the output exists.
#[derive(Deserialize)]
pub(crate) struct TxOutInfo {
    pub(crate) confirmations: u32,
    pub(crate) value: Amount,
    #[serde(rename = "scriptPubKey")]
    pub(crate) script: ScriptInfo,
}

#[derive(Deserialize)]
pub(crate) struct ScriptInfo {
    pub(crate) hex: Script,
}

/// `gettxouts`.
#[derive(Deserialize)]
pub(crate) struct TxOuts {
    pub(crate) txouts: Vec<TxOutItem>,
}

/// One item of `gettxouts`: the first two members, or `error` and, if that is `spent`, the
/// transaction of the mempool that spends the output.
#[derive(Deserialize)]
pub(crate) struct TxOutItem {
    pub(crate) confirmations: Option<u32>,
    pub(crate) value: Option<Amount>,
    pub(crate) error: Option<String>,
    #[serde(rename = "collidedWith")]
    pub(crate) spender: Option<Spender>,
}

#[derive(Deserialize)]
pub(crate) struct Spender {
    pub(crate) txid: Txid,
}

/// `getrawtransaction` with details. A transaction in the mempool has neither member. A transaction
/// that only blocks off the main chain hold has no confirmations.
#[derive(Deserialize)]
pub(crate) struct TransactionInfo {
    pub(crate) txid: Txid,
    pub(crate) blockhash: Option<BlockHash>,
    #[serde(default)]
    pub(crate) confirmations: i64,
}

/// `getmempoolentry`, and each item of `getmempoolancestors`.
#[derive(Deserialize)]
pub(crate) struct MempoolInfo {
    pub(crate) fee: Amount,
    pub(crate) size: u64,
    pub(crate) depends: Vec<Txid>,
}

/// `getmerkleproof2`.
#[derive(Deserialize)]
pub(crate) struct MerkleProof {
    index: u64,
    #[serde(rename = "txOrId")]
    pub(crate) txid: Txid,
    /// The block's hash.
    pub(crate) target: BlockHash,
    nodes: Vec<Sibling>,
}

impl MerkleProof {
    pub(crate) fn into_branch(self) -> MerkleBranch {
        MerkleBranch { position: self.index, siblings: self.nodes }
    }
}

/// `getblockheader` with details.
#[derive(Deserialize)]
pub(crate) struct HeaderInfo {
    pub(crate) height: u32,
    /// -1 if the block is off the main chain.
    pub(crate) confirmations: i64,
    version: i32,
    /// Absent for the first block.
    previousblockhash: Option<BlockHash>,
    merkleroot: MerkleRoot,
    time: u32,
    #[serde(deserialize_with = "bits")]
    bits: u32,
    nonce: u32,
}

impl HeaderInfo {
    pub(crate) fn header(&self) -> BlockHeader {
        const NO_BLOCK: BlockHash = BlockHash::from_bytes([0; 32]);
        BlockHeader {
            version: self.version,
            previous_block: self.previousblockhash.unwrap_or(NO_BLOCK),
            merkle_root: self.merkleroot,
            time: self.time,
            bits: self.bits,
            nonce: self.nonce,
        }
    }
}

/// The part of `getblock` with only the coinbase transaction that [`HeaderInfo`] does not read.
#[derive(Deserialize)]
pub(crate) struct CoinbaseInfo {
    pub(crate) tx: Vec<TransactionHex>,
}

#[derive(Deserialize)]
pub(crate) struct TransactionHex {
    pub(crate) hex: Transaction,
}

/// `getmineridinfo`: empty if the node does not know the miner id. Keys that the node lacks are
/// null or empty.
#[derive(Deserialize)]
pub(crate) struct MinerIdJson {
    #[serde(rename = "minerId")]
    pub(crate) miner_id: Option<PublicKey>,
    #[serde(rename = "minerIdState")]
    pub(crate) state: Option<String>,
    #[serde(rename = "prevMinerId")]
    pub(crate) previous_miner_id: Option<String>,
    #[serde(rename = "revocationKey")]
    pub(crate) revocation_key: Option<String>,
    #[serde(rename = "prevRevocationKey")]
    pub(crate) previous_revocation_key: Option<String>,
}

/// `dumpminerids`.
#[derive(Deserialize)]
pub(crate) struct MinersJson {
    pub(crate) miners: Vec<MinerJson>,
}

#[derive(Deserialize)]
pub(crate) struct MinerJson {
    pub(crate) latestblock: BlockHash,
    pub(crate) minerids: Vec<ListedMinerIdJson>,
}

#[derive(Deserialize)]
pub(crate) struct ListedMinerIdJson {
    pub(crate) minerid: String,
}

/// `fundrawtransaction`.
#[derive(Deserialize)]
pub(crate) struct Funded {
    pub(crate) hex: Transaction,
    /// The index of the change output, or -1 if there is no change.
    pub(crate) changepos: i64,
}

/// `signrawtransaction`.
#[derive(Deserialize)]
pub(crate) struct Signed {
    pub(crate) hex: Transaction,
    pub(crate) complete: bool,
}

/// One item of `listunspent`.
#[derive(Deserialize)]
pub(crate) struct Unspent {
    pub(crate) txid: Txid,
    pub(crate) vout: u32,
    pub(crate) amount: Amount,
    #[serde(rename = "scriptPubKey")]
    pub(crate) script: Script,
    pub(crate) confirmations: u32,
}

/// The members of `getsettings` that this crate uses.
#[derive(Deserialize)]
pub(crate) struct Settings {
    pub(crate) minminingtxfee: Amount,
    pub(crate) maxtxsizepolicy: u64,
    pub(crate) datacarriersize: u64,
    pub(crate) datacarrier: bool,
    pub(crate) minconsolidationfactor: u64,
    pub(crate) maxconsolidationinputscriptsize: u64,
    pub(crate) minconfconsolidationinput: u32,
}

/// Parses the result of `method`.
pub(crate) fn read<'a, T: Deserialize<'a>>(
    method: &str,
    result: &'a RawValue,
) -> Result<T, NodeError> {
    serde_json::from_str(result.get())
        .map_err(|error| NodeError::unexpected(method, error.to_string()))
}

fn bits<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    let text = Cow::<str>::deserialize(deserializer)?;
    u32::from_str_radix(&text, 16).map_err(de::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNSPENT: &str = r#"{"txid":"4a5e1e4baab89f3a32518a88c31bc87f618f76673e2cc77ab2127b7afdeda33b","vout":1,"address":"n1AfagyYZ8QgWUuVoZnQGgPjkPo9xHEtvo","account":"","scriptPubKey":"76a914d78c3eb76bd3121e039088fecb7dcffb8c4fa9c888ac","amount":0.12345678,"confirmations":0,"spendable":true}"#;

    fn read_unspent(text: &str) -> Result<Unspent, NodeError> {
        let raw = RawValue::from_string(text.to_owned()).unwrap();
        read("listunspent", &raw)
    }

    #[test]
    fn an_answer_is_read() {
        let unspent = read_unspent(UNSPENT).unwrap();
        assert_eq!(unspent.amount, Amount(12_345_678));
        assert_eq!(unspent.script.as_bytes().len(), 25);
    }

    #[test]
    fn every_wrong_member_is_noticed_and_named() {
        for (right, wrong, reason) in [
            ("4a5e1e", "4a5e", "64 hexadecimal characters"),
            ("4a5e1e", "zzzzzz", "64 hexadecimal characters"),
            ("76a914", "76a91", "not hexadecimal"),
            ("\"vout\":1", "\"vout\":-1", "expected u32"),
            ("\"vout\":1", "\"vout\":4294967296", "expected u32"),
            ("\"vout\":1", "\"vout\":\"1\"", "expected u32"),
            ("\"vout\":1,", "", "missing field `vout`"),
            ("0.12345678", "0.123456789", "8 decimal places"),
            ("0.12345678", "\"0.12345678\"", "decimal number"),
            ("\"confirmations\":0", "\"confirmations\":-3", "expected u32"),
        ] {
            let changed = UNSPENT.replacen(right, wrong, 1);
            let Err(NodeError::Unexpected { method, reason: given }) = read_unspent(&changed)
            else {
                panic!("accepted {changed}");
            };
            assert_eq!(method, "listunspent");
            assert!(given.contains(reason), "{given}");
        }
    }
}
