use std::path::PathBuf;

use thiserror::Error;

use crate::files::FileError;
use crate::lock::LockError;

/// Why a keystore, or a secret in it, could not be read or written. Never tells a secret.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum KeystoreError {
    /// Another process holds the directory, or it cannot be locked.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// A file cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// There is no passphrase, and there should be one.
    #[error("keystore {} has no passphrase, which is refused here: set one", .0.display())]
    PlainRefused(PathBuf),
    /// The keystore is sealed, and no passphrase is configured.
    #[error("keystore {} is sealed, and no passphrase is configured", .0.display())]
    PassphraseMissing(PathBuf),
    /// A passphrase is configured for a keystore that was made without one.
    #[error("keystore {} was made without a passphrase, but one is configured", .0.display())]
    NotSealed(PathBuf),
    /// The passphrase is not the right one, or `keystore.json` is damaged.
    #[error("the passphrase does not open {}, or the file is damaged", .0.display())]
    WrongPassphrase(PathBuf),
    /// `keystore.json` is missing beside keys that need it.
    #[error("{} is missing, but there are keys that need it: restore it from a backup", .0.display())]
    DataKeyMissing(PathBuf),
    /// A file does not have the form that this version writes.
    #[error("{} is damaged, or written by a newer version of this software: {reason}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// There is no secret of that name.
    #[error("{} is missing", .0.display())]
    Missing(PathBuf),
    /// There is a secret of that name already; secrets are never overwritten.
    #[error("{} exists already", .0.display())]
    Exists(PathBuf),
    /// Whoever has handed the files over has to write this one first.
    #[error("{} is not written yet", .0.display())]
    Unwritten(PathBuf),
    /// A name that could not be a file name.
    #[error("a key's name consists of the characters A-Z a-z 0-9 . _ -, not \"{0}\"")]
    BadName(String),
    /// A passphrase without characters protects nothing.
    #[error("a passphrase must not be empty")]
    EmptyPassphrase,
    /// `keystore.json` is not what it was when the keystore was opened.
    #[error("{} has changed since it was opened, or is gone: restore it from a backup", .0.display())]
    DataKeyChanged(PathBuf),
    /// The passphrase was changed, but the disk does not say that it keeps it.
    #[error("the new passphrase is in place, but a crash may bring the old one back: {0}")]
    NotDurable(FileError),
    /// The operating system gives no random numbers.
    #[error("the operating system gives no random numbers: {0}")]
    NoRandomness(#[from] getrandom::Error),
}
