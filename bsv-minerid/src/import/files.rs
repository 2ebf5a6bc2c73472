//! The files of a home directory.

use std::path::Path;

use serde::Deserialize;

use super::home_files::{HomeFiles, fault};
use super::identity::NumberedKey;
use crate::alias::Alias;
use crate::error::Error;
use crate::operator_members::{CONTACT, OperatorMembers};
use crate::state::IdentityRecord;

#[derive(Deserialize)]
struct KeyNameJson {
    name: String,
}

/// Far more rotations than any alias has.
const MAX_KEY_NUMBER: u32 = 1 << 31;

pub(super) fn read_keys(
    files: &HomeFiles,
    alias: &Alias,
    path: &Path,
    keystore: &Path,
) -> Result<Vec<NumberedKey>, Error> {
    let text = files.text(path)?.ok_or_else(|| fault(path, "it is missing"))?;
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
        let text = files.text(&key_path)?.ok_or_else(|| fault(&key_path, "it is missing"))?;
        keys.push((number, text.parse().map_err(|error| fault(&key_path, error))?));
    }
    Ok(keys)
}

pub(super) fn read_contact(files: &HomeFiles, path: &Path) -> Result<OperatorMembers, Error> {
    match files.text(path)?.as_deref().map(|text| text.trim()) {
        None | Some("{}") => Ok(OperatorMembers::default()),
        Some(text) => OperatorMembers::from_json(&format!(r#"{{"{CONTACT}":{text}}}"#))
            .map_err(|error| fault(path, error)),
    }
}

pub(super) fn parse<'a, T: Deserialize<'a>>(path: &Path, text: &'a str) -> Result<T, Error> {
    serde_json::from_str(text).map_err(|error| fault(path, error))
}
