//! The routes of the miner identity specification, and what keeps identities up to date.

mod api;
mod coinbase2;
mod refusal;
mod watch;

pub(crate) use api::{Call, MinerIdApi};
pub(crate) use refusal::Refusal;
pub(crate) use watch::watch;
