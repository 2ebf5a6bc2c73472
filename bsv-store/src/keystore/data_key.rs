//! `keystore.json`: the data key, wrapped by a passphrase or in clear.

use std::fs;
use std::io;
use std::path::Path;

use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use super::KeystoreError;
use crate::files::{self, FileError};
use crate::seal::{KEY_LEN, checked_params, open, params, random, seal, stretch};

pub(super) const FILE_NAME: &str = "keystore.json";
const FORMAT_VERSION: u32 = 1;

/// The contents of the file.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct FileJson {
    version: u32,
    data_key: StoredKey,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", deny_unknown_fields)]
enum StoredKey {
    Plain(String),
    Wrapped { memory_kib: u32, iterations: u32, parallelism: u32, salt: String, sealed: String },
}

/// The data key, and the hash of the file that it was read from or written to.
pub(super) struct DataKey {
    pub(super) key: Zeroizing<[u8; KEY_LEN]>,
    pub(super) file_hash: [u8; 32],
}

/// Reads the data key, if there is one.
pub(super) fn read(
    dir: &Path,
    passphrase: Option<&SecretString>,
) -> Result<Option<DataKey>, KeystoreError> {
    let Some(text) = read_text(dir)? else { return Ok(None) };
    let file_hash = Sha256::digest(&text).into();
    Ok(Some(DataKey { key: unwrap(dir, &text, passphrase)?, file_hash }))
}

/// The hash of the file as it lies on the disk, if it is there.
pub(super) fn hash_on_disk(dir: &Path) -> Result<Option<[u8; 32]>, KeystoreError> {
    Ok(read_text(dir)?.map(|text| Sha256::digest(&text).into()))
}

/// Writes a data key, wrapped if there is a passphrase. A file that is there is replaced, once the new
/// one is proved to open. Answers the hash of the file.
pub(super) fn write(
    dir: &Path,
    key: &[u8; KEY_LEN],
    passphrase: Option<&SecretString>,
) -> Result<[u8; 32], KeystoreError> {
    if passphrase.is_some_and(|passphrase| passphrase.expose_secret().is_empty()) {
        return Err(KeystoreError::EmptyPassphrase);
    }
    let data_key = match passphrase {
        None => StoredKey::Plain(hex::encode(key)),
        Some(passphrase) => {
            let salt = random::<16>()?;
            let params = params();
            let wrapping_key = stretch(passphrase, &salt, &params);
            StoredKey::Wrapped {
                memory_kib: params.m_cost(),
                iterations: params.t_cost(),
                parallelism: params.p_cost(),
                salt: hex::encode(salt),
                sealed: hex::encode(seal(&wrapping_key, FILE_NAME.as_bytes(), key)?),
            }
        }
    };
    let file = FileJson { version: FORMAT_VERSION, data_key };
    let text = Zeroizing::new(
        serde_json::to_vec_pretty(&file).expect("numbers and strings always serialise"),
    );
    let read_back = unwrap(dir, &text, passphrase)?;
    assert!(*read_back == *key, "a wrapped key unwraps to itself");
    files::write_atomically(dir, FILE_NAME, &text)?;
    Ok(Sha256::digest(&text).into())
}

/// A random data key.
pub(super) fn generate() -> Result<Zeroizing<[u8; KEY_LEN]>, KeystoreError> {
    Ok(Zeroizing::new(random()?))
}

fn read_text(dir: &Path) -> Result<Option<Zeroizing<Vec<u8>>>, FileError> {
    let path = dir.join(FILE_NAME);
    match fs::read(&path) {
        Ok(text) => Ok(Some(Zeroizing::new(text))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(FileError::new("read", &path)(error)),
    }
}

fn unwrap(
    dir: &Path,
    text: &[u8],
    passphrase: Option<&SecretString>,
) -> Result<Zeroizing<[u8; KEY_LEN]>, KeystoreError> {
    let path = dir.join(FILE_NAME);
    let damaged = |reason: String| KeystoreError::Damaged { path: path.clone(), reason };
    let file: FileJson = serde_json::from_slice(text).map_err(|e| damaged(e.to_string()))?;
    if file.version != FORMAT_VERSION {
        return Err(damaged(format!("it has version {}", file.version)));
    }
    let bytes = match (&file.data_key, passphrase) {
        (StoredKey::Plain(_), Some(_)) => return Err(KeystoreError::NotSealed(dir.to_owned())),
        (StoredKey::Wrapped { .. }, None) => {
            return Err(KeystoreError::PassphraseMissing(dir.to_owned()));
        }
        (StoredKey::Plain(key), None) => Zeroizing::new(decode(key, &path)?),
        (StoredKey::Wrapped { memory_kib, iterations, parallelism, salt, sealed }, Some(given)) => {
            let params = checked_params(*memory_kib, *iterations, *parallelism)
                .ok_or_else(|| damaged("its Argon2id parameters are out of bounds".to_owned()))?;
            let salt = decode(salt, &path)?;
            if !(8..=64).contains(&salt.len()) {
                return Err(damaged("its salt has a wrong length".to_owned()));
            }
            let wrapping_key = stretch(given, &salt, &params);
            open(&wrapping_key, FILE_NAME.as_bytes(), &decode(sealed, &path)?)
                .ok_or_else(|| KeystoreError::WrongPassphrase(path.clone()))?
        }
    };
    let key: &[u8; KEY_LEN] = bytes
        .as_slice()
        .try_into()
        .map_err(|_| damaged("its data key has a wrong length".to_owned()))?;
    Ok(Zeroizing::new(*key))
}

fn decode(text: &str, path: &Path) -> Result<Vec<u8>, KeystoreError> {
    hex::decode(text).map_err(|_| KeystoreError::Damaged {
        path: path.to_owned(),
        reason: "its salt or data key is not hexadecimal".to_owned(),
    })
}
