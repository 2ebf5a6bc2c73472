//! Reading and writing JSON.

use std::borrow::Cow;
use std::fmt::{self, Display};
use std::str::FromStr;

use bsv_tx::{Txid, sha256d};
use serde::de::{self, Deserialize, Deserializer, Visitor};
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

/// Reads a JSON object. The error says where it is wrong.
pub(super) fn read<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, String> {
    let text = utf8(body)?;
    // The deserializer would also accept a list for an object.
    if !text.trim_ascii_start().starts_with('{') {
        return Err("it is not a JSON object".to_owned());
    }
    read_text(text)
}

/// Reads a JSON array.
pub(super) fn read_list<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<Vec<T>, String> {
    read_text(utf8(body)?)
}

fn utf8(body: &[u8]) -> Result<&str, String> {
    std::str::from_utf8(body).map_err(|error| format!("it is not UTF-8: {error}"))
}

/// Reads JSON of any kind.
pub(super) fn read_text<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, String> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let value = serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
        shorten(match error.path().iter().len() {
            0 => error.inner().to_string(),
            _ => format!("{}: {}", error.path(), error.inner()),
        })
    })?;
    deserializer.end().map_err(|error| error.to_string())?;
    Ok(value)
}

/// Makes a stranger's text fit to be shown: shortens it, and replaces control characters, which
/// terminals would obey.
pub(super) fn shorten(text: String) -> String {
    const MOST: usize = 300;
    let shown = |c: char| if c.is_control() { ' ' } else { c };
    match text.char_indices().nth(MOST) {
        None => text.chars().map(shown).collect(),
        Some((end, _)) => text[..end].chars().map(shown).chain(['…']).collect(),
    }
}

pub(super) fn write(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("a vector takes texts, numbers and raw JSON")
}

/// JSON that is copied into a message unchanged, or `null` if `body` is not JSON.
pub(super) fn raw(body: &[u8]) -> &RawValue {
    let text = std::str::from_utf8(body).unwrap_or_default();
    serde_json::from_str(text).unwrap_or(RawValue::NULL)
}

/// Reads a string that holds a hash, a time or the like.
pub(super) fn parsed<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: FromStr<Err: Display>,
{
    Cow::<str>::deserialize(deserializer)?.parse().map_err(de::Error::custom)
}

/// Writes the `Display` form as a string.
pub(super) fn displayed<S: Serializer>(value: &impl Display, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(value)
}

/// Whether the text names a transaction, either by its id or as the transaction itself in
/// hexadecimal digits.
pub(super) fn names(text: &str, txid: &Txid) -> bool {
    txid_of(text).as_ref() == Some(txid)
}

/// The id of the transaction that the text names, either by the id or as the transaction itself in
/// hexadecimal digits.
pub(super) fn txid_of(text: &str) -> Option<Txid> {
    let bytes = || hex::decode(text).ok().filter(|bytes| bytes.len() > size_of::<Txid>());
    text.parse().ok().or_else(|| Some(Txid::from_bytes(sha256d(&bytes()?))))
}

/// Bytes in hexadecimal digits of either case.
#[derive(Debug)]
pub(super) struct HexBytes(pub(super) Vec<u8>);

impl<'de> Deserialize<'de> for HexBytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct HexVisitor;

        impl Visitor<'_> for HexVisitor {
            type Value = HexBytes;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string of hexadecimal digits")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<HexBytes, E> {
                hex::decode(text)
                    .map(HexBytes)
                    .map_err(|error| E::custom(format_args!("must be hexadecimal: {error}")))
            }
        }

        deserializer.deserialize_str(HexVisitor)
    }
}
