//! Block headers, validated here: what a client needs to check a Merkle path without trusting
//! anybody.
//!
//! A [`HeaderChain`] begins at a [`Checkpoint`] and takes headers from untrusted sources. It judges
//! each one by the rules of nodes ([`HeaderError`]), and follows the branch with most work. A
//! [`HeaderFile`] owns a chain, and keeps its best branch on disk. A [`HeaderSource`] is an HTTP
//! service ([`Chaintracks`]), or a node that is asked by its own protocol ([`Peer`]). A
//! [`HeaderFollower`] asks several sources at once, and hands their answers to the file, which tells of
//! new tips ([`HeaderFile::tip`]) and of reorganisations ([`HeaderChain::change_since`]).
//!
//! ```no_run
//! use std::path::Path;
//! use std::sync::Arc;
//! use std::time::{SystemTime, UNIX_EPOCH};
//!
//! use bsv_network::bsv_tx::{Beef, BeefVerificationError, BlockHash, Network, Tip, Txid};
//! use bsv_network::headers::{CatchUpError, Checkpoint, HeaderFile, HeaderSource, Peer};
//!
//! /// Follows the main network by one node.
//! async fn headers() -> Result<Arc<HeaderFile>, CatchUpError> {
//!     let network = Network::Livenet;
//!     let path = Path::new("headers");
//!     let file = Arc::new(HeaderFile::open(path, network, &Checkpoint::of(network))?);
//!     let mut source = HeaderSource::Peer(Peer::connect(network, "seed.bitcoinsv.io:8333").await?);
//!     let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
//!     source.catch_up(&file, now).await?;
//!     Ok(file)
//! }
//!
//! /// Waits for a tip after one that was seen. Answers the height above which all blocks are new.
//! async fn next(file: &HeaderFile, seen: &BlockHash) -> u32 {
//!     let mut tip = file.tip();
//!     // Only a dropped file tells of no further tip.
//!     let _ = tip.wait_for(|tip| tip.hash != *seen).await;
//!     let chain = file.chain();
//!     chain.change_since(seen).map_or(chain.checkpoint_height(), |change| change.stays)
//! }
//!
//! /// Checks a transaction with its ancestors against the headers.
//! fn check(beef: &Beef, file: &HeaderFile) -> Result<(), BeefVerificationError> {
//!     let chain = file.chain();
//!     let (height, median_time) = (chain.tip().height, chain.median_time().unwrap_or_default());
//!     let held = |_: &Txid| None;
//!     beef.verify(Tip { height, median_time }, |height, root| chain.has_root(height, root), held)
//! }
//! ```
//!
//! The rules are those of node 1.2.2 (`pow.cpp`, `validation.cpp`, `chainparams.cpp`).

mod chain;
mod chaintracks;
mod checkpoint;
mod file;
mod follow;
mod messages;
mod peer;
mod place;
mod pool;
mod rules;
mod source;
mod source_error;
mod visit;

pub use self::chain::{Change, Extended, HeaderChain, Locator, Tip};
pub use self::chaintracks::Chaintracks;
pub use self::checkpoint::{Checkpoint, CheckpointError};
pub use self::file::{HeaderFile, HeaderFileError};
pub use self::follow::{HeaderFollower, SourceNames, seeds};
#[doc(hidden)]
pub use self::messages::framed;
pub use self::peer::Peer;
pub use self::place::{Behind, Outcome, SourceReport, SourceState, Withheld};
pub use self::rules::HeaderError;
pub use self::source::{CatchUpError, CaughtUp, HeaderSource};
pub use self::source_error::SourceError;
