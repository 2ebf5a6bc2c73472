//! Revoking miner ids of generation 1.0, and seeing what blocks show of identities.

use bsv_network::{ChainTip, MinerIdRevocation, MinerIdState, NodeError, NodeRpc};
use bsv_store::Keystore;

use crate::alias::Alias;
use crate::error::Error;
use crate::miner_ids::{MinerIds, RevokedMinerIds, begun_revocation, check_revocable};
use crate::store::{Announcement, IdentityRecord, IdentityStore, MinerIdView, RevocationRecord};
use crate::verify::{gather, verify};

/// Revokes miner ids of an identity of generation 1.0: records it, so that documents announce it, and
/// then tells the node. It can be repeated, also after a crash: what is recorded already is told
/// again, unless blocks have told it.
///
/// Fails with [`Error::RevocationUntold`] where it is recorded and the node has not taken it.
pub async fn revoke_miner_ids<S: IdentityStore>(
    ids: &MinerIds<S>,
    node: &NodeRpc,
    alias: &Alias,
    revoked: RevokedMinerIds,
    revocation_keys: &Keystore,
) -> Result<(), Error> {
    let record = ids.get(alias.as_str())?.record();
    if begun_revocation(&record, revoked).is_none() {
        check_revocable(alias, &record, revoked)?;
        check_known(node, alias, revoked).await?;
    }
    let begun = ids.begin_revocation(alias, revoked, revocation_keys)?;
    let record = ids.get(alias.as_str())?.record();
    tell(node, &record, &begun)
        .await
        .map_err(|source| Error::RevocationUntold { alias: alias.clone(), source })?;
    ids.note_revocation_told(alias, begun.message)
}

/// A node that does not know a compromised miner id revokes all of its miner's.
async fn check_known(node: &NodeRpc, alias: &Alias, revoked: RevokedMinerIds) -> Result<(), Error> {
    let RevokedMinerIds::BackTo(miner_id) = revoked else { return Ok(()) };
    let reason = match node.miner_id_info(&miner_id).await?.map(|info| info.state) {
        Some(MinerIdState::Current | MinerIdState::Rotated) => return Ok(()),
        Some(MinerIdState::Revoked) => "it is revoked already",
        None => "the node has seen it in no block, and would revoke all",
    };
    Err(Error::NotRevocable { alias: alias.clone(), miner_id, reason })
}

async fn tell(
    node: &NodeRpc,
    record: &IdentityRecord,
    begun: &RevocationRecord,
) -> Result<(), NodeError> {
    let current = record.current_key().public_key;
    // Once a block has told the node, telling it again would revoke the new miner id too.
    if !begun.is_complete && node.miner_id_info(&current).await?.is_some() {
        return Ok(());
    }
    let Some(miner_info) = record.miner_info() else { return Ok(()) };
    let message = begun.message;
    node.revoke_miner_id(&MinerIdRevocation {
        revocation_key: miner_info.revocation_key.current,
        miner_id: record.previous_key().public_key,
        compromised: message.compromised,
        revocation_key_signature: message.revocation_key_signature,
        miner_id_signature: message.miner_id_signature,
    })
    .await
}

/// Asks the node once what it has seen of all that identities of generation 1.0 announce, and makes
/// documents go on from there. A service calls it whenever the chain has a new tip, which it answers.
pub async fn observe_miner_ids<S: IdentityStore>(
    ids: &MinerIds<S>,
    node: &NodeRpc,
) -> Result<ChainTip, Error> {
    let tip = node.tip().await?;
    for identity in ids.all() {
        let record = identity.record();
        let announcements = record.announcements();
        if announcements.is_empty() {
            continue;
        }
        let mut view = MinerIdView::default();
        for key in record.unacknowledged_keys() {
            view.known.extend(node.miner_id_info(&key.public_key).await?);
        }
        if announcements.contains(&Announcement::CompleteRevocation) {
            view.shows_complete_revocation = ends_with(node, &tip, &record).await?;
        }
        let mut after = record.clone();
        after.acknowledge(&view);
        if after == record {
            continue;
        }
        ids.acknowledge(identity.alias(), view)?;
        for seen in announcements {
            if !identity.record().announcements().contains(&seen) {
                tracing::info!(
                    "{} of alias {} was seen in a block",
                    seen.in_words(),
                    identity.alias()
                );
            }
        }
    }
    Ok(tip)
}

/// Whether the last block carries the complete revocation of the identity.
async fn ends_with(
    node: &NodeRpc,
    tip: &ChainTip,
    record: &IdentityRecord,
) -> Result<bool, NodeError> {
    let Some(block) = gather(node, &tip.hash).await? else { return Ok(false) };
    let report = verify(&block.proof, &block.evidence);
    let miner_id = record.current_key().public_key;
    Ok(report.identity().is_some_and(|claim| {
        claim.compromised_miner_id.is_some()
            && (claim.miner_id, claim.previous_miner_id) == (miner_id, miner_id)
    }))
}
