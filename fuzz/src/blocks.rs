//! Blocks around given coinbase transactions.

use bsv_minerid::verify::{BlockProof, Evidence, MinerInfoEvidence};
use bsv_tx::{BlockHash, BlockHeader, MerkleBranch, MerkleRoot, Sibling, Transaction};

/// The block before each of these blocks.
pub const PREVIOUS_BLOCK: BlockHash = BlockHash::from_bytes([0xbb; 32]);

/// A block of these transactions. Its Merkle branches and its proof of work hold, whatever the
/// transactions are.
pub fn block(coinbase: Transaction, miner_info: Option<Transaction>) -> (BlockProof, Evidence) {
    let siblings: Vec<_> = miner_info.iter().map(|tx| *tx.txid().as_bytes()).collect();
    let branch = MerkleBranch::of_coinbase(&siblings);
    let coinbase_id = *coinbase.txid().as_bytes();
    let merkle_root = branch.root(&coinbase.txid()).unwrap_or(MerkleRoot::from_bytes(coinbase_id));
    let header = BlockHeader {
        version: 0x2000_0000,
        previous_block: PREVIOUS_BLOCK,
        merkle_root,
        time: 1_700_000_000,
        bits: 0x207f_ffff,
        nonce: 0,
    };
    let header = (0..).map(|nonce| BlockHeader { nonce, ..header });
    let header = header.into_iter().find(BlockHeader::has_proof_of_work).unwrap();
    let miner_info = match miner_info {
        None => MinerInfoEvidence::NotInBlock,
        Some(transaction) => {
            let siblings = vec![Sibling::Hash(coinbase_id)];
            let branch = Some(MerkleBranch { position: 1, siblings });
            MinerInfoEvidence::Found { transaction, branch }
        }
    };
    let block = BlockProof { header, height: None, coinbase, branch };
    (block, Evidence { miner_info, ..Evidence::default() })
}
