use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::json::{CanonicalJson, JsonError, write_string};

/// A JSON object: keys and values, in the order in which the keys were first set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JsonObject(Vec<(String, CanonicalJson)>);

/// The information that a miner publishes about itself in its documents (`minerContact`): free keys
/// and values. An empty one is left out of documents.
pub type MinerContact = JsonObject;

impl JsonObject {
    /// Reads a JSON object.
    pub fn from_json(text: &str) -> Result<Self, JsonError> {
        let syntax = |error: serde_json::Error| JsonError::Syntax(error.to_string());
        let members: Members<'_> = serde_json::from_str(text).map_err(syntax)?;
        let read = |(key, value): (_, &RawValue)| Ok((key, CanonicalJson::from_text(value.get())?));
        members.0.into_iter().map(read).collect()
    }

    /// Sets a key. An existing key keeps its place.
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

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&CanonicalJson> {
        self.0.iter().find_map(|(present, value)| (present == key).then_some(value))
    }

    /// Removes a key.
    pub fn remove(&mut self, key: &str) {
        self.0.retain(|(present, _)| present != key);
    }

    /// The keys and values, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &CanonicalJson)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value))
    }

    /// Whether no key is set.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The text, spelled as a node prints it.
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

impl FromIterator<(String, CanonicalJson)> for JsonObject {
    /// Takes time in proportion to the number of pairs. `set` searches all earlier keys, so
    /// building a large object of a stranger with it would take quadratic time.
    fn from_iter<I: IntoIterator<Item = (String, CanonicalJson)>>(pairs: I) -> Self {
        let mut object = Self::default();
        let mut places: HashMap<String, usize> = HashMap::new();
        for (key, value) in pairs {
            match places.entry(key) {
                Entry::Occupied(place) => object.0[*place.get()].1 = value,
                Entry::Vacant(place) => {
                    object.0.push((place.key().clone(), value));
                    place.insert(object.0.len() - 1);
                }
            }
        }
        object
    }
}

impl FromIterator<(String, String)> for JsonObject {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(pairs: I) -> Self {
        pairs.into_iter().map(|(key, value)| (key, CanonicalJson::string(&value))).collect()
    }
}

/// The members of a JSON object, in order. A repeated name occurs repeatedly.
pub(crate) struct Members<'a>(pub(crate) Vec<(String, &'a RawValue)>);

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
        let mut object =
            JsonObject::from_json(r#"{ "z": "1", "a": {"x": [1.0]}, "z": "\/" }"#).unwrap();
        object.set("a", CanonicalJson::string("\u{7f}\n"));
        object.set("new \"key\"", CanonicalJson::string("é"));
        let json = r#"{"z":"/","a":"\u007f\n","new \"key\"":"é"}"#;
        assert_eq!(object.to_json(), json);
        assert_eq!(JsonObject::from_json(json), Ok(object));
        for bad in ["", "[]", "\"x\"", r#"{"a":"\ud800"}"#] {
            assert!(JsonObject::from_json(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn an_object_of_very_many_keys_is_read_in_no_time() {
        let members: Vec<_> = (0..200_000).map(|n| format!("\"{}\":{n}", n % 150_000)).collect();
        let object = JsonObject::from_json(&format!("{{{}}}", members.join(","))).unwrap();
        assert_eq!(object.0.len(), 150_000);
        let first = ("0".to_owned(), CanonicalJson::from_text("150000").unwrap());
        assert_eq!(object.0[0], first);
    }
}
