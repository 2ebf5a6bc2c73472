//! The Bitcoin SV network as a client: the JSON-RPC of a node.
//!
//! Every answer is checked before it is believed, and amounts are read exactly as the node spells
//! them, never through floating point.

mod amount;
mod answers;
mod connection;
mod error;
mod rpc;
mod transport;

pub use error::NodeError;
pub use rpc::{
    BlockCoinbase, BlockInfo, BlockStream, Broadcast, ChainTip, Coin, Mempool, MempoolEntry,
    MinedIn, MinerIdInfo, MinerIdRevocation, MinerIdState, NodeRpc, OutputState, Policy, Submitted,
    TransactionPlace, UnspentOutput,
};
pub use transport::NodeSettings;
