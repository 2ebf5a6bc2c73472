//! A mining pool as a client of the miner identity service.

use bsv_tx::{
    BlockHash, BlockHeader, MerkleRoot, ScriptBuilder, Transaction, TxOut, Txid, write_var_bytes,
    write_var_int,
};
use serde_json::{Value, json};

use crate::node::{Node, merkle_branch, solve};

/// A template for the next block of a node. Its coinbase transaction is split in two around the
/// extranonce, as in the stratum protocol.
#[derive(Clone, Debug)]
pub struct Template {
    candidate: Value,
    /// The part up to the extranonce, hexadecimal.
    pub coinbase1: String,
    /// The part after the extranonce, hexadecimal. It begins with the input's sequence number, unless
    /// the template has a [tag](Self::with_tag).
    pub coinbase2: String,
}

/// The bytes that a miner puts between the two parts.
const EXTRANONCE: &str = "1122334455667788";

impl Template {
    /// Gets a template from the node, and pays the reward in `outputs` equal parts to anybody.
    pub fn of(node: &Node, outputs: usize) -> Self {
        let candidate = node.mining_candidate();
        let height = candidate["height"].as_u64().unwrap();
        let mut start = height_push(height);
        start.push((EXTRANONCE.len() / 2) as u8);
        let mut coinbase1 = hex::decode("01000000".to_owned() + "01").unwrap();
        coinbase1.extend([0; 32]);
        coinbase1.extend([0xff; 4]);
        write_var_int(&mut coinbase1, (start.len() + EXTRANONCE.len() / 2) as u64);
        coinbase1.extend(start);

        let reward = candidate["coinbaseValue"].as_u64().unwrap();
        let output = TxOut {
            satoshis: reward / outputs as u64,
            locking_script: ScriptBuilder::new().op(0x51).into_script(),
        };
        let mut coinbase2 = vec![0xff; 4];
        write_var_int(&mut coinbase2, outputs as u64);
        for _ in 0..outputs {
            output.encode(&mut coinbase2);
        }
        coinbase2.extend([0; 4]);
        Self { candidate, coinbase1: hex::encode(coinbase1), coinbase2: hex::encode(coinbase2) }
    }

    /// The same template with a pool's tag after the extranonce.
    pub fn with_tag(mut self, tag: &[u8]) -> Self {
        let mut coinbase1 = hex::decode(&self.coinbase1).unwrap();
        // The length of the unlocking script comes after the version, the count of inputs and the
        // outpoint.
        coinbase1[4 + 1 + 36] += tag.len() as u8;
        self.coinbase1 = hex::encode(coinbase1);
        self.coinbase2.insert_str(0, &hex::encode(tag));
        self
    }

    /// The height of the block.
    pub fn height(&self) -> u32 {
        self.candidate["height"].as_u64().unwrap().try_into().unwrap()
    }

    /// The request that asks for the identity of `alias` in the coinbase transaction, with
    /// everything that the node says about the job.
    pub fn coinbase2_request(&self, node: &Node, alias: &str) -> Value {
        json!({
            "blockHeight": self.height(),
            "alias": alias,
            "coinbase2": self.coinbase2,
            "jobData": {
                "miningCandidate": self.candidate,
                "getInfo": node.call("getinfo", json!([])),
                "feeSpec": { "fees": [{
                    "feeType": "standard",
                    "miningFee": { "satoshis": 100, "bytes": 1000 },
                    "relayFee": { "satoshis": 50, "bytes": 1000 },
                }] },
            },
        })
    }

    /// The request that asks for a reference to a miner-info transaction of `alias` in the coinbase
    /// transaction.
    pub fn reference_request(&self, alias: &str, miner_info_txid: Txid) -> Value {
        json!({
            "alias": alias,
            "minerInfoTxId": miner_info_txid.to_string(),
            "prevhash": self.candidate["prevhash"],
            "merkleProof": self.candidate["merkleProof"],
            "coinbase2": self.coinbase2,
        })
    }

    /// The number of transactions in the block, including the coinbase transaction.
    pub fn transactions(&self) -> u64 {
        self.candidate["num_tx"].as_u64().unwrap()
    }

    /// The previous block.
    pub fn previous_block(&self) -> BlockHash {
        self.candidate["prevhash"].as_str().unwrap().parse().unwrap()
    }

    /// The coinbase transaction's Merkle branch, from the bottom, in internal byte order.
    pub fn merkle_branch(&self) -> Vec<[u8; 32]> {
        merkle_branch(&self.candidate)
    }

    /// The coinbase transaction with another second part.
    pub fn coinbase(&self, coinbase2: &str) -> Transaction {
        Transaction::from_hex(&format!("{}{EXTRANONCE}{coinbase2}", self.coinbase1)).unwrap()
    }

    /// Mines the block with that coinbase transaction.
    ///
    /// # Panics
    /// If the node does not take it, with its words.
    pub fn mine(&self, node: &Node, coinbase2: &str) -> BlockHash {
        node.submit_block(&self.candidate, &self.coinbase(coinbase2)).unwrap()
    }

    /// Mines a block without other transactions that claims no reward.
    ///
    /// # Panics
    /// If the node does not take it, with its words.
    pub fn mine_alone(&self, node: &Node) -> BlockHash {
        let text = |name: &str| self.candidate[name].as_str().unwrap();
        let mut coinbase = self.coinbase(&self.coinbase2);
        for output in &mut coinbase.outputs {
            output.satoshis = 0;
        }
        let header = solve(BlockHeader {
            version: 0x2000_0000,
            previous_block: text("prevhash").parse().unwrap(),
            merkle_root: MerkleRoot::from_bytes(*coinbase.txid().as_bytes()),
            time: self.candidate["time"].as_u64().unwrap().try_into().unwrap(),
            bits: u32::from_str_radix(text("nBits"), 16).unwrap(),
            nonce: 0,
        });
        let mut block = header.to_bytes();
        write_var_int(&mut block, 1);
        coinbase.encode(&mut block);
        let answer = node.call("submitblock", json!([hex::encode(block)]));
        assert_eq!(answer, Value::Null);
        header.block_hash()
    }
}

/// The height as a coinbase transaction states it (BIP34).
fn height_push(height: u64) -> Vec<u8> {
    let mut number = height.to_le_bytes().to_vec();
    while number.len() > 1 && number.ends_with(&[0]) {
        number.pop();
    }
    if number.last().is_some_and(|byte| byte & 0x80 != 0) {
        number.push(0);
    }
    if let [small @ 1..=16] = number[..] {
        return vec![0x50 + small];
    }
    let mut push = Vec::new();
    write_var_bytes(&mut push, &number);
    push
}
