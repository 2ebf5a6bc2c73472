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

#[cfg(test)]
mod tests {
    use bsv_tx::{BlockHash, PublicKey, Txid};

    use super::*;
    use crate::data_refs::DataRef;
    use crate::verify::{Check, Generation, RevocationKeys};

    const KEYS: [&str; 2] = [
        "025e343d44313813efa8e94b2c28c0b9b992cbcbed0fad36600a858fcd31da5890",
        "0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798",
    ];

    fn finding(check: Check, outcome: Outcome, passes_node: Option<bool>) -> Finding {
        Finding { check, outcome, passes_node }
    }

    #[test]
    fn a_report_has_all_members_in_their_order() {
        let [miner_id, other] = KEYS.map(|key| key.parse::<PublicKey>().unwrap());
        let txid: Txid = "07".repeat(32).parse().unwrap();
        let claim = |keys: Option<RevocationKeys>, name: Option<String>| Claim {
            version: "0.3".to_owned(),
            miner_id,
            previous_miner_id: other,
            revocation_keys: keys,
            compromised_miner_id: name.clone(),
            vctx: keys.map(|_| format!("{txid}:1").parse().unwrap()),
            data_refs: vec![DataRef { brfc_ids: vec![], txid, vout: 2, compress: None }],
            name,
        };
        let refused = Candidate {
            output: 1,
            generation: Generation::V0_2,
            miner_info: None,
            claim: Some(claim(None, None)),
            findings: vec![finding(Check::Vctx, Outcome::Fails("gone".to_owned()), Some(false))],
            ends_scan: false,
        };
        let keys = RevocationKeys { current: miner_id, previous: other };
        let unchecked = Outcome::Unchecked("\"é\"".to_owned());
        let chosen = Candidate {
            output: 2,
            generation: Generation::V1_0,
            miner_info: Some(txid),
            claim: Some(claim(Some(keys), Some("pool".to_owned()))),
            findings: vec![finding(Check::DataRefs, unchecked, None)],
            ends_scan: false,
        };
        let report = Report {
            block: "08".repeat(32).parse::<BlockHash>().unwrap(),
            height: Some(7),
            findings: vec![finding(Check::ProofOfWork, Outcome::Holds, Some(true))],
            candidates: vec![refused, chosen],
        };
        let (txid, [miner_id, other]) = ("07".repeat(32), KEYS);
        let refs =
            format!(r#""dataRefs":[{{"brfcIds":[],"txid":"{txid}","vout":2,"compress":null}}]"#);
        let ids = format!(r#""version":"0.3","minerId":"{miner_id}","previousMinerId":"{other}""#);
        let first = format!(
            r#"{{{ids},"name":null,"vctx":null,"revocationKey":null,"previousRevocationKey":null,"compromisedMinerId":null,{refs}}}"#
        );
        let second = format!(
            r#"{{{ids},"name":"pool","vctx":"{txid}:1","revocationKey":"{miner_id}","previousRevocationKey":"{other}","compromisedMinerId":"pool",{refs}}}"#
        );
        let expected = format!(
            r#"{{"block":"{}","height":7,"verdict":"valid","acceptedByNode":null,"identity":{second},"checks":[{{"check":"proof-of-work","outcome":"holds","reason":null,"acceptedByNode":true}}],"outputs":[{{"output":1,"generation":"0.2","minerInfoTxid":null,"claim":{first},"acceptedByNode":false,"checks":[{{"check":"vctx","outcome":"fails","reason":"gone","acceptedByNode":false}}]}},{{"output":2,"generation":"1.0","minerInfoTxid":"{txid}","claim":{second},"acceptedByNode":null,"checks":[{{"check":"data-refs","outcome":"unchecked","reason":"\"é\"","acceptedByNode":null}}]}}]}}"#,
            "08".repeat(32)
        );
        assert_eq!(report.to_json(), expected);
    }
}
