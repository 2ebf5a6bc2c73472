mod data_key;
mod data_key_file;
mod error;
mod passphrase;
mod wrapping_key;

use std::fmt;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use secrecy::SecretString;
use zeroize::Zeroizing;

pub use self::error::KeystoreError;
pub use self::passphrase::StretchedPassphrase;

use self::data_key::DataKey;
use crate::files::{self, FileError};
use crate::lock::DirLock;
use crate::seal::{self, KEY_LEN};

/// A directory of sealed secrets, one file each, held by one process at a time.
///
/// `keystore.json` holds a random data key, wrapped by a passphrase (Argon2id, then
/// XChaCha20-Poly1305) or, without one, in clear. Each secret lies in `<name>.key`, sealed with
/// XChaCha20-Poly1305 under the data key, its name as associated data. Files are readable by their
/// owner only, and are written whole, synced and renamed, before this type says that they are there.
pub struct Keystore {
    dir: PathBuf,
    data_key: Zeroizing<[u8; KEY_LEN]>,
    wrapping: Mutex<Wrapping>,
    /// Held while a file is made, so that two secrets of one name cannot both find it free.
    inserting: Mutex<()>,
    _lock: DirLock,
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
        if passphrase.is_none() && plain_keys == PlainKeys::Refused {
            return Err(KeystoreError::PlainRefused(dir.to_owned()));
        }
        let DataKey { key, file_hash } = match data_key::read(dir, passphrase)? {
            Some(data_key) => data_key,
            None if !secret_names(dir)?.is_empty() => {
                return Err(KeystoreError::DataKeyMissing(dir.join(data_key_file::NAME)));
            }
            None => {
                let key = data_key::generate()?;
                let file_hash = data_key::write(dir, &key, passphrase)?;
                DataKey { key, file_hash }
            }
        };
        Ok(Self {
            dir: dir.to_owned(),
            data_key: key,
            wrapping: Mutex::new(Wrapping { is_plain: passphrase.is_none(), file_hash }),
            inserting: Mutex::default(),
            _lock: lock,
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
        match data_key::write(&self.dir, &self.data_key, Some(&new)) {
            Ok(file_hash) => {
                *wrapping = Wrapping { is_plain: false, file_hash };
                Ok(())
            }
            Err(KeystoreError::File(error)) => {
                let on_disk = data_key_file::hash_on_disk(&self.dir)?;
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
        if data_key_file::hash_on_disk(&self.dir)? != Some(file_hash) {
            let path = self.dir.join(data_key_file::NAME);
            check.faults.push(KeystoreError::DataKeyChanged(path));
        }
        for name in secret_names(&self.dir)? {
            match self.get(&name) {
                Ok(_) => check.readable.push(name),
                Err(fault) => check.faults.push(fault),
            }
        }
        Ok(check)
    }

    /// Whether a file of this name can be one of a keystore.
    pub fn is_file_name(name: &str) -> bool {
        name == data_key_file::NAME || name.strip_suffix(".key").is_some_and(is_name)
    }

    /// The files that the keystore consists of: those of the secrets that are there now, and that of the
    /// data key. They are as safe as they are on the disk.
    pub fn files(&self) -> Result<Vec<KeystoreFile>, KeystoreError> {
        Self::files_in(&self.dir)
    }

    /// The [`files`](Self::files) of the keystore in `dir`, which need not be open.
    pub fn files_in(dir: &Path) -> Result<Vec<KeystoreFile>, KeystoreError> {
        let names = secret_names(dir)?.into_iter().map(|name| file_name(&name));
        let names = names.chain([data_key_file::NAME.to_owned()]);
        let read = |name: String| {
            let path = dir.join(&name);
            let contents = fs::read(&path).map_err(FileError::new("read", &path))?;
            Ok(KeystoreFile { name, contents: Zeroizing::new(contents) })
        };
        names.map(read).collect()
    }

    /// The directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Stores a secret under a name that is not taken. Once this returns, it is on the disk.
    pub fn insert(&self, name: &str, secret: &[u8]) -> Result<(), KeystoreError> {
        let path = self.path_of(name)?;
        let _inserting = self.inserting.lock().unwrap_or_else(PoisonError::into_inner);
        if path.try_exists().map_err(FileError::new("look for", &path))? {
            // An insertion cut short may have left a name that is not durable, and callers go on
            // with the secret that is there.
            files::sync_dir(&self.dir)?;
            return Err(KeystoreError::Exists(path));
        }
        let mut contents = KEY_FILE_MAGIC.to_vec();
        contents.extend(seal::seal(&self.data_key, name.as_bytes(), secret)?);
        Ok(files::write_atomically(&self.dir, &file_name(name), &contents)?)
    }

    /// Deletes the secret of that name, if there is one. Once this returns, the disk says so.
    pub fn remove(&self, name: &str) -> Result<(), KeystoreError> {
        let path = self.path_of(name)?;
        let _inserting = self.inserting.lock().unwrap_or_else(PoisonError::into_inner);
        match fs::remove_file(&path) {
            Ok(()) => Ok(files::sync_dir(&self.dir)?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(FileError::new("delete", &path)(error).into()),
        }
    }

    /// Reads the secret of that name.
    pub fn get(&self, name: &str) -> Result<Zeroizing<Vec<u8>>, KeystoreError> {
        let path = self.path_of(name)?;
        let contents = match fs::read(&path) {
            Ok(contents) => contents,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(KeystoreError::Missing(path));
            }
            Err(error) => return Err(FileError::new("read", &path)(error).into()),
        };
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
        Ok(self.dir.join(file_name(name)))
    }
}

impl fmt::Debug for Keystore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keystore").field("dir", &self.dir).finish_non_exhaustive()
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

/// The names of the secrets in a directory, in order.
fn secret_names(dir: &Path) -> Result<Vec<String>, FileError> {
    let mut names = Vec::new();
    for entry in fs::read_dir(dir).map_err(FileError::new("list", dir))? {
        let name = entry.map_err(FileError::new("list", dir))?.file_name();
        // Beginning with a dot, they are what a write cut short has left.
        let name = name.to_str().and_then(|name| name.strip_suffix(".key"));
        names.extend(name.filter(|name| !name.starts_with('.')).map(str::to_owned));
    }
    names.sort();
    Ok(names)
}

#[cfg(test)]
mod tests;
