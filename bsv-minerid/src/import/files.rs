//! The files of a home directory.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use zeroize::Zeroizing;

use super::identity::NumberedKey;
use crate::alias::Alias;
use crate::error::Error;
use crate::operator_members::{CONTACT, OperatorMembers};
use crate::state::IdentityRecord;

#[derive(Deserialize)]
struct KeyNameJson {
    name: String,
}

/// Leaves room for more rotations than there can be.
const MAX_KEY_NUMBER: u32 = 1 << 31;

pub(super) fn read_keys(
    alias: &Alias,
    path: &Path,
    keystore: &Path,
) -> Result<Vec<NumberedKey>, Error> {
    let text = read(path)?.ok_or_else(|| fault(path, "it is missing"))?;
    let names: Vec<KeyNameJson> = parse(path, &text)?;
    if names.is_empty() {
        return Err(fault(path, "it names no key"));
    }
    let mut keys: Vec<NumberedKey> = Vec::new();
    for KeyNameJson { name } in names {
        let number = name
            .strip_prefix(alias.as_str())
            .and_then(|rest| rest.strip_prefix('_'))
            .and_then(|number| number.parse().ok())
            .filter(|number| name == IdentityRecord::key_name(alias, *number))
            .filter(|number| (1..=MAX_KEY_NUMBER).contains(number))
            .filter(|number| keys.iter().all(|(other, _)| other != number))
            .ok_or_else(|| fault(path, format!("\"{name}\" is not {alias}_<number>")))?;
        let key_path = keystore.join(format!("{name}.key"));
        let text = read(&key_path)?.ok_or_else(|| fault(&key_path, "it is missing"))?;
        keys.push((number, text.parse().map_err(|error| fault(&key_path, error))?));
    }
    Ok(keys)
}

pub(super) fn read_contact(path: &Path) -> Result<OperatorMembers, Error> {
    match read(path)?.as_deref().map(|text| text.trim()) {
        None | Some("{}") => Ok(OperatorMembers::default()),
        Some(text) => OperatorMembers::from_json(&format!(r#"{{"{CONTACT}":{text}}}"#))
            .map_err(|error| fault(path, error)),
    }
}

/// Far above the size of any file in a home directory.
const MAX_FILE_LEN: u64 = 1 << 20;

pub(super) fn read(path: &Path) -> Result<Option<Zeroizing<String>>, Error> {
    match fs::metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(fault(path, error)),
        Ok(metadata) if metadata.len() > MAX_FILE_LEN => {
            return Err(fault(path, "it is larger than 1 MiB"));
        }
        Ok(_) => {}
    }
    let text = fs::read_to_string(path).map_err(|error| fault(path, error))?;
    Ok(Some(Zeroizing::new(text)))
}

pub(super) fn parse<'a, T: Deserialize<'a>>(path: &Path, text: &'a str) -> Result<T, Error> {
    serde_json::from_str(text).map_err(|error| fault(path, error))
}

pub(super) fn fault(path: &Path, reason: impl ToString) -> Error {
    Error::Import { path: PathBuf::from(path), reason: reason.to_string() }
}
