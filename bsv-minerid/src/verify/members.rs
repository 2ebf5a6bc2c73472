//! JSON objects that somebody else wrote, read as nodes read them: of members of one name the first
//! counts, and null is as good as absent.

use serde_json::value::RawValue;

use crate::json_object::Members;

impl<'a> Members<'a> {
    /// Reads an object.
    pub(super) fn read(text: &'a str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// The value of a member, as it is spelled.
    pub(super) fn get(&self, name: &str) -> Option<&'a str> {
        let (_, value) = self.0.iter().find(|(key, _)| key == name)?;
        Some(value.get()).filter(|value| *value != "null")
    }

    /// Whether a member is there, be it null.
    pub(super) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(key, _)| key == name)
    }

    /// The value of a member that is a string.
    pub(super) fn text(&self, name: &str) -> Option<String> {
        text(self.get(name)?)
    }

    /// The members of a member that is an object.
    pub(super) fn object(&self, name: &str) -> Option<Self> {
        Self::read(self.get(name)?).ok()
    }

    /// The first of `names` that is there more than once.
    pub(super) fn repeated<'n>(
        &self,
        names: impl IntoIterator<Item = &'n &'n str>,
    ) -> Option<&'n str> {
        let count = |name: &str| self.0.iter().filter(|(key, _)| key == name).count();
        names.into_iter().find(|name| count(name) > 1).copied()
    }

    /// The names and values, in their order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &'a str)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value.get()))
    }
}

/// The text of a JSON string.
pub(super) fn text(value: &str) -> Option<String> {
    serde_json::from_str(value).ok()
}

/// A number that nodes take for one of 32 bits: digits alone, after a minus sign perhaps.
pub(super) fn integer(value: &str) -> Option<i32> {
    value.parse().ok().filter(|_| !value.starts_with('+'))
}

/// Whether a value is a number of any spelling.
pub(super) fn is_number(value: &str) -> bool {
    value.starts_with(|first: char| first == '-' || first.is_ascii_digit())
}

/// The items of a JSON array.
pub(super) fn items(value: &str) -> Option<Vec<&str>> {
    let items: Vec<&RawValue> = serde_json::from_str(value).ok()?;
    Some(items.into_iter().map(RawValue::get).collect())
}
