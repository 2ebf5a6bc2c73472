use std::fmt::Write;

use bsv_tx::{BlockHash, MerkleBranch, MerkleRoot, OutPoint, PublicKey, Signature, Txid, sha256};
use serde::Deserialize;
use serde_json::value::RawValue;
use thiserror::Error;

use crate::coinbase2::Coinbase2;
use crate::job_data::{BlockBindJob, BlockInfo, JobData, MinerParams};
use crate::json::CanonicalJson;
use crate::json_object::MinerContact;
use crate::output_script;

/// An identity document of generation 0.2, in a coinbase transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// The height of the block.
    pub height: u32,
    /// The previous key; for a first key, the key itself.
    pub previous_miner_id: PublicKey,
    /// The signature by the previous key over [`succession_digest`].
    pub previous_miner_id_signature: Signature,
    /// The current key, which signs the document.
    pub miner_id: PublicKey,
    /// The validity check output. The identity is valid while this output is unspent.
    pub vctx: OutPoint,
    /// What the miner publishes about itself.
    pub miner_contact: MinerContact,
    /// What the document says about its block.
    pub extensions: Extensions,
}

/// The extensions of a document, each optional.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extensions {
    /// Binds the document to its block.
    pub block_bind: Option<BlockBind>,
    /// States the size of the block.
    pub block_info: Option<BlockInfo>,
    /// The miner's fees.
    pub fee_spec: Option<CanonicalJson>,
    /// The limits of the miner's node.
    pub miner_params: Option<MinerParams>,
}

/// Extension `blockbind`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BlockBind {
    /// The previous block.
    #[serde(rename = "prevBlockHash")]
    pub previous_block: BlockHash,
    /// The Merkle root that the block would have if its coinbase transaction carried no document.
    pub modified_merkle_root: MerkleRoot,
}

/// Why text is not a document of generation 0.2.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DocumentError {
    /// Not JSON, or a member is missing or of a wrong type.
    #[error("not a miner identity document: {0}")]
    Malformed(String),
    /// Not version 0.2.
    #[error("not a document of version 0.2, but of \"{0}\"")]
    Version(String),
    /// The document changes when it is read and written again: it has unknown members, members in
    /// another order, or a spelling that a node would not reproduce.
    #[error("the document is not spelled as signed documents must be")]
    Form,
}

/// The digest that the previous key signs to name its successor: SHA-256 of the raw bytes of both
/// keys and of the VCTx id in display order.
pub fn succession_digest(previous: &PublicKey, current: &PublicKey, vctx: &Txid) -> [u8; 32] {
    let mut preimage = [0; 33 + 33 + 32];
    preimage[..33].copy_from_slice(&previous.to_bytes());
    preimage[33..66].copy_from_slice(&current.to_bytes());
    preimage[66..].copy_from_slice(&vctx.to_display_bytes());
    sha256(&preimage)
}

impl Document {
    /// The text that is signed and put into the output script.
    pub fn to_json(&self) -> String {
        let fee_spec_len = self.extensions.fee_spec.as_ref().map_or(0, |spec| spec.as_str().len());
        let mut out = String::with_capacity(1536 + fee_spec_len);
        write!(
            out,
            concat!(
                r#"{{"version":"0.2","height":{},"prevMinerId":"{}","prevMinerIdSig":"{}","#,
                r#""minerId":"{}","vctx":{{"txId":"{}","vout":{}}}"#
            ),
            self.height,
            self.previous_miner_id,
            self.previous_miner_id_signature,
            self.miner_id,
            self.vctx.txid,
            self.vctx.vout
        )
        .expect(STRING);
        if !self.miner_contact.is_empty() {
            out.push_str(r#","minerContact":"#);
            self.miner_contact.write(&mut out);
        }
        self.extensions.write(&mut out);
        out.push('}');
        out
    }

    /// Reads a document that is spelled exactly as it is signed.
    pub fn from_json(text: &str) -> Result<Self, DocumentError> {
        let json: DocumentJson<'_> =
            serde_json::from_str(text).map_err(|error| malformed("", &error))?;
        if json.version != "0.2" {
            return Err(DocumentError::Version(json.version));
        }
        let document = Self {
            height: json.height,
            previous_miner_id: json.prev_miner_id,
            previous_miner_id_signature: json.prev_miner_id_sig,
            miner_id: json.miner_id,
            vctx: OutPoint { txid: json.vctx.tx_id, vout: json.vctx.vout },
            miner_contact: match json.miner_contact {
                None => MinerContact::default(),
                Some(text) => MinerContact::from_json(text.get())
                    .map_err(|error| malformed("minerContact: ", &error))?,
            },
            extensions: match json.extensions {
                None => Extensions::default(),
                Some(json) => Extensions::from_json(json)?,
            },
        };
        if document.to_json() != text {
            return Err(DocumentError::Form);
        }
        Ok(document)
    }
}

const STRING: &str = "a String takes any text";

impl Extensions {
    /// Makes the extensions for which `job_data` has the inputs. The coinbase transaction of the
    /// block ends with `coinbase2`.
    pub fn new(job_data: &JobData, coinbase2: &Coinbase2<'_>) -> Self {
        Self {
            block_bind: job_data.block_bind.as_ref().map(|job| BlockBind::new(job, coinbase2)),
            block_info: job_data.block_info,
            fee_spec: job_data.fee_spec.clone(),
            miner_params: job_data.miner_params,
        }
    }

    fn from_json(json: ExtensionsJson<'_>) -> Result<Self, DocumentError> {
        let fee_spec = json.fee_spec.map(|text| CanonicalJson::from_text(text.get()));
        Ok(Self {
            block_bind: json.blockbind,
            block_info: json.blockinfo,
            fee_spec: fee_spec.transpose().map_err(|error| malformed("feeSpec: ", &error))?,
            miner_params: json.minerparams.map(|json| MinerParams {
                block_max_size: json.policy.blockmaxsize,
                max_stack_memory_usage_policy: json.policy.maxstackmemoryusagepolicy,
                excessive_block_size: json.consensus.excessiveblocksize,
                max_stack_memory_usage_consensus: json.consensus.maxstackmemoryusageconsensus,
            }),
        })
    }

    fn write(&self, out: &mut String) {
        let mut separator = r#","extensions":{"#;
        let mut begin = |out: &mut String, name| {
            write!(out, r#"{separator}"{name}":"#).expect(STRING);
            separator = ",";
        };
        if let Some(bind) = &self.block_bind {
            begin(out, "blockbind");
            write!(
                out,
                r#"{{"prevBlockHash":"{}","modifiedMerkleRoot":"{}"}}"#,
                bind.previous_block, bind.modified_merkle_root
            )
            .expect(STRING);
        }
        if let Some(BlockInfo { tx_count, size_without_coinbase }) = self.block_info {
            begin(out, "blockinfo");
            write!(
                out,
                r#"{{"txCount":{tx_count},"sizeWithoutCoinbase":{size_without_coinbase}}}"#
            )
            .expect(STRING);
        }
        if let Some(fee_spec) = &self.fee_spec {
            begin(out, "feeSpec");
            out.push_str(fee_spec.as_str());
        }
        if let Some(params) = self.miner_params {
            begin(out, "minerparams");
            params.write(out);
        }
        if separator == "," {
            out.push('}');
        }
    }
}

impl BlockBind {
    fn new(job: &BlockBindJob, coinbase2: &Coinbase2<'_>) -> Self {
        // `OP_FALSE OP_RETURN`.
        let modified_txid = coinbase2.modified_txid(&output_script::PREFIX[..2]);
        let modified_merkle_root = MerkleBranch::of_coinbase(&job.merkle_branch)
            .root(&modified_txid)
            .expect("position 0 fits a branch of any length");
        Self { previous_block: job.previous_block, modified_merkle_root }
    }
}

impl MinerParams {
    fn write(self, out: &mut String) {
        write!(
            out,
            concat!(
                r#"{{"policy":{{"blockmaxsize":{},"maxstackmemoryusagepolicy":{}}},"#,
                r#""consensus":{{"excessiveblocksize":{},"maxstackmemoryusageconsensus":{}}}}}"#
            ),
            self.block_max_size,
            self.max_stack_memory_usage_policy,
            self.excessive_block_size,
            self.max_stack_memory_usage_consensus
        )
        .expect(STRING);
    }
}

fn malformed(context: &str, error: &dyn std::error::Error) -> DocumentError {
    DocumentError::Malformed(format!("{context}{error}"))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DocumentJson<'a> {
    version: String,
    height: u32,
    prev_miner_id: PublicKey,
    prev_miner_id_sig: Signature,
    miner_id: PublicKey,
    vctx: VctxJson,
    #[serde(borrow)]
    miner_contact: Option<&'a RawValue>,
    #[serde(borrow)]
    extensions: Option<ExtensionsJson<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct VctxJson {
    tx_id: Txid,
    vout: u32,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ExtensionsJson<'a> {
    blockbind: Option<BlockBind>,
    blockinfo: Option<BlockInfo>,
    #[serde(borrow)]
    fee_spec: Option<&'a RawValue>,
    minerparams: Option<MinerParamsJson>,
}

#[derive(Deserialize)]
struct MinerParamsJson {
    policy: PolicyJson,
    consensus: ConsensusJson,
}

#[derive(Deserialize)]
struct PolicyJson {
    blockmaxsize: u64,
    maxstackmemoryusagepolicy: u64,
}

#[derive(Deserialize)]
struct ConsensusJson {
    excessiveblocksize: u64,
    maxstackmemoryusageconsensus: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: &str = r#"{"version":"0.2","height":1,"prevMinerId":"025e343d44313813efa8e94b2c28c0b9b992cbcbed0fad36600a858fcd31da5890","prevMinerIdSig":"304402207592fbf71480822b726d90048c9d59dd2b17e26d2e1a90a0fdd28970ed761f2e022032a5471e2c572011b52cd323fbee8dcb94cb8f15cbcecc736157157888d9e3b3","minerId":"025e343d44313813efa8e94b2c28c0b9b992cbcbed0fad36600a858fcd31da5890","vctx":{"txId":"6839008199026098cc78bf5f34c9a6bdf7a8009c9f019f8399c7ca1945b4a4ff","vout":0}}"#;

    #[test]
    fn a_document_reads_back() {
        let document = Document::from_json(FIRST).unwrap();
        assert_eq!(document.to_json(), FIRST);
        let digest =
            succession_digest(&document.previous_miner_id, &document.miner_id, &document.vctx.txid);
        let signature = document.previous_miner_id_signature;
        assert!(document.previous_miner_id.verify(&digest, &signature));
    }

    #[test]
    fn only_the_form_that_is_signed_is_read() {
        for changed in [
            FIRST.replacen(':', ": ", 1),
            FIRST.replacen('}', r#","extra":1}"#, 2),
            FIRST.replace("025e343d", "025E343D"),
            FIRST.replace(r#""vout":0"#, r#""vout":0,"more":1"#),
            FIRST.replace(r#""vout":0}"#, r#""vout":0},"extensions":{}"#),
            FIRST.replace(r#""vout":0}"#, r#""vout":0},"minerContact":{}"#),
            format!(" {FIRST}"),
        ] {
            assert_eq!(Document::from_json(&changed), Err(DocumentError::Form), "{changed}");
        }
        let other_version = FIRST.replace("0.2", "0.3");
        assert_eq!(
            Document::from_json(&other_version),
            Err(DocumentError::Version("0.3".to_owned()))
        );
        for broken in [
            "",
            "{}",
            &FIRST[..FIRST.len() - 1],
            &FIRST.replace(r#""height":1"#, r#""height":-1"#),
            &FIRST.replace("025e343d", "055e343d"),
            &FIRST.replace("6839008199", "68390081"),
        ] {
            let error = Document::from_json(broken).unwrap_err();
            assert!(matches!(error, DocumentError::Malformed(_)), "{broken}: {error}");
        }
    }
}
