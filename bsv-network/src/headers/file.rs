use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use bsv_tx::{BlockHeader, Network};
use thiserror::Error;

use super::chain::{Change, Extended, HeaderChain};
use super::checkpoint::Checkpoint;

/// A chain of headers whose best branch is on disk: the headers after the checkpoint, of 80 bytes
/// each. Sources give again what is lost, so the file may be deleted.
///
/// The headers are judged anew when the file is opened. What does not follow is cut off.
#[derive(Debug)]
pub struct HeaderFile {
    chain: HeaderChain,
    file: File,
    path: PathBuf,
    /// How many headers of the best branch are in the file.
    stored: u32,
}

/// Why headers cannot be kept.
#[derive(Debug, Error)]
pub enum HeaderFileError {
    /// The file cannot be read or written.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What happened.
        source: io::Error,
    },
    /// Another process has the file open.
    #[error("{0} is used by another process")]
    InUse(PathBuf),
}

/// How many headers are read at once.
const CHUNK: usize = 4_096;

impl HeaderFile {
    /// Opens or makes the file. One process at a time may have it open.
    pub fn open(
        path: &Path,
        network: Network,
        checkpoint: &Checkpoint,
    ) -> Result<Self, HeaderFileError> {
        let io = |source| HeaderFileError::Io { path: path.to_owned(), source };
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create(true).truncate(false).open(path);
        let file = file.map_err(io)?;
        file.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => HeaderFileError::InUse(path.to_owned()),
            TryLockError::Error(error) => io(error),
        })?;
        let chain = HeaderChain::new(network, checkpoint);
        let mut kept = Self { chain, file, path: path.to_owned(), stored: 0 };
        kept.read().map_err(io)?;
        Ok(kept)
    }

    /// The chain.
    pub fn chain(&self) -> &HeaderChain {
        &self.chain
    }

    /// Takes headers like [`HeaderChain::extend`], and stores the best branch. After an
    /// error the file has fewer headers than the chain. The next call stores them, too.
    pub fn extend(
        &mut self,
        headers: &[BlockHeader],
        now: u64,
    ) -> Result<Extended, HeaderFileError> {
        let extended = self.chain.extend(headers, now);
        if let Some(change) = extended.change {
            self.store(change)
                .map_err(|source| HeaderFileError::Io { path: self.path.clone(), source })?;
        }
        Ok(extended)
    }

    /// Reads what the file holds, and cuts off what does not follow.
    fn read(&mut self) -> io::Result<()> {
        let mut bytes = vec![0; CHUNK * BlockHeader::LEN];
        loop {
            let read = read_full(&mut self.file, &mut bytes)?;
            let headers = headers_in(&bytes[..read]);
            // The headers were not ahead of the clock when they were stored.
            let Extended { valid, .. } = self.chain.extend(&headers, u64::MAX);
            if valid < headers.len() || read < bytes.len() {
                break;
            }
        }
        self.stored = self.chain.tip().height - self.chain.checkpoint_height();
        self.file.set_len(length_of(self.stored))
    }

    /// Writes the headers that are new in the best branch, and those that could not be written
    /// before. A crash in between leaves the beginning of a valid chain, and perhaps a part of a
    /// header.
    fn store(&mut self, change: Change) -> io::Result<()> {
        let checkpoint = self.chain.checkpoint_height();
        self.stored = self.stored.min(change.stays - checkpoint);
        let tip = self.chain.tip().height;
        let mut bytes = Vec::new();
        for height in checkpoint + self.stored + 1..=tip {
            if let Some(header) = self.chain.header_at(height) {
                header.encode(&mut bytes);
            }
        }
        let length = length_of(self.stored);
        self.file.set_len(length)?;
        self.file.seek(SeekFrom::Start(length))?;
        self.file.write_all(&bytes)?;
        self.file.sync_data()?;
        self.stored = tip - checkpoint;
        Ok(())
    }
}

fn length_of(headers: u32) -> u64 {
    u64::from(headers) * BlockHeader::LEN as u64
}

/// The complete headers in bytes.
pub(super) fn headers_in(bytes: &[u8]) -> Vec<BlockHeader> {
    let headers = bytes.chunks_exact(BlockHeader::LEN).map(BlockHeader::from_bytes);
    headers.map(|header| header.expect("each 80 bytes are a header")).collect()
}

/// Fills `bytes`, or reads to the end of the file. Answers how many bytes were read.
fn read_full(file: &mut File, bytes: &mut [u8]) -> io::Result<usize> {
    let mut read = 0;
    while read < bytes.len() {
        match file.read(&mut bytes[read..])? {
            0 => break,
            more => read += more,
        }
    }
    Ok(read)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The headers of blocks 900,000 to 909,999 of the main network.
    const HEADERS: &[u8] = include_bytes!("../../tests/headers/main-900000-909999.headers");
    const WINDOW: usize = 147 * BlockHeader::LEN;

    #[test]
    fn headers_that_could_not_be_written_are_written_with_the_next_ones() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("headers");
        let checkpoint = Checkpoint::from_headers(900_146, &HEADERS[..WINDOW]).unwrap();
        let mut file = HeaderFile::open(&path, Network::Livenet, &checkpoint).unwrap();
        let headers = headers_in(&HEADERS[WINDOW..][..200 * BlockHeader::LEN]);
        file.extend(&headers[..50], u64::MAX).unwrap();
        // As after a failed write.
        file.chain.extend(&headers[50..100], u64::MAX);
        file.extend(&headers[100..], u64::MAX).unwrap();
        drop(file);
        let file = HeaderFile::open(&path, Network::Livenet, &checkpoint).unwrap();
        assert_eq!(file.chain().tip().height, 900_346);
    }
}
