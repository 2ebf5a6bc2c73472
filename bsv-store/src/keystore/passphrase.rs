use std::path::Path;
use std::sync::Arc;

use secrecy::{ExposeSecret, SecretString};

use super::data_key_file;
use super::error::KeystoreError;
use super::folder::{self, Folder, HandedFiles};
use super::wrapping_key::{Stretching, WrappingKey};
use crate::seal::params;

/// A passphrase, stretched for the keystore in a directory. Stretching takes long, and 64 MiB of
/// memory. So it is done once, before the first attempt to lock the keystore.
pub struct StretchedPassphrase {
    pub(super) passphrase: SecretString,
    /// `None` if the keystore has no readable wrapped data key.
    wrapping_key: Option<WrappingKey>,
}

impl StretchedPassphrase {
    /// Stretches a passphrase with the parameters of the keystore in `dir`, or for a new keystore
    /// if there is none. Faults of the keystore are reported when it is opened.
    pub fn for_keystore(dir: &Path, passphrase: &SecretString) -> Result<Self, KeystoreError> {
        if !data_key_file::is_in(dir) {
            return Self::fresh(passphrase);
        }
        let text = folder::read_in(dir, data_key_file::NAME).ok().flatten();
        Ok(Self::for_data_key(text.as_deref().map(Vec::as_slice), passphrase))
    }

    /// Like [`for_keystore`](Self::for_keystore), for a keystore whose files were handed over.
    pub fn for_handed(
        files: &Arc<HandedFiles>,
        passphrase: &SecretString,
    ) -> Result<Self, KeystoreError> {
        match Folder::Handed(Arc::clone(files)).read(data_key_file::NAME)? {
            Some(text) => Ok(Self::for_data_key(Some(&text), passphrase)),
            None => Self::fresh(passphrase),
        }
    }

    fn for_data_key(text: Option<&[u8]>, passphrase: &SecretString) -> Self {
        let stretching = text.and_then(data_key_file::stretching);
        let wrapping_key = stretching.map(|it| it.stretch(passphrase));
        Self { passphrase: passphrase.clone(), wrapping_key }
    }

    /// Stretches a passphrase with a new salt.
    pub(super) fn fresh(passphrase: &SecretString) -> Result<Self, KeystoreError> {
        let wrapping_key = Some(WrappingKey::fresh(passphrase)?);
        Ok(Self { passphrase: passphrase.clone(), wrapping_key })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.passphrase.expose_secret().is_empty()
    }

    /// The key that this passphrase yields with these parameters. The passphrase is stretched again
    /// only if the keystore has changed meanwhile.
    pub(super) fn opening_key(&self, stretching: Stretching) -> WrappingKey {
        let same = self.wrapping_key.as_ref().filter(|key| key.stretching == stretching);
        same.cloned().unwrap_or_else(|| stretching.stretch(&self.passphrase))
    }

    /// A key to seal with, by the current parameters.
    pub(super) fn sealing_key(&self) -> Result<WrappingKey, KeystoreError> {
        match &self.wrapping_key {
            Some(key) if key.stretching.params == params() => Ok(key.clone()),
            _ => Ok(WrappingKey::fresh(&self.passphrase)?),
        }
    }
}
