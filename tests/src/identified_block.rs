//! Blocks that carry miner identities, made in memory.

use bsv_minerid::formats::{
    BlockBindJob, Coinbase2, CoinbaseReference, Document, Extensions, IdentityScript, MinerInfo,
    OperatorMembers, Succession, succession_digest,
};
use bsv_minerid::verify::{BlockProof, Evidence, MinerInfoEvidence};
use bsv_minerid::{JobData, MinerContact};
use bsv_tx::{
    BlockHash, BlockHeader, MerkleBranch, OutPoint, PrivateKey, Script, ScriptBuilder, Sibling,
    Transaction, TxIn, TxOut, Txid, sha256,
};

use crate::node::solve;

/// The height of every block that this module makes.
pub const HEIGHT: u32 = 800_000;

/// The number of hashes from the coinbase transaction to the Merkle root.
const LEVELS: u8 = 12;

/// The previous block.
const PREVIOUS_BLOCK: BlockHash = BlockHash::from_bytes([0xbb; 32]);

/// The id of the second transaction in blocks without a miner-info transaction.
const NO_MINER_INFO: [u8; 32] = [0xdd; 32];

/// A validity check output.
pub const VCTX: OutPoint = {
    let mut txid = [0xcc; 32];
    // The bytes must differ when they are reversed.
    txid[0] = 0xdd;
    OutPoint { txid: Txid::from_bytes(txid), vout: 0 }
};

/// The keys of an identity: the current ones and the previous ones, which may be the same.
#[derive(Clone, Debug)]
pub struct Keys {
    /// Signs documents.
    pub miner_id: PrivateKey,
    /// The previous one.
    pub previous_miner_id: PrivateKey,
    /// Revokes other keys.
    pub revocation_key: PrivateKey,
    /// The previous one.
    pub previous_revocation_key: PrivateKey,
}

impl Keys {
    /// New keys without previous ones.
    pub fn first() -> Self {
        let [miner_id, revocation_key] = [(); 2].map(|()| PrivateKey::generate().unwrap());
        Self {
            previous_miner_id: miner_id.clone(),
            miner_id,
            previous_revocation_key: revocation_key.clone(),
            revocation_key,
        }
    }

    /// These keys with a new miner id.
    pub fn rotated(&self) -> Self {
        Self { miner_id: PrivateKey::generate().unwrap(), ..self.clone() }
    }

    /// These keys with a new revocation key.
    pub fn rolled(&self) -> Self {
        Self { revocation_key: PrivateKey::generate().unwrap(), ..self.clone() }
    }

    /// The keys after their announcement was seen.
    pub fn settled(&self) -> Self {
        Self {
            previous_miner_id: self.miner_id.clone(),
            previous_revocation_key: self.revocation_key.clone(),
            ..self.clone()
        }
    }

    /// The document of generation 1.0 that announces these keys.
    pub fn miner_info(&self, height: u32) -> MinerInfo {
        let contact = r#"{"minerContact":{"name":"a pool","email":"pool@example.com"}}"#;
        MinerInfo {
            height,
            miner_id: Succession::sign(&self.previous_miner_id, self.miner_id.public_key())
                .unwrap(),
            revocation_key: Succession::sign(
                &self.previous_revocation_key,
                self.revocation_key.public_key(),
            )
            .unwrap(),
            revocation: None,
            operator: OperatorMembers::from_json(contact).unwrap(),
            data_refs: Vec::new(),
        }
    }

    /// The document of generation 0.2 that announces the miner id.
    pub fn document(&self, height: u32) -> Document {
        let (previous_miner_id, miner_id) =
            (self.previous_miner_id.public_key(), self.miner_id.public_key());
        let digest = succession_digest(&previous_miner_id, &miner_id, &VCTX.txid);
        Document {
            height,
            previous_miner_id,
            previous_miner_id_signature: self.previous_miner_id.sign(&digest),
            miner_id,
            vctx: VCTX,
            miner_contact: MinerContact::from_json(r#"{"name":"a pool"}"#).unwrap(),
            extensions: Extensions::default(),
        }
    }

    /// The output script that carries a document of generation 0.2.
    pub fn sign(&self, document: &str) -> Script {
        let document = document.as_bytes().to_vec();
        let signature = self.miner_id.sign(&sha256(&document)).to_der();
        IdentityScript { document, signature }.to_script()
    }
}

/// The second part of a coinbase transaction with one output.
pub fn coinbase2() -> Vec<u8> {
    let output = TxOut { satoshis: 312_500_000, locking_script: Script::p2pkh(&[7; 20]) };
    let mut bytes = vec![0xff, 0xff, 0xff, 0xff, 1];
    output.encode(&mut bytes);
    bytes.extend([0; 4]);
    bytes
}

/// A document of generation 0.2 that is bound to the block of [`with_output`].
pub fn bound(document: Document) -> Document {
    let end = coinbase2();
    let job =
        BlockBindJob { previous_block: PREVIOUS_BLOCK, merkle_branch: siblings(NO_MINER_INFO) };
    let job = JobData { block_bind: Some(job), ..JobData::default() };
    let extensions = Extensions::new(&job, &Coinbase2::parse(&end).unwrap());
    Document { extensions, ..document }
}

/// A block with `script` in an output of its coinbase transaction.
pub fn with_output(script: &Script) -> BlockProof {
    with_outputs(std::slice::from_ref(script))
}

/// A block with these scripts in outputs of its coinbase transaction, after the output that pays.
pub fn with_outputs(scripts: &[Script]) -> BlockProof {
    block(scripts, NO_MINER_INFO)
}

/// The header with a new proof of work for its current content.
pub fn solve_again(header: BlockHeader) -> BlockHeader {
    solve(header)
}

/// A block with `miner_info` in a transaction. The script that `reference` returns refers to it.
/// `reference` gets a correct reference, signed by `key`.
pub fn with_miner_info(
    miner_info: &Script,
    key: &PrivateKey,
    reference: impl FnOnce(CoinbaseReference) -> Script,
) -> (BlockProof, Evidence) {
    let transaction = carrying(miner_info);
    let txid = transaction.txid();
    let siblings = siblings(*txid.as_bytes());
    let end = coinbase2();
    let end = Coinbase2::parse(&end).unwrap();
    let right = CoinbaseReference::sign(key, txid, &end, &PREVIOUS_BLOCK, &siblings).unwrap();
    let reference = reference(right);
    let block = block(std::slice::from_ref(&reference), *txid.as_bytes());
    if CoinbaseReference::parse(&reference).is_ok_and(|read| read.miner_info_txid != txid) {
        let miner_info = MinerInfoEvidence::NotInBlock;
        return (block, Evidence { miner_info, ..Evidence::default() });
    }
    let mut branch = block.branch.clone();
    branch.position = 1;
    branch.siblings[0] = Sibling::Hash(*block.coinbase.txid().as_bytes());
    let miner_info = MinerInfoEvidence::Found { transaction, branch: Some(branch) };
    (block, Evidence { miner_info, ..Evidence::default() })
}

/// A transaction with an output of `script`.
pub fn carrying(script: &Script) -> Transaction {
    let input = TxIn {
        previous_output: OutPoint { txid: Txid::from_bytes([1; 32]), vout: 0 },
        unlocking_script: Script::default(),
        sequence: u32::MAX,
    };
    let outputs = vec![TxOut { satoshis: 0, locking_script: script.clone() }];
    Transaction { version: 1, inputs: vec![input], outputs, lock_time: 0 }
}

/// The coinbase transaction's branch, with the second transaction's id as its first hash.
fn siblings(second: [u8; 32]) -> Vec<[u8; 32]> {
    std::iter::once(second).chain((1..LEVELS).map(|level| [level; 32])).collect()
}

fn block(scripts: &[Script], second: [u8; 32]) -> BlockProof {
    let end = coinbase2();
    let start = ScriptBuilder::new().push(&HEIGHT.to_le_bytes()[..3]).push(b"extranonce");
    let mut bytes = hex::decode(format!("0100000001{}ffffffff", "00".repeat(32))).unwrap();
    let start = start.into_script();
    bytes.push(start.as_bytes().len() as u8);
    bytes.extend(start.as_bytes());
    bytes.extend(end);
    let mut coinbase = Transaction::from_bytes(&bytes).unwrap();
    let outputs = scripts.iter().cloned();
    coinbase.outputs.extend(outputs.map(|locking_script| TxOut { satoshis: 0, locking_script }));
    let branch = MerkleBranch::of_coinbase(&siblings(second));
    let header = solve(BlockHeader {
        version: 0x2000_0000,
        previous_block: PREVIOUS_BLOCK,
        merkle_root: branch.root(&coinbase.txid()).unwrap(),
        time: 1_700_000_000,
        bits: 0x207f_ffff,
        nonce: 0,
    });
    BlockProof { header, height: None, coinbase, branch }
}
