//! Verifying the miner identities of other people's blocks, in memory and compared with a real
//! node.

mod blocks;
mod command_line;
mod differential;
mod history;
mod node;
mod odd;
mod right;
mod scan;
mod spoilt;
