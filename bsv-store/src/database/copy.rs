use std::collections::BTreeSet;
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use redb::backends::FileBackend;
use redb::{ReadTransaction, ReadableDatabase};

use super::integrity::{Checks, open_checked};
use super::options::DatabaseOptions;
use super::tracked_file::BLOCK_LEN;
use crate::error::StoreError;
use crate::files::FileError;

/// A copy of a database file as of one commit. Every page matches its checksum. The copy has no
/// name on the disk, and drops its room with this value.
pub struct DatabaseCopy {
    engine: redb::Database,
    file: File,
    path: PathBuf,
}

/// A copy of a database file that is not yet compared with its checksums.
pub(super) struct Copying<'a> {
    /// The copy, which has no name, so that a crash leaves nothing on the disk.
    file: File,
    /// The database file.
    source: File,
    /// The path of the database file.
    original: &'a Path,
}

/// How many bytes are copied between two checks of the free space.
const PART_LEN: u64 = 1 << 20;

impl<'a> Copying<'a> {
    /// Creates an empty file that only its owner can read.
    pub(super) fn begin(original: &'a Path) -> Result<Self, FileError> {
        let path = original.with_extension("redb.copy");
        let source = File::open(original).map_err(FileError::new("read", original))?;
        let create = || {
            let mut options = OpenOptions::new();
            options.read(true).write(true).create(true).truncate(true).mode(0o600);
            let file = options.open(&path)?;
            fs::remove_file(&path)?;
            Ok(file)
        };
        let file = create().map_err(FileError::new("create", &path))?;
        Ok(Self { file, source, original })
    }

    /// Copies the whole file. Fails if the disk runs out of room. Blocks of zeros take no room;
    /// they are half of a file that has just grown.
    pub(super) fn copy_all(
        &self,
        check_room: impl Fn() -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let mut part = Vec::new();
        let mut offset = 0;
        loop {
            check_room()?;
            self.read(offset, PART_LEN, &mut part)?;
            if part.is_empty() {
                return Ok(());
            }
            for block in part.chunks(BLOCK_LEN as usize) {
                if block.iter().any(|byte| *byte != 0) {
                    self.write(offset, block)?;
                }
                offset += block.len() as u64;
            }
        }
    }

    /// Copies these blocks again.
    pub(super) fn copy_again(&self, blocks: &BTreeSet<u64>) -> Result<(), FileError> {
        let mut bytes = Vec::new();
        for block in blocks {
            let offset = block.saturating_mul(BLOCK_LEN);
            self.read(offset, BLOCK_LEN, &mut bytes)?;
            self.write(offset, &bytes)?;
        }
        Ok(())
    }

    /// Sets the copy's length to that of the original.
    pub(super) fn cut(&self) -> Result<(), FileError> {
        let cut = || self.file.set_len(self.source.metadata()?.len());
        cut().map_err(self.failure())
    }

    /// Reads up to `len` bytes of the original. Reads fewer at its end.
    fn read(&self, offset: u64, len: u64, bytes: &mut Vec<u8>) -> Result<(), FileError> {
        bytes.clear();
        let mut source = &self.source;
        source.seek(SeekFrom::Start(offset)).map_err(self.failure())?;
        source.take(len).read_to_end(bytes).map_err(self.failure())?;
        Ok(())
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), FileError> {
        self.file.write_all_at(bytes, offset).map_err(self.failure())
    }

    fn failure(&self) -> impl FnOnce(io::Error) -> FileError {
        FileError::new("copy", self.original)
    }

    /// Opens the copy, and compares it with its checksums.
    pub(super) fn open(self, options: DatabaseOptions) -> Result<DatabaseCopy, StoreError> {
        let Self { file, original, .. } = self;
        let open = || {
            let backend = FileBackend::new(file.try_clone()?)?;
            options.builder().create_with_backend(backend)
        };
        let engine = open_checked(original, Checks::All, open)?;
        Ok(DatabaseCopy { engine, file, path: original.to_owned() })
    }
}

impl DatabaseCopy {
    /// Runs `query` on the copy.
    pub fn read<T>(
        &self,
        query: impl FnOnce(&Arc<ReadTransaction>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        query(&Arc::new(self.engine.begin_read()?))
    }

    /// The file of the copy, positioned at its beginning.
    pub fn into_file(self) -> Result<File, StoreError> {
        let Self { engine, mut file, path } = self;
        drop(engine);
        file.rewind().map_err(FileError::new("read", &path))?;
        Ok(file)
    }
}

impl fmt::Debug for DatabaseCopy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DatabaseCopy").field("path", &self.path).finish_non_exhaustive()
    }
}
