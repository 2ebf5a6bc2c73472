//! The client of `bsv-network`, and this package's own harness, against a real node.

mod answers;
mod away;
mod chain;
mod harness;
mod mempool;
mod node_wallet;
mod outputs;
mod setup;
mod transactions;
mod turns;
