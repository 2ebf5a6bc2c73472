use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::error::Error;

/// The data of each alias, in a directory for each.
pub(super) const CLIENT: &str = ".minerid-client";
/// The keys.
pub(super) const KEYSTORE: &str = ".keystore";
/// The revocation keys of aliases of generation 1.0.
pub(super) const REVOCATION_KEYSTORE: &str = ".revocationkeystore";

/// The longest accepted file, in bytes: far longer than any file in a home directory.
const MAX_FILE_LEN: u64 = 1 << 20;
/// The limit on all files together, in bytes: far above their usual length.
const MAX_LEN: u64 = 8 << 20;

/// The contents of an older generator's home directory. The contents can be passed to another
/// process that cannot read the directory itself.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HomeFiles {
    /// The home directory, which appears in messages.
    home: PathBuf,
    /// The names of the directories of aliases.
    aliases: BTreeSet<String>,
    /// The files, by their paths in the home directory.
    files: BTreeMap<PathBuf, FileContents>,
}

/// The contents of a file, or why it cannot be read.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum FileContents {
    Text(Zeroizing<String>),
    Fault(String),
}

impl HomeFiles {
    /// Reads a home directory. An unreadable file becomes an error only when it is needed.
    pub fn read(home: &Path) -> Result<Self, Error> {
        let mut files =
            Self { home: home.to_owned(), aliases: BTreeSet::new(), files: BTreeMap::new() };
        let client = home.join(CLIENT);
        let mut len = 0;
        for entry in fs::read_dir(&client).map_err(|error| fault(&client, error))? {
            let path = entry.map_err(|error| fault(&client, error))?.path();
            if path.is_dir() {
                let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                len += files.add(&Path::new(CLIENT).join(&name))?;
                files.aliases.insert(name);
            }
        }
        for dir in [KEYSTORE, REVOCATION_KEYSTORE] {
            if home.join(dir).is_dir() {
                len += files.add(Path::new(dir))?;
            }
        }
        match len > MAX_LEN {
            true => Err(fault(home, "its files are larger than 8 MiB")),
            false => Ok(files),
        }
    }

    /// Whether the directory has revocation keys.
    pub fn has_revocation_keys(&self) -> bool {
        self.files.keys().any(|path| path.starts_with(REVOCATION_KEYSTORE))
    }

    /// Adds the files of a directory. Answers their length.
    fn add(&mut self, dir: &Path) -> Result<u64, Error> {
        let path = self.home.join(dir);
        let mut sum = 0;
        for entry in fs::read_dir(&path).map_err(|error| fault(&path, error))? {
            let path = entry.map_err(|error| fault(&path, error))?.path();
            let name = path.file_name().and_then(|name| name.to_str());
            // Other entries are never needed.
            let (Some(name), Ok(metadata)) = (name, fs::metadata(&path)) else { continue };
            if !metadata.is_file() {
                continue;
            }
            let contents = match metadata.len() {
                ..=MAX_FILE_LEN => match fs::read_to_string(&path) {
                    Ok(text) => FileContents::Text(Zeroizing::new(text)),
                    Err(error) => FileContents::Fault(error.to_string()),
                },
                _ => FileContents::Fault("it is larger than 1 MiB".to_owned()),
            };
            if let FileContents::Text(text) = &contents {
                sum += text.len() as u64;
            }
            self.files.insert(dir.join(name), contents);
        }
        Ok(sum)
    }

    /// The directories of aliases, in order.
    pub(super) fn alias_dirs(&self) -> impl Iterator<Item = PathBuf> {
        let client = self.home.join(CLIENT);
        self.aliases.iter().map(move |name| client.join(name))
    }

    pub(super) fn home(&self) -> &Path {
        &self.home
    }

    /// Whether a file exists.
    pub(super) fn has(&self, path: &Path) -> bool {
        self.get(path).is_some()
    }

    /// The contents of a file, or `None` if it does not exist.
    pub(super) fn text(&self, path: &Path) -> Result<Option<Zeroizing<String>>, Error> {
        match self.get(path) {
            None => Ok(None),
            Some(FileContents::Text(text)) => Ok(Some(text.clone())),
            Some(FileContents::Fault(reason)) => Err(fault(path, reason)),
        }
    }

    fn get(&self, path: &Path) -> Option<&FileContents> {
        self.files.get(path.strip_prefix(&self.home).ok()?)
    }
}

impl fmt::Debug for HomeFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HomeFiles").field("home", &self.home).finish_non_exhaustive()
    }
}

pub(super) fn fault(path: &Path, reason: impl ToString) -> Error {
    Error::Import { path: PathBuf::from(path), reason: reason.to_string() }
}
