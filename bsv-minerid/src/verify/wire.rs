use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

use super::report::{Candidate, Claim, Finding, Outcome, Report};

impl Report {
    /// The report as a JSON object, for programs.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("strings and numbers are JSON")
    }
}

impl Serialize for Report {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut report = serializer.serialize_struct("Report", 7)?;
        report.serialize_field("block", &self.block)?;
        report.serialize_field("height", &self.height)?;
        report.serialize_field("verdict", self.verdict().name())?;
        report.serialize_field("acceptedByNode", &self.passes_node())?;
        report.serialize_field("identity", &self.identity())?;
        report.serialize_field("checks", &self.findings)?;
        report.serialize_field("outputs", &self.candidates)?;
        report.end()
    }
}

impl Serialize for Candidate {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut candidate = serializer.serialize_struct("Candidate", 6)?;
        candidate.serialize_field("output", &self.output)?;
        candidate.serialize_field("generation", &self.generation.to_string())?;
        candidate.serialize_field("minerInfoTxid", &self.miner_info)?;
        candidate.serialize_field("claim", &self.claim)?;
        candidate.serialize_field("acceptedByNode", &self.passes_node())?;
        candidate.serialize_field("checks", &self.findings)?;
        candidate.end()
    }
}

impl Serialize for Finding {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (outcome, reason) = match &self.outcome {
            Outcome::Holds => ("holds", None),
            Outcome::Fails(reason) => ("fails", Some(reason)),
            Outcome::Unchecked(reason) => ("unchecked", Some(reason)),
        };
        let mut finding = serializer.serialize_struct("Finding", 4)?;
        finding.serialize_field("check", self.check.name())?;
        finding.serialize_field("outcome", outcome)?;
        finding.serialize_field("reason", &reason)?;
        finding.serialize_field("acceptedByNode", &self.passes_node)?;
        finding.end()
    }
}

impl Serialize for Claim {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut claim = serializer.serialize_struct("Claim", 9)?;
        claim.serialize_field("version", &self.version)?;
        claim.serialize_field("minerId", &self.miner_id)?;
        claim.serialize_field("previousMinerId", &self.previous_miner_id)?;
        claim.serialize_field("name", &self.name)?;
        claim.serialize_field("vctx", &self.vctx)?;
        let keys = self.revocation_keys;
        claim.serialize_field("revocationKey", &keys.map(|keys| keys.current))?;
        claim.serialize_field("previousRevocationKey", &keys.map(|keys| keys.previous))?;
        claim.serialize_field("compromisedMinerId", &self.compromised_miner_id)?;
        claim.serialize_field("dataRefs", &self.data_refs)?;
        claim.end()
    }
}
