//! `keystore.json`, which holds the data key.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::wrapping_key::Stretching;
use crate::json_format::JsonFormat;
use crate::seal::checked_params;

pub(super) const NAME: &str = "keystore.json";
pub(super) const FORMAT: JsonFormat = JsonFormat { name: "bsv-keystore", migrations: &[] };
pub(super) const NOT_HEX: &str = "its salt or data key is not hexadecimal";

/// The contents of the file.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct FileJson {
    pub(super) data_key: StoredKey,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", deny_unknown_fields)]
pub(super) enum StoredKey {
    Plain(String),
    Wrapped { memory_kib: u32, iterations: u32, parallelism: u32, salt: String, sealed: String },
}

/// Whether `dir` has the file.
pub(super) fn is_in(dir: &Path) -> bool {
    dir.join(NAME).is_file()
}

/// How to stretch the passphrase of the data key; `None` if the key is in clear or the file is
/// unreadable.
pub(super) fn stretching(text: &[u8]) -> Option<Stretching> {
    let file: FileJson = FORMAT.read(text).ok()?;
    match &file.data_key {
        StoredKey::Plain(_) => None,
        StoredKey::Wrapped { memory_kib, iterations, parallelism, salt, .. } => {
            checked_stretching([*memory_kib, *iterations, *parallelism], salt).ok()
        }
    }
}

/// How to stretch a passphrase, if the file's parameters are within bounds.
pub(super) fn checked_stretching(params: [u32; 3], salt: &str) -> Result<Stretching, &'static str> {
    let [memory_kib, iterations, lanes] = params;
    let params = checked_params(memory_kib, iterations, lanes)
        .ok_or("its Argon2id parameters are out of bounds")?;
    let salt = hex::decode(salt).map_err(|_| NOT_HEX)?;
    match salt.len() {
        8..=64 => Ok(Stretching { params, salt }),
        _ => Err("its salt has a wrong length"),
    }
}
