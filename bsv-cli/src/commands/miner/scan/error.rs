use std::path::PathBuf;

use bsv_network::NodeError;
use bsv_store::FileError;
use bsv_tx::BlockHash;
use thiserror::Error;

/// Why a scan came to no end.
#[derive(Debug, Error)]
pub(crate) enum ScanError {
    #[error("--to {to} is less than --from {from}")]
    NothingToScan { from: u32, to: u32 },
    #[error("what was seen before goes on to height {seen}, beyond {to}; --restart begins anew")]
    SeenMore { seen: u32, to: u32 },
    #[error(
        "the node keeps no index of transactions, in which identities are: run it with txindex=1"
    )]
    NoIndex,
    #[error(
        "{} does not exist: say with --progress where to keep what was seen, or with --data-dir where \
         the data is", .0.display()
    )]
    NoDataDir(PathBuf),
    #[error(transparent)]
    File(#[from] FileError),
    #[error("{}: {reason}; --restart begins anew", path.display())]
    Progress { path: PathBuf, reason: String },
    #[error(
        "the chain has changed further back than the last {0} blocks: begin anew with --restart"
    )]
    DeepReorganisation(usize),
    #[error("{source} (before height {next}; run it again to go on from there)")]
    Node { next: u32, source: NodeError },
    #[error("interrupted before height {next}; run it again to go on from there")]
    Interrupted { next: u32 },
    #[error("the node has block {0}, but not all of its identity")]
    Incomplete(BlockHash),
}
