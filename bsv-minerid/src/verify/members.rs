//! JSON objects from strangers, read as nodes read them: the first of several members with the same
//! name counts, and null counts as absent.

use std::borrow::Cow;

use super::node_json::{NodeJsonError, Token, Tokens, check};
use super::node_text::decode;

/// A value in a text that nodes can read, with its spelling.
#[derive(Clone, Copy)]
pub(super) struct Value<'a>(&'a [u8]);

/// The members of an object, in order. A repeated name occurs repeatedly.
pub(super) struct Members<'a>(Vec<(Cow<'a, [u8]>, Value<'a>)>);

impl<'a> Value<'a> {
    /// The bytes of a string, which are nearly always UTF-8.
    pub(super) fn bytes(self) -> Option<Cow<'a, [u8]>> {
        decode(self.0.strip_prefix(b"\"")?.strip_suffix(b"\"")?)
    }

    /// The text of a string. Invalid Unicode is replaced.
    pub(super) fn text(self) -> Option<String> {
        self.bytes().map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Whether the value is a number, in any spelling.
    pub(super) fn is_number(self) -> bool {
        self.0.first().is_some_and(|first| *first == b'-' || first.is_ascii_digit())
    }

    /// A number that nodes accept as a 32-bit integer: only digits, with an optional minus sign.
    pub(super) fn integer(self) -> Option<i32> {
        std::str::from_utf8(self.0).ok().filter(|_| self.is_number())?.parse().ok()
    }

    /// The items of an array.
    pub(super) fn items(self) -> Option<Vec<Value<'a>>> {
        let mut tokens = Tokens::of(self.0);
        if tokens.next() != Ok(Some(Token::Mark(b'['))) {
            return None;
        }
        let mut items = Vec::new();
        loop {
            match tokens.value() {
                Ok(item) => items.push(Value(item)),
                // The array is empty.
                Err(_) => return Some(items),
            }
            if tokens.next() != Ok(Some(Token::Mark(b','))) {
                return Some(items);
            }
        }
    }

    /// The members of an object.
    pub(super) fn members(self) -> Option<Members<'a>> {
        let mut tokens = Tokens::of(self.0);
        if tokens.next() != Ok(Some(Token::Mark(b'{'))) {
            return None;
        }
        let mut members = Vec::new();
        while let Ok(Some(Token::String(name))) = tokens.next() {
            // Skips a colon; after a value, skips a comma or the end.
            tokens.next().ok()?;
            members.push((decode(name)?, Value(tokens.value().ok()?)));
            tokens.next().ok()?;
        }
        Some(Members(members))
    }
}

impl<'a> Members<'a> {
    /// Reads a text as nodes do. A text that is not an object has no members.
    pub(super) fn read(text: &'a [u8]) -> Result<Self, NodeJsonError> {
        check(text)?;
        Ok(Value(text.trim_ascii()).members().unwrap_or(Self(Vec::new())))
    }

    /// The value of a member.
    pub(super) fn get(&self, name: &str) -> Option<Value<'a>> {
        let (_, value) = self.0.iter().find(|(key, _)| **key == *name.as_bytes())?;
        Some(*value).filter(|value| value.0 != b"null")
    }

    /// Whether a member exists, even if it is null.
    pub(super) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(key, _)| **key == *name.as_bytes())
    }

    /// The value of a member that is a string.
    pub(super) fn bytes(&self, name: &str) -> Option<Cow<'a, [u8]>> {
        self.get(name)?.bytes()
    }

    /// The text of a member that is a string.
    pub(super) fn text(&self, name: &str) -> Option<String> {
        self.get(name)?.text()
    }

    /// The members of a member that is an object.
    pub(super) fn object(&self, name: &str) -> Option<Self> {
        self.get(name)?.members()
    }

    /// The first of `names` that occurs more than once.
    pub(super) fn repeated<'n>(
        &self,
        names: impl IntoIterator<Item = &'n &'n str>,
    ) -> Option<&'n str> {
        let count = |name: &str| self.0.iter().filter(|(key, _)| **key == *name.as_bytes()).count();
        names.into_iter().find(|name| count(name) > 1).copied()
    }
}
