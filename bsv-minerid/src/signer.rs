//! Signing with keys in any place.

use std::fmt;

use bsv_tx::{PrivateKey, PublicKey, Signature};
use thiserror::Error;

/// Signs with the private half of a public key, which may be anywhere. Keys of the keystore
/// implement this and never fail.
pub trait Signer: fmt::Debug + Send + Sync {
    /// The public key that verifies the signatures.
    fn public_key(&self) -> PublicKey;

    /// Signs a digest of 32 bytes. The caller waits for the answer. Nodes before 1.2.0 ignore an
    /// identity with a signature of fewer than [`MIN_SIGNATURE_LEN`](bsv_tx::MIN_SIGNATURE_LEN)
    /// bytes.
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
