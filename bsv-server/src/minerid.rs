//! The routes of the miner identity specification.

mod api;
mod coinbase2;
mod letter_case;
mod recent_rotations;
mod refusal;

pub(crate) use api::{Call, MinerIdApi};
pub(crate) use letter_case::lower_case;
pub(crate) use refusal::Refusal;

/// The miner identities of the server.
pub(crate) type MinerIds = bsv_minerid::MinerIds<bsv_minerid::store::RedbIdentityStore>;
