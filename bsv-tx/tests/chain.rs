//! Publicly known blocks.

#![allow(clippy::unwrap_used, reason = "helpers of tests may panic as tests do")]

use bsv_tx::{BlockHeader, MerkleBranch, Sibling, Txid};

struct Block {
    header: &'static str,
    hash: &'static str,
    txids: &'static [&'static str],
}

/// Block 0, block 170 (the first payment ever made) and block 100000.
const BLOCKS: [Block; 3] = [
    Block {
        header: "0100000000000000000000000000000000000000000000000000000000000000000000003ba3edfd7a7b12b27ac72c3e67768f617fc81bc3888a51323a9fb8aa4b1e5e4a29ab5f49ffff001d1dac2b7c",
        hash: "000000000019d6689c085ae165831e934ff763ae46a2a6c172b3f1b60a8ce26f",
        txids: &["4a5e1e4baab89f3a32518a88c31bc87f618f76673e2cc77ab2127b7afdeda33b"],
    },
    Block {
        header: "0100000055bd840a78798ad0da853f68974f3d183e2bd1db6a842c1feecf222a00000000ff104ccb05421ab93e63f8c3ce5c2c2e9dbb37de2764b3a3175c8166562cac7d51b96a49ffff001d283e9e70",
        hash: "00000000d1145790a8694403d4063f323d499e655c83426834d4ce2f8dd4a2ee",
        txids: &[
            "b1fea52486ce0c62bb442b530a3f0132b826c74e473d1f2c220bfa78111c5082",
            "f4184fc596403b9d638783cf57adfe4c75c605f6356fbc91338530e9831e9e16",
        ],
    },
    Block {
        header: "0100000050120119172a610421a6c3011dd330d9df07b63616c2cc1f1cd00200000000006657a9252aacd5c0b2940996ecff952228c3067cc38d4885efb5a4ac4247e9f337221b4d4c86041b0f2b5710",
        hash: "000000000003ba27aa200b1cecaad478d2b00432346c3f1f3986da1afd33e506",
        txids: &[
            "8c14f0db3df150123e6f3dbbf30f8b955a8249b62ac1d1ff16284aefa3d06d87",
            "fff2525b8931402dd09222c50775608f75787bd2b87e56995a7bdd30f79702c4",
            "6359f0868171b1d194cbee1af2f16ea598ae8fad666d9b012c8ed2b79a236ec4",
            "e9a66845e05d5abc0ad04ec80f774a7e585c6e8db975962d069a522137b80c1d",
        ],
    },
];

#[test]
fn headers_of_real_blocks_meet_their_own_target() {
    for block in &BLOCKS {
        let header = header(block);
        assert_eq!(header.block_hash().to_string(), block.hash);
        assert!(header.has_proof_of_work());
    }
}

#[test]
fn transactions_of_real_blocks_lead_to_the_root_in_the_header() {
    for block in &BLOCKS {
        let txids: Vec<Txid> = block.txids.iter().map(|txid| txid.parse().unwrap()).collect();
        for (position, txid) in txids.iter().enumerate() {
            let branch =
                MerkleBranch { position: position as u64, siblings: siblings(&txids, position) };
            assert_eq!(branch.root(txid), Some(header(block).merkle_root));
        }
    }
}

fn header(block: &Block) -> BlockHeader {
    BlockHeader::from_bytes(&hex::decode(block.header).unwrap()).unwrap()
}

/// The siblings of a leaf, for a power of two leaves.
fn siblings(txids: &[Txid], position: usize) -> Vec<Sibling> {
    let mut siblings = Vec::new();
    let mut width = 1;
    while width < txids.len() {
        let start = ((position / width) ^ 1) * width;
        siblings.push(Sibling::Hash(subtree(&txids[start..start + width])));
        width *= 2;
    }
    siblings
}

fn subtree(txids: &[Txid]) -> [u8; 32] {
    let [txid] = txids else {
        let (left, right) = txids.split_at(txids.len() / 2);
        return bsv_tx::sha256d(&[subtree(left), subtree(right)].concat());
    };
    *txid.as_bytes()
}
