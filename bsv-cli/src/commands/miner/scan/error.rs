use std::path::PathBuf;

use bsv_network::NodeError;
use bsv_store::FileError;
use bsv_tx::BlockHash;
use thiserror::Error;

/// Why a scan did not finish.
#[derive(Debug, Error)]
pub(crate) enum ScanError {
    #[error("--to {to} is less than --from {from}")]
    NothingToScan { from: u32, to: u32 },
    #[error("an earlier scan reached height {seen}, beyond {to}; start again with --restart")]
    SeenMore { seen: u32, to: u32 },
    #[error("the node keeps no index of transactions, which scanning needs: run it with txindex=1")]
    NoIndex,
    #[error(
        "{} does not exist: name a file for the progress with --progress, or the data directory with \
         --data-dir", .0.display()
    )]
    NoDataDir(PathBuf),
    #[error(transparent)]
    File(#[from] FileError),
    #[error("{}: {reason}; start again with --restart", path.display())]
    Progress { path: PathBuf, reason: String },
    #[error(
        "the chain has changed further back than the last {0} blocks: start again with --restart"
    )]
    DeepReorganisation(usize),
    #[error("{source} (before height {next}; run the command again to continue there)")]
    Node { next: u32, source: NodeError },
    #[error("interrupted before height {next}; run the command again to continue there")]
    Interrupted { next: u32 },
    #[error("the node has block {0}, but not its whole identity")]
    Incomplete(BlockHash),
}
