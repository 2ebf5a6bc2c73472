use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError, RwLock, RwLockReadGuard};

use bsv_tx::{BlockHeader, Network};
use thiserror::Error;
use tokio::sync::watch;

use super::chain::{Extended, HeaderChain, Tip};
use super::checkpoint::Checkpoint;

/// A chain of headers whose best branch is on disk. Sources give again what is lost, so the file may
/// be deleted.
///
/// The file begins with 80 bytes that name the network and the checkpoint. The headers after the
/// checkpoint follow, of 80 bytes each. Their difficulty is judged before they are stored. When the
/// file is opened, each one must follow the one before it and have its proof of work. The file is cut
/// off where one does not.
#[derive(Debug)]
pub struct HeaderFile {
    chain: RwLock<HeaderChain>,
    /// Held while headers are taken, so that one source after the other gives some.
    disk: Mutex<Disk>,
    path: PathBuf,
    tip: watch::Sender<Tip>,
    /// How many headers have left the best branch at the deepest reorganisation.
    deepest: AtomicU32,
}

/// The file.
#[derive(Debug)]
struct Disk {
    file: File,
    checkpoint: u32,
    /// How many headers of the best branch are in the file.
    stored: u32,
}

impl Drop for Disk {
    fn drop(&mut self) {
        // Closing the file is not enough: a child that another thread has just forked has it open
        // until it runs its own program.
        let _ = self.file.unlock();
    }
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
    /// The file does not begin as such files do. It is left as it is.
    #[error("{path} does not hold block headers of {network}: name another file, or remove this one", network = .network.name())]
    OtherContents {
        /// The file.
        path: PathBuf,
        /// The network.
        network: Network,
    },
}

/// How many headers are read at once.
const CHUNK: usize = 4_096;
/// For how many headers there is room at once, whatever the length of the file.
const MOST_RESERVED: u64 = 250_000;
/// How many headers leave the best branch at a reorganisation that the two kinds of node would not
/// both follow.
const ALARMING: u32 = 100;

/// How many bytes come before the headers.
const PREFIX: usize = 80;
/// How many of them name the network.
const NAMES: usize = 44;

impl HeaderFile {
    /// Opens or makes the file. One process at a time may have it open. Headers after another
    /// checkpoint are removed from it.
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
        let mut chain = HeaderChain::new(network, checkpoint);
        let mut disk = Disk { file, checkpoint: checkpoint.height(), stored: 0 };
        if !disk.begin(&prefix(network, checkpoint)).map_err(io)? {
            return Err(HeaderFileError::OtherContents { path: path.to_owned(), network });
        }
        disk.read(&mut chain).map_err(io)?;
        Ok(Self {
            tip: watch::Sender::new(chain.tip()),
            chain: RwLock::new(chain),
            disk: Mutex::new(disk),
            path: path.to_owned(),
            deepest: AtomicU32::new(0),
        })
    }

    /// The chain. Headers wait while this is held.
    pub fn chain(&self) -> RwLockReadGuard<'_, HeaderChain> {
        self.chain.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The tip, to wait for another one. [`HeaderChain::change_since`] tells which blocks have left the
    /// best branch since a tip that was looked at.
    pub fn tip(&self) -> watch::Receiver<Tip> {
        self.tip.subscribe()
    }

    /// How many headers have left the best branch at the deepest reorganisation since the file was
    /// opened.
    pub fn deepest_reorganisation(&self) -> u32 {
        self.deepest.load(Ordering::Relaxed)
    }

    /// That number if it is so large that the two kinds of node would follow different branches.
    pub fn alarming_reorganisation(&self) -> Option<u32> {
        Some(self.deepest_reorganisation()).filter(|depth| *depth > ALARMING)
    }

    /// Takes headers like [`HeaderChain::extend`], and stores the best branch. This waits for the
    /// disk. After an error the file has fewer headers than the chain. The next call stores them, too.
    pub fn extend(&self, headers: &[BlockHeader], now: u64) -> Result<Extended, HeaderFileError> {
        let mut disk = self.disk.lock().unwrap_or_else(PoisonError::into_inner);
        let extended =
            self.chain.write().unwrap_or_else(PoisonError::into_inner).extend(headers, now);
        if let Some(change) = extended.change {
            disk.stored = disk.stored.min(change.stays - disk.checkpoint);
            self.note_change(change.left);
        }
        let bytes = disk.missing(&self.chain());
        disk.write(&bytes).map_err(|source| self.failure(source))?;
        Ok(extended)
    }

    pub(super) fn failure(&self, source: io::Error) -> HeaderFileError {
        HeaderFileError::Io { path: self.path.clone(), source }
    }

    /// Tells of a new tip, and of headers that have left the best branch.
    fn note_change(&self, left: u32) {
        self.tip.send_replace(self.chain().tip());
        if self.deepest.fetch_max(left, Ordering::Relaxed) < left && left > ALARMING {
            tracing::error!(
                "{left} blocks have left the best chain: Teranode does not follow such a branch"
            );
        }
    }
}

impl Disk {
    /// Makes the file begin with a prefix. Answers whether it holds headers of the same network, or
    /// nothing.
    fn begin(&mut self, prefix: &[u8; PREFIX]) -> io::Result<bool> {
        let mut found = [0; PREFIX];
        let length = read_full(&mut self.file, &mut found)?;
        // A crash may leave a part of it.
        let is_cut = length < PREFIX && prefix.starts_with(&found[..length]);
        if !is_cut && found[..NAMES] != prefix[..NAMES] {
            return Ok(false);
        }
        if length < PREFIX || found != *prefix {
            self.file.set_len(0)?;
            self.file.rewind()?;
            self.file.write_all(prefix)?;
            self.file.sync_data()?;
        }
        Ok(true)
    }

    /// Reads the headers, and cuts off what does not follow.
    fn read(&mut self, chain: &mut HeaderChain) -> io::Result<()> {
        let length = self.file.metadata()?.len();
        let headers = length / BlockHeader::LEN as u64;
        chain.reserve(headers.min(MOST_RESERVED) as usize);
        let mut bytes = vec![0; CHUNK * BlockHeader::LEN];
        loop {
            let read = read_full(&mut self.file, &mut bytes)?;
            if chain.load(&bytes[..read]) < CHUNK {
                break;
            }
        }
        self.stored = chain.tip().height - self.checkpoint;
        let used = length_of(self.stored);
        if used < length { self.file.set_len(used) } else { Ok(()) }
    }

    /// The headers of the best branch that are not in the file.
    fn missing(&self, chain: &HeaderChain) -> Vec<u8> {
        let mut bytes = Vec::new();
        for height in self.checkpoint + self.stored + 1..=chain.tip().height {
            if let Some(header) = chain.header_at(height) {
                header.encode(&mut bytes);
            }
        }
        bytes
    }

    /// Writes headers after those that stay. A crash in between leaves the beginning of a valid
    /// chain, and perhaps a part of a header.
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        let length = length_of(self.stored);
        self.file.set_len(length)?;
        self.file.seek(SeekFrom::Start(length))?;
        self.file.write_all(bytes)?;
        self.file.sync_data()?;
        self.stored += (bytes.len() / BlockHeader::LEN) as u32;
        Ok(())
    }
}

/// The beginning of a file: what it is, the network, and the checkpoint.
fn prefix(network: Network, checkpoint: &Checkpoint) -> [u8; PREFIX] {
    let mut prefix = [0; PREFIX];
    let names = format!("bsv block headers 1\n{}\n", network.name());
    prefix[..names.len()].copy_from_slice(names.as_bytes());
    prefix[NAMES..NAMES + 4].copy_from_slice(&checkpoint.height().to_le_bytes());
    prefix[NAMES + 4..].copy_from_slice(checkpoint.hash().as_bytes());
    prefix
}

fn length_of(headers: u32) -> u64 {
    PREFIX as u64 + u64::from(headers) * BlockHeader::LEN as u64
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
    use bsv_tx::BlockHash;

    use super::super::chain::Change;
    use super::*;

    const NETWORK: Network = Network::Livenet;

    /// The headers of blocks 900,000 to 909,999 of the main network.
    const HEADERS: &[u8] = include_bytes!("../../tests/headers/main-900000-909999.headers");
    const WINDOW: usize = 147 * BlockHeader::LEN;

    fn open(path: &Path) -> HeaderFile {
        let checkpoint = Checkpoint::from_headers(NETWORK, 900_146, &HEADERS[..WINDOW], 0).unwrap();
        HeaderFile::open(path, NETWORK, &checkpoint).unwrap()
    }

    #[test]
    fn headers_that_could_not_be_written_are_written_with_the_next_ones() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("headers");
        let file = open(&path);
        let headers = headers_in(&HEADERS[WINDOW..][..200 * BlockHeader::LEN]);
        file.extend(&headers[..50], u64::MAX).unwrap();
        // Nobody can write to a file that is open for reading only.
        let writable = {
            let mut disk = file.disk.lock().unwrap();
            std::mem::replace(&mut disk.file, File::open(&path).unwrap())
        };
        let tip = file.tip();
        file.extend(&headers[50..100], u64::MAX).unwrap_err();
        assert!(tip.has_changed().unwrap());
        file.disk.lock().unwrap().file = writable;
        file.extend(&headers[..1], u64::MAX).unwrap();
        drop(file);
        assert_eq!(open(&path).chain().tip().height, 900_246);
    }

    #[test]
    fn a_reorganisation_is_told_though_it_cannot_be_stored() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("headers");
        let regtest = Checkpoint::of(Network::Regtest);
        let file = HeaderFile::open(&path, Network::Regtest, &regtest).unwrap();
        let genesis = file.chain().header_at(0).unwrap();
        file.extend(&branch(genesis, 150, 1), u64::MAX).unwrap();
        let (mut tip, before) = (file.tip(), file.chain().tip());
        file.disk.lock().unwrap().file = File::open(&path).unwrap();
        file.extend(&branch(genesis, 151, 2), u64::MAX).unwrap_err();
        assert_eq!(file.alarming_reorganisation(), Some(150));
        assert_eq!(tip.borrow_and_update().height, 151);
        let change = file.chain().change_since(&before.hash);
        assert_eq!(change, Some(Change { stays: 0, left: 150 }));
        let unchanged = file.chain().change_since(&file.chain().tip().hash);
        assert_eq!(unchanged, Some(Change { stays: 151, left: 0 }));
        assert_eq!(file.chain().change_since(&BlockHash::from_bytes([1; 32])), None);
    }

    /// A branch of regtest.
    fn branch(mut parent: BlockHeader, count: usize, version: i32) -> Vec<BlockHeader> {
        let next = || {
            let (previous_block, time) = (parent.block_hash(), parent.time + 1);
            parent = BlockHeader { version, previous_block, time, nonce: 0, ..parent };
            while !parent.has_proof_of_work() {
                parent.nonce += 1;
            }
            parent
        };
        std::iter::repeat_with(next).take(count).collect()
    }

    #[test]
    fn a_file_is_free_once_it_is_closed_though_a_child_has_it_open() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("headers");
        let file = open(&path);
        // A fork copies descriptors as this does.
        let of_child = file.disk.lock().unwrap().file.try_clone().unwrap();
        drop(file);
        drop(open(&path));
        drop(of_child);
    }

    #[test]
    fn a_file_may_be_longer_than_the_memory() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("headers");
        drop(open(&path));
        OpenOptions::new().write(true).open(&path).unwrap().set_len(1 << 40).unwrap();
        assert_eq!(open(&path).chain().tip().height, 900_146);
    }
}
