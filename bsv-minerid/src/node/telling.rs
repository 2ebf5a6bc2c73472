//! Telling a node of revocations. A node accepts them before any block shows them.

use std::sync::Arc;

use bsv_network::{MinerIdRevocation, MinerIdState, NodeError, NodeRpc};

use crate::alias::Alias;
use crate::error::Error;
use crate::identity::Identity;
use crate::miner_ids::MinerIds;
use crate::miner_info_script::Revocation;
use crate::state::{IdentityRecord, RevocationRecord};
use crate::store::IdentityStore;

/// Tells the node of an announced revocation that it has not received.
pub(crate) async fn tell_of_revocation<S: IdentityStore>(
    ids: &Arc<MinerIds<S>>,
    node: &NodeRpc,
    identity: &Identity,
) -> Result<(), Error> {
    let record = identity.record();
    let Some(untold) = record.untold_revocation() else { return Ok(()) };
    match tell(node, &record, &untold).await {
        Ok(()) => note_told(ids, identity.alias(), untold.message).await,
        Err(error @ NodeError::Rejected { .. }) => {
            tracing::error!(
                "the node refuses the revocation of alias {}: {error}",
                identity.alias()
            );
            Ok(())
        }
        Err(error) => Err(error.into()),
    }
}

/// Notes that the node has accepted a revocation.
pub(crate) async fn note_told<S: IdentityStore>(
    ids: &Arc<MinerIds<S>>,
    alias: &Alias,
    message: Revocation,
) -> Result<(), Error> {
    let alias = alias.clone();
    ids.on_disk(move |ids| ids.note_revocation_told(&alias, message)).await
}

pub(crate) async fn tell(
    node: &NodeRpc,
    record: &IdentityRecord,
    begun: &RevocationRecord,
) -> Result<(), NodeError> {
    let key = record.revocation_key_numbered(begun.revocation_key);
    let Some(revocation_key) = key else { return Ok(()) };
    let info = node.miner_id_info(&record.current_key().public_key).await?;
    let has_heard = match info {
        // Once a block has shown the revocation, telling the node again would revoke the new miner
        // id too.
        Some(_) if !begun.is_complete => true,
        Some(info) => info.state == MinerIdState::Revoked,
        None => false,
    };
    if has_heard {
        return Ok(());
    }
    let message = begun.message;
    node.revoke_miner_id(&MinerIdRevocation {
        revocation_key,
        miner_id: record.previous_key().public_key,
        compromised: message.compromised,
        revocation_key_signature: message.revocation_key_signature,
        miner_id_signature: message.miner_id_signature,
    })
    .await
}
