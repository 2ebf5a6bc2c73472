//! Block headers, validated here: what a client needs to check a Merkle path without trusting
//! anybody.
//!
//! A [`HeaderChain`] begins at a [`Checkpoint`] and takes headers from untrusted sources. It judges
//! each one by the rules of nodes ([`HeaderRules`]), and follows the branch with most work. A
//! [`HeaderFile`] keeps its best branch on disk. The sources are HTTP services ([`Chaintracks`]), and
//! nodes of the network by their own protocol ([`Peer`]).
//!
//! ```no_run
//! use std::path::Path;
//! use std::time::{SystemTime, UNIX_EPOCH};
//!
//! use bsv_network::bsv_tx::Network;
//! use bsv_network::headers::{CatchUpError, Checkpoint, HeaderFile, HeaderSource, Peer};
//!
//! async fn height() -> Result<u32, CatchUpError> {
//!     let network = Network::Livenet;
//!     let path = Path::new("headers");
//!     let mut file = HeaderFile::open(path, network, &Checkpoint::of(network))?;
//!     let mut source = HeaderSource::Peer(Peer::connect(network, "seed.bitcoinsv.io:8333").await?);
//!     let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
//!     source.catch_up(&mut file, now).await?;
//!     Ok(file.chain().tip().height)
//! }
//! ```
//!
//! The rules are those of node 1.2.2 (`pow.cpp`, `validation.cpp`, `chainparams.cpp`).

mod chain;
mod chaintracks;
mod checkpoint;
mod file;
mod messages;
mod peer;
mod rules;
mod source;
mod source_error;

pub use self::chain::{Change, Extended, HeaderChain, Locator, Tip};
pub use self::chaintracks::Chaintracks;
pub use self::checkpoint::{Checkpoint, CheckpointError};
pub use self::file::{HeaderFile, HeaderFileError};
pub use self::peer::Peer;
pub use self::rules::{HeaderError, HeaderRules};
pub use self::source::{CatchUpError, CaughtUp, HeaderSource};
pub use self::source_error::SourceError;
