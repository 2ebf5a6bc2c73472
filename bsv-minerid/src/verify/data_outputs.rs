//! The data that documents refer to. Each transaction is parsed once, however many references name
//! it.

use std::collections::BTreeSet;

use bsv_tx::{Script, Transaction};

use crate::data_refs::{DataRef, DataScript};
use crate::json_object::Members;

/// The data in the outputs of a transaction.
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
        Self(scripts.map(read).collect())
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
    pub(super) fn check(&self, reference: &DataRef) -> Result<(), &'static str> {
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

fn read(script: &Script) -> Result<Data, &'static str> {
    let DataScript { data } =
        DataScript::parse(script).map_err(|_| "the output is not a script of miner info")?;
    Ok(identifiers(&data))
}

fn identifiers(data: &[u8]) -> Data {
    let members: Members<'_> =
        serde_json::from_slice(data).map_err(|_| "the data is not a JSON object")?;
    let identifiers = members.0.iter().map(|(id, value)| {
        let id = brfc_id(id).filter(|_| value.get().starts_with('{'));
        id.ok_or("the data must have 12 hexadecimal characters for names, and objects")
    });
    identifiers.collect()
}

/// Parses a text as the identifier of a specification.
pub(super) fn brfc_id(text: &str) -> Option<BrfcId> {
    let id: BrfcId = text.as_bytes().try_into().ok()?;
    id.iter().all(u8::is_ascii_hexdigit).then_some(id)
}
