//! Where a keystore reads and writes its files.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use zeroize::Zeroizing;

use super::data_key_file;
use super::error::KeystoreError;
use crate::files::{self, FileError};
use crate::lock::DirLock;

/// A file of a keystore.
#[derive(Clone)]
pub struct KeystoreFile {
    /// The name of the file.
    pub name: String,
    /// The contents of the file.
    pub contents: Zeroizing<Vec<u8>>,
}

/// The files of a keystore that another process handed over. That process has to write what the
/// keystore would write. Until that process has done so, operations fail with
/// [`KeystoreError::Unwritten`].
pub struct HandedFiles {
    dir: PathBuf,
    files: BTreeMap<String, Zeroizing<Vec<u8>>>,
    unwritten: Mutex<BTreeMap<String, Zeroizing<Vec<u8>>>>,
}

impl HandedFiles {
    /// Takes files of the directory `dir`, which is used only in messages. Fails if a keystore
    /// cannot have a file with one of these names.
    pub fn new(
        dir: PathBuf,
        files: impl IntoIterator<Item = KeystoreFile>,
    ) -> Result<Self, KeystoreError> {
        let mut known = BTreeMap::new();
        for KeystoreFile { name, contents } in files {
            if !is_file_name(&name) {
                return Err(KeystoreError::BadName(name));
            }
            known.insert(name, contents);
        }
        Ok(Self { dir, files: known, unwritten: Mutex::default() })
    }

    /// The directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Whether the files include a data key, and so are a keystore.
    pub fn has_keystore(&self) -> bool {
        self.files.contains_key(data_key_file::NAME)
    }

    /// The files that the other process has to write first.
    pub fn unwritten(&self) -> Vec<KeystoreFile> {
        let files = self.lock().clone().into_iter();
        files.map(|(name, contents)| KeystoreFile { name, contents }).collect()
    }

    fn write(&self, name: &str, contents: &[u8]) -> Result<(), KeystoreError> {
        self.lock().insert(name.to_owned(), Zeroizing::new(contents.to_vec()));
        Err(KeystoreError::Unwritten(self.dir.join(name)))
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Zeroizing<Vec<u8>>>> {
        self.unwritten.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for HandedFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HandedFiles").field("dir", &self.dir).finish_non_exhaustive()
    }
}

/// Whether a secret may have this name.
pub(super) fn is_name(name: &str) -> bool {
    let is_allowed = |c: u8| c.is_ascii_alphanumeric() || b"._-".contains(&c);
    !name.is_empty() && !name.starts_with('.') && name.bytes().all(is_allowed)
}

/// Whether a keystore can have a file with this name.
pub(super) fn is_file_name(name: &str) -> bool {
    name == data_key_file::NAME || name.strip_suffix(".key").is_some_and(is_name)
}

/// Where a keystore reads and writes its files.
pub(super) enum Folder {
    /// A directory that this process has locked.
    Disk { dir: PathBuf, _lock: DirLock },
    /// Files that another process handed over.
    Handed(Arc<HandedFiles>),
}

impl Folder {
    pub(super) fn dir(&self) -> &Path {
        match self {
            Self::Disk { dir, .. } => dir,
            Self::Handed(files) => files.dir(),
        }
    }

    /// The contents of a file, or `None` if it is missing.
    pub(super) fn read(&self, name: &str) -> Result<Option<Zeroizing<Vec<u8>>>, FileError> {
        match self {
            Self::Disk { dir, .. } => read_in(dir, name),
            Self::Handed(files) => Ok(files.files.get(name).cloned()),
        }
    }

    /// The names of all files, in order.
    pub(super) fn names(&self) -> Result<Vec<String>, FileError> {
        match self {
            Self::Disk { dir, .. } => names_in(dir),
            Self::Handed(files) => Ok(files.files.keys().cloned().collect()),
        }
    }

    /// Writes a file, completely or not at all. The file is durable when this returns.
    pub(super) fn write(&self, name: &str, contents: &[u8]) -> Result<(), KeystoreError> {
        match self {
            Self::Disk { dir, .. } => Ok(files::write_atomically(dir, name, contents)?),
            Self::Handed(files) => files.write(name, contents),
        }
    }

    /// Makes the names in the directory durable. An interrupted write may have left one that is
    /// not.
    pub(super) fn sync(&self) -> Result<(), FileError> {
        match self {
            Self::Disk { dir, .. } => files::sync_dir(dir),
            Self::Handed(_) => Ok(()),
        }
    }

    /// Deletes a file, if it exists.
    pub(super) fn remove(&self, name: &str) -> Result<(), KeystoreError> {
        let path = self.dir().join(name);
        match self {
            Self::Disk { dir, .. } => match fs::remove_file(&path) {
                Ok(()) => Ok(files::sync_dir(dir)?),
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
                Err(error) => Err(FileError::new("delete", &path)(error).into()),
            },
            Self::Handed(_) => Err(KeystoreError::Unwritten(path)),
        }
    }
}

/// The contents of a file in `dir`, or `None` if it is missing.
pub(super) fn read_in(dir: &Path, name: &str) -> Result<Option<Zeroizing<Vec<u8>>>, FileError> {
    let path = dir.join(name);
    match fs::read(&path) {
        Ok(contents) => Ok(Some(Zeroizing::new(contents))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(FileError::new("read", &path)(error)),
    }
}

/// The names of the keystore's files in `dir`, in order.
pub(super) fn names_in(dir: &Path) -> Result<Vec<String>, FileError> {
    let mut names = Vec::new();
    for entry in fs::read_dir(dir).map_err(FileError::new("list", dir))? {
        let name = entry.map_err(FileError::new("list", dir))?.file_name();
        // Names that begin with a dot are left over from interrupted writes.
        let name = name.to_str().filter(|name| !name.starts_with('.'));
        let is_file = |name: &&str| *name == data_key_file::NAME || name.ends_with(".key");
        names.extend(name.filter(is_file).map(str::to_owned));
    }
    names.sort();
    Ok(names)
}
