//! Verifying the miner identities of other people's blocks, in memory and next to a real node.

#![allow(clippy::unwrap_used)]

mod blocks;
mod node;
mod spoilt;
