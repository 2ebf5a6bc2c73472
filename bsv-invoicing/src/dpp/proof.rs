use bsv_tx::{BlockHash, BlockHeader, Bump, MerkleBranch, Sibling, Txid};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::json::{self, displayed, parsed};

/// A payee's claim that a transaction is in a block, from a message of a peer channel.
///
/// The parts of a claim fit together, but the claim proves nothing by itself. The reader must look
/// up the block in the main chain, and compare its Merkle root with the root of the branch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MerkleProof {
    /// The transaction.
    pub txid: Txid,
    /// The block.
    pub block_hash: BlockHash,
    /// The height of the block according to the payee.
    pub block_height: u32,
    /// The header of the block, if the message has it. It was checked: it has the block's hash, and
    /// the branch leads to its Merkle root.
    pub header: Option<BlockHeader>,
    /// The Merkle branch from the transaction to the Merkle root.
    pub branch: MerkleBranch,
}

/// Why a message is not a Merkle proof.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ProofError {
    /// It cannot be understood.
    #[error("the message cannot be understood: {0}")]
    Malformed(String),
    /// It is about something else, such as a double spend.
    #[error("the message is not a merkle proof, but about {0}")]
    OtherReason(String),
    /// Its parts do not fit together.
    #[error("the merkle proof is wrong: {0}")]
    Wrong(&'static str),
}

/// The `callbackReason` of a Merkle proof.
const MERKLE_PROOF: &str = "merkleProof";

impl MerkleProof {
    /// The message: a JSON envelope without a signature. It holds the proof twice: in the form of
    /// the miners' merchant API (mAPI), and as a BUMP (BRC-74) in the member that ARC uses.
    pub fn to_envelope(&self) -> Vec<u8> {
        let (target_type, target) = match &self.header {
            Some(header) => ("header", hex::encode(header.to_bytes())),
            None => ("hash", self.block_hash.to_string()),
        };
        let payload = json::write(&Callback {
            callback_payload: Tsc {
                index: self.branch.position,
                tx_or_id: self.txid.to_string(),
                target_type: Some(target_type.to_owned()),
                target,
                nodes: self.branch.siblings.iter().copied().map(Node).collect(),
            },
            block_hash: self.block_hash,
            block_height: self.block_height,
            callback_tx_id: Some(self.txid.to_string()),
            callback_reason: MERKLE_PROOF.to_owned(),
            merkle_path: self.bump().map(|bump| hex::encode(bump.to_bytes())),
        });
        json::write(&Envelope {
            payload: std::str::from_utf8(&payload).expect("JSON is UTF-8"),
            signature: (),
            public_key: (),
            encoding: "UTF-8",
            mimetype: "application/json",
        })
    }

    /// The proof as a BUMP. `None` if the branch does not fit its position.
    pub fn bump(&self) -> Option<Bump> {
        Bump::of(self.block_height, &[(self.txid, self.branch.clone())]).ok()
    }

    /// Reads a message, with or without an envelope. Signatures are not checked, because a proof
    /// needs none.
    pub fn from_envelope(message: &[u8]) -> Result<Self, ProofError> {
        let ReadEnvelope { payload, encoding } =
            json::read(message).map_err(ProofError::Malformed)?;
        if encoding.is_some_and(|encoding| !encoding.eq_ignore_ascii_case("UTF-8")) {
            return Err(ProofError::Malformed("the payload is not UTF-8".to_owned()));
        }
        match payload {
            Some(payload) => Self::from_callback(payload.as_bytes()),
            None => Self::from_callback(message),
        }
    }

    fn from_callback(callback: &[u8]) -> Result<Self, ProofError> {
        let Reason { callback_reason } = json::read(callback).map_err(ProofError::Malformed)?;
        if callback_reason != MERKLE_PROOF {
            return Err(ProofError::OtherReason(json::shorten(callback_reason)));
        }
        let callback: Callback = json::read(callback).map_err(ProofError::Malformed)?;
        let Callback { callback_payload: tsc, block_hash, block_height, callback_tx_id, .. } =
            callback;

        let txid = json::txid_of(&tsc.tx_or_id)
            .ok_or(ProofError::Wrong("txOrId is neither a transaction nor its id"))?;
        if callback_tx_id.is_some_and(|named| named.parse() != Ok(txid)) {
            return Err(ProofError::Wrong("txOrId and callbackTxId differ"));
        }
        let header = read_target(tsc.target_type.as_deref(), &tsc.target, &block_hash)?;
        if tsc.nodes.len() > MerkleBranch::MAX_SIBLINGS {
            return Err(ProofError::Wrong("it has more than 64 nodes"));
        }
        let siblings = tsc.nodes.into_iter().map(|Node(sibling)| sibling).collect();
        let branch = MerkleBranch { position: tsc.index, siblings };
        let root =
            branch.root(&txid).ok_or(ProofError::Wrong("the index does not fit the nodes"))?;
        if header.is_some_and(|header| header.merkle_root != root) {
            return Err(ProofError::Wrong("it does not lead to the header's merkle root"));
        }
        Ok(Self { txid, block_hash, block_height, header, branch })
    }
}

/// The header, if the target is one. A Merkle root is not accepted as a target, because anybody can
/// invent one.
fn read_target(
    target_type: Option<&str>,
    target: &str,
    block_hash: &BlockHash,
) -> Result<Option<BlockHeader>, ProofError> {
    let (named, header) = match target_type {
        None | Some("hash") => (target.parse().ok(), None),
        Some("header") => {
            let bytes = hex::decode(target).unwrap_or_default();
            let header = BlockHeader::from_bytes(&bytes)
                .map_err(|_| ProofError::Wrong("the target is not a block header"))?;
            (Some(header.block_hash()), Some(header))
        }
        Some(_) => return Err(ProofError::Wrong("the targetType is neither header nor hash")),
    };
    if named.as_ref() != Some(block_hash) {
        return Err(ProofError::Wrong("the target is not the block of blockHash"));
    }
    Ok(header)
}

#[derive(Serialize)]
struct Envelope<'a> {
    payload: &'a str,
    signature: (),
    #[serde(rename = "publicKey")]
    public_key: (),
    encoding: &'a str,
    mimetype: &'a str,
}

#[derive(Deserialize)]
struct ReadEnvelope {
    payload: Option<String>,
    encoding: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Reason {
    callback_reason: String,
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Callback {
    callback_payload: Tsc,
    #[serde(serialize_with = "displayed", deserialize_with = "parsed")]
    block_hash: BlockHash,
    block_height: u32,
    callback_tx_id: Option<String>,
    callback_reason: String,
    /// The same proof as a BUMP.
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    merkle_path: Option<String>,
}

/// A Merkle proof in the form of the Technical Standards Committee.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Tsc {
    index: u64,
    tx_or_id: String,
    target_type: Option<String>,
    target: String,
    nodes: Vec<Node>,
}

#[derive(Deserialize, Serialize)]
#[serde(transparent)]
struct Node(#[serde(serialize_with = "displayed", deserialize_with = "parsed")] Sibling);
