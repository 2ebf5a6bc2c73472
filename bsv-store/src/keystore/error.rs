use std::path::PathBuf;

use thiserror::Error;

use crate::files::FileError;
use crate::lock::LockError;

/// Why a keystore, or a secret in it, could not be read or written. The messages contain no secret.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum KeystoreError {
    /// Another process uses the directory, or the directory cannot be locked.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// A file cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// A passphrase is required, and none is configured.
    #[error("a passphrase is required for keystore {}, and none is configured", .0.display())]
    PlainRefused(PathBuf),
    /// The keystore is sealed, and no passphrase is configured.
    #[error("keystore {} is sealed, and no passphrase is configured", .0.display())]
    PassphraseMissing(PathBuf),
    /// A passphrase is configured for a keystore that was made without one.
    #[error("keystore {} was made without a passphrase, but one is configured", .0.display())]
    NotSealed(PathBuf),
    /// The passphrase is wrong, or `keystore.json` is damaged.
    #[error("the passphrase does not open {}, or the file is damaged", .0.display())]
    WrongPassphrase(PathBuf),
    /// `keystore.json` is missing, and the directory has keys that need it.
    #[error("{} is missing, and the keys need it: restore it from a backup", .0.display())]
    DataKeyMissing(PathBuf),
    /// A build before the first release wrote the file.
    #[error("{} was made by an unreleased build; make a new one", .0.display())]
    Unreleased(PathBuf),
    /// A file does not have the format that this version writes.
    #[error("{} is damaged, or a newer version of this software wrote it: {reason}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with the file.
        reason: String,
    },
    /// There is no secret with this name.
    #[error("{} is missing", .0.display())]
    Missing(PathBuf),
    /// A secret with this name exists. Secrets are never overwritten.
    #[error("{} exists already", .0.display())]
    Exists(PathBuf),
    /// The process that handed the files over has to write this file first.
    #[error("{} is not written yet", .0.display())]
    Unwritten(PathBuf),
    /// The name cannot be a file name.
    #[error("a key's name consists of the characters A-Z a-z 0-9 . _ -, not \"{0}\"")]
    BadName(String),
    /// The passphrase is empty.
    #[error("a passphrase must not be empty")]
    EmptyPassphrase,
    /// `keystore.json` has changed since the keystore was opened.
    #[error("{} has changed since it was opened, or is gone: restore it from a backup", .0.display())]
    DataKeyChanged(PathBuf),
    /// The passphrase is changed, but the change may not be durable.
    #[error("the new passphrase is in place, but a crash may bring the old one back: {0}")]
    NotDurable(FileError),
    /// The operating system provides no random numbers.
    #[error("the operating system provides no random numbers: {0}")]
    NoRandomness(#[from] getrandom::Error),
}
