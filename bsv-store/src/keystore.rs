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
pub use self::folder::HandedFiles;
pub use self::passphrase::StretchedPassphrase;

use self::data_key::DataKey;
use self::folder::{Folder, is_file_name, names_in, read_in};
use crate::files::FileError;
use crate::lock::DirLock;
use crate::seal::{self, KEY_LEN};

/// A directory of sealed secrets, one file each, held by one process at a time.
///
/// `keystore.json` holds a random data key, wrapped by a passphrase (Argon2id, then
/// XChaCha20-Poly1305) or, without one, in clear. Each secret lies in `<name>.key`, sealed with
/// XChaCha20-Poly1305 under the data key, its name as associated data. Files are readable by their
/// owner only, and are written whole, synced and renamed, before this type says that they are there.
pub struct Keystore {
    folder: Folder,
    data_key: Zeroizing<[u8; KEY_LEN]>,
    wrapping: Mutex<Wrapping>,
    /// Held while a file is made, so that two secrets of one name cannot both find it free.
    inserting: Mutex<()>,
}

/// How the data key lies on the disk.
struct Wrapping {
    /// In clear.
    is_plain: bool,
    /// In a file of this hash.
    file_hash: [u8; 32],
}

/// What was found when all secrets were read.
#[derive(Debug)]
pub struct KeystoreCheck {
    /// The names of those that can be read, in order.
    pub readable: Vec<String>,
    /// What is wrong with others, or with the file of the data key; each names its file.
    pub faults: Vec<KeystoreError>,
}

/// A file of a keystore.
#[derive(Clone)]
pub struct KeystoreFile {
    /// Its name.
    pub name: String,
    /// What it holds.
    pub contents: Zeroizing<Vec<u8>>,
}

/// Whether a keystore may keep its data key in clear when there is no passphrase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlainKeys {
    /// It may: the keys are as safe as the disk.
    Allowed,
    /// It may not: a passphrase is demanded.
    Refused,
}

/// Starts every key file, and names the version of its form.
const KEY_FILE_MAGIC: &[u8; 8] = b"bsvkey\x00\x01";

impl Keystore {
    /// Whether there is a keystore in `dir`.
    pub fn is_in(dir: &Path) -> bool {
        data_key_file::is_in(dir)
    }

    /// Whether the keystore in `dir` has a secret of that name, without reading it.
    pub fn has(dir: &Path, name: &str) -> bool {
        is_name(name) && dir.join(format!("{name}.key")).is_file()
    }

    /// Opens the keystore in `dir`, which is made if it does not exist: sealed if there is a
    /// passphrase, in clear otherwise. `program` is what others are told who find it locked.
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

    /// Opens the keystore whose files are handed over by the process that has them. What it would write is then in
    /// [`HandedFiles::unwritten`], and whatever needs that fails.
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

    /// Whether the data key lies on the disk in clear.
    pub fn is_plain(&self) -> bool {
        self.wrapping().is_plain
    }

    /// Seals the data key with another passphrase, or with the first one. Only `keystore.json` is
    /// replaced, in one step: whenever that is cut short, either passphrase opens the keystore.
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

    /// Reads all secrets, and looks whether `keystore.json` is as it was.
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

    /// Whether a file of this name can be one of a keystore.
    pub fn is_file_name(name: &str) -> bool {
        is_file_name(name)
    }

    /// The files that the keystore consists of: those of the secrets that are there now, and that of the
    /// data key. They are as safe as they are on the disk.
    pub fn files(&self) -> Result<Vec<KeystoreFile>, KeystoreError> {
        Self::files_in(self.dir())
    }

    /// The [`files`](Self::files) of the keystore in `dir`, which need not be open.
    pub fn files_in(dir: &Path) -> Result<Vec<KeystoreFile>, KeystoreError> {
        // That of the data key comes last.
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

    /// Stores a secret under a name that is not taken. Once this returns, it is on the disk.
    pub fn insert(&self, name: &str, secret: &[u8]) -> Result<(), KeystoreError> {
        let path = self.path_of(name)?;
        let _inserting = self.inserting.lock().unwrap_or_else(PoisonError::into_inner);
        if self.folder.read(&file_name(name))?.is_some() {
            // An insertion cut short may have left a name that is not durable, and callers go on
            // with the secret that is there.
            self.folder.sync()?;
            return Err(KeystoreError::Exists(path));
        }
        let mut contents = KEY_FILE_MAGIC.to_vec();
        contents.extend(seal::seal(&self.data_key, name.as_bytes(), secret)?);
        self.folder.write(&file_name(name), &contents)
    }

    /// Deletes the secret of that name, if there is one. Once this returns, the disk says so.
    pub fn remove(&self, name: &str) -> Result<(), KeystoreError> {
        self.path_of(name)?;
        let _inserting = self.inserting.lock().unwrap_or_else(PoisonError::into_inner);
        self.folder.remove(&file_name(name))
    }

    /// Reads the secret of that name.
    pub fn get(&self, name: &str) -> Result<Zeroizing<Vec<u8>>, KeystoreError> {
        let path = self.path_of(name)?;
        let contents = self.folder.read(&file_name(name))?;
        let contents = contents.ok_or_else(|| KeystoreError::Missing(path.clone()))?;
        let damaged =
            |reason: &str| KeystoreError::Damaged { path: path.clone(), reason: reason.to_owned() };
        let sealed = contents
            .strip_prefix(KEY_FILE_MAGIC)
            .ok_or_else(|| damaged("it does not begin as a key file does"))?;
        seal::open(&self.data_key, name.as_bytes(), sealed)
            .ok_or_else(|| damaged("it does not open with this keystore's data key"))
    }

    /// Seals a secret that is stored elsewhere than in this directory. `context` says what it is for, and has to be the
    /// same when it is opened.
    pub fn seal(&self, context: &str, secret: &[u8]) -> Result<Vec<u8>, KeystoreError> {
        Ok(seal::seal(&self.data_key, &elsewhere(context), secret)?)
    }

    /// Opens what was sealed with this keystore in the same context.
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

/// What a secret is bound to that is stored elsewhere. No name of a secret here has a slash in it.
fn elsewhere(context: &str) -> Vec<u8> {
    format!("elsewhere/{context}").into_bytes()
}

/// Whether a secret can have this name.
fn is_name(name: &str) -> bool {
    let is_allowed = |c: u8| c.is_ascii_alphanumeric() || b"._-".contains(&c);
    !name.is_empty() && !name.starts_with('.') && name.bytes().all(is_allowed)
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
