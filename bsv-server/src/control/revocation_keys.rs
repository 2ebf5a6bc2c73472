use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use bsv_minerid::Keystore;
use bsv_store::{KeystoreError, PlainKeys, StretchedPassphrase};
use hyper::StatusCode;
use secrecy::SecretString;
use tokio::task::spawn_blocking;

use super::handed::HandedFiles;
use crate::config::KeystoreConfig;
use crate::http::Problem;

/// Where revocation keys are stored and how they are protected. A command that needs the keystore
/// opens it, and closes it afterwards.
#[derive(Debug)]
pub(crate) struct RevocationKeys {
    /// The directory, unless a command names another one.
    dir: PathBuf,
    /// The passphrase of all keys.
    passphrase: RwLock<Option<SecretString>>,
    plain_keys: PlainKeys,
    program: String,
}

impl RevocationKeys {
    pub(crate) fn new(keystore: &KeystoreConfig, program: &str) -> Self {
        Self {
            dir: keystore.revocation_dir(),
            passphrase: RwLock::new(keystore.passphrase.clone()),
            plain_keys: keystore.plain_keys,
            program: program.to_owned(),
        }
    }

    /// The directory, unless a command names another one.
    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Opens the keystore, and creates it if it is missing, on a thread that may wait: stretching
    /// the passphrase takes a while.
    pub(super) async fn open(
        self: &Arc<Self>,
        handed: Option<&HandedFiles>,
    ) -> Result<Keystore, Problem> {
        let (keys, handed) = (Arc::clone(self), handed.cloned());
        let opened = spawn_blocking(move || keys.open_in(&keys.source(handed.as_ref())));
        let opened = opened.await.expect("the task neither panics nor is cancelled");
        opened.map_err(|error| refuse(&error))
    }

    /// Opens the keystore, which must exist, as [`open`](Self::open) does.
    pub(super) async fn open_existing(
        self: &Arc<Self>,
        handed: Option<&HandedFiles>,
    ) -> Result<Keystore, Problem> {
        self.source(handed).check_there()?;
        self.open(handed).await
    }

    fn source<'a>(&'a self, handed: Option<&'a HandedFiles>) -> KeystoreSource<'a> {
        handed.map_or(KeystoreSource::Here(&self.dir), KeystoreSource::Handed)
    }

    /// The keystores of revocation keys: the one in the default directory, if it exists, and the
    /// one that is handed over, which must be a keystore.
    pub(super) fn sources<'a>(
        &'a self,
        handed: Option<&'a HandedFiles>,
    ) -> Result<Vec<KeystoreSource<'a>>, Problem> {
        let handed = handed.map(KeystoreSource::Handed);
        if let Some(handed) = &handed {
            handed.check_there()?;
        }
        let default = Some(KeystoreSource::Here(&self.dir)).filter(KeystoreSource::is_there);
        Ok(default.into_iter().chain(handed).collect())
    }

    /// Seals the keystore that is handed over with another passphrase.
    pub(super) fn change_passphrase_of(
        &self,
        handed: &HandedFiles,
        new: &SecretString,
    ) -> Result<(), Problem> {
        let source = KeystoreSource::Handed(handed);
        source.check_there()?;
        self.seal(&source, new)
    }

    /// Seals the keystore in the default directory, if it exists, with another passphrase.
    pub(super) fn change_passphrase(&self, new: &SecretString) -> Result<(), Problem> {
        let source = KeystoreSource::Here(&self.dir);
        if source.is_there() { self.seal(&source, new) } else { Ok(()) }
    }

    /// Changes a keystore's passphrase. A keystore that already has the new passphrase was changed
    /// by an interrupted attempt.
    fn seal(&self, source: &KeystoreSource<'_>, new: &SecretString) -> Result<(), Problem> {
        let changed = match self.open_in(source) {
            Ok(keystore) => keystore.change_passphrase(new),
            Err(
                error @ (KeystoreError::WrongPassphrase(_) | KeystoreError::PassphraseMissing(_)),
            ) => self.open_with(source, Some(new)).map(drop).map_err(|_| error),
            Err(error) => Err(error),
        };
        changed.map_err(|error| refuse(&error))
    }

    /// Notes the new passphrase of all keystores.
    pub(super) fn set_passphrase(&self, passphrase: SecretString) {
        *self.passphrase.write().unwrap_or_else(PoisonError::into_inner) = Some(passphrase);
    }

    /// Opens a keystore, and creates it if it is missing. This takes a while.
    pub(super) fn open_in(&self, source: &KeystoreSource<'_>) -> Result<Keystore, KeystoreError> {
        let passphrase = self.passphrase.read().unwrap_or_else(PoisonError::into_inner).clone();
        self.open_with(source, passphrase.as_ref())
    }

    fn open_with(
        &self,
        source: &KeystoreSource<'_>,
        passphrase: Option<&SecretString>,
    ) -> Result<Keystore, KeystoreError> {
        let stretch = |passphrase| match source {
            KeystoreSource::Here(dir) => StretchedPassphrase::for_keystore(dir, passphrase),
            KeystoreSource::Handed(files) => StretchedPassphrase::for_handed(files, passphrase),
        };
        let passphrase = passphrase.map(stretch).transpose()?;
        match source {
            KeystoreSource::Here(dir) => {
                Keystore::open(dir, passphrase.as_ref(), self.plain_keys, &self.program)
            }
            KeystoreSource::Handed(files) => {
                Keystore::open_handed(files, passphrase.as_ref(), self.plain_keys)
            }
        }
    }
}

/// Where a keystore of revocation keys is.
#[derive(Clone, Copy, Debug)]
pub(super) enum KeystoreSource<'a> {
    /// In a directory.
    Here(&'a Path),
    /// With the command line, which hands its files over.
    Handed(&'a HandedFiles),
}

impl KeystoreSource<'_> {
    /// The directory.
    pub(super) fn dir(&self) -> &Path {
        match self {
            Self::Here(dir) => dir,
            Self::Handed(files) => files.dir(),
        }
    }

    fn is_there(&self) -> bool {
        match self {
            Self::Here(dir) => Keystore::is_in(dir),
            Self::Handed(files) => files.has_keystore(),
        }
    }

    fn check_there(&self) -> Result<(), Problem> {
        if self.is_there() {
            return Ok(());
        }
        let detail = format!(
            "there is no keystore of revocation keys in {}: connect the disk that holds it, or name \
             its directory with --revocation-keystore",
            self.dir().display()
        );
        Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "no-revocation-keystore", detail))
    }
}

fn refuse(error: &KeystoreError) -> Problem {
    let detail = format!("the keystore of revocation keys: {error}");
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "revocation-keystore-failed", detail)
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn connections_go_on_while_a_passphrase_is_stretched() {
        let dir = tempfile::tempdir().unwrap();
        let keys = Arc::new(RevocationKeys {
            dir: dir.path().join("revocation"),
            passphrase: RwLock::new(Some("a passphrase".into())),
            plain_keys: PlainKeys::Refused,
            program: "test".to_owned(),
        });
        for _ in ["make", "open"] {
            let mut opening = Box::pin(keys.open(None));
            // The only thread of this runtime is free again before the keystore is open.
            assert!(opening.as_mut().now_or_never().is_none());
            opening.await.unwrap();
        }
    }
}
