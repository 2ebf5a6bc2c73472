//! Signing with keys in any place.

use std::fmt;

use bsv_store::{Keystore, KeystoreError};
use bsv_tx::{ExtendedPrivateKey, KeyError, Network, PrivateKey, PublicKey, Signature};
use thiserror::Error;

use crate::error::Error;

/// Signs with the private half of a public key, which may be anywhere. Keys of the keystore
/// implement this and never fail.
pub trait Signer: fmt::Debug + Send + Sync {
    /// The public key that verifies the signatures.
    fn public_key(&self) -> PublicKey;

    /// Signs a digest of 32 bytes. The caller waits for the answer.
    fn sign(&self, digest: &[u8; 32]) -> Result<Signature, SignerError>;
}

/// A key did not sign.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the key {public_key} does not sign: {reason}")]
pub struct SignerError {
    /// The public half of the key.
    pub public_key: PublicKey,
    /// Why not, for example because a device is not connected.
    pub reason: String,
}

impl Signer for PrivateKey {
    fn public_key(&self) -> PublicKey {
        self.public_key()
    }

    fn sign(&self, digest: &[u8; 32]) -> Result<Signature, SignerError> {
        Ok(self.sign(digest))
    }
}

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
