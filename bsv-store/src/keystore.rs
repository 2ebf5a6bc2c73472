mod data_key;
mod data_key_file;
mod error;
mod folder;
mod passphrase;
mod wrapping_key;

use std::fmt;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use secrecy::SecretString;
use zeroize::Zeroizing;

pub use self::error::KeystoreError;
pub use self::folder::{HandedFiles, KeystoreFile};
pub use self::passphrase::StretchedPassphrase;

use self::data_key::DataKey;
use self::folder::{Folder, is_file_name, is_name, names_in, read_in};
use crate::files::FileError;
use crate::lock::DirLock;
use crate::seal::{self, KEY_LEN};

/// A directory of sealed secrets, one file each. One process at a time uses it.
///
/// `keystore.json` holds a random data key. A passphrase wraps it (Argon2id, then
/// XChaCha20-Poly1305); without a passphrase it is in clear. Each secret is in `<name>.key`, sealed
/// with XChaCha20-Poly1305 under the data key, with its name as associated data. Only the owner can
/// read the files. Each write of a file is complete and durable before it is acknowledged.
pub struct Keystore {
    folder: Folder,
    data_key: Zeroizing<[u8; KEY_LEN]>,
    wrapping: Mutex<Wrapping>,
    /// Held during an insertion, so that two secrets with the same name cannot both find it free.
    inserting: Mutex<()>,
}

/// How the data key is stored.
struct Wrapping {
    /// Whether it is in clear.
    is_plain: bool,
    /// The hash of the file that holds it.
    file_hash: [u8; 32],
}

/// The result of reading all secrets.
#[derive(Debug)]
pub struct KeystoreCheck {
    /// The names of the readable secrets, in order.
    pub readable: Vec<String>,
    /// The faults of other secrets, and of the data key's file. Each names its file.
    pub faults: Vec<KeystoreError>,
}

/// Whether a keystore without a passphrase may keep its data key in clear.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlainKeys {
    /// Allowed: the keys are as safe as the disk.
    Allowed,
    /// Refused: a passphrase is required.
    Refused,
}

/// The first bytes of every key file, with the version of the format.
const KEY_FILE_MAGIC: &[u8; 8] = b"bsv-key\x01";
/// The first bytes of key files of builds before the first release.
const UNRELEASED_MAGIC: &[u8; 6] = b"bsvkey";

impl Keystore {
    /// Whether there is a keystore in `dir`.
    pub fn is_in(dir: &Path) -> bool {
        data_key_file::is_in(dir)
    }

    /// Whether the keystore in `dir` has a secret of that name, without reading it.
    pub fn has(dir: &Path, name: &str) -> bool {
        is_name(name) && dir.join(format!("{name}.key")).is_file()
    }

    /// Opens the keystore in `dir`. Creates it if it is missing: sealed if there is a passphrase,
    /// otherwise in clear. `program` is the name that other processes are told while the directory
    /// is locked.
    pub fn open(
        dir: &Path,
        passphrase: Option<&StretchedPassphrase>,
        plain_keys: PlainKeys,
        program: &str,
    ) -> Result<Self, KeystoreError> {
        let lock = DirLock::acquire(dir, program)?;
        fs::set_permissions(dir, fs::Permissions::from_mode(0o700))
            .map_err(FileError::new("restrict", dir))?;
        let folder = Folder::Disk { dir: dir.to_owned(), _lock: lock };
        Self::open_folder(folder, passphrase, plain_keys)
    }

    /// Opens a keystore whose files another process handed over. Operations that need to write
    /// fail; [`HandedFiles::unwritten`] then holds the files that the other process has to write.
    pub fn open_handed(
        files: &Arc<HandedFiles>,
        passphrase: Option<&StretchedPassphrase>,
        plain_keys: PlainKeys,
    ) -> Result<Self, KeystoreError> {
        Self::open_folder(Folder::Handed(Arc::clone(files)), passphrase, plain_keys)
    }

    fn open_folder(
        folder: Folder,
        passphrase: Option<&StretchedPassphrase>,
        plain_keys: PlainKeys,
    ) -> Result<Self, KeystoreError> {
        let dir = folder.dir();
        if passphrase.is_none() && plain_keys == PlainKeys::Refused {
            return Err(KeystoreError::PlainRefused(dir.to_owned()));
        }
        let DataKey { key, file_hash } = match data_key::read(&folder, passphrase)? {
            Some(data_key) => data_key,
            None if !secret_names(&folder)?.is_empty() => {
                return Err(KeystoreError::DataKeyMissing(dir.join(data_key_file::NAME)));
            }
            None => {
                let key = data_key::generate()?;
                let file_hash = data_key::write(&folder, &key, passphrase)?;
                DataKey { key, file_hash }
            }
        };
        Ok(Self {
            folder,
            data_key: key,
            wrapping: Mutex::new(Wrapping { is_plain: passphrase.is_none(), file_hash }),
            inserting: Mutex::default(),
        })
    }

    /// Whether the data key is stored in clear.
    pub fn is_plain(&self) -> bool {
        self.wrapping().is_plain
    }

    /// Seals the data key with a new passphrase. Replaces only `keystore.json`, in one step: if
    /// that is interrupted, one of the two passphrases opens the keystore.
    pub fn change_passphrase(&self, new: &SecretString) -> Result<(), KeystoreError> {
        let new = StretchedPassphrase::fresh(new)?;
        let mut wrapping = self.wrapping();
        match data_key::write(&self.folder, &self.data_key, Some(&new)) {
            Ok(file_hash) => {
                *wrapping = Wrapping { is_plain: false, file_hash };
                Ok(())
            }
            Err(KeystoreError::File(error)) => {
                let on_disk = data_key::hash_on_disk(&self.folder)?;
                match on_disk.filter(|on_disk| *on_disk != wrapping.file_hash) {
                    None => Err(error.into()),
                    Some(file_hash) => {
                        *wrapping = Wrapping { is_plain: false, file_hash };
                        Err(KeystoreError::NotDurable(error))
                    }
                }
            }
            Err(error) => Err(error),
        }
    }

    /// Reads all secrets, and checks that `keystore.json` is unchanged.
    pub fn check(&self) -> Result<KeystoreCheck, KeystoreError> {
        let mut check = KeystoreCheck { readable: Vec::new(), faults: Vec::new() };
        let file_hash = self.wrapping().file_hash;
        if data_key::hash_on_disk(&self.folder)? != Some(file_hash) {
            let path = self.dir().join(data_key_file::NAME);
            check.faults.push(KeystoreError::DataKeyChanged(path));
        }
        for name in secret_names(&self.folder)? {
            match self.get(&name) {
                Ok(_) => check.readable.push(name),
                Err(fault) => check.faults.push(fault),
            }
        }
        Ok(check)
    }

    /// Whether a keystore can have a file with this name.
    pub fn is_file_name(name: &str) -> bool {
        is_file_name(name)
    }

    /// The files of the keystore: the current secrets and the data key. The contents are sealed as
    /// they are on the disk.
    pub fn files(&self) -> Result<Vec<KeystoreFile>, KeystoreError> {
        Self::files_in(self.dir())
    }

    /// The [`files`](Self::files) of the keystore in `dir`. The keystore need not be open.
    pub fn files_in(dir: &Path) -> Result<Vec<KeystoreFile>, KeystoreError> {
        // The data key comes last.
        let mut names = names_in(dir)?;
        names.sort_by_key(|name| name == data_key_file::NAME);
        if names.last().is_none_or(|last| last != data_key_file::NAME) {
            names.push(data_key_file::NAME.to_owned());
        }
        let read = |name: String| {
            let gone = || KeystoreError::Missing(dir.join(&name));
            let contents = read_in(dir, &name)?.ok_or_else(gone)?;
            Ok(KeystoreFile { name, contents })
        };
        names.into_iter().map(read).collect()
    }

    /// The directory.
    pub fn dir(&self) -> &Path {
        self.folder.dir()
    }

    /// Stores a secret under a new name. The secret is durable when this returns.
    pub fn insert(&self, name: &str, secret: &[u8]) -> Result<(), KeystoreError> {
        let path = self.path_of(name)?;
        let _inserting = self.inserting.lock().unwrap_or_else(PoisonError::into_inner);
        if self.folder.read(&file_name(name))?.is_some() {
            // An interrupted insertion may have left a name that is not durable, and callers go on
            // with the existing secret.
            self.folder.sync()?;
            return Err(KeystoreError::Exists(path));
        }
        let mut contents = KEY_FILE_MAGIC.to_vec();
        contents.extend(seal::seal(&self.data_key, name.as_bytes(), secret)?);
        self.folder.write(&file_name(name), &contents)
    }

    /// Deletes the secret with this name, if it exists. The deletion is durable when this returns.
    pub fn remove(&self, name: &str) -> Result<(), KeystoreError> {
        self.path_of(name)?;
        let _inserting = self.inserting.lock().unwrap_or_else(PoisonError::into_inner);
        self.folder.remove(&file_name(name))
    }

    /// Reads the secret with this name.
    pub fn get(&self, name: &str) -> Result<Zeroizing<Vec<u8>>, KeystoreError> {
        let path = self.path_of(name)?;
        let contents = self.folder.read(&file_name(name))?;
        let contents = contents.ok_or_else(|| KeystoreError::Missing(path.clone()))?;
        let damaged =
            |reason: &str| KeystoreError::Damaged { path: path.clone(), reason: reason.to_owned() };
        if contents.starts_with(UNRELEASED_MAGIC) {
            return Err(KeystoreError::Unreleased(path));
        }
        let sealed = contents
            .strip_prefix(KEY_FILE_MAGIC)
            .ok_or_else(|| damaged("its first bytes are not those of a key file"))?;
        seal::open(&self.data_key, name.as_bytes(), sealed)
            .ok_or_else(|| damaged("it does not open with this keystore's data key"))
    }

    /// Seals a secret that is stored outside this directory. `context` says what the secret is for.
    /// [`open_sealed`](Self::open_sealed) needs the same context.
    pub fn seal(&self, context: &str, secret: &[u8]) -> Result<Vec<u8>, KeystoreError> {
        Ok(seal::seal(&self.data_key, &elsewhere(context), secret)?)
    }

    /// Opens a secret that this keystore sealed in the same context.
    pub fn open_sealed(&self, context: &str, sealed: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
        seal::open(&self.data_key, &elsewhere(context), sealed)
    }

    fn wrapping(&self) -> MutexGuard<'_, Wrapping> {
        self.wrapping.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn path_of(&self, name: &str) -> Result<PathBuf, KeystoreError> {
        if !is_name(name) {
            return Err(KeystoreError::BadName(name.to_owned()));
        }
        Ok(self.dir().join(file_name(name)))
    }
}

impl fmt::Debug for Keystore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keystore").field("dir", &self.dir()).finish_non_exhaustive()
    }
}

/// The associated data of a secret that is stored outside the directory. This text contains a
/// slash, so no secret's name equals it.
fn elsewhere(context: &str) -> Vec<u8> {
    format!("elsewhere/{context}").into_bytes()
}

fn file_name(name: &str) -> String {
    format!("{name}.key")
}

/// The names of the secrets, in order.
fn secret_names(folder: &Folder) -> Result<Vec<String>, FileError> {
    let names = folder.names()?.into_iter();
    Ok(names.filter_map(|name| name.strip_suffix(".key").map(str::to_owned)).collect())
}

#[cfg(test)]
mod tests;
