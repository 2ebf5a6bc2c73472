//! References to data, and the data that they name.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use bsv_tx::{Script, Transaction, Txid};

use super::members::{Members, Value};
use super::node_text::before_nul;
use super::report::{Check, Findings, Generation};
use crate::data_refs::{DataRef, DataScript};
use crate::json_object;

/// The data in the outputs of a transaction, parsed once, however many references name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataOutputs(Vec<Result<Data, &'static str>>);

/// The identifiers of the data in a script of miner info, or why the data is not in the protocol's
/// format. The format does not matter for compressed data.
type Data = Result<BTreeSet<BrfcId>, &'static str>;

type BrfcId = [u8; 12];

impl DataOutputs {
    /// Parses all outputs of a transaction.
    pub fn of(transaction: &Transaction) -> Self {
        let scripts = transaction.outputs.iter().map(|output| &output.locking_script);
        Self(scripts.map(read_output).collect())
    }

    /// The number of outputs and of identifiers in them.
    #[cfg(feature = "node")]
    pub(crate) fn size(&self) -> usize {
        let identifiers = |output: &Result<Data, _>| match output {
            Ok(Ok(identifiers)) => 1 + identifiers.len(),
            _ => 1,
        };
        self.0.iter().map(identifiers).sum()
    }

    /// Whether the output has the format of published data, and everything that the reference
    /// names. For compressed data, only the script's form is checked.
    fn check(&self, reference: &DataRef) -> Result<(), &'static str> {
        let output = usize::try_from(reference.vout).ok().and_then(|place| self.0.get(place));
        let data = output.ok_or("there is no such output")?.as_ref().map_err(|reason| *reason)?;
        if reference.compress.is_some() {
            return Ok(());
        }
        let identifiers = data.as_ref().map_err(|reason| *reason)?;
        let is_there = |id: &String| brfc_id(id).is_some_and(|id| identifiers.contains(&id));
        if !reference.brfc_ids.iter().all(is_there) {
            return Err("the data lacks a brfcId of the reference");
        }
        Ok(())
    }
}

fn read_output(script: &Script) -> Result<Data, &'static str> {
    let DataScript { data } =
        DataScript::parse(script).map_err(|_| "the output is not a script of miner info")?;
    Ok(identifiers(&data))
}

fn identifiers(data: &[u8]) -> Data {
    let members: json_object::Members<'_> =
        serde_json::from_slice(data).map_err(|_| "the data is not a JSON object")?;
    let identifiers = members.0.iter().map(|(id, value)| {
        let id = brfc_id(id).filter(|_| value.get().starts_with('{'));
        id.ok_or("the data must have 12 hexadecimal characters for names, and objects")
    });
    identifiers.collect()
}

/// Parses a text as the identifier of a specification.
fn brfc_id(text: &str) -> Option<BrfcId> {
    let id: BrfcId = text.as_bytes().try_into().ok()?;
    id.iter().all(u8::is_ascii_hexdigit).then_some(id)
}

/// Why references are not in the protocol's format.
struct Malformed {
    reason: &'static str,
    node: Node,
}

/// What nodes do about references that are not in the protocol's format.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Node {
    Takes,
    Refuses,
    /// Nodes fail, and look at no further output.
    EndsScan,
}

/// Reads and checks `dataRefs`, a member of `parent`. If it is absent, nothing is reported.
pub(super) fn examine(
    parent: &Members<'_>,
    generation: Generation,
    data: &HashMap<Txid, Arc<DataOutputs>>,
    findings: &mut Findings,
) -> Vec<DataRef> {
    if !parent.has("dataRefs") {
        return Vec::new();
    }
    let references = match read(parent.get("dataRefs"), generation) {
        Ok(references) => references,
        Err(Malformed { reason, node }) => {
            match node {
                Node::Takes => findings.fails(Check::DataRefs, reason),
                Node::Refuses => findings.refused(Check::DataRefs, reason),
                Node::EndsScan => findings.ends_scan(Check::DataRefs, reason),
            }
            return Vec::new();
        }
    };
    let mut missing = None;
    for reference in &references {
        match data.get(&reference.txid).map(|data| data.check(reference)) {
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
            let reason = format!("transaction {txid} is not available");
            findings.unchecked(Check::DataRefs, reason);
        }
        None => findings.holds(Check::DataRefs),
    }
    references
}

/// Whether nodes store references of this document, once they accept it.
pub(super) fn are_held(parent: &Members<'_>) -> bool {
    let refs = parent.object("dataRefs").and_then(|object| object.get("refs")?.items());
    refs.is_some_and(|refs| !refs.is_empty())
}

fn read(value: Option<Value<'_>>, generation: Generation) -> Result<Vec<DataRef>, Malformed> {
    let refs = value.and_then(Value::members).and_then(|object| object.get("refs")?.items());
    let refs = refs.ok_or(Malformed {
        reason: "dataRefs must be an object that holds an array refs",
        node: Node::Refuses,
    })?;
    let mut references = Vec::new();
    let mut harmless = None;
    for reference in refs {
        match read_one(reference, generation) {
            Ok(reference) => references.push(reference),
            Err(malformed) if malformed.node != Node::Takes => return Err(malformed),
            Err(malformed) => harmless = Some(malformed),
        }
    }
    match harmless {
        Some(malformed) => Err(malformed),
        None => Ok(references),
    }
}

fn read_one(value: Value<'_>, generation: Generation) -> Result<DataRef, Malformed> {
    let refuse = |reason| Malformed { reason, node: Node::Refuses };
    let tolerate = |reason| Malformed { reason, node: Node::Takes };
    let by_generation = |reason| match generation {
        Generation::V0_2 => tolerate(reason),
        Generation::V1_0 => refuse(reason),
    };
    let object = value.members().ok_or_else(|| refuse("an item of refs must be an object"))?;
    let txid =
        object.bytes("txid").ok_or_else(|| refuse("txid of a reference must be a string"))?;
    let vout = object.get("vout").filter(|vout| vout.is_number());
    let vout = vout.ok_or_else(|| refuse("vout of a reference must be a number"))?;
    let brfc_ids = object
        .get("brfcIds")
        .and_then(Value::items)
        .and_then(|items| items.into_iter().map(Value::text).collect::<Option<Vec<_>>>())
        .ok_or_else(|| refuse("brfcIds must be an array of strings"))?;
    let vout = vout.integer().ok_or(Malformed {
        reason: "vout of a reference must be a whole number of 32 bits",
        node: Node::EndsScan,
    })?;
    let compress = object.text("compress");
    if object.has("compress") && compress.is_none() {
        return Err(by_generation("compress of a reference must be a string"));
    }
    let reads = |txid: &[u8]| -> Option<Txid> { std::str::from_utf8(txid).ok()?.parse().ok() };
    let txid = reads(&txid).ok_or_else(|| {
        let reason = "txid of a reference must be 64 hexadecimal characters";
        if reads(before_nul(&txid)).is_some() { tolerate(reason) } else { by_generation(reason) }
    })?;
    let vout = vout.try_into().map_err(|_| tolerate("vout of a reference must not be negative"))?;
    if brfc_ids.iter().any(|id| brfc_id(id).is_none()) {
        return Err(tolerate("brfcIds must be 12 hexadecimal characters each"));
    }
    Ok(DataRef { brfc_ids, txid, vout, compress })
}
