use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::json::{CanonicalJson, JsonError, write_string};

/// What a miner tells about itself in its documents (`minerContact`): free keys and values, in the
/// order in which the keys were first set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MinerContact(Vec<(String, CanonicalJson)>);

impl MinerContact {
    /// Reads a JSON object.
    pub fn from_json(text: &str) -> Result<Self, JsonError> {
        let syntax = |error: serde_json::Error| JsonError::Syntax(error.to_string());
        let members: Members<'_> = serde_json::from_str(text).map_err(syntax)?;
        let mut contact = Self::default();
        // Other miners' contacts are read too, and may be large: `set`, which looks for each key
        // among all before it, takes time that grows with the square of their number.
        let mut places: HashMap<String, usize> = HashMap::new();
        for (key, value) in members.0 {
            let value = CanonicalJson::from_text(value.get())?;
            match places.entry(key) {
                Entry::Occupied(place) => contact.0[*place.get()].1 = value,
                Entry::Vacant(place) => {
                    contact.0.push((place.key().clone(), value));
                    place.insert(contact.0.len() - 1);
                }
            }
        }
        Ok(contact)
    }

    /// Sets a key. One that is set already keeps its place.
    pub fn set(&mut self, key: &str, value: CanonicalJson) {
        match self.0.iter_mut().find(|(present, _)| present == key) {
            Some((_, present)) => *present = value,
            None => self.0.push((key.to_owned(), value)),
        }
    }

    /// Sets all keys of `other`.
    pub fn merge(&mut self, other: &Self) {
        for (key, value) in &other.0 {
            self.set(key, value.clone());
        }
    }

    /// Whether no key is set. An empty contact does not enter documents.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The contact as a JSON object, spelled as a node prints it.
    pub fn to_json(&self) -> String {
        let mut out = String::new();
        self.write(&mut out);
        out
    }

    pub(crate) fn write(&self, out: &mut String) {
        out.push('{');
        for (place, (key, value)) in self.0.iter().enumerate() {
            if place > 0 {
                out.push(',');
            }
            write_string(out, key);
            out.push(':');
            out.push_str(value.as_str());
        }
        out.push('}');
    }
}

impl FromIterator<(String, String)> for MinerContact {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(pairs: I) -> Self {
        let mut contact = Self::default();
        for (key, value) in pairs {
            contact.set(&key, CanonicalJson::string(&value));
        }
        contact
    }
}

/// The members of a JSON object, in order.
struct Members<'a>(Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;

        impl<'de> Visitor<'de> for InOrder {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(InOrder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_keep_their_order_and_the_last_value() {
        let mut contact =
            MinerContact::from_json(r#"{ "z": "1", "a": {"x": [1.0]}, "z": "\/" }"#).unwrap();
        contact.set("a", CanonicalJson::string("\u{7f}\n"));
        contact.set("new \"key\"", CanonicalJson::string("é"));
        let json = r#"{"z":"/","a":"\u007f\n","new \"key\"":"é"}"#;
        assert_eq!(contact.to_json(), json);
        assert_eq!(MinerContact::from_json(json), Ok(contact));
        for bad in ["", "[]", "\"x\"", r#"{"a":"\ud800"}"#] {
            assert!(MinerContact::from_json(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_contact_of_very_many_keys_is_read_in_no_time() {
        let members: Vec<_> = (0..200_000).map(|n| format!("\"{}\":{n}", n % 150_000)).collect();
        let contact = MinerContact::from_json(&format!("{{{}}}", members.join(","))).unwrap();
        assert_eq!(contact.0.len(), 150_000);
        let first = ("0".to_owned(), CanonicalJson::from_text("150000").unwrap());
        assert_eq!(contact.0[0], first);
    }
}
