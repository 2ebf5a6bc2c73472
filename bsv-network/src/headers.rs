//! Block headers, validated here: what a client needs to check a Merkle path without trusting
//! anybody.
//!
//! A [`HeaderChain`] begins at a [`Checkpoint`] and takes headers from untrusted sources. It judges
//! each one by the rules of nodes ([`HeaderRules`]), and follows the branch with most work. A
//! [`HeaderFile`] keeps its best branch on disk. The sources are HTTP services ([`Chaintracks`]), and
//! nodes of the network by their own protocol ([`Peer`]).
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
