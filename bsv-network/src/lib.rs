//! The Bitcoin SV network as a client: the JSON-RPC of a node, and the transactions that it publishes.
//!
//! Every answer is checked before it is believed, and amounts are read exactly as the node spells
//! them, never through floating point.

mod amount;
mod answers;
mod connection;
mod error;
mod hex_digits;
mod rpc;
mod transaction_feed;
mod transport;

pub use error::NodeError;
pub use rpc::{
    BlockCoinbase, BlockInfo, BlockStream, Broadcast, ChainTip, Coin, ConsolidationPolicy,
    FeedAddress, Mempool, MempoolEntry, MinedIn, MinerIdInfo, MinerIdRevocation, MinerIdState,
    NodeRpc, OutputState, Policy, Submitted, TransactionPlace, UnspentOutput,
};
pub use transaction_feed::{FeedError, Published, TransactionFeed};
pub use transport::NodeSettings;
