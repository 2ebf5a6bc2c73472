//! Rotation with a node's knowledge of the keys that blocks have shown.

use bsv_network::NodeRpc;
use bsv_tx::PublicKey;

use crate::alias::Alias;
use crate::error::Error;
use crate::miner_ids::MinerIds;
use crate::node::observe::{PATIENCE, observe_miner_ids};
use crate::state::{Announcement, Exposure, IdentityRecord, Protocol, Rotation};
use crate::store::IdentityStore;

/// Gives an identity a new key, and answers it. First asks the node which keys blocks have shown:
///
/// - The last key that a block has shown vouches for the new one. Until a block shows the new key,
///   the next rotation fails with [`Error::Unseen`]. A forced rotation skips the key that no block
///   has shown.
/// - If no block has shown any key, the new key becomes the first, since nodes accept nothing from
///   a key that they do not know.
///
/// If the node does not answer, the current key vouches for the new one, and this logs a warning.
pub async fn rotate_miner_id<S: IdentityStore>(
    ids: &MinerIds<S>,
    node: Option<&NodeRpc>,
    alias: &Alias,
    is_forced: bool,
) -> Result<PublicKey, Error> {
    let known = match node {
        Some(node) => rotation_by(ids, &node.clone().with_timeout(PATIENCE), alias).await,
        None => Ok(None),
    };
    match known {
        Ok(Some(Rotation::PassOver)) if !is_forced => {
            let announcement = Announcement::Rotation;
            return Err(Error::Unseen { alias: alias.clone(), announcement });
        }
        Ok(Some(rotation)) => return ids.rotate_as(alias, rotation),
        Ok(None) => {}
        Err(Error::Node(error)) => {
            tracing::warn!(
                "cannot ask the node which keys of alias {alias} blocks have shown: {error}"
            );
        }
        Err(error) => return Err(error),
    }
    if is_forced { ids.rotate_again(alias) } else { ids.rotate(alias) }
}

/// The kind of the rotation, or `None` if the new key simply follows the current one.
async fn rotation_by<S: IdentityStore>(
    ids: &MinerIds<S>,
    node: &NodeRpc,
    alias: &Alias,
) -> Result<Option<Rotation>, Error> {
    let identity = ids.get(alias.as_str())?;
    if identity.is_kept() {
        return Ok(None);
    }
    observe_miner_ids(ids, node).await?;
    let record = identity.record();
    let is_current_known = is_known(node, &record.current_key().public_key).await?;
    // A node keeps knowing a key that only a block off the main chain has shown; others do not know
    // it. In generation 1.0, the record tells what is announced.
    let is_rotation_lost = record.sightings.is_repeated
        && record.vctx().is_some()
        && record.announcements().contains(&Announcement::Rotation);
    if is_current_known && !is_rotation_lost && !record.is_lost() {
        return Ok(None);
    }
    if record.is_lost() || nobody_knows(node, &record).await? {
        return Ok(Some(Rotation::Replace));
    }
    Ok(match record.protocol {
        Protocol::Vctx(_) if is_any_known(node, &record).await? => Some(Rotation::PassOver),
        _ => None,
    })
}

/// Whether no key of the identity was ever in a block, as far as a node that has all blocks can
/// tell.
pub(crate) async fn nobody_knows(node: &NodeRpc, record: &IdentityRecord) -> Result<bool, Error> {
    Ok(record.exposure != Exposure::Known
        && !is_any_known(node, record).await?
        && node.has_all_blocks().await?)
}

async fn is_any_known(node: &NodeRpc, record: &IdentityRecord) -> Result<bool, Error> {
    for key in record.keys.iter().rev() {
        if is_known(node, &key.public_key).await? {
            return Ok(true);
        }
    }
    Ok(false)
}

async fn is_known(node: &NodeRpc, key: &PublicKey) -> Result<bool, Error> {
    Ok(node.miner_id_info(key).await?.is_some())
}
