use std::collections::HashMap;
use std::sync::Arc;

use bsv_tx::{Txid, sha256};

use super::data_refs::{self, DataOutputs};
use super::members::{Members, Value};
use super::node_json::{NOT_STANDARD, is_standard, printed};
use super::node_text::public_key;
use super::report::{Check, Findings, Generation};
use super::signatures::Standing;
use crate::data_refs::DataRef;

/// All versions that nodes know.
pub(super) const VERSIONS_OF_NODES: [&str; 3] = ["0.1", "0.2", "0.3"];

pub(super) const HEIGHT_NO_NUMBER: &str = "the height is not a 32-bit whole number: nodes fail on it and look for no other identity in the block";

/// The first document, which the dynamic one follows.
pub(super) struct Followed<'a> {
    /// The text as nodes print it.
    pub(super) printed: &'a [u8],
    pub(super) signature: &'a [u8],
    /// Whether nodes store its references to data, and so ignore the dynamic document.
    pub(super) has_data_refs: bool,
}

/// A second document of generation 0.2, signed by its own key. What it says about the identity does
/// not count.
pub(super) struct DynamicDocument<'a> {
    pub(super) text: &'a [u8],
    pub(super) signature: Option<&'a [u8]>,
}

impl DynamicDocument<'_> {
    /// Reports the checks, and answers the references to data. These references count if the
    /// document `before` has none.
    pub(super) fn check(
        &self,
        before: &Followed<'_>,
        height: Option<u32>,
        data: &HashMap<Txid, Arc<DataOutputs>>,
        findings: &mut Findings,
    ) -> Vec<DataRef> {
        let members = match Members::read(self.text) {
            Ok(members) => members,
            Err(error) => {
                findings.refused(Check::DynamicDocument, error.to_string());
                return Vec::new();
            }
        };
        let is_no_number = |value: Value<'_>| value.is_number() && value.integer().is_none();
        if is_version_known(&members) && members.get("height").is_some_and(is_no_number) {
            findings.ends_scan(Check::DynamicDocument, HEIGHT_NO_NUMBER);
            return Vec::new();
        }
        match self.examine(&members, before, height) {
            Err(reason) => {
                findings.refused(Check::DynamicDocument, reason);
                return Vec::new();
            }
            Ok(()) if !is_standard(self.text) => {
                findings.fails(Check::DynamicDocument, NOT_STANDARD);
            }
            Ok(()) => findings.holds(Check::DynamicDocument),
        }
        if before.has_data_refs {
            return Vec::new();
        }
        data_refs::examine(&members, Generation::V0_2, data, findings)
    }

    fn examine(
        &self,
        members: &Members<'_>,
        before: &Followed<'_>,
        height: Option<u32>,
    ) -> Result<(), &'static str> {
        let signature = self.signature.ok_or("the dynamic document is not signed")?;
        if !is_version_known(members) {
            return Err("the version is not known");
        }
        if let Some(of_document) = members.get("height")
            && of_document.integer().map(i64::from) != height.map(i64::from)
        {
            return Err("the height is not the block's");
        }
        for name in ["prevMinerId", "prevMinerIdSig", "minerId"] {
            if members.get(name).is_some() && members.bytes(name).is_none() {
                return Err("a member that must be a string is not one");
            }
        }
        if members.get("vctx").is_some()
            && members.object("vctx").is_none_or(|vctx| {
                vctx.bytes("txId").is_none() || !vctx.get("vout").is_some_and(Value::is_number)
            })
        {
            return Err("vctx is not an object that holds txId and vout");
        }
        let key = members.bytes("dynamicMinerId").ok_or("there is no dynamicMinerId")?;
        let key = public_key(&key).ok_or("dynamicMinerId is not a public key")?;
        let printed = printed(self.text);
        let signed = [before.printed, before.signature, &*printed].concat();
        match Standing::of(&key, &sha256(&signed), signature) {
            Standing::Good | Standing::Lax => Ok(()),
            Standing::Bad => Err("the signature is not by dynamicMinerId"),
        }
    }
}

/// Whether the version is absent or known to nodes.
fn is_version_known(members: &Members<'_>) -> bool {
    let Some(version) = members.get("version") else { return true };
    version.text().is_some_and(|version| VERSIONS_OF_NODES.contains(&&*version))
}
