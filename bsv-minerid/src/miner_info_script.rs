use std::collections::HashSet;
use std::fmt::Write;
use std::str::FromStr;

use bsv_tx::{PublicKey, Script, Signature, sha256};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use thiserror::Error;

use crate::data_refs::{DataRef, DataRefsError};
use crate::json::{CanonicalJson, write_string};
use crate::json_object::{JsonObject, Members};
use crate::operator_members::{DATA_REFS, EXTENSIONS, OperatorMembers, PROTOCOL_MEMBERS};
use crate::output_script::{self, MinerInfoScriptError};
use crate::signer::{Signer, SignerError};
use crate::succession::Succession;

/// A miner-info document, of version "0.3": an identity of generation 1.0 at one height.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MinerInfo {
    /// The height of the block.
    pub height: u32,
    /// The miner id, which signs the document, and the previous one.
    pub miner_id: Succession,
    /// The key that can revoke miner ids, and the previous one.
    pub revocation_key: Succession,
    /// The announced revocation of miner ids, if any.
    pub revocation: Option<Revocation>,
    /// The members that the operator adds.
    pub operator: OperatorMembers,
    /// References to data in the block.
    pub data_refs: Vec<DataRef>,
}

/// A statement that miner ids are revoked: all from the current one back to the compromised one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Revocation {
    /// The oldest of the revoked miner ids.
    pub compromised: PublicKey,
    /// The signature over [`digest`](Self::digest) by the revocation key (`sig1`).
    pub revocation_key_signature: Signature,
    /// The signature over the same digest by the document's previous miner id (`sig2`).
    pub miner_id_signature: Signature,
}

/// Why text is not a miner-info document.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum MinerInfoError {
    /// Not a JSON object.
    #[error("not a miner-info document: {0}")]
    NotJson(String),
    /// A mandatory member is missing.
    #[error("{0} is missing")]
    Missing(&'static str),
    /// A member is invalid.
    #[error("{member}: {reason}")]
    Member {
        /// The member's name.
        member: &'static str,
        /// What is wrong with the member.
        reason: String,
    },
    /// Not version 0.3.
    #[error("not a document of version 0.3, but of \"{0}\"")]
    Version(String),
    /// The references to data are malformed.
    #[error(transparent)]
    DataRefs(#[from] DataRefsError),
}

/// The content of the output script of a miner-info transaction that carries a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MinerInfoScript {
    /// The document, JSON as it was signed.
    pub document: Vec<u8>,
    /// The signature by the document's `minerId` over its SHA-256, in DER form.
    pub signature: Vec<u8>,
}

impl Revocation {
    /// The digest that is signed: SHA-256 of the raw bytes of the compromised key.
    pub fn digest(compromised: &PublicKey) -> [u8; 32] {
        sha256(&compromised.to_bytes())
    }

    /// Revokes miner ids back to `compromised`. `miner_id` is the last miner id that nodes know
    /// before the revocation.
    pub fn sign(
        compromised: PublicKey,
        revocation_key: &dyn Signer,
        miner_id: &dyn Signer,
    ) -> Result<Self, SignerError> {
        let digest = Self::digest(&compromised);
        Ok(Self {
            compromised,
            revocation_key_signature: revocation_key.sign(&digest)?,
            miner_id_signature: miner_id.sign(&digest)?,
        })
    }

    /// Whether both keys have signed the revocation: the revocation key and the document's previous
    /// miner id.
    pub fn holds(&self, revocation_key: &PublicKey, previous_miner_id: &PublicKey) -> bool {
        let digest = Self::digest(&self.compromised);
        revocation_key.verify(&digest, &self.revocation_key_signature)
            && previous_miner_id.verify(&digest, &self.miner_id_signature)
    }
}

impl MinerInfo {
    /// The text that is signed and put into the miner-info transaction.
    pub fn to_json(&self) -> String {
        let operator_len: usize =
            self.operator.iter().map(|(name, value)| name.len() + value.as_str().len() + 8).sum();
        let mut out = String::with_capacity(1280 + operator_len + 160 * self.data_refs.len());
        let (miner_id, revocation_key) = (&self.miner_id, &self.revocation_key);
        write!(
            out,
            concat!(
                r#"{{"version":"0.3","height":{},"prevMinerId":"{}","prevMinerIdSig":"{}","#,
                r#""minerId":"{}","prevRevocationKey":"{}","revocationKey":"{}","#,
                r#""prevRevocationKeySig":"{}""#
            ),
            self.height,
            miner_id.previous,
            miner_id.signature,
            miner_id.current,
            revocation_key.previous,
            revocation_key.current,
            revocation_key.signature
        )
        .expect(STRING);
        if let Some(revocation) = &self.revocation {
            write!(
                out,
                concat!(
                    r#","revocationMessage":{{"compromised_minerId":"{}"}},"#,
                    r#""revocationMessageSig":{{"sig1":"{}","sig2":"{}"}}"#
                ),
                revocation.compromised,
                revocation.revocation_key_signature,
                revocation.miner_id_signature
            )
            .expect(STRING);
        }
        self.write_operator(&mut out);
        out.push('}');
        out
    }

    /// Writes the operator's members. The references to data are last among the extensions.
    fn write_operator(&self, out: &mut String) {
        let data_refs = (!self.data_refs.is_empty()).then_some(&self.data_refs);
        for (name, value) in self.operator.iter() {
            out.push(',');
            write_string(out, name);
            out.push(':');
            match data_refs {
                Some(refs) if name == EXTENSIONS => write_extensions(out, value.as_str(), refs),
                _ => out.push_str(value.as_str()),
            }
        }
        if let Some(refs) = data_refs
            && self.operator.get(EXTENSIONS).is_none()
        {
            write!(out, r#","{EXTENSIONS}":"#).expect(STRING);
            write_extensions(out, "{}", refs);
        }
    }

    /// Reads a document as a node does: members may have any order and spelling, unknown ones
    /// belong to the operator, and the first of two with the same name counts. No signature is
    /// checked.
    pub fn from_json(text: &str) -> Result<Self, MinerInfoError> {
        let not_json = |error: serde_json::Error| MinerInfoError::NotJson(error.to_string());
        let members = DocumentMembers(serde_json::from_str(text).map_err(not_json)?);
        let version: String = members.value("version")?;
        if version != "0.3" {
            return Err(MinerInfoError::Version(version));
        }
        let (operator, data_refs) = members.operator()?;
        Ok(Self {
            height: members.height()?,
            miner_id: members.succession("prevMinerId", "minerId", "prevMinerIdSig")?,
            revocation_key: members.succession(
                "prevRevocationKey",
                "revocationKey",
                "prevRevocationKeySig",
            )?,
            revocation: members.revocation()?,
            operator,
            data_refs,
        })
    }

    /// The script of the output with the document. `key` belongs to the document's miner id and
    /// signs it.
    pub fn sign(&self, key: &dyn Signer) -> Result<MinerInfoScript, SignerError> {
        let document = self.to_json().into_bytes();
        let signature = key.sign(&sha256(&document))?.to_der();
        Ok(MinerInfoScript { document, signature })
    }
}

impl MinerInfoScript {
    /// Parses a script as a node does: it ignores the form of the pushes and everything after them.
    pub fn parse(script: &Script) -> Result<Self, MinerInfoScriptError> {
        let mut pushes = output_script::versioned_pushes(script)?;
        Ok(Self {
            document: pushes.next("a document")?.to_vec(),
            signature: pushes.next("a signature")?.to_vec(),
        })
    }

    /// Builds the script.
    pub fn to_script(&self) -> Script {
        output_script::versioned([&self.document, &self.signature])
    }
}

const STRING: &str = "a String takes any text";

fn write_extensions(out: &mut String, extensions: &str, data_refs: &[DataRef]) {
    let others = extensions.strip_suffix('}').unwrap_or("{");
    out.push_str(others);
    let separator = if others == "{" { "" } else { "," };
    write!(out, r#"{separator}"{DATA_REFS}":"#).expect(STRING);
    DataRef::write_all(data_refs, out);
    out.push('}');
}

struct DocumentMembers<'a>(Members<'a>);

impl DocumentMembers<'_> {
    fn find(&self, name: &str) -> Option<&RawValue> {
        let found = self.0.0.iter().find(|(present, _)| present == name)?.1;
        // Nodes treat a null member as absent.
        (found.get() != "null").then_some(found)
    }

    fn value<T: DeserializeOwned>(&self, name: &'static str) -> Result<T, MinerInfoError> {
        let value = self.find(name).ok_or(MinerInfoError::Missing(name))?;
        serde_json::from_str(value.get()).map_err(|error| invalid(name, error))
    }

    fn height(&self) -> Result<u32, MinerInfoError> {
        let height: u32 = self.value("height")?;
        if !(1..=i32::MAX.cast_unsigned()).contains(&height) {
            return Err(invalid("height", "must be from 1 to 2147483647"));
        }
        Ok(height)
    }

    fn succession(
        &self,
        previous: &'static str,
        current: &'static str,
        signature: &'static str,
    ) -> Result<Succession, MinerInfoError> {
        Ok(Succession {
            previous: self.value(previous)?,
            current: self.value(current)?,
            signature: self.value(signature)?,
        })
    }

    fn revocation(&self) -> Result<Option<Revocation>, MinerInfoError> {
        let (message, signatures) = ("revocationMessage", "revocationMessageSig");
        if self.find(message).is_none() && self.find(signatures).is_none() {
            return Ok(None);
        }
        let message: MessageJson = self.value(message)?;
        let signatures: MessageSignaturesJson = self.value(signatures)?;
        Ok(Some(Revocation {
            compromised: parse("compromised_minerId", &message.compromised)?,
            revocation_key_signature: parse("sig1", &signatures.sig1)?,
            miner_id_signature: parse("sig2", &signatures.sig2)?,
        }))
    }

    /// The operator's members, and the references to data, which are among its extensions.
    fn operator(&self) -> Result<(OperatorMembers, Vec<DataRef>), MinerInfoError> {
        let mut operator = Vec::new();
        let mut data_refs = Vec::new();
        let mut seen = HashSet::new();
        for (name, value) in &self.0.0 {
            if PROTOCOL_MEMBERS.contains(&name.as_str()) || !seen.insert(name) {
                continue;
            }
            let not_json = |error| invalid("a member of the operator", error);
            let mut value = CanonicalJson::from_text(value.get()).map_err(not_json)?;
            if name == EXTENSIONS && value.is_object() {
                let mut extensions = JsonObject::from_json(value.as_str()).map_err(not_json)?;
                if let Some(refs) = extensions.get(DATA_REFS) {
                    data_refs = DataRef::all_from_json(refs.as_str())?;
                    extensions.remove(DATA_REFS);
                    value = CanonicalJson::from_text(&extensions.to_json()).map_err(not_json)?;
                }
                if extensions.is_empty() && !data_refs.is_empty() {
                    continue;
                }
            }
            operator.push((name.clone(), value));
        }
        let operator = operator.into_iter().collect();
        Ok((OperatorMembers::of_document(operator), data_refs))
    }
}

#[derive(Deserialize)]
struct MessageJson {
    #[serde(rename = "compromised_minerId")]
    compromised: String,
}

#[derive(Deserialize)]
struct MessageSignaturesJson {
    sig1: String,
    sig2: String,
}

fn parse<T: FromStr<Err: ToString>>(member: &'static str, text: &str) -> Result<T, MinerInfoError> {
    text.parse().map_err(|error: T::Err| invalid(member, error))
}

fn invalid(member: &'static str, reason: impl ToString) -> MinerInfoError {
    MinerInfoError::Member { member, reason: reason.to_string() }
}

#[cfg(test)]
mod tests {
    use bsv_tx::PrivateKey;
    use serde_json::Value;

    use super::*;

    const DATA_REF: &str = r#"{"refs":[{"brfcIds":["62b21572ca46"],"txid":"f4184fc596403b9d638783cf57adfe4c75c605f6356fbc91338530e9831e9e16","vout":0}]}"#;

    fn document() -> (PrivateKey, MinerInfo) {
        let [first, second, revocation_key] = [(); 3].map(|()| PrivateKey::generate().unwrap());
        let document = MinerInfo {
            height: 7,
            miner_id: Succession::sign(&first, second.public_key()).unwrap(),
            revocation_key: Succession::sign(&revocation_key, revocation_key.public_key()).unwrap(),
            revocation: Some(
                Revocation::sign(first.public_key(), &revocation_key, &first).unwrap(),
            ),
            operator: OperatorMembers::default(),
            data_refs: DataRef::all_from_json(DATA_REF).unwrap(),
        };
        (second, document)
    }

    #[test]
    fn references_to_data_are_the_last_of_the_extensions() {
        let (_, mut document) = document();
        for (operator, expected) in [
            ("{}", format!(r#"}},"extensions":{{"dataRefs":{DATA_REF}}}}}"#)),
            (
                r#"{"minerContact":{"a":"b"}}"#,
                format!(
                    r#"}},"minerContact":{{"a":"b"}},"extensions":{{"dataRefs":{DATA_REF}}}}}"#
                ),
            ),
            (
                r#"{"extensions":{"x":{}},"minerContact":{}}"#,
                format!(
                    r#"}},"extensions":{{"x":{{}},"dataRefs":{DATA_REF}}},"minerContact":{{}}}}"#
                ),
            ),
        ] {
            document.operator = OperatorMembers::from_json(operator).unwrap();
            let json = document.to_json();
            assert!(json.ends_with(&expected), "{json}");
            assert_eq!(MinerInfo::from_json(&json), Ok(document.clone()));
        }
        document.operator = OperatorMembers::from_json(r#"{"extensions":{}}"#).unwrap();
        let expected = format!(r#"}},"extensions":{{"dataRefs":{DATA_REF}}}}}"#);
        assert!(document.to_json().ends_with(&expected));
    }

    #[test]
    fn order_and_spelling_of_others_do_not_matter() {
        let (_, document) = document();
        let json = document.to_json();
        let key = document.miner_id.current.to_string();
        let upper = json.replace(&key, &key.to_uppercase());
        let spaced = json.replace(',', " ,\n ").replace(':', "\t: ");
        let reordered = format!(r#"{{"height":7,{}"#, &json[1..].replace(r#""height":7,"#, ""));
        let doubled = json.replace(r#""height":7"#, r#""height":7,"height":8"#);
        for same in [upper, spaced, reordered, doubled] {
            assert_eq!(MinerInfo::from_json(&same).as_ref(), Ok(&document), "{same}");
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        let (_, document) = document();
        let json = document.to_json();
        for member in PROTOCOL_MEMBERS {
            for other in ["null", "{}", "1.5"] {
                let mut wrong: Value = serde_json::from_str(&json).unwrap();
                wrong[member] = serde_json::from_str(other).unwrap();
                let wrong = wrong.to_string();
                let error = MinerInfo::from_json(&wrong).unwrap_err().to_string();
                let is_named = error.starts_with(member);
                assert!(is_named, "{member} {other}: {error}");
            }
        }
        for (right, wrong, expected) in [
            (r#""0.3""#, r#""0.2""#, "not a document of version 0.3, but of \"0.2\""),
            (r#""height":7"#, r#""height":0"#, "height: "),
            (r#""height":7"#, r#""height":2147483648"#, "height: "),
            (r#""compromised_minerId":"0"#, r#""compromised_minerId":"1"#, "compromised_minerId: "),
            (r#""sig1":"30"#, r#""sig1":"31"#, "sig1: "),
            (r#""sig2":"30"#, r#""sig2":"31"#, "sig2: "),
            (r#""vout":0"#, r#""vout":"0""#, "malformed dataRefs: "),
            ("{", "[", "not a miner-info document: "),
        ] {
            let error = MinerInfo::from_json(&json.replacen(right, wrong, 1)).unwrap_err();
            assert!(error.to_string().starts_with(expected), "{error}");
        }
    }

    #[test]
    fn a_revocation_holds_under_the_keys_that_signed_it() {
        let (key, document) = document();
        let revocation = document.revocation.unwrap();
        let revocation_key = &document.revocation_key.current;
        assert!(revocation.holds(revocation_key, &document.miner_id.previous));
        assert!(!revocation.holds(revocation_key, &document.miner_id.current));
        assert!(!revocation.holds(&document.miner_id.current, &document.miner_id.previous));
        let other = Revocation { compromised: key.public_key(), ..revocation };
        assert!(!other.holds(revocation_key, &document.miner_id.previous));
    }

    #[test]
    fn a_document_of_very_many_members_is_read_in_no_time() {
        let (_, document) = document();
        let members: Vec<_> = (0..100_000).map(|n| format!("\"{n}\":{n}")).collect();
        let json = document.to_json().replacen('{', &format!("{{{},", members.join(",")), 1);
        let read = MinerInfo::from_json(&json).unwrap();
        assert_eq!(read.operator.iter().count(), 100_000);
    }
}
