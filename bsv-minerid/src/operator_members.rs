use thiserror::Error;

use crate::json::{CanonicalJson, JsonError};
use crate::json_object::JsonObject;

/// The members that an operator adds to its miner-info documents, usually `minerContact` and
/// `extensions`, in the operator's order. The members of the protocol are not among them, and no
/// references to data, which are stored separately.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OperatorMembers(JsonObject);

/// Why members cannot be added to documents.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum OperatorMembersError {
    /// Not a JSON object.
    #[error(transparent)]
    Json(#[from] JsonError),
    /// The member belongs to the protocol.
    #[error("\"{0}\" is a member of the protocol and cannot be set")]
    Protocol(String),
    /// The member must be an object.
    #[error("\"{0}\" must be an object")]
    NotAnObject(&'static str),
    /// There is no such key to remove.
    #[error("minerContact has no key \"{0}\"")]
    NoContactKey(String),
    /// References to data have their own setting.
    #[error("\"dataRefs\" cannot be set among the extensions: set the data instead")]
    DataRefs,
}

/// The protocol's members of a miner-info document.
pub(crate) const PROTOCOL_MEMBERS: [&str; 10] = [
    "version",
    "height",
    "prevMinerId",
    "prevMinerIdSig",
    "minerId",
    "prevRevocationKey",
    "revocationKey",
    "prevRevocationKeySig",
    "revocationMessage",
    "revocationMessageSig",
];
pub(crate) const CONTACT: &str = "minerContact";
pub(crate) const EXTENSIONS: &str = "extensions";
pub(crate) const DATA_REFS: &str = "dataRefs";

impl OperatorMembers {
    /// Reads and checks a JSON object.
    pub fn from_json(text: &str) -> Result<Self, OperatorMembersError> {
        let mut members = Self::default();
        for (name, value) in JsonObject::from_json(text)?.iter() {
            members.set(name, value.clone())?;
        }
        Ok(members)
    }

    /// Sets a member. An existing member keeps its place.
    pub fn set(&mut self, name: &str, value: CanonicalJson) -> Result<(), OperatorMembersError> {
        if PROTOCOL_MEMBERS.contains(&name) {
            return Err(OperatorMembersError::Protocol(name.to_owned()));
        }
        for object in [CONTACT, EXTENSIONS] {
            if name == object && !value.is_object() {
                return Err(OperatorMembersError::NotAnObject(object));
            }
        }
        if name == EXTENSIONS && JsonObject::from_json(value.as_str())?.get(DATA_REFS).is_some() {
            return Err(OperatorMembersError::DataRefs);
        }
        self.0.set(name, value);
        Ok(())
    }

    /// Removes a member.
    pub(crate) fn remove(&mut self, name: &str) {
        self.0.remove(name);
    }

    /// The value of a member.
    pub fn get(&self, name: &str) -> Option<&CanonicalJson> {
        self.0.get(name)
    }

    /// The members, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &CanonicalJson)> {
        self.0.iter()
    }

    /// The members as a JSON object.
    pub fn to_json(&self) -> String {
        self.0.to_json()
    }

    /// The other members of a document, besides the protocol's. Nodes do not restrict them.
    pub(crate) fn of_document(members: JsonObject) -> Self {
        Self(members)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_and_numbers_stay() {
        let text =
            r#" { "extensions": {"b": 1.0, "a": {}}, "minerContact": {"z": 1E2}, "x": null }"#;
        let mut members = OperatorMembers::from_json(text).unwrap();
        let json = r#"{"extensions":{"b":1.0,"a":{}},"minerContact":{"z":1E2},"x":null}"#;
        assert_eq!(members.to_json(), json);
        members.set("extensions", CanonicalJson::from_text("{}").unwrap()).unwrap();
        assert_eq!(members.to_json(), r#"{"extensions":{},"minerContact":{"z":1E2},"x":null}"#);
    }

    #[test]
    fn the_protocols_members_cannot_be_set() {
        for name in PROTOCOL_MEMBERS {
            let error = OperatorMembers::from_json(&format!(r#"{{"x":1,"{name}":"0.3"}}"#));
            assert_eq!(error, Err(OperatorMembersError::Protocol(name.to_owned())));
        }
        for (text, error) in [
            (r#"{"minerContact":"me"}"#, OperatorMembersError::NotAnObject("minerContact")),
            (r#"{"extensions":[]}"#, OperatorMembersError::NotAnObject("extensions")),
            (r#"{"extensions":{"dataRefs":{"refs":[]}}}"#, OperatorMembersError::DataRefs),
            (r#"{"extensions":{"data\u0052efs":1}}"#, OperatorMembersError::DataRefs),
        ] {
            assert_eq!(OperatorMembers::from_json(text), Err(error), "{text}");
        }
        for text in ["", "[]", "null", r#"{"a":}"#] {
            let error = OperatorMembers::from_json(text).unwrap_err();
            assert!(matches!(error, OperatorMembersError::Json(_)), "{text}");
        }
    }
}
