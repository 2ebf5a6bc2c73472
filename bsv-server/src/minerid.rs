//! The routes of the miner identity specification.

mod api;
mod coinbase2;
mod letter_case;
mod problem;
mod recent_rotations;

pub(crate) use api::{Call, MinerIdApi};
pub(crate) use letter_case::lower_case;

/// The miner identities of the server.
pub(crate) type MinerIds = bsv_minerid::MinerIds<bsv_minerid::store::RedbIdentityStore>;
