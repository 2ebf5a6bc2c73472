#![doc = include_str!("../README.md")]

mod amount;
mod answers;
#[cfg(feature = "broadcasters")]
pub mod broadcasters;
mod connection;
mod error;
#[cfg(feature = "headers")]
pub mod headers;
mod hex_digits;
mod rpc;
#[cfg(any(feature = "broadcasters", feature = "headers"))]
mod service;
#[cfg(feature = "source")]
mod source;
mod transaction_feed;
mod transport;

pub use bsv_tx;
pub use secrecy::SecretString;
/// The JSON of parameters and results.
pub use serde_json;

pub use error::NodeError;
pub use rpc::{
    BlockCoinbase, BlockInfo, BlockStream, Broadcast, ChainTip, Coin, ConsolidationPolicy,
    FeedAddress, Mempool, MempoolEntry, MinedIn, MinerIdInfo, MinerIdRevocation, MinerIdState,
    NodeRpc, OutputState, Policy, Submitted, TransactionPlace, UnspentOutput,
};
#[cfg(feature = "source")]
pub use source::{
    Evidence, ExtendedPackage, Fate, NetworkSource, Offered, Package, Place, Services, Shown,
    Sight, SourceError, Verdict,
};
pub use transaction_feed::{FeedError, Published, TransactionFeed};
pub use transport::{NodeCredentials, NodeSettings};
