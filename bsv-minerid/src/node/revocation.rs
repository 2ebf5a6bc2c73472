//! Revoking miner ids of generation 1.0.

use std::sync::Arc;

use bsv_network::{MinerIdState, NodeError, NodeRpc};
use bsv_store::Keystore;
use bsv_tx::PublicKey;

use crate::alias::Alias;
use crate::error::Error;
use crate::identity::Identity;
use crate::miner_ids::{MinerIds, RevokedMinerIds, begun_revocation, check_revocable};
use crate::node::observe::{observe_if_node_answers, observe_miner_id};
use crate::node::rotation::nobody_knows;
use crate::node::telling::{note_told, tell};
use crate::state::IdentityRecord;
use crate::store::IdentityStore;

/// Revokes miner ids of an identity of generation 1.0. The function asks the node what blocks have
/// shown, records the revocation, which documents then announce, and tells the node. If nobody
/// knows the identity, the identity is closed and nobody is told. The call can be repeated, also
/// after a crash: it then tells the node of the recorded revocation, unless the node knows it
/// already.
///
/// Fails with [`Error::UpgradeUnseen`] if nodes know the identity only by documents of generation
/// 0.2, which name no revocation key. Fails with [`Error::RevocationUntold`] if the revocation is
/// recorded but the node has not accepted it.
pub async fn revoke_miner_ids<S: IdentityStore>(
    ids: &Arc<MinerIds<S>>,
    node: &NodeRpc,
    alias: &Alias,
    revoked: RevokedMinerIds,
    revocation_keys: Arc<Keystore>,
) -> Result<(), Error> {
    let identity = ids.get(alias.as_str())?;
    if begun_revocation(&identity.record(), revoked).is_none() {
        match ask_first(ids, node, &identity, revoked).await {
            Ok(IsKnown::ToNobody) => {
                let alias = alias.clone();
                return ids.on_disk(move |ids| ids.close(&alias)).await;
            }
            Ok(IsKnown::Maybe) => {}
            // The record decides, and the node is told later.
            Err(Error::Node(error)) if !matches!(error, NodeError::Rejected { .. }) => {
                tracing::warn!(
                    "cannot ask the node what blocks have shown of alias {alias}: {error}"
                );
            }
            Err(error) => return Err(error),
        }
    }
    let named = alias.clone();
    let begin = move |ids: &MinerIds<S>| ids.begin_revocation(&named, revoked, &revocation_keys);
    let begun = ids.on_disk(begin).await?;
    tell(node, &identity.record(), &begun)
        .await
        .map_err(|source| Error::RevocationUntold { alias: alias.clone(), source })?;
    note_told(ids, alias, begun.message).await?;
    if identity.record().is_lost() {
        // Others know none of the keys, so documents begin with the new one. An error is ignored:
        // the revocation is done, and a service repeats this at the next block.
        observe_if_node_answers(ids, node, alias).await?;
    }
    Ok(())
}

/// Whether others know an identity.
enum IsKnown {
    ToNobody,
    Maybe,
}

/// Updates the identity from the node and its chain, and checks that the node can accept the
/// revocation.
async fn ask_first<S: IdentityStore>(
    ids: &Arc<MinerIds<S>>,
    node: &NodeRpc,
    identity: &Identity,
    revoked: RevokedMinerIds,
) -> Result<IsKnown, Error> {
    observe_miner_id(ids, node, identity.alias()).await?;
    let record = identity.record();
    check_revocable(identity, &record, revoked)?;
    if !is_upgrade_seen(node, &record).await? {
        return Err(Error::UpgradeUnseen(identity.alias().clone()));
    }
    match revoked {
        RevokedMinerIds::BackTo(miner_id) => {
            check_known(node, identity.alias(), miner_id).await?;
            Ok(IsKnown::Maybe)
        }
        RevokedMinerIds::All if nobody_knows(node, &record).await? => Ok(IsKnown::ToNobody),
        RevokedMinerIds::All => Ok(IsKnown::Maybe),
    }
}

/// Whether the node knows the identity by documents of generation 1.0, or not at all.
async fn is_upgrade_seen(node: &NodeRpc, record: &IdentityRecord) -> Result<bool, Error> {
    let known = node.miner_id_info(&record.previous_key().public_key).await?;
    Ok(known.is_none_or(|known| known.revocation_key.is_some()))
}

/// Refuses a miner id that the node does not know: the node would revoke all miner ids of the
/// miner.
async fn check_known(node: &NodeRpc, alias: &Alias, miner_id: PublicKey) -> Result<(), Error> {
    let reason = match node.miner_id_info(&miner_id).await?.map(|info| info.state) {
        Some(MinerIdState::Current | MinerIdState::Rotated) => return Ok(()),
        Some(MinerIdState::Revoked) => "it is revoked already",
        None => "the node has seen it in no block and would revoke all miner ids",
    };
    Err(Error::NotRevocable { alias: alias.clone(), miner_id, reason })
}
