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
pub use self::vctx::{VctxSetup, observe_vctxs, revoke_vctx, set_up_vctx};
pub use self::vctx_sweep::{SweepProgress, VctxSweep, preview_vctx_sweep, sweep_vctx};

use std::sync::Arc;

use bsv_network::NodeRpc;
use bsv_store::Keystore;
use bsv_tx::PublicKey;

use crate::alias::Alias;
use crate::error::Error;
use crate::import::{HomeFiles, Import};
use crate::miner_ids::MinerIds;
use crate::state::{MinerIdInfo, MinerIdState};
use crate::store::IdentityStore;

impl<S: IdentityStore> MinerIds<S> {
    /// Gives an identity a new key, and answers it. First asks the node which keys blocks have shown:
    ///
    /// - The last key that a block has shown vouches for the new one. Until a block shows the new key,
    ///   the next rotation fails with [`Error::Unseen`]. A forced rotation skips the key that no block
    ///   has shown.
    /// - If no block has shown any key, the new key becomes the first, since nodes accept nothing from
    ///   a key that they do not know.
    /// - If blocks have shown the identity according to the record, but the node has read all blocks and
    ///   knows no key, this fails with [`Error::UnknownToNode`]. A forced rotation makes the new key the
    ///   first.
    ///
    /// If the node cannot tell now, lacks blocks that were read already, or keeps no miner ids
    /// (`minerid=0`), the own record decides. If the record does not say that a block has shown the
    /// current key, and a document with it was handed out, this fails with [`Error::NodeNeeded`]. A
    /// forced rotation then uses the last key that a block has shown according to the record.
    ///
    /// Without a node, the current key vouches for the new one, and this logs a warning.
    pub async fn rotate(
        self: &Arc<Self>,
        node: Option<&NodeRpc>,
        alias: &Alias,
        is_forced: bool,
    ) -> Result<PublicKey, Error> {
        rotation::rotate_miner_id(self, node, alias, is_forced).await
    }

    /// Imports the identities of an older generator's home directory, as
    /// [`import_without_node`](Self::import_without_node) does, after asking a node about their
    /// validity check outputs.
    pub async fn import(
        self: &Arc<Self>,
        node: Option<&NodeRpc>,
        home: &HomeFiles,
        revocation_keys: Option<Arc<Keystore>>,
    ) -> Result<Vec<(Alias, Import)>, Error> {
        take_over::import_miner_ids(self, node, home, revocation_keys).await
    }
}

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
