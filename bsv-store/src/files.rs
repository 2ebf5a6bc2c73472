use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use thiserror::Error;

/// A file or directory that could not be read or written.
#[derive(Clone, Debug, Error)]
#[error("cannot {action} {}: {source}", path.display())]
pub struct FileError {
    action: &'static str,
    path: PathBuf,
    #[source]
    source: Arc<io::Error>,
}

impl FileError {
    pub(crate) fn new(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self { action, path, source: Arc::new(source) }
    }

    /// Whether the cause is a lack of room on the disk.
    pub fn is_out_of_space(&self) -> bool {
        is_out_of_space(&self.source)
    }
}

/// Whether an operation failed for lack of room: the disk is full, or a quota or a limit on the
/// size of files is reached.
pub(crate) fn is_out_of_space(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge
    )
}

/// Creates a directory that only its owner can enter, and its missing parents. An existing
/// directory stays as it is.
pub fn create_private_dir(dir: &Path) -> Result<(), FileError> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(dir)
        .map_err(FileError::new("create directory", dir))
}

/// Writes a file that only its owner can read, completely or not at all. Replaces an existing file.
/// The contents go to a temporary file, which is synced and renamed; then the directory is synced.
pub fn write_atomically(dir: &Path, name: &str, contents: &[u8]) -> Result<(), FileError> {
    let temporary = dir.join(format!(".{name}.tmp"));
    let path = dir.join(name);
    let written = write_synced(&temporary, contents)
        .map_err(FileError::new("write", &path))
        .and_then(|()| fs::rename(&temporary, &path).map_err(FileError::new("create", &path)))
        .and_then(|()| sync_dir(dir));
    if written.is_err() {
        // Best effort: the next write replaces a file that is left over.
        let _ = fs::remove_file(&temporary);
    }
    written
}

/// Checks that a file can be written durably in `dir`: writes one and removes it.
#[cfg(feature = "database")]
pub(crate) fn probe(dir: &Path) -> Result<(), FileError> {
    let path = dir.join(".probe");
    write_synced(&path, b"?")
        .and_then(|()| fs::remove_file(&path))
        .map_err(FileError::new("write", &path))
}

/// A file that is written under a temporary name beside its final name. Only its owner can read it.
/// Unless it is finished, it is removed.
#[derive(Debug)]
pub struct NewFile {
    file: File,
    temporary: PathBuf,
    path: PathBuf,
    is_finished: bool,
}

impl NewFile {
    /// Begins a file. Fails if a file with this name exists.
    pub fn create(path: &Path) -> Result<Self, FileError> {
        let create = FileError::new("create", path);
        match path.symlink_metadata() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(create(error)),
            Ok(_) => return Err(create(exists_already())),
        }
        let Some(name) = path.file_name() else {
            return Err(create(io::ErrorKind::IsADirectory.into()));
        };
        let mut hidden = OsString::from(".");
        hidden.push(name);
        hidden.push(format!(".{}.tmp", std::process::id()));
        let temporary = path.with_file_name(hidden);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(true).mode(0o600);
        let file = options.open(&temporary).map_err(create)?;
        Ok(Self { file, temporary, path: path.to_owned(), is_finished: false })
    }

    /// The open file.
    pub fn file(&mut self) -> &mut File {
        &mut self.file
    }

    /// Gives the file its name, durably. Fails if a file with this name has appeared meanwhile.
    pub fn finish(mut self) -> Result<(), FileError> {
        self.file.sync_all().map_err(FileError::new("write", &self.path))?;
        rename_to_new(&self.temporary, &self.path).map_err(FileError::new("create", &self.path))?;
        self.is_finished = true;
        let synced = match self.path.parent() {
            Some(dir) if !dir.as_os_str().is_empty() => sync_dir(dir),
            _ => sync_dir(Path::new(".")),
        };
        if synced.is_err() {
            // Best effort: the caller learns of the failure, and can try again under the same name.
            let _ = fs::remove_file(&self.path);
        }
        synced
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if !self.is_finished {
            // Best effort: the name of a file that is left over tells what it is.
            let _ = fs::remove_file(&self.temporary);
        }
    }
}

/// Renames a file. Fails if a file with the new name exists.
fn rename_to_new(from: &Path, to: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // Some file systems cannot do it in one step.
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => match to.try_exists()? {
            true => Err(exists_already()),
            false => fs::rename(from, to),
        },
        renamed => Ok(renamed?),
    }
}

fn exists_already() -> io::Error {
    io::Error::new(io::ErrorKind::AlreadyExists, "it exists already")
}

fn write_synced(path: &Path, contents: &[u8]) -> io::Result<()> {
    let mut file =
        OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.write_all(contents)?;
    file.sync_all()
}

/// Makes new names in `dir` durable.
pub(crate) fn sync_dir(dir: &Path) -> Result<(), FileError> {
    File::open(dir).and_then(|dir| dir.sync_all()).map_err(FileError::new("sync directory", dir))
}
