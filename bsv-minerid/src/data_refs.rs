use std::collections::BTreeSet;
use std::fmt::Write;

use bsv_tx::{Script, Txid};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use thiserror::Error;

use crate::json::{CanonicalJson, JsonError, write_string};
use crate::json_object::JsonObject;
use crate::output_script::{self, MinerInfoScriptError};

/// A reference in a miner-info document to data in an output of a transaction in the same block.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DataRef {
    /// The identifiers of the specifications that the data follows; 12 hexadecimal digits each.
    pub brfc_ids: Vec<String>,
    /// The transaction.
    pub txid: Txid,
    /// The index of its output.
    pub vout: u32,
    /// The compression of the data, if any.
    pub compress: Option<String>,
}

/// The data that an operator publishes in the outputs of a transaction. Documents refer to this
/// transaction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OperatorDataRefs(Vec<OperatorDataRef>);

/// The data of one output, with what a reference to it says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperatorDataRef {
    /// The identifiers of the specifications that the data follows; 12 hexadecimal digits each.
    pub brfc_ids: Vec<String>,
    /// A JSON object with an object under each of these identifiers.
    pub data: CanonicalJson,
    /// The index of the output.
    pub vout: u32,
    /// The compression of the data, if any.
    pub compress: Option<String>,
}

/// Why data or references to data are invalid. Nodes ignore an identity with malformed references.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DataRefsError {
    /// Not JSON, or a member is missing or of a wrong type.
    #[error("malformed dataRefs: {0}")]
    Malformed(String),
    /// The text is not JSON that nodes can reproduce.
    #[error(transparent)]
    Json(#[from] JsonError),
    /// An identifier of a specification is not 12 hexadecimal digits.
    #[error("\"{0}\" is not a BRFC id of 12 hexadecimal digits")]
    BrfcId(String),
    /// A reference has no identifier of a specification.
    #[error("a data reference needs a BRFC id")]
    NoBrfcId,
    /// The data has no object under this identifier.
    #[error("the data must hold an object under \"{0}\"")]
    NoData(String),
    /// Two references name the same output, or a reference names an impossible one.
    #[error("output {0} is referred to twice or cannot exist")]
    Output(u32),
}

/// The script of an output with data that miner-info documents refer to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataScript {
    /// The data, a JSON object.
    pub data: Vec<u8>,
}

impl DataRef {
    fn write(&self, out: &mut String) {
        let Self { brfc_ids, txid, vout, compress } = self;
        write_brfc_ids(out, brfc_ids);
        write!(out, r#","txid":"{txid}","vout":{vout}"#).expect("a String takes any text");
        write_compress(out, compress.as_deref());
    }

    /// Reads the `dataRefs` object of a document's extensions as a node does.
    pub(crate) fn all_from_json(text: &str) -> Result<Vec<Self>, DataRefsError> {
        parse(text).map(|RefsJson { refs }| refs)
    }

    /// Appends the `dataRefs` object of a document's extensions.
    pub(crate) fn write_all(refs: &[Self], out: &mut String) {
        write_refs(out, refs, Self::write);
    }
}

impl OperatorDataRefs {
    /// Reads and checks `{"dataRefs":{"refs":[{"brfcIds","data","vout"[,"compress"]}]}}`, the
    /// format of the older generator.
    pub fn from_json(text: &str) -> Result<Self, DataRefsError> {
        let OperatorJson { data_refs } = parse(text)?;
        let read = |json: OperatorRefJson<'_>| {
            Ok(OperatorDataRef {
                brfc_ids: json.brfc_ids,
                data: CanonicalJson::from_text(json.data.get())?,
                vout: json.vout,
                compress: json.compress,
            })
        };
        let refs: Vec<_> =
            data_refs.refs.into_iter().map(read).collect::<Result<_, DataRefsError>>()?;
        let mut outputs = BTreeSet::new();
        for data_ref in &refs {
            data_ref.check()?;
            if i32::try_from(data_ref.vout).is_err() || !outputs.insert(data_ref.vout) {
                return Err(DataRefsError::Output(data_ref.vout));
            }
        }
        Ok(Self(refs))
    }

    /// The JSON that [`from_json`](Self::from_json) reads.
    pub fn to_json(&self) -> String {
        let mut out = r#"{"dataRefs":"#.to_owned();
        write_refs(&mut out, &self.0, |data_ref, out| {
            write_brfc_ids(out, &data_ref.brfc_ids);
            let (data, vout) = (data_ref.data.as_str(), data_ref.vout);
            write!(out, r#","data":{data},"vout":{vout}"#).expect("a String takes any text");
            write_compress(out, data_ref.compress.as_deref());
        });
        out.push('}');
        out
    }

    /// Whether there is no data.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The data of each output.
    pub fn iter(&self) -> impl Iterator<Item = &OperatorDataRef> {
        self.0.iter()
    }

    /// The references to the data in transaction `txid`.
    pub fn references(&self, txid: Txid) -> Vec<DataRef> {
        let reference = |data_ref: &OperatorDataRef| DataRef {
            brfc_ids: data_ref.brfc_ids.clone(),
            txid,
            vout: data_ref.vout,
            compress: data_ref.compress.clone(),
        };
        self.0.iter().map(reference).collect()
    }
}

impl OperatorDataRef {
    /// The script of the output that carries the data.
    pub fn script(&self) -> DataScript {
        DataScript { data: self.data.as_str().as_bytes().to_vec() }
    }

    /// Checks the nodes' rules for data and references, and that each identifier has data.
    fn check(&self) -> Result<(), DataRefsError> {
        let data = JsonObject::from_json(self.data.as_str())?;
        let is_brfc_id = |id: &str| id.len() == 12 && id.bytes().all(|c| c.is_ascii_hexdigit());
        for id in self.brfc_ids.iter().map(String::as_str).chain(data.iter().map(|(id, _)| id)) {
            if !is_brfc_id(id) {
                return Err(DataRefsError::BrfcId(id.to_owned()));
            }
            if !data.get(id).is_some_and(CanonicalJson::is_object) {
                return Err(DataRefsError::NoData(id.to_owned()));
            }
        }
        if self.brfc_ids.is_empty() { Err(DataRefsError::NoBrfcId) } else { Ok(()) }
    }
}

impl DataScript {
    /// Parses a script as a node does.
    pub fn parse(script: &Script) -> Result<Self, MinerInfoScriptError> {
        let mut pushes = output_script::versioned_pushes(script)?;
        Ok(Self { data: pushes.next("the data")?.to_vec() })
    }

    /// Builds the script.
    pub fn to_script(&self) -> Script {
        output_script::versioned([&self.data])
    }
}

fn write_refs<T>(out: &mut String, refs: &[T], write: impl Fn(&T, &mut String)) {
    out.push_str(r#"{"refs":["#);
    for (place, data_ref) in refs.iter().enumerate() {
        out.push_str(if place == 0 { "{" } else { ",{" });
        write(data_ref, out);
        out.push('}');
    }
    out.push_str("]}");
}

fn write_brfc_ids(out: &mut String, ids: &[String]) {
    out.push_str(r#""brfcIds":["#);
    for (place, id) in ids.iter().enumerate() {
        if place > 0 {
            out.push(',');
        }
        write_string(out, id);
    }
    out.push(']');
}

fn write_compress(out: &mut String, compress: Option<&str>) {
    if let Some(compress) = compress {
        out.push_str(r#","compress":"#);
        write_string(out, compress);
    }
}

fn parse<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, DataRefsError> {
    serde_json::from_str(text).map_err(|error| DataRefsError::Malformed(error.to_string()))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OperatorJson<'a> {
    #[serde(borrow)]
    data_refs: RefsJson<OperatorRefJson<'a>>,
}

#[derive(Deserialize)]
struct RefsJson<T> {
    refs: Vec<T>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct OperatorRefJson<'a> {
    brfc_ids: Vec<String>,
    #[serde(borrow)]
    data: &'a RawValue,
    vout: u32,
    compress: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATA: &str = r#"{"dataRefs":{"refs":[{"brfcIds":["62b21572ca46","a224052ad433"],"data":{"62b21572ca46":{"alpha":1.0},"a224052ad433":{}},"vout":0},{"brfcIds":["b8930c2bbf5d"],"data":{"b8930c2bbf5d":{"x":"é"}},"vout":1,"compress":"gzip"}]}}"#;

    #[test]
    fn data_reads_back_and_is_referred_to() {
        let data = OperatorDataRefs::from_json(DATA).unwrap();
        assert_eq!(data.to_json(), DATA);
        let txid = "f4184fc596403b9d638783cf57adfe4c75c605f6356fbc91338530e9831e9e16";
        let references = data.references(txid.parse().unwrap());
        let mut json = String::new();
        DataRef::write_all(&references, &mut json);
        let expected = format!(
            r#"{{"refs":[{{"brfcIds":["62b21572ca46","a224052ad433"],"txid":"{txid}","vout":0}},{{"brfcIds":["b8930c2bbf5d"],"txid":"{txid}","vout":1,"compress":"gzip"}}]}}"#
        );
        assert_eq!(json, expected);
        assert_eq!(DataRef::all_from_json(&json), Ok(references));
        for data_ref in data.iter() {
            let script = data_ref.script();
            assert_eq!(DataScript::parse(&script.to_script()), Ok(script));
        }
    }

    #[test]
    fn data_that_nodes_would_not_take_is_refused() {
        let refused = |right: &str, wrong: &str| {
            OperatorDataRefs::from_json(&DATA.replacen(right, wrong, 1)).unwrap_err()
        };
        let id = |id: &str| DataRefsError::BrfcId(id.to_owned());
        assert_eq!(refused(r#"["62b21572ca46""#, r#"["62b21572ca4""#), id("62b21572ca4"));
        assert_eq!(refused(r#"["62b21572ca46""#, r#"["62b21572ca4g""#), id("62b21572ca4g"));
        assert_eq!(refused(r#"{"62b21572ca46""#, r#"{"x":{},"62b21572ca46""#), id("x"));
        assert_eq!(refused(r#"["b8930c2bbf5d"]"#, "[]"), DataRefsError::NoBrfcId);
        let missing = DataRefsError::NoData("62b21572ca46".to_owned());
        assert_eq!(refused(r#"{"alpha":1.0}"#, "1"), missing);
        assert_eq!(refused(r#"{"62b21572ca46":{"alpha":1.0},"#, "{"), missing);
        assert_eq!(refused(r#""vout":1"#, r#""vout":0"#), DataRefsError::Output(0));
        let high = DataRefsError::Output(2_147_483_648);
        assert_eq!(refused(r#""vout":1"#, r#""vout":2147483648"#), high);
        for (right, wrong) in [
            ("\"vout\":0", "\"vout\":-1"),
            ("\"vout\":0", "\"vout\":0,\"txid\":\"\""),
            (",\"vout\":0", ""),
            ("\"refs\"", "\"references\""),
        ] {
            let error = refused(right, wrong);
            assert!(matches!(error, DataRefsError::Malformed(_)), "{wrong}: {error}");
        }
    }
}
