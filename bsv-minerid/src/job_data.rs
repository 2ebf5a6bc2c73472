use bsv_tx::BlockHash;
use serde::Deserialize;
use serde_json::value::RawValue;
use thiserror::Error;

use crate::json::CanonicalJson;

/// What a mining job says about its block, for the extensions of an identity document. A part is
/// present only if the job has all its inputs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct JobData {
    /// From `miningCandidate.prevhash` and `.merkleProof`.
    pub block_bind: Option<BlockBindJob>,
    /// From `miningCandidate.num_tx` and `.sizeWithoutCoinbase`.
    pub block_info: Option<BlockInfo>,
    /// `feeSpec` as the job spells it.
    pub fee_spec: Option<CanonicalJson>,
    /// From `getInfo`.
    pub miner_params: Option<MinerParams>,
}

/// The place in the chain and in the block of a coinbase transaction.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BlockBindJob {
    /// The previous block.
    pub previous_block: BlockHash,
    /// The coinbase transaction's Merkle branch, from the bottom, in internal byte order.
    pub merkle_branch: Vec<[u8; 32]>,
}

/// Extension `blockinfo`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BlockInfo {
    /// The number of transactions in the block.
    pub tx_count: u64,
    /// The size of the block without its coinbase transaction, in bytes.
    pub size_without_coinbase: u64,
}

/// Extension `minerparams`: limits of the miner's node, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MinerParams {
    /// `getInfo.maxblocksize`.
    pub block_max_size: u64,
    /// `getInfo.maxstackmemoryusagepolicy`.
    pub max_stack_memory_usage_policy: u64,
    /// `getInfo.maxminedblocksize`.
    pub excessive_block_size: u64,
    /// `getInfo.maxstackmemoryusageconsensus`.
    pub max_stack_memory_usage_consensus: u64,
}

/// A member of the job data is invalid.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("invalid {member}: {reason}")]
pub struct JobDataError {
    member: &'static str,
    reason: String,
}

/// The empty values apart from 0.
const EMPTY: [&str; 3] = ["null", "\"\"", "false"];

/// The longest Merkle branch of a block: no block has 2^32 transactions.
const MAX_MERKLE_BRANCHES: usize = 32;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct JobDataJson<'a> {
    #[serde(borrow)]
    mining_candidate: Option<&'a RawValue>,
    #[serde(borrow)]
    get_info: Option<&'a RawValue>,
    #[serde(borrow)]
    fee_spec: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct MiningCandidateJson<'a> {
    #[serde(borrow)]
    prevhash: Option<&'a RawValue>,
    #[serde(borrow, rename = "merkleProof")]
    merkle_proof: Option<&'a RawValue>,
    #[serde(borrow)]
    num_tx: Option<&'a RawValue>,
    #[serde(borrow, rename = "sizeWithoutCoinbase")]
    size_without_coinbase: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct GetInfoJson<'a> {
    #[serde(borrow)]
    maxblocksize: Option<&'a RawValue>,
    #[serde(borrow)]
    maxminedblocksize: Option<&'a RawValue>,
    #[serde(borrow)]
    maxstackmemoryusagepolicy: Option<&'a RawValue>,
    #[serde(borrow)]
    maxstackmemoryusageconsensus: Option<&'a RawValue>,
}

impl JobData {
    /// Reads the `jobData` object of a `coinbase2` request. No member is mandatory. Members that
    /// enter no extension are ignored.
    ///
    /// An empty value (`null`, `""`, `0`, `false`) in place of an object, a hash or a Merkle branch
    /// counts as absent, as in the older generator.
    pub fn from_json(text: &str) -> Result<Self, JobDataError> {
        let mut data = Self::default();
        if is_empty(text.trim()) {
            return Ok(data);
        }
        let job: JobDataJson<'_> = object("jobData", text)?;
        if let Some(candidate) = present(job.mining_candidate) {
            data.read_mining_candidate(candidate)?;
        }
        if let Some(info) = present(job.get_info) {
            data.read_get_info(info)?;
        }
        if let Some(spec) = present(job.fee_spec) {
            let member = "jobData.feeSpec";
            let spec =
                CanonicalJson::from_text(spec.get()).map_err(|error| invalid(member, error))?;
            if !spec.is_object() {
                return Err(invalid(member, "must be an object"));
            }
            data.fee_spec = Some(spec);
        }
        Ok(data)
    }

    fn read_mining_candidate(&mut self, text: &RawValue) -> Result<(), JobDataError> {
        let candidate: MiningCandidateJson<'_> = object("jobData.miningCandidate", text.get())?;
        let previous_block = present(candidate.prevhash).map(previous_block).transpose()?;
        let merkle_branch = present(candidate.merkle_proof).map(merkle_branch).transpose()?;
        if let (Some(previous_block), Some(merkle_branch)) = (previous_block, merkle_branch) {
            self.block_bind = Some(BlockBindJob { previous_block, merkle_branch });
        }
        let tx_count = integer("jobData.miningCandidate.num_tx", candidate.num_tx)?;
        let size = integer(
            "jobData.miningCandidate.sizeWithoutCoinbase",
            candidate.size_without_coinbase,
        )?;
        if let (Some(tx_count), Some(size_without_coinbase)) = (tx_count, size) {
            self.block_info = Some(BlockInfo { tx_count, size_without_coinbase });
        }
        Ok(())
    }

    fn read_get_info(&mut self, text: &RawValue) -> Result<(), JobDataError> {
        let info: GetInfoJson<'_> = object("jobData.getInfo", text.get())?;
        let block_max_size = integer("jobData.getInfo.maxblocksize", info.maxblocksize)?;
        let mined = integer("jobData.getInfo.maxminedblocksize", info.maxminedblocksize)?;
        let policy =
            integer("jobData.getInfo.maxstackmemoryusagepolicy", info.maxstackmemoryusagepolicy)?;
        let consensus = integer(
            "jobData.getInfo.maxstackmemoryusageconsensus",
            info.maxstackmemoryusageconsensus,
        )?;
        if let (Some(block_max_size), Some(mined), Some(policy), Some(consensus)) =
            (block_max_size, mined, policy, consensus)
        {
            self.miner_params = Some(MinerParams {
                block_max_size,
                max_stack_memory_usage_policy: policy,
                excessive_block_size: mined,
                max_stack_memory_usage_consensus: consensus,
            });
        }
        Ok(())
    }
}

fn invalid(member: &'static str, reason: impl ToString) -> JobDataError {
    JobDataError { member, reason: reason.to_string() }
}

fn present(value: Option<&RawValue>) -> Option<&RawValue> {
    value.filter(|value| !is_empty(value.get()))
}

/// Whether a JSON text is one of the values that pools send in place of what they do not know.
fn is_empty(text: &str) -> bool {
    EMPTY.contains(&text) || text.parse() == Ok(0.0)
}

fn object<'a, T: Deserialize<'a>>(member: &'static str, text: &'a str) -> Result<T, JobDataError> {
    // Serde reads an array into a struct too, so arrays are refused here.
    if !text.trim_start().starts_with('{') {
        return Err(invalid(member, "must be an object"));
    }
    serde_json::from_str(text).map_err(|error| invalid(member, error))
}

/// Reads a number, or a string of its digits. An empty value apart from 0 counts as absent.
fn integer(name: &'static str, value: Option<&RawValue>) -> Result<Option<u64>, JobDataError> {
    let Some(text) = value.map(RawValue::get).filter(|text| !EMPTY.contains(text)) else {
        return Ok(None);
    };
    let unquoted = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    let digits = unquoted.unwrap_or(text);
    let number = digits.bytes().all(|c| c.is_ascii_digit()).then(|| digits.parse().ok());
    let expected = "must be a whole number from 0 to 18446744073709551615";
    number.flatten().map(Some).ok_or_else(|| invalid(name, expected))
}

fn previous_block(value: &RawValue) -> Result<BlockHash, JobDataError> {
    let name = "jobData.miningCandidate.prevhash";
    let expected = "must be 64 hexadecimal characters";
    serde_json::from_str(value.get()).map_err(|_| invalid(name, expected))
}

fn merkle_branch(value: &RawValue) -> Result<Vec<[u8; 32]>, JobDataError> {
    BlockBindJob::merkle_branch_from_json("jobData.miningCandidate.merkleProof", value.get())
}

impl BlockBindJob {
    /// Reads the Merkle branch of a coinbase transaction: an array of hashes in display order.
    /// `name` names the branch in errors.
    pub fn merkle_branch_from_json(
        name: &'static str,
        text: &str,
    ) -> Result<Vec<[u8; 32]>, JobDataError> {
        let expected = "must be an array of strings of 64 hexadecimal characters";
        let texts: Vec<String> = serde_json::from_str(text).map_err(|_| invalid(name, expected))?;
        if texts.len() > MAX_MERKLE_BRANCHES {
            return Err(invalid(name, "has more branches than a block can have"));
        }
        let branch = |text: &String| {
            let mut bytes = [0; 32];
            hex::decode_to_slice(text, &mut bytes).map_err(|_| invalid(name, expected))?;
            bytes.reverse();
            Ok(bytes)
        };
        texts.iter().map(branch).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HASH: &str = "70f5701644897c92b60e98dbbfe72e1cfd7a2728c6fa3a29c4b4f6e986b0ccaa";

    #[test]
    fn a_part_is_there_only_if_all_it_is_made_of_is() {
        for text in [
            "{}",
            r#"{"miningCandidate":null,"getInfo":null,"feeSpec":null}"#,
            r#"{"miningCandidate":{},"getInfo":{}}"#,
            &format!(r#"{{"miningCandidate":{{"prevhash":"{HASH}","num_tx":1}}}}"#),
            r#"{"miningCandidate":{"merkleProof":[],"sizeWithoutCoinbase":1}}"#,
            r#"{"getInfo":{"maxblocksize":1,"maxminedblocksize":2,"maxstackmemoryusagepolicy":3}}"#,
            r#"{"other":[1,{"deep":"\ud83d"}],"getInfo":{"version":"text"}}"#,
        ] {
            assert_eq!(JobData::from_json(text), Ok(JobData::default()), "{text}");
        }
    }

    #[test]
    fn hashes_of_either_case_and_the_largest_integers_are_read() {
        let upper = HASH.to_uppercase();
        let text = format!(
            r#" {{"miningCandidate":{{"prevhash":"{upper}","merkleProof":["{upper}"],
            "num_tx":0,"sizeWithoutCoinbase":18446744073709551615}}}}"#
        );
        let data = JobData::from_json(&text).unwrap();
        let bind = data.block_bind.unwrap();
        assert_eq!(bind.previous_block.to_string(), HASH);
        assert_eq!(bind.merkle_branch, [*HASH.parse::<BlockHash>().unwrap().as_bytes()]);
        let info = BlockInfo { tx_count: 0, size_without_coinbase: u64::MAX };
        assert_eq!(data.block_info, Some(info));
    }

    #[test]
    fn texts_of_digits_are_numbers_and_what_is_empty_is_absent() {
        let numbers =
            r#"{"miningCandidate":{"num_tx":"7","sizeWithoutCoinbase":"18446744073709551615"}}"#;
        let info = BlockInfo { tx_count: 7, size_without_coinbase: u64::MAX };
        assert_eq!(JobData::from_json(numbers).unwrap().block_info, Some(info));
        for empty in ["\"\"", "0", "-0.0", "false", "null"] {
            assert_eq!(JobData::from_json(empty), Ok(JobData::default()), "{empty}");
            for (before, after) in [
                (r#"{"feeSpec":"#, "}"),
                (r#"{"getInfo":"#, "}"),
                (r#"{"miningCandidate":"#, "}"),
                (r#"{"miningCandidate":{"merkleProof":[],"prevhash":"#, "}}"),
                (&format!(r#"{{"miningCandidate":{{"prevhash":"{HASH}","merkleProof":"#), "}}"),
            ] {
                let text = format!("{before}{empty}{after}");
                assert_eq!(JobData::from_json(&text), Ok(JobData::default()), "{text}");
            }
        }
        for empty in ["\"\"", "false", "null"] {
            let text =
                format!(r#"{{"miningCandidate":{{"num_tx":{empty},"sizeWithoutCoinbase":1}}}}"#);
            assert_eq!(JobData::from_json(&text), Ok(JobData::default()), "{text}");
        }
    }

    #[test]
    fn a_member_of_a_wrong_type_is_named() {
        let many = format!(r#"["{}"]"#, [HASH; 33].join(r#"",""#));
        for (member, value) in [
            ("miningCandidate.prevhash", "1"),
            ("miningCandidate.prevhash", r#""70f5""#),
            ("miningCandidate.prevhash", &format!(r#""{}""#, "g".repeat(64))),
            ("miningCandidate.merkleProof", r#""x""#),
            ("miningCandidate.merkleProof", r#"["70f5"]"#),
            ("miningCandidate.merkleProof", "[null]"),
            ("miningCandidate.merkleProof", &many),
            ("miningCandidate.num_tx", r#""1x""#),
            ("miningCandidate.num_tx", r#""-1""#),
            ("miningCandidate.num_tx", r#"" 1""#),
            ("miningCandidate.num_tx", "-1"),
            ("miningCandidate.num_tx", "1.0"),
            ("miningCandidate.sizeWithoutCoinbase", "18446744073709551616"),
            ("getInfo.maxblocksize", "1e3"),
            ("getInfo.maxminedblocksize", "true"),
            ("getInfo.maxstackmemoryusagepolicy", "{}"),
            ("getInfo.maxstackmemoryusageconsensus", "[]"),
        ] {
            let (object, name) = member.split_once('.').unwrap();
            let text = format!(r#"{{"{object}":{{"{name}":{value}}}}}"#);
            let error = JobData::from_json(&text).unwrap_err().to_string();
            assert!(error.starts_with(&format!("invalid jobData.{member}: ")), "{error}");
        }
        for (text, member) in [
            ("[]", "jobData"),
            ("\"x\"", "jobData"),
            (r#"{"miningCandidate":[]}"#, "jobData.miningCandidate"),
            (r#"{"getInfo":1}"#, "jobData.getInfo"),
            (r#"{"feeSpec":[]}"#, "jobData.feeSpec"),
            (r#"{"feeSpec":"x"}"#, "jobData.feeSpec"),
            (r#"{"feeSpec":{"x":"\ud83d"}}"#, "jobData.feeSpec"),
            (r#"{"feeSpec":{},"feeSpec":{}}"#, "jobData"),
        ] {
            let error = JobData::from_json(text).unwrap_err().to_string();
            assert!(error.starts_with(&format!("invalid {member}: ")), "{error}");
        }
    }
}
