//! The key that a passphrase is stretched to, and the parameters of the stretching.

use argon2::Params;
use secrecy::SecretString;
use zeroize::Zeroizing;

use crate::seal::{KEY_LEN, params, random, stretch};

/// How a passphrase is stretched.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Stretching {
    pub(super) params: Params,
    pub(super) salt: Vec<u8>,
}

/// The key that a passphrase is stretched to.
#[derive(Clone)]
pub(super) struct WrappingKey {
    pub(super) stretching: Stretching,
    pub(super) key: Zeroizing<[u8; KEY_LEN]>,
}

impl Stretching {
    pub(super) fn stretch(self, passphrase: &SecretString) -> WrappingKey {
        let key = stretch(passphrase, &self.salt, &self.params);
        WrappingKey { stretching: self, key }
    }
}

impl WrappingKey {
    /// Makes a key with a new salt. The key is computed twice: if the passphrase did not yield the
    /// same key again, everything sealed under it would be lost.
    pub(super) fn fresh(passphrase: &SecretString) -> Result<Self, getrandom::Error> {
        let stretching = Stretching { params: params(), salt: random::<16>()?.to_vec() };
        let key = stretching.clone().stretch(passphrase);
        let again = stretching.stretch(passphrase);
        assert!(*again.key == *key.key, "the same passphrase and salt yield the same key");
        Ok(key)
    }
}
