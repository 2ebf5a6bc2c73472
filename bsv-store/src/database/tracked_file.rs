use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::io;
use std::mem;
use std::ops::{Bound, Range};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use redb::backends::FileBackend;
use redb::{BackendError, DatabaseError, StorageBackend};

/// The file of an open database, which notes its written blocks during a copy.
#[derive(Debug)]
pub(super) struct TrackedFile {
    file: FileBackend,
    changes: Arc<Changes>,
}

/// The numbers of the blocks that were written to, while a [`Tracking`] exists.
#[derive(Debug, Default)]
pub(super) struct Changes(Mutex<Option<BTreeSet<u64>>>);

/// Keeps changes noted until it is dropped.
#[derive(Debug)]
pub(super) struct Tracking<'a>(&'a Changes);

/// The length of a block, in bytes.
pub(super) const BLOCK_LEN: u64 = 64 << 10;

impl Changes {
    /// Begins to note changes. Only one tracking may exist at a time.
    pub(super) fn track(&self) -> Tracking<'_> {
        *self.blocks() = Some(BTreeSet::new());
        Tracking(self)
    }

    /// Notes a change after it is made: whoever takes the note then reads the changed block.
    fn note(&self, bytes: Range<u64>) {
        if let Some(blocks) = &mut *self.blocks() {
            blocks.extend(bytes.start / BLOCK_LEN..bytes.end.div_ceil(BLOCK_LEN));
        }
    }

    fn blocks(&self) -> MutexGuard<'_, Option<BTreeSet<u64>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Tracking<'_> {
    /// The blocks written to since the last call.
    pub(super) fn take(&self) -> BTreeSet<u64> {
        self.0.blocks().as_mut().map(mem::take).unwrap_or_default()
    }
}

impl Drop for Tracking<'_> {
    fn drop(&mut self) {
        *self.0.blocks() = None;
    }
}

impl TrackedFile {
    /// Opens a file that must not be empty: the engine would turn an empty file into a new
    /// database.
    pub(super) fn open(path: &Path, changes: &Arc<Changes>) -> Result<Self, DatabaseError> {
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        if file.metadata()?.len() == 0 {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the file is empty").into());
        }
        Ok(Self { file: FileBackend::new(file)?, changes: Arc::clone(changes) })
    }
}

impl StorageBackend for TrackedFile {
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.file.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let before = self.file.len()?;
        let done = self.file.set_len(len);
        self.changes.note(before.min(len)..before.max(len));
        done
    }

    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let done = self.file.write(offset, data);
        // A failed write may have written a part.
        self.changes.note(offset..offset.saturating_add(data.len() as u64));
        done
    }

    fn close(&self) -> io::Result<()> {
        self.file.close()
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.file.try_lock_range(start, end)
    }

    fn try_lock_shared_range(
        &self,
        start: Bound<u64>,
        end: Bound<u64>,
    ) -> Result<bool, BackendError> {
        self.file.try_lock_shared_range(start, end)
    }

    fn lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.file.lock_range(start, end)
    }

    fn lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.file.lock_shared_range(start, end)
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.file.unlock_range(start, end)
    }

    fn query_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.file.query_lock_range(start, end)
    }
}
