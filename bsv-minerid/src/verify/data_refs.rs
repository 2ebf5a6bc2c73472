use bsv_tx::Transaction;

use super::members;
use super::report::{Check, Findings, Generation};
use crate::data_refs::{DataRef, DataScript};
use crate::json_object::Members;

/// Why references are not of the protocol's form, and whether nodes take the identity all the same.
struct Malformed {
    reason: &'static str,
    passes_node: bool,
}

/// Reads and checks `dataRefs`, a member of `parent`. Where there is none, nothing is found.
pub(super) fn examine(
    parent: &Members<'_>,
    generation: Generation,
    data: &[Transaction],
    findings: &mut Findings,
) -> Vec<DataRef> {
    if !parent.has("dataRefs") {
        return Vec::new();
    }
    let references = match read(parent.get("dataRefs").unwrap_or("null"), generation) {
        Ok(references) => references,
        Err(Malformed { reason, passes_node: true }) => {
            findings.fails(Check::DataRefs, reason);
            return Vec::new();
        }
        Err(Malformed { reason, passes_node: false }) => {
            findings.refused(Check::DataRefs, reason);
            return Vec::new();
        }
    };
    let data: Vec<_> = data.iter().map(|transaction| (transaction.txid(), transaction)).collect();
    let mut missing = None;
    for reference in &references {
        let found = data.iter().find(|(txid, _)| *txid == reference.txid);
        match found.map(|(_, transaction)| look_up(reference, transaction)) {
            Some(Err(reason)) => {
                let place = format!("{}:{}", reference.txid, reference.vout);
                findings.fails(Check::DataRefs, format!("{place}: {reason}"));
                return references;
            }
            Some(Ok(())) => {}
            None => missing = Some(reference.txid),
        }
    }
    match missing {
        Some(txid) => {
            let reason = format!("transaction {txid} is not at hand");
            findings.unchecked(Check::DataRefs, reason);
        }
        None => findings.holds(Check::DataRefs),
    }
    references
}

fn read(value: &str, generation: Generation) -> Result<Vec<DataRef>, Malformed> {
    let refuse = |reason| Malformed { reason, passes_node: false };
    let refs = Members::read(value)
        .ok()
        .and_then(|object| members::items(object.get("refs")?))
        .ok_or_else(|| refuse("dataRefs must be an object that holds an array refs"))?;
    let mut references = Vec::new();
    let mut harmless = None;
    for reference in refs {
        match read_one(reference, generation) {
            Ok(reference) => references.push(reference),
            Err(malformed @ Malformed { passes_node: false, .. }) => return Err(malformed),
            Err(malformed) => harmless = Some(malformed),
        }
    }
    match harmless {
        Some(malformed) => Err(malformed),
        None => Ok(references),
    }
}

fn read_one(value: &str, generation: Generation) -> Result<DataRef, Malformed> {
    let refuse = |reason| Malformed { reason, passes_node: false };
    let tolerate = |reason| Malformed { reason, passes_node: true };
    let object = Members::read(value).map_err(|_| refuse("an item of refs must be an object"))?;
    let brfc_ids = object
        .get("brfcIds")
        .and_then(members::items)
        .and_then(|items| items.into_iter().map(members::text).collect::<Option<Vec<_>>>())
        .ok_or_else(|| refuse("brfcIds must be an array of strings"))?;
    let txid = object.text("txid").ok_or_else(|| refuse("txid of a reference must be a string"))?;
    let vout = object
        .get("vout")
        .and_then(members::integer)
        .ok_or_else(|| refuse("vout of a reference must be a whole number of 32 bits"))?;
    let is_miner_info = generation == Generation::V1_0;
    let compress = object.text("compress");
    if object.has("compress") && compress.is_none() {
        let reason = "compress of a reference must be a string";
        return Err(Malformed { reason, passes_node: !is_miner_info });
    }
    let txid = txid.parse().map_err(|_| Malformed {
        reason: "txid of a reference must be 64 hexadecimal characters",
        passes_node: !is_miner_info,
    })?;
    let vout = vout.try_into().map_err(|_| tolerate("vout of a reference must not be negative"))?;
    if !brfc_ids.iter().all(|id| is_brfc_id(id)) {
        return Err(tolerate("brfcIds must be 12 hexadecimal characters each"));
    }
    Ok(DataRef { brfc_ids, txid, vout, compress })
}

/// Whether the output is of the form in which data is published, and has all that the reference
/// promises. Of compressed data only the frame is looked at.
fn look_up(reference: &DataRef, transaction: &Transaction) -> Result<(), &'static str> {
    let output = usize::try_from(reference.vout).ok().and_then(|i| transaction.outputs.get(i));
    let script = &output.ok_or("there is no such output")?.locking_script;
    let DataScript { data } =
        DataScript::parse(script).map_err(|_| "the output is not a script of miner info")?;
    if reference.compress.is_some() {
        return Ok(());
    }
    let object = std::str::from_utf8(&data).ok().and_then(|text| Members::read(text).ok());
    let object = object.ok_or("the data is not a JSON object")?;
    if !object.iter().all(|(id, value)| is_brfc_id(id) && value.starts_with('{')) {
        return Err("the data must have 12 hexadecimal characters for names, and objects");
    }
    if !reference.brfc_ids.iter().all(|id| object.get(id).is_some()) {
        return Err("the data lacks a brfcId of the reference");
    }
    Ok(())
}

fn is_brfc_id(text: &str) -> bool {
    text.len() == 12 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}
