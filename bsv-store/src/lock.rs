use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::process::geteuid;
use thiserror::Error;

use crate::files::{FileError, create_private_dir};

/// Locks a directory for this process, through its file `lock`, until dropped. The operating system
/// also releases the lock when the process dies.
#[derive(Debug)]
pub struct DirLock {
    dir: PathBuf,
    file: File,
}

/// Why a directory could not be locked.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LockError {
    /// Another process uses the directory.
    #[error("{} is in use by {holder}", dir.display())]
    Held {
        /// The directory.
        dir: PathBuf,
        /// The program and process id of the holder, from the lock file.
        holder: String,
    },
    /// The directory belongs to another user, and this process runs as root.
    #[error(
        "{} belongs to user {owner}, who could not read files that root creates there: run this \
         command as that user, for example with sudo -u '#{owner}'",
        dir.display()
    )]
    OtherOwner {
        /// The directory, or the nearest one above it that exists.
        dir: PathBuf,
        /// The id of the user.
        owner: u32,
    },
    /// The directory or its lock file cannot be created or locked.
    #[error(transparent)]
    File(#[from] FileError),
}

impl DirLock {
    /// The name of the lock file.
    pub const FILE_NAME: &'static str = "lock";

    /// Locks `dir`, which is created if it is missing. `program` is the name that other processes
    /// are told while the directory is locked.
    pub fn acquire(dir: &Path, program: &str) -> Result<Self, LockError> {
        check_owner(dir)?;
        create_private_dir(dir)?;
        let path = dir.join(Self::FILE_NAME);
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .map_err(FileError::new("open", &path))?;
        match file.try_lock() {
            Ok(()) => {
                // Best effort: the text only helps those who find the lock held, and must not fail
                // on a full disk.
                let _ = file.set_len(0);
                let _ = write!(file, "{program} (process {})", std::process::id());
                Ok(Self { dir: dir.to_owned(), file })
            }
            Err(TryLockError::WouldBlock) => {
                let mut holder = String::new();
                let _ = file.read_to_string(&mut holder);
                if holder.is_empty() {
                    holder = "another process".to_owned();
                }
                Err(LockError::Held { dir: dir.to_owned(), holder })
            }
            Err(TryLockError::Error(error)) => Err(FileError::new("lock", &path)(error).into()),
        }
    }

    /// Whether any program has ever locked `dir`.
    pub fn is_in(dir: &Path) -> bool {
        dir.join(Self::FILE_NAME).is_file()
    }

    /// The directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }
}

impl Drop for DirLock {
    fn drop(&mut self) {
        // Closing the file is not enough: a child that another thread has just forked has it open
        // until it runs its own program.
        let _ = self.file.unlock();
    }
}

/// Refuses to let root create files in another user's directory, because that user could not read
/// them.
fn check_owner(dir: &Path) -> Result<(), LockError> {
    if !geteuid().is_root() {
        return Ok(());
    }
    let found = dir.ancestors().find_map(|dir| Some((dir, dir.metadata().ok()?.uid())));
    match found {
        Some((dir, owner)) if owner != 0 => {
            Err(LockError::OtherOwner { dir: dir.to_owned(), owner })
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_held_directory_names_its_holder_until_it_is_let_go() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().join("made/on/demand");
        let lock = DirLock::acquire(&dir, "first").unwrap();
        let error = DirLock::acquire(&dir, "second").unwrap_err();
        let expected =
            format!("{} is in use by first (process {})", dir.display(), std::process::id());
        assert_eq!(error.to_string(), expected);
        drop(lock);
        DirLock::acquire(&dir, "second").unwrap();
    }

    #[test]
    fn a_child_that_is_being_forked_does_not_keep_the_lock() {
        let dir = tempfile::tempdir().unwrap();
        let lock = DirLock::acquire(dir.path(), "first").unwrap();
        let _of_the_child = lock.file.try_clone().unwrap();
        drop(lock);
        DirLock::acquire(dir.path(), "second").unwrap();
    }

    #[test]
    fn what_a_holder_that_died_has_left_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(DirLock::FILE_NAME);
        std::fs::write(&path, "a program of a rather long name (process 4294967295)").unwrap();
        let _lock = DirLock::acquire(dir.path(), "new").unwrap();
        let written = std::fs::read_to_string(&path).unwrap();
        assert_eq!(written, format!("new (process {})", std::process::id()));
    }

    #[test]
    fn root_makes_no_files_for_another_user() {
        if !geteuid().is_root() {
            eprintln!("SKIPPED: only root can give a directory to another user");
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        std::os::unix::fs::chown(dir.path(), Some(12_345), None).unwrap();
        for refused in [dir.path().to_owned(), dir.path().join("made/on/demand")] {
            let error = DirLock::acquire(&refused, "x").unwrap_err();
            assert!(matches!(error, LockError::OtherOwner { owner: 12_345, .. }), "{error}");
            assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
        }
    }

    #[test]
    fn a_directory_that_cannot_be_made_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        std::fs::write(&path, "").unwrap();
        for wrong in [path.clone(), path.join("below")] {
            let error = DirLock::acquire(&wrong, "x").unwrap_err();
            assert!(matches!(error, LockError::File(_)), "{error}");
            assert!(error.to_string().contains(&*wrong.to_string_lossy()), "{error}");
        }
    }
}
