//! Rotating keys with the word of a node on which of them blocks have shown.

use bsv_network::NodeRpc;
use bsv_tx::PublicKey;

use crate::alias::Alias;
use crate::error::Error;
use crate::miner_ids::MinerIds;
use crate::node::observe::{PATIENCE, observe_miner_ids};
use crate::state::{Announcement, Exposure, IdentityRecord, Protocol, Rotation};
use crate::store::IdentityStore;

/// Gives an identity a new key, and answers it. The node is asked first which keys blocks have shown:
///
/// - The last one that a block has shown vouches for the new one. Until one has shown it, the next is refused with
///   [`Error::Unseen`], unless the rotation is forced: then the key that no block has shown is passed over.
/// - If no block has shown any, the new key is the first, since nodes take nothing from a key that they do not know.
///
/// Without an answer the key until now vouches for the new one, as the log says.
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
                "the node does not tell which keys of alias {alias} blocks have shown: {error}"
            );
        }
        Err(error) => return Err(error),
    }
    if is_forced { ids.rotate_again(alias) } else { ids.rotate(alias) }
}

/// How a rotation does not simply follow the key until now.
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
    // A node goes on knowing a key that only a lost block has shown; others do not. Of generation 1.0 the record says
    // what is announced.
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

/// Whether no key of the identity was ever in a block, as far as a node can tell that has read all blocks.
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
