//! What a passphrase is stretched to, and how.

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

/// What a passphrase is stretched to.
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
    /// A key of a new salt. It is made twice: what is sealed under a key that the passphrase does not make
    /// again is lost.
    pub(super) fn fresh(passphrase: &SecretString) -> Result<Self, getrandom::Error> {
        let stretching = Stretching { params: params(), salt: random::<16>()?.to_vec() };
        let key = stretching.clone().stretch(passphrase);
        let again = stretching.stretch(passphrase);
        assert!(*again.key == *key.key, "a passphrase and a salt make one key");
        Ok(key)
    }
}
