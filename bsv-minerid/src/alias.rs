use std::borrow::Borrow;
use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// The name that selects an identity: 1 to 64 characters of `A-Z a-z 0-9 . _ -`, not starting with
/// a dot. An alias can be used in file names unchanged.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Alias(String);

/// The text is not an alias.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "\"{0}\" is not an alias: use 1 to 64 of the characters A-Z a-z 0-9 . _ -, not starting with a dot"
)]
pub struct AliasParseError(String);

impl Alias {
    /// The most characters of an alias.
    pub const MAX_LEN: usize = 64;

    /// The alias as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Alias {
    type Err = AliasParseError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_allowed = |c: u8| c.is_ascii_alphanumeric() || b"._-".contains(&c);
        let is_alias = (1..=Self::MAX_LEN).contains(&text.len())
            && !text.starts_with('.')
            && text.bytes().all(is_allowed);
        if !is_alias {
            return Err(AliasParseError(text.to_owned()));
        }
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for Alias {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Lets a map keyed by aliases be searched with any text.
impl Borrow<str> for Alias {
    fn borrow(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_safe_in_a_file_name_is_an_alias() {
        for good in ["a", "A.b_c-9", "x..y", "-", "_", &"a".repeat(64)] {
            assert_eq!(good.parse::<Alias>().map(|alias| alias.to_string()), Ok(good.to_owned()));
        }
        for bad in ["", ".", "..", ".x", "../x", "a/b", "a b", "a\0", "é", "a\n", &"a".repeat(65)]
        {
            assert!(bad.parse::<Alias>().is_err(), "{bad:?}");
        }
    }
}
