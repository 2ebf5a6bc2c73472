use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use bsv_minerid::ledger::{Entry, Ledger};
use bsv_minerid::verify::Claim;
use bsv_server::Config;
use bsv_store::write_atomically;
use bsv_tx::{BlockHash, BlockHeader, Network};
use serde::{Deserialize, Serialize};

use super::arguments::ScanArguments;
use super::error::ScanError;

/// How many of the last blocks are remembered, to notice changes of the chain.
pub(super) const MOST_RECENT: usize = 1000;

/// The version of the file's format. Files of other versions are refused.
const VERSION: u32 = 2;

/// The progress of a scan.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Progress {
    version: u32,
    network: String,
    pub(super) from: u32,
    /// The last blocks; the newest is last.
    pub(super) recent: Vec<Seen>,
    pub(super) ledger: Ledger,
}

/// A block that was scanned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Seen {
    pub(super) height: u32,
    pub(super) hash: BlockHash,
}

impl Progress {
    fn new(from: u32, network: Network) -> Self {
        Self {
            version: VERSION,
            network: network.name().to_owned(),
            from,
            recent: Vec::new(),
            ledger: Ledger::new(),
        }
    }

    /// Whether the heights of the blocks are consecutive and possible.
    fn is_consistent(&self) -> bool {
        let is_row = |blocks: &[Seen]| blocks[0].height.checked_add(1) == Some(blocks[1].height);
        let is_height = |seen: &Seen| i32::try_from(seen.height).is_ok();
        self.recent.windows(2).all(is_row)
            && self.recent.last().is_none_or(is_height)
            && self.recent.first().is_none_or(|first| first.height >= self.from)
    }

    /// The height of the next block.
    pub(super) fn next(&self) -> u32 {
        self.recent.last().map_or(self.from, |seen| seen.height + 1)
    }

    /// Whether a block follows the last one.
    pub(super) fn is_followed_by(&self, header: &BlockHeader) -> bool {
        self.recent.last().is_none_or(|seen| seen.hash == header.previous_block)
    }

    pub(super) fn connect(&mut self, seen: Seen, claim: Option<&Claim>) -> Entry {
        self.recent.push(seen);
        if self.recent.len() > 2 * MOST_RECENT {
            self.recent.drain(..MOST_RECENT);
        }
        self.ledger.connect(seen.hash, seen.height, claim)
    }

    /// Removes the blocks after the first `kept` of the recent ones, and answers them, the newest
    /// first.
    pub(super) fn disconnect(&mut self, kept: usize) -> Vec<Seen> {
        let orphans: Vec<_> = self.recent.drain(kept..).rev().collect();
        for orphan in &orphans {
            self.ledger.disconnect(orphan.hash);
        }
        orphans
    }
}

/// The file with the progress.
pub(super) struct ProgressFile {
    dir: PathBuf,
    name: String,
    /// Whether the file stays when the scan is done.
    stays: bool,
}

impl ProgressFile {
    pub(super) fn open(arguments: &ScanArguments, config: &Config) -> Result<Self, ScanError> {
        let Some(path) = &arguments.progress else {
            if !config.network_dir.is_dir() {
                return Err(ScanError::NoDataDir(config.network_dir.clone()));
            }
            let name = format!("scanminerids-{}.json", arguments.from);
            return Ok(Self { dir: config.network_dir.clone(), name, stays: false });
        };
        let no_name = || ScanError::Progress {
            path: path.clone(),
            reason: "not the name of a file".to_owned(),
        };
        let name = path.file_name().and_then(|name| name.to_str()).ok_or_else(no_name)?.to_owned();
        let dir = match path.parent() {
            Some(dir) if dir != Path::new("") => dir.to_owned(),
            _ => PathBuf::from("."),
        };
        Ok(Self { dir, name, stays: true })
    }

    /// The progress of an earlier scan, or an empty one.
    pub(super) fn read(
        &self,
        arguments: &ScanArguments,
        network: Network,
    ) -> Result<Progress, ScanError> {
        let path = self.dir.join(&self.name);
        let failed = |reason: String| ScanError::Progress { path: path.clone(), reason };
        let beginning = Progress::new(arguments.from, network);
        if arguments.restart {
            return Ok(beginning);
        }
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(beginning),
            Err(error) => return Err(failed(error.to_string())),
        };
        let progress: Progress =
            serde_json::from_str(&text).map_err(|error| failed(error.to_string()))?;
        if (progress.version, progress.network.as_str()) != (VERSION, network.name()) {
            return Err(failed("it is of another version or network".to_owned()));
        }
        if progress.from != arguments.from {
            return Err(failed(format!("of a scan from height {}", progress.from)));
        }
        if !progress.is_consistent() {
            return Err(failed("its blocks are not consecutive".to_owned()));
        }
        Ok(progress)
    }

    pub(super) fn write(&self, progress: &Progress) -> Result<(), ScanError> {
        let text = serde_json::to_vec(progress).expect("heights and texts are JSON");
        Ok(write_atomically(&self.dir, &self.name, &text)?)
    }

    /// Saves the progress of a finished scan, or removes the file.
    pub(super) fn finish(&self, progress: &Progress) -> Result<(), ScanError> {
        if self.stays {
            return self.write(progress);
        }
        match fs::remove_file(self.dir.join(&self.name)) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(ScanError::Progress {
                path: self.dir.join(&self.name),
                reason: error.to_string(),
            }),
            _ => Ok(()),
        }
    }
}
