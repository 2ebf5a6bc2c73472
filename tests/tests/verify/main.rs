//! Verifying the miner identities of other people's blocks, in memory and next to a real node.

#![allow(clippy::unwrap_used)]

mod blocks;
mod command_line;
mod differential;
mod history;
mod node;
mod odd;
mod right;
mod scan;
mod spoilt;
