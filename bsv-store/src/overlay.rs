use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use redb::StorageBackend;

/// A file that is only read, with changes to it in memory.
///
/// redb writes to a file when it opens it, if only to note that it is open. On a disk that cannot
/// be written to, this type still lets redb open the file for reading.
#[derive(Debug)]
pub(crate) struct Overlay {
    file: File,
    changes: Mutex<Changes>,
}

#[derive(Debug)]
struct Changes {
    /// The length of the file, as changed in memory.
    len: u64,
    /// Changed blocks by their numbers.
    blocks: BTreeMap<u64, Block>,
}

const BLOCK_LEN: usize = 4096;
type Block = Box<[u8; BLOCK_LEN]>;

impl Overlay {
    /// Opens the file for reading.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let len = file.metadata()?.len();
        Ok(Self { file, changes: Mutex::new(Changes { len, blocks: BTreeMap::new() }) })
    }

    fn changes(&self) -> MutexGuard<'_, Changes> {
        self.changes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A block of the file, with zeros beyond its end.
    fn original(&self, number: u64) -> io::Result<Block> {
        let mut block = Box::new([0; BLOCK_LEN]);
        let mut filled = 0;
        while filled < BLOCK_LEN {
            let offset = number * BLOCK_LEN as u64 + filled as u64;
            match self.file.read_at(&mut block[filled..], offset)? {
                0 => break,
                len => filled += len,
            }
        }
        Ok(block)
    }
}

impl StorageBackend for Overlay {
    fn len(&self) -> io::Result<u64> {
        Ok(self.changes().len)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let changes = self.changes();
        for (number, within, range) in blocks_of(offset, out.len()) {
            let out = &mut out[range.clone()];
            match changes.blocks.get(&number) {
                Some(block) => out.copy_from_slice(&block[within..within + range.len()]),
                None => {
                    let block = self.original(number)?;
                    out.copy_from_slice(&block[within..within + range.len()]);
                }
            }
        }
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.changes().len = len;
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut changes = self.changes();
        for (number, within, range) in blocks_of(offset, data.len()) {
            let mut block = match changes.blocks.remove(&number) {
                Some(block) => block,
                None => self.original(number)?,
            };
            block[within..within + range.len()].copy_from_slice(&data[range]);
            changes.blocks.insert(number, block);
        }
        Ok(())
    }
}

/// The blocks that contain `len` bytes from `offset` on: the number of each block, the offset in
/// it, and the range of the bytes.
fn blocks_of(
    offset: u64,
    len: usize,
) -> impl Iterator<Item = (u64, usize, std::ops::Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        if done == len {
            return None;
        }
        let position = offset + done as u64;
        let within = (position % BLOCK_LEN as u64) as usize;
        let end = len.min(done + BLOCK_LEN - within);
        let range = done..end;
        done = end;
        Some((position / BLOCK_LEN as u64, within, range))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_seen_and_leave_the_file_as_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let original: Vec<u8> = (0..10_000_u32).map(|n| (n % 251) as u8).collect();
        std::fs::write(&path, &original).unwrap();
        let overlay = Overlay::open(&path).unwrap();
        let mut expected = original.clone();
        for (offset, len, byte) in
            [(0, 1, 1), (4095, 2, 2), (100, 9000, 3), (9_999, 1, 4), (4096, 4096, 5)]
        {
            overlay.write(offset as u64, &vec![byte; len]).unwrap();
            expected[offset..offset + len].fill(byte);
            let mut read = vec![0; expected.len()];
            overlay.read(0, &mut read).unwrap();
            assert_eq!(read, expected, "{offset} {len}");
            let mut part = vec![0; len];
            overlay.read(offset as u64, &mut part).unwrap();
            assert_eq!(part, expected[offset..offset + len]);
        }
        overlay.set_len(20_000).unwrap();
        overlay.write(15_000, &[6]).unwrap();
        let mut beyond = [7; 3];
        overlay.read(14_999, &mut beyond).unwrap();
        assert_eq!((beyond, overlay.len().unwrap()), ([0, 6, 0], 20_000));
        assert_eq!(std::fs::read(&path).unwrap(), original);
    }
}
