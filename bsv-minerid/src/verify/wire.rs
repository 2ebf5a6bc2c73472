use serde::Serialize;
use serde_json::Value;

use super::report::{Candidate, Check, Claim, Finding, Outcome, Report};

impl Report {
    /// The report as a JSON object, for programs.
    pub fn to_json(&self) -> String {
        let wire = ReportJson {
            block: self.block.to_string(),
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
struct ReportJson {
    block: String,
    height: Option<u32>,
    verdict: &'static str,
    accepted_by_node: Option<bool>,
    identity: Option<ClaimJson>,
    checks: Vec<FindingJson>,
    outputs: Vec<CandidateJson>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CandidateJson {
    output: usize,
    generation: String,
    miner_info_txid: Option<String>,
    claim: Option<ClaimJson>,
    accepted_by_node: Option<bool>,
    checks: Vec<FindingJson>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FindingJson {
    check: &'static str,
    outcome: &'static str,
    reason: Option<String>,
    accepted_by_node: Option<bool>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ClaimJson {
    version: String,
    miner_id: String,
    previous_miner_id: String,
    name: Option<String>,
    vctx: Option<String>,
    revocation_key: Option<String>,
    previous_revocation_key: Option<String>,
    compromised_miner_id: Option<String>,
    data_refs: Vec<Value>,
}

fn checks(findings: &[Finding]) -> Vec<FindingJson> {
    findings.iter().map(FindingJson::from).collect()
}

impl From<&Candidate> for CandidateJson {
    fn from(candidate: &Candidate) -> Self {
        Self {
            output: candidate.output,
            generation: candidate.generation.to_string(),
            miner_info_txid: candidate.miner_info.map(|txid| txid.to_string()),
            claim: candidate.claim.as_ref().map(ClaimJson::from),
            accepted_by_node: candidate.passes_node(),
            checks: checks(&candidate.findings),
        }
    }
}

impl From<&Finding> for FindingJson {
    fn from(Finding { check, outcome, passes_node }: &Finding) -> Self {
        let (outcome, reason) = match outcome {
            Outcome::Holds => ("holds", None),
            Outcome::Fails(reason) => ("fails", Some(reason.clone())),
            Outcome::Unchecked(reason) => ("unchecked", Some(reason.clone())),
        };
        Self { check: Check::name(*check), outcome, reason, accepted_by_node: *passes_node }
    }
}

impl From<&Claim> for ClaimJson {
    fn from(claim: &Claim) -> Self {
        let revocation_key = |key: Option<bsv_tx::PublicKey>| key.map(|key| key.to_string());
        Self {
            version: claim.version.clone(),
            miner_id: claim.miner_id.to_string(),
            previous_miner_id: claim.previous_miner_id.to_string(),
            name: claim.name.clone(),
            vctx: claim.vctx.map(|vctx| vctx.to_string()),
            revocation_key: revocation_key(claim.revocation_keys.map(|keys| keys.current)),
            previous_revocation_key: revocation_key(
                claim.revocation_keys.map(|keys| keys.previous),
            ),
            compromised_miner_id: claim.compromised_miner_id.clone(),
            data_refs: claim
                .data_refs
                .iter()
                .map(|reference| {
                    serde_json::json!({
                        "brfcIds": reference.brfc_ids,
                        "txid": reference.txid.to_string(),
                        "vout": reference.vout,
                        "compress": reference.compress,
                    })
                })
                .collect(),
        }
    }
}
