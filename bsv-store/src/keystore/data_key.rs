//! The data key, wrapped by a passphrase or in clear.

use std::path::Path;

use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use super::data_key_file::{self, FORMAT, FileJson, NOT_HEX, StoredKey, checked_stretching};
use super::error::KeystoreError;
use super::folder::Folder;
use super::passphrase::StretchedPassphrase;
use super::wrapping_key::Stretching;
use crate::files::FileError;
use crate::json_format::JsonFormatError;
use crate::seal::{KEY_LEN, open, random, seal};

/// The data key, and the hash of the file that it was read from or written to.
pub(super) struct DataKey {
    pub(super) key: Zeroizing<[u8; KEY_LEN]>,
    pub(super) file_hash: [u8; 32],
}

/// Reads the data key, if its file exists.
pub(super) fn read(
    folder: &Folder,
    passphrase: Option<&StretchedPassphrase>,
) -> Result<Option<DataKey>, KeystoreError> {
    let Some(text) = folder.read(data_key_file::NAME)? else { return Ok(None) };
    let file_hash = Sha256::digest(&text).into();
    Ok(Some(DataKey { key: unwrap(folder.dir(), &text, passphrase)?, file_hash }))
}

/// The hash of the file on the disk, if the file exists.
pub(super) fn hash_on_disk(folder: &Folder) -> Result<Option<[u8; 32]>, FileError> {
    Ok(folder.read(data_key_file::NAME)?.map(|text| Sha256::digest(&text).into()))
}

/// Writes a data key, wrapped if there is a passphrase. Replaces an existing file only after
/// proving that the new contents open. Answers the hash of the file.
pub(super) fn write(
    folder: &Folder,
    key: &[u8; KEY_LEN],
    passphrase: Option<&StretchedPassphrase>,
) -> Result<[u8; 32], KeystoreError> {
    if passphrase.is_some_and(StretchedPassphrase::is_empty) {
        return Err(KeystoreError::EmptyPassphrase);
    }
    let data_key = match passphrase {
        None => StoredKey::Plain(hex::encode(key)),
        Some(passphrase) => {
            let wrapping_key = passphrase.sealing_key()?;
            let Stretching { params, salt } = &wrapping_key.stretching;
            StoredKey::Wrapped {
                memory_kib: params.m_cost(),
                iterations: params.t_cost(),
                parallelism: params.p_cost(),
                salt: hex::encode(salt),
                sealed: hex::encode(seal(&wrapping_key.key, data_key_file::NAME.as_bytes(), key)?),
            }
        }
    };
    let text = Zeroizing::new(FORMAT.write(&FileJson { data_key }));
    let read_back = unwrap(folder.dir(), &text, passphrase)?;
    assert!(*read_back == *key, "a wrapped key unwraps to itself");
    folder.write(data_key_file::NAME, &text)?;
    Ok(Sha256::digest(&text).into())
}

/// Makes a random data key.
pub(super) fn generate() -> Result<Zeroizing<[u8; KEY_LEN]>, KeystoreError> {
    Ok(Zeroizing::new(random()?))
}

fn unwrap(
    dir: &Path,
    text: &[u8],
    passphrase: Option<&StretchedPassphrase>,
) -> Result<Zeroizing<[u8; KEY_LEN]>, KeystoreError> {
    let path = dir.join(data_key_file::NAME);
    let damaged = |reason: String| KeystoreError::Damaged { path: path.clone(), reason };
    let file: FileJson = FORMAT.read(text).map_err(|error| match error {
        JsonFormatError::Unreleased => KeystoreError::Unreleased(path.clone()),
        error => damaged(error.to_string()),
    })?;
    let bytes = match (&file.data_key, passphrase) {
        (StoredKey::Plain(_), Some(_)) => return Err(KeystoreError::NotSealed(dir.to_owned())),
        (StoredKey::Wrapped { .. }, None) => {
            return Err(KeystoreError::PassphraseMissing(dir.to_owned()));
        }
        (StoredKey::Plain(key), None) => {
            Zeroizing::new(hex::decode(key).map_err(|_| damaged(NOT_HEX.to_owned()))?)
        }
        (StoredKey::Wrapped { memory_kib, iterations, parallelism, salt, sealed }, Some(given)) => {
            let stretching = checked_stretching([*memory_kib, *iterations, *parallelism], salt)
                .map_err(|reason| damaged(reason.to_owned()))?;
            let wrapping_key = given.opening_key(stretching);
            let sealed = hex::decode(sealed).map_err(|_| damaged(NOT_HEX.to_owned()))?;
            open(&wrapping_key.key, data_key_file::NAME.as_bytes(), &sealed)
                .ok_or_else(|| KeystoreError::WrongPassphrase(path.clone()))?
        }
    };
    let key: &[u8; KEY_LEN] = bytes
        .as_slice()
        .try_into()
        .map_err(|_| damaged("its data key has a wrong length".to_owned()))?;
    Ok(Zeroizing::new(*key))
}
