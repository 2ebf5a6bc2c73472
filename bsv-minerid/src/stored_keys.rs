//! Keys in the keystore.

use bsv_store::{Keystore, KeystoreError};
use bsv_tx::{ExtendedPrivateKey, KeyError, Network, PrivateKey, PublicKey};

use crate::error::Error;

/// Opens the key with this name, whose public half is recorded.
pub(crate) fn open_key(
    keystore: &Keystore,
    name: String,
    on_record: &PublicKey,
) -> Result<PrivateKey, Error> {
    let key = read_key(keystore, &name, str::parse::<ExtendedPrivateKey>)?.private_key().clone();
    if key.public_key() != *on_record {
        return Err(Error::OtherKey(name));
    }
    Ok(key)
}

/// Makes a key and reads it back from the disk. Uses an existing key with this name, which an
/// interrupted attempt has made.
pub(crate) fn make_key(
    keystore: &Keystore,
    name: &str,
    network: Network,
) -> Result<PrivateKey, Error> {
    let made = ExtendedPrivateKey::generate(network)?;
    match keystore.insert(name, made.as_text().as_bytes()) {
        Ok(()) | Err(KeystoreError::Exists(_)) => {}
        Err(error) => return Err(error.into()),
    }
    Ok(read_key(keystore, name, str::parse::<ExtendedPrivateKey>)?.private_key().clone())
}

/// Reads the secret with this name and parses it as a key.
pub(crate) fn read_key<K>(
    keystore: &Keystore,
    name: &str,
    parse: impl FnOnce(&str) -> Result<K, KeyError>,
) -> Result<K, Error> {
    let secret = keystore.get(name)?;
    let text = std::str::from_utf8(&secret).unwrap_or_default();
    parse(text).map_err(|source| Error::BadKey { name: name.to_owned(), source })
}
