use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock};

use bsv_minerid::Keystore;
use bsv_store::{KeystoreError, PlainKeys, StretchedPassphrase};
use hyper::StatusCode;
use secrecy::SecretString;

use crate::config::KeystoreConfig;
use crate::http::Problem;

/// Where revocation keys lie and how they are protected. They are looked for when a command needs
/// them, and are let go of after it.
#[derive(Debug)]
pub(crate) struct RevocationKeys {
    /// Where they lie unless a command names another directory.
    dir: PathBuf,
    /// That of all keys.
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

    /// Where they lie unless a command names another directory.
    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Opens the keystore, which is made where it is not there.
    pub(super) fn open(&self, dir: Option<&Path>) -> Result<Keystore, Problem> {
        self.open_in(dir.unwrap_or(&self.dir)).map_err(|error| refuse(&error))
    }

    /// Opens the keystore, which must be there.
    pub(super) fn open_existing(&self, dir: Option<&Path>) -> Result<Keystore, Problem> {
        let dir = dir.unwrap_or(&self.dir);
        check_there(dir)?;
        self.open(Some(dir))
    }

    /// Where keystores of them are: that which commands find without naming it, if it is there, and `dir`,
    /// which must hold one.
    pub(super) fn dirs<'a>(&'a self, dir: Option<&'a Path>) -> Result<Vec<&'a Path>, Problem> {
        if let Some(dir) = dir {
            check_there(dir)?;
        }
        let default = Some(self.dir.as_path());
        let default = default.filter(|default| Keystore::is_in(default) && dir != Some(default));
        Ok(default.into_iter().chain(dir).collect())
    }

    /// Seals the keystore that commands find without naming it, and the one in `dir`, with another
    /// passphrase. One that has it already was reached by an attempt that went no further.
    pub(super) fn change_passphrase(
        &self,
        dir: Option<&Path>,
        new: &SecretString,
    ) -> Result<(), Problem> {
        for dir in self.dirs(dir)? {
            let changed = match self.open_in(dir) {
                Ok(keystore) => keystore.change_passphrase(new),
                Err(
                    error @ (KeystoreError::WrongPassphrase(_)
                    | KeystoreError::PassphraseMissing(_)),
                ) => self.open_with(dir, Some(new)).map(drop).map_err(|_| error),
                Err(error) => Err(error),
            };
            changed.map_err(|error| refuse(&error))?;
        }
        Ok(())
    }

    /// Notes the passphrase that all keystores have from now on.
    pub(super) fn set_passphrase(&self, passphrase: SecretString) {
        *self.passphrase.write().unwrap_or_else(PoisonError::into_inner) = Some(passphrase);
    }

    /// Opens the keystore in a directory, which is made where it is not there.
    pub(super) fn open_in(&self, dir: &Path) -> Result<Keystore, KeystoreError> {
        let passphrase = self.passphrase.read().unwrap_or_else(PoisonError::into_inner).clone();
        self.open_with(dir, passphrase.as_ref())
    }

    fn open_with(
        &self,
        dir: &Path,
        passphrase: Option<&SecretString>,
    ) -> Result<Keystore, KeystoreError> {
        let stretch = |passphrase| StretchedPassphrase::for_keystore(dir, passphrase);
        let passphrase = passphrase.map(stretch).transpose()?;
        Keystore::open(dir, passphrase.as_ref(), self.plain_keys, &self.program)
    }
}

fn check_there(dir: &Path) -> Result<(), Problem> {
    if Keystore::is_in(dir) {
        return Ok(());
    }
    let detail = format!(
        "there is no keystore of revocation keys in {}: connect the disk that holds it, or name its \
         directory with --revocation-keystore",
        dir.display()
    );
    Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "no-revocation-keystore", detail))
}

fn refuse(error: &KeystoreError) -> Problem {
    let detail = format!("the keystore of revocation keys: {error}");
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "revocation-keystore-failed", detail)
}
