use std::borrow::Cow;
use std::str::FromStr;
use std::sync::Arc;

use bsv_minerid::formats::BlockBindJob;
use bsv_minerid::node::ChainSign;
use bsv_minerid::{Identity, JobData, JobDataError};
use bsv_tx::{BlockHash, Txid};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::problem::capitalise;
use crate::http::Problem;
use crate::minerid::MinerIds;

/// The mining job of a request. Its members are read one by one, so that the first mistake is
/// reported. The members of generation 1.0 distinguish such a request from one of 0.2.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Job<'a> {
    #[serde(borrow)]
    block_height: Option<&'a RawValue>,
    #[serde(borrow)]
    alias: Option<&'a RawValue>,
    #[serde(borrow)]
    coinbase2: Option<&'a RawValue>,
    #[serde(borrow)]
    job_data: Option<&'a RawValue>,
    #[serde(borrow)]
    miner_info_tx_id: Option<&'a RawValue>,
    #[serde(borrow)]
    prevhash: Option<&'a RawValue>,
    #[serde(borrow)]
    merkle_proof: Option<&'a RawValue>,
}

impl<'a> Job<'a> {
    pub(super) fn parse(body: &'a [u8]) -> Result<Self, Problem> {
        let text = std::str::from_utf8(body)
            .map_err(|_| Problem::bad_request("The request body is not UTF-8"))?
            .trim_ascii();
        if text.is_empty() {
            return Ok(Self::default());
        }
        // Serde reads an array into a struct too, so arrays are refused here.
        if !text.starts_with('{') {
            return Err(Problem::bad_request("The request body must be a JSON object"));
        }
        serde_json::from_str(text)
            .map_err(|error| Problem::bad_request(format!("The request body is not JSON: {error}")))
    }

    /// The alias that the job names, if any.
    pub(super) fn alias(&self) -> Option<Cow<'a, str>> {
        match text(self.alias) {
            Member::Text(alias) => Some(alias),
            Member::Missing | Member::NotText => None,
        }
    }

    /// The identity that the job names, and what the job tells about the chain. Faults of the
    /// request are reported in its answer.
    pub(super) fn sign(&self, ids: &MinerIds) -> Option<(Arc<Identity>, ChainSign)> {
        let identity = identity(ids, self.alias).ok()?;
        let sign = match hash("Prevhash", self.prevhash) {
            Ok(previous_block) => ChainSign::PreviousBlock(previous_block),
            Err(_) => ChainSign::Height(height(self.block_height).ok()?),
        };
        Some((identity, sign))
    }

    /// Adds the identity output to the job's coinbase2. Answers `None` while a note is being
    /// written.
    pub(super) fn rewrite(&self, ids: &MinerIds) -> Result<Option<Arc<[u8]>>, Problem> {
        let is_1_0 = [self.miner_info_tx_id, self.prevhash, self.merkle_proof];
        if is_1_0.iter().any(Option::is_some) {
            return self.refer(ids);
        }
        let height = height(self.block_height)?;
        let identity = identity(ids, self.alias)?;
        let coinbase2 = coinbase2(self.coinbase2)?;
        let job_data = match self.job_data {
            None => JobData::default(),
            Some(job_data) => JobData::from_json(job_data.get())
                .map_err(|error| Problem::unprocessable(capitalise(&error.to_string())))?,
        };
        Ok(identity.coinbase2_if_noted(height, &coinbase2, &job_data)?)
    }

    /// Adds the reference output of generation 1.0.
    fn refer(&self, ids: &MinerIds) -> Result<Option<Arc<[u8]>>, Problem> {
        let identity = identity(ids, self.alias)?;
        let txid: Txid = hash("Miner-info txid", self.miner_info_tx_id)?;
        let previous_block: BlockHash = hash("Prevhash", self.prevhash)?;
        let merkle_branch = merkle_branch(self.merkle_proof)?;
        let coinbase2 = coinbase2(self.coinbase2)?;
        let job = BlockBindJob { previous_block, merkle_branch };
        Ok(identity.coinbase2_with_reference_if_noted(txid, &coinbase2, &job)?)
    }
}

fn identity(ids: &MinerIds, alias: Option<&RawValue>) -> Result<Arc<Identity>, Problem> {
    match text(alias) {
        Member::Missing => Err(Problem::bad_request("Alias must be supplied")),
        Member::NotText => Err(Problem::unprocessable("Alias must be a string")),
        Member::Text(alias) => Ok(ids.get(&alias)?),
    }
}

fn coinbase2(value: Option<&RawValue>) -> Result<Vec<u8>, Problem> {
    let invalid = || Problem::unprocessable("Invalid Coinbase 2");
    match text(value) {
        Member::Missing => Err(Problem::bad_request("Coinbase 2 must be supplied")),
        Member::NotText => Err(invalid()),
        Member::Text(coinbase2) => hex::decode(&*coinbase2).map_err(|_| invalid()),
    }
}

fn hash<T: FromStr>(name: &str, value: Option<&RawValue>) -> Result<T, Problem> {
    let text = match text(value) {
        Member::Missing => return Err(Problem::bad_request(format!("{name} must be supplied"))),
        Member::NotText => None,
        Member::Text(text) => text.parse().ok(),
    };
    let wrong = || format!("{name} must be a 64-characters hexadecimal string");
    text.ok_or_else(|| Problem::unprocessable(wrong()))
}

fn merkle_branch(value: Option<&RawValue>) -> Result<Vec<[u8; 32]>, Problem> {
    let Some(value) = value else {
        return Err(Problem::bad_request("Merkle proof must be supplied"));
    };
    let invalid = |error: JobDataError| Problem::unprocessable(capitalise(&error.to_string()));
    BlockBindJob::merkle_branch_from_json("merkleProof", value.get()).map_err(invalid)
}

/// Reads the height. Some pools send it as text.
fn height(value: Option<&RawValue>) -> Result<u32, Problem> {
    let missing = || Problem::bad_request("Block height must be supplied");
    let text = match text(value) {
        Member::Missing => return Err(missing()),
        Member::NotText => Cow::Borrowed(value.ok_or_else(missing)?.get()),
        Member::Text(text) => text,
    };
    let is_number = text.starts_with(|c: char| c == '-' || c.is_ascii_digit());
    if is_number && (text.starts_with('-') || text.bytes().all(|c| c == b'0')) {
        return Err(Problem::unprocessable("Block height must be positive"));
    }
    let number = text.bytes().all(|c| c.is_ascii_digit()).then(|| text.parse().ok()).flatten();
    number.filter(|height| i32::try_from(*height).is_ok()).ok_or_else(|| {
        Problem::unprocessable("Block height must be a whole number from 1 to 2147483647")
    })
}

enum Member<'a> {
    /// Absent, null or an empty string.
    Missing,
    NotText,
    Text(Cow<'a, str>),
}

fn text(value: Option<&RawValue>) -> Member<'_> {
    let Some(value) = value else { return Member::Missing };
    let raw = value.get();
    // A string without escapes, the usual case, is borrowed.
    let text = match serde_json::from_str::<&str>(raw) {
        Ok(text) => Ok(Cow::Borrowed(text)),
        Err(_) => serde_json::from_str::<String>(raw).map(Cow::Owned),
    };
    match text {
        Ok(text) if text.is_empty() => Member::Missing,
        Ok(text) => Member::Text(text),
        Err(_) => Member::NotText,
    }
}
