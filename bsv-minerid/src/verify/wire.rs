use bsv_tx::{BlockHash, OutPoint, PublicKey, Txid};
use serde::Serialize;

use super::report::{Candidate, Check, Claim, Finding, Outcome, Report};
use crate::data_refs::DataRef;

impl Report {
    /// The report as a JSON object, for programs.
    pub fn to_json(&self) -> String {
        let wire = ReportJson {
            block: self.block,
            height: self.height,
            verdict: self.verdict().name(),
            accepted_by_node: self.passes_node(),
            identity: self.identity().map(ClaimJson::from),
            checks: checks(&self.findings),
            outputs: self.candidates.iter().map(CandidateJson::from).collect(),
        };
        serde_json::to_string(&wire).expect("strings and numbers are JSON")
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ReportJson<'a> {
    block: BlockHash,
    height: Option<u32>,
    verdict: &'static str,
    accepted_by_node: Option<bool>,
    identity: Option<ClaimJson<'a>>,
    checks: Vec<FindingJson<'a>>,
    outputs: Vec<CandidateJson<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CandidateJson<'a> {
    output: usize,
    generation: String,
    miner_info_txid: Option<Txid>,
    claim: Option<ClaimJson<'a>>,
    accepted_by_node: Option<bool>,
    checks: Vec<FindingJson<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FindingJson<'a> {
    check: &'static str,
    outcome: &'static str,
    reason: Option<&'a str>,
    accepted_by_node: Option<bool>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ClaimJson<'a> {
    version: &'a str,
    miner_id: PublicKey,
    previous_miner_id: PublicKey,
    name: Option<&'a str>,
    vctx: Option<OutPoint>,
    revocation_key: Option<PublicKey>,
    previous_revocation_key: Option<PublicKey>,
    compromised_miner_id: Option<&'a str>,
    data_refs: &'a [DataRef],
}

fn checks(findings: &[Finding]) -> Vec<FindingJson<'_>> {
    findings.iter().map(FindingJson::from).collect()
}

impl<'a> From<&'a Candidate> for CandidateJson<'a> {
    fn from(candidate: &'a Candidate) -> Self {
        Self {
            output: candidate.output,
            generation: candidate.generation.to_string(),
            miner_info_txid: candidate.miner_info,
            claim: candidate.claim.as_ref().map(ClaimJson::from),
            accepted_by_node: candidate.passes_node(),
            checks: checks(&candidate.findings),
        }
    }
}

impl<'a> From<&'a Finding> for FindingJson<'a> {
    fn from(Finding { check, outcome, passes_node }: &'a Finding) -> Self {
        let (outcome, reason) = match outcome {
            Outcome::Holds => ("holds", None),
            Outcome::Fails(reason) => ("fails", Some(reason.as_str())),
            Outcome::Unchecked(reason) => ("unchecked", Some(reason.as_str())),
        };
        Self { check: Check::name(*check), outcome, reason, accepted_by_node: *passes_node }
    }
}

impl<'a> From<&'a Claim> for ClaimJson<'a> {
    fn from(claim: &'a Claim) -> Self {
        Self {
            version: &claim.version,
            miner_id: claim.miner_id,
            previous_miner_id: claim.previous_miner_id,
            name: claim.name.as_deref(),
            vctx: claim.vctx,
            revocation_key: claim.revocation_keys.map(|keys| keys.current),
            previous_revocation_key: claim.revocation_keys.map(|keys| keys.previous),
            compromised_miner_id: claim.compromised_miner_id.as_deref(),
            data_refs: &claim.data_refs,
        }
    }
}
