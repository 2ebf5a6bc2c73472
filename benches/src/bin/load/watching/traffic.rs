//! Transactions of strangers.

use bsv_tx::{
    MerkleRoot, MerkleTree, OutPoint, Script, Transaction, TxIn, TxOut, Txid, sha256, write_var_int,
};
use bytes::Bytes;

/// A hash of no key. Each number makes another one.
pub(super) fn random_hash(number: u64) -> [u8; 20] {
    *sha256(&number.to_le_bytes()).first_chunk().unwrap()
}

/// An ordinary transaction that pays nobody here. Each number makes another one.
pub(super) fn foreign(number: u64) -> Transaction {
    let random = sha256(&(number | 1 << 63).to_le_bytes());
    let input = TxIn {
        previous_output: OutPoint { txid: Txid::from_bytes(random), vout: 0 },
        unlocking_script: Script::from_bytes(vec![0x51; 107]),
        sequence: u32::MAX,
    };
    let output = |hash: &[u8]| TxOut {
        satoshis: 50_000_000,
        locking_script: Script::p2pkh(hash.try_into().unwrap()),
    };
    let outputs = vec![output(&random[..20]), output(&random[12..])];
    Transaction { version: 1, inputs: vec![input], outputs, lock_time: 0 }
}

/// Such a transaction that also pays this script.
pub(super) fn paying(number: u64, satoshis: u64, script: &Script) -> Transaction {
    let mut transaction = foreign(number);
    transaction.outputs[0] = TxOut { satoshis, locking_script: script.clone() };
    transaction
}

/// The transactions of a block.
#[derive(Clone, Debug)]
pub(super) struct Contents {
    pub(super) merkle_root: MerkleRoot,
    /// The transactions' count, and then the transactions, in hexadecimal digits.
    pub(super) hex: Bytes,
}

impl Contents {
    pub(super) fn new(transactions: &[Transaction]) -> Self {
        let txids: Vec<_> = transactions.iter().map(Transaction::txid).collect();
        let mut bytes = Vec::new();
        write_var_int(&mut bytes, transactions.len() as u64);
        for transaction in transactions {
            transaction.encode(&mut bytes);
        }
        let merkle_root = MerkleTree::of(&txids).root().unwrap();
        Self { merkle_root, hex: hex::encode(bytes).into() }
    }
}
