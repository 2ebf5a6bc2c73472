//! Fields of requests: reading them from JSON, and collecting their errors.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// All errors in the fields of a request: field to messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldErrors(BTreeMap<Cow<'static, str>, Vec<String>>);

impl FieldErrors {
    /// Adds a message.
    pub fn add(&mut self, field: impl Into<Cow<'static, str>>, message: impl Into<String>) {
        self.0.entry(field.into()).or_default().push(message.into());
    }

    /// Whether something is wrong with this field.
    pub(crate) fn has(&self, field: &str) -> bool {
        self.0.contains_key(field)
    }

    /// Whether there are no errors.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Fields and their messages.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[String])> {
        self.0.iter().map(|(field, messages)| (&**field, messages.as_slice()))
    }

    /// Adds a message if the text has more than `max` characters.
    pub(crate) fn check_len(&mut self, field: &'static str, text: &str, max: usize) {
        // A character has four bytes at most.
        if text.len() > max && text.chars().count() > max {
            self.add(field, format!("must have at most {max} characters"));
        }
    }

    /// Fails if something is wrong.
    pub(crate) fn into_result(self) -> Result<(), BodyError> {
        if self.is_empty() { Ok(()) } else { Err(BodyError::Invalid(self)) }
    }
}

impl fmt::Display for FieldErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for (field, messages) in self.iter() {
            for message in messages {
                write!(f, "{separator}{field} {message}")?;
                separator = ", ";
            }
        }
        Ok(())
    }
}

/// Why the body of a request cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    /// It is not a JSON object.
    #[error("{0}")]
    Malformed(String),
    /// Fields are invalid.
    #[error("{0}")]
    Invalid(FieldErrors),
}

/// Members that callers of the older wallet send and that are ignored.
const IGNORED: [&str; 2] = ["spvRequired", "createdAt"];

/// The members of a JSON object. The caller reads its fields one by one. Fields that cannot be read
/// become errors, and so do members that the caller has not read.
pub(crate) struct Members<'a> {
    members: Vec<(Cow<'a, str>, &'a RawValue)>,
    asked_for: Vec<&'static str>,
    errors: FieldErrors,
}

impl<'a> Members<'a> {
    pub(crate) fn parse(json: &'a [u8]) -> Result<Self, BodyError> {
        let text = std::str::from_utf8(json)
            .map_err(|error| BodyError::Malformed(format!("the body is not UTF-8: {error}")))?;
        if text.trim_ascii().is_empty() {
            return Err(BodyError::Malformed(
                "the body is empty, it must be a JSON object".to_owned(),
            ));
        }
        let Object(members) = serde_json::from_str(text).map_err(|error| {
            BodyError::Malformed(format!("the body is not a JSON object: {error}"))
        })?;
        Ok(Self { members, asked_for: Vec::with_capacity(8), errors: FieldErrors::default() })
    }

    /// A text. `None` if the field is missing or null.
    pub(crate) fn text(&mut self, field: &'static str) -> Option<String> {
        let raw = self.value(field)?;
        let text = raw.starts_with('"').then(|| serde_json::from_str(raw));
        match text {
            Some(Ok(text)) => Some(text),
            Some(Err(_)) => {
                self.errors.add(field, "must consist of Unicode characters");
                None
            }
            None => {
                self.errors.add(field, "must be a string");
                None
            }
        }
    }

    /// A whole number that is not negative. Too large ones become the largest.
    pub(crate) fn integer(&mut self, field: &'static str) -> Option<u64> {
        let raw = self.value(field)?;
        self.read_integer(field, raw)
    }

    /// A whole number as in [`integer`](Self::integer). `None` also stands for the given word.
    pub(crate) fn integer_or(&mut self, field: &'static str, word: &str) -> Option<u64> {
        let raw = self.value(field)?;
        match serde_json::from_str::<&str>(raw) {
            Ok(text) if text == word => None,
            Ok(_) => {
                self.errors.add(field, format!("must be an integer, or {word}"));
                None
            }
            Err(_) => self.read_integer(field, raw),
        }
    }

    fn read_integer(&mut self, field: &'static str, raw: &str) -> Option<u64> {
        let digits = raw.strip_prefix('-').unwrap_or(raw);
        let fault = if !digits.bytes().all(|c| c.is_ascii_digit()) {
            "must be an integer"
        } else if digits != raw && digits != "0" {
            "must not be negative"
        } else {
            return Some(digits.parse().unwrap_or(u64::MAX));
        };
        self.errors.add(field, fault);
        None
    }

    /// A truth value. `None` if the field is missing or null.
    pub(crate) fn boolean(&mut self, field: &'static str) -> Option<bool> {
        match self.value(field)? {
            "false" => Some(false),
            "true" => Some(true),
            _ => {
                self.errors.add(field, "must be true or false");
                None
            }
        }
    }

    /// Notes what is wrong with a field.
    pub(crate) fn reject(&mut self, field: &'static str, message: impl Into<String>) {
        self.errors.add(field, message);
    }

    /// The errors. Call this after all fields are read.
    pub(crate) fn into_errors(self) -> FieldErrors {
        let Self { members, asked_for, mut errors } = self;
        for (name, _) in members {
            if !asked_for.contains(&&*name) && !IGNORED.contains(&&*name) {
                errors.add(name.into_owned(), "is not known here");
            }
        }
        errors
    }

    /// The JSON of a value. `None` if the field is missing or null.
    fn value(&mut self, field: &'static str) -> Option<&'a str> {
        self.asked_for.push(field);
        let mut named = self.members.iter().filter(|(name, _)| name == field);
        let value = named.next()?.1.get();
        if named.next().is_some() {
            self.errors.add(field, "must be there only once");
            return None;
        }
        (value != "null").then_some(value)
    }
}

/// The members of an object in their order. A name may occur more than once.
struct Object<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Object<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ObjectVisitor;

        impl<'de> Visitor<'de> for ObjectVisitor {
            type Value = Object<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object<'de>, A::Error> {
                let mut members = Vec::with_capacity(5);
                while let Some(Name(name)) = map.next_key()? {
                    members.push((name, map.next_value()?));
                }
                Ok(Object(members))
            }
        }

        deserializer.deserialize_map(ObjectVisitor)
    }
}

/// A name. It is borrowed if it has no escapes.
#[derive(serde::Deserialize)]
#[serde(transparent)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

#[cfg(test)]
mod tests {
    use super::*;

    fn errors(members: Members<'_>) -> String {
        members.into_errors().to_string()
    }

    #[test]
    fn fields_are_read_and_others_refused() {
        let json =
            br#" {"te\u0078t": "a\n\"b\u20ac", "n": 7, "x": {"n": [1, {"n": 2}]}, "gone": null,
            "spvRequired": true} "#;
        let mut members = Members::parse(json).unwrap();
        assert_eq!(members.text("text").as_deref(), Some("a\n\"b€"));
        assert_eq!(members.integer("n"), Some(7));
        assert_eq!(members.text("gone"), None);
        assert_eq!(members.integer("missing"), None);
        assert_eq!(errors(members), "x is not known here");
    }

    #[test]
    fn all_unreadable_fields_are_reported_at_once() {
        let json = br#"{"a": 1, "b": "1", "c": "\ud800", "d": 1.0, "e": 1e3, "f": 1, "f": 1, "g": true, "h": [1]}"#;
        let mut members = Members::parse(json).unwrap();
        for field in ["a", "c"] {
            assert_eq!(members.text(field), None);
        }
        for field in ["b", "d", "e", "f", "g", "h"] {
            assert_eq!(members.integer(field), None);
        }
        assert_eq!(
            errors(members),
            "a must be a string, b must be an integer, c must consist of Unicode characters, \
             d must be an integer, e must be an integer, f must be there only once, \
             g must be an integer, h must be an integer"
        );
    }

    #[test]
    fn integers_of_any_size_are_read_unless_they_are_negative() {
        let json = format!(
            r#"{{"a": -1, "b": -0, "c": {}, "d": {}0, "e": -{}}}"#,
            u64::MAX,
            u64::MAX,
            "9".repeat(99)
        );
        let mut members = Members::parse(json.as_bytes()).unwrap();
        let read = ["a", "b", "c", "d"].map(|field| members.integer(field));
        assert_eq!(read, [None, Some(0), Some(u64::MAX), Some(u64::MAX)]);
        assert_eq!(members.integer_or("e", "all"), None);
        assert_eq!(errors(members), "a must not be negative, e must not be negative");
    }

    #[test]
    fn what_is_not_an_object_is_malformed() {
        let nested = "[".repeat(100_000);
        for json in [
            "",
            "  ",
            "null",
            "1",
            "[]",
            "\"\"",
            "{",
            "{}}",
            "{\"a\"}",
            "{\"a\":}",
            "{a:1}",
            "{\"a\":01}",
            &nested,
        ] {
            let refused = Members::parse(json.as_bytes());
            assert!(matches!(refused, Err(BodyError::Malformed(_))), "{json:.20}");
        }
        let nested = format!(r#"{{"x": {nested}{}}}"#, "]".repeat(100_000));
        assert!(Members::parse(nested.as_bytes()).is_ok());
        assert!(matches!(Members::parse(b"{\"a\": \"\xff\"}"), Err(BodyError::Malformed(_))));
    }
}
