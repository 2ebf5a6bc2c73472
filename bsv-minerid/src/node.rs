//! The parts of identities that need a node: making validity check outputs, following the chain,
//! rotating and revoking with a node's knowledge, and gathering what the verification of a block
//! needs.

mod blocks;
mod chain_watch;
mod data_cache;
mod gather;
mod observe;
mod revocation;
mod rotation;
mod take_over;
mod telling;
mod vctx;
mod vctx_sweep;
mod watch;

pub use self::chain_watch::ChainSign;
pub(crate) use self::chain_watch::ChainWatch;
pub use self::data_cache::DataCache;
pub use self::gather::{GatheredBlock, gather};
pub use self::observe::{carries_identity, check_newest_copy, observe_miner_ids};
pub use self::revocation::revoke_miner_ids;
pub use self::rotation::rotate_miner_id;
pub use self::take_over::import_miner_ids;
pub use self::vctx::{VctxSetup, observe_vctxs, revoke_vctx, set_up_vctx};
pub use self::vctx_sweep::{SweepProgress, VctxSweep, preview_vctx_sweep, sweep_vctx};

use crate::state::{MinerIdInfo, MinerIdState};

impl From<bsv_network::MinerIdInfo> for MinerIdInfo {
    fn from(info: bsv_network::MinerIdInfo) -> Self {
        Self {
            miner_id: info.miner_id,
            state: match info.state {
                bsv_network::MinerIdState::Current => MinerIdState::Current,
                bsv_network::MinerIdState::Rotated => MinerIdState::Rotated,
                bsv_network::MinerIdState::Revoked => MinerIdState::Revoked,
            },
            previous_miner_id: info.previous_miner_id,
            revocation_key: info.revocation_key,
            previous_revocation_key: info.previous_revocation_key,
        }
    }
}
