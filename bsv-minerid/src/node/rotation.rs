//! Rotation with a node's knowledge of the keys that blocks have shown.

use std::sync::Arc;

use bsv_network::{MinerIdState, NodeRpc};
use bsv_tx::PublicKey;
use tokio::time::sleep;

use crate::alias::Alias;
use crate::error::Error;
use crate::miner_ids::MinerIds;
use crate::node::observe::{PATIENCE, observe_miner_id};
use crate::node::watch::SETTLING;
use crate::state::{Announcement, Exposure, IdentityRecord, Rotation};
use crate::store::IdentityStore;

/// Rotates as [`MinerIds::rotate`] says.
pub(super) async fn rotate_miner_id<S: IdentityStore>(
    ids: &Arc<MinerIds<S>>,
    node: Option<&NodeRpc>,
    alias: &Alias,
    is_forced: bool,
) -> Result<PublicKey, Error> {
    let identity = ids.get(alias.as_str())?;
    let from = identity.record().current_key().number;
    let shown = match node {
        // A key that is still kept then is replaced without a question.
        _ if identity.is_kept() => {
            Shown::Unanswered("its first document was handed out just now".to_owned())
        }
        Some(node) => {
            let asked = ask(ids, &node.clone().with_timeout(PATIENCE), alias).await;
            asked.or_else(|error| match error {
                Error::Node(error) => Ok(Shown::Unanswered(error.to_string())),
                error => Err(error),
            })?
        }
        None => Shown::Unknowable,
    };
    if shown == Shown::Unknowable {
        tracing::warn!(
            "no node tells which keys blocks have shown: if no block has shown the current key of alias \
             {alias}, nodes ignore all its later documents"
        );
    }
    let is_answer = !matches!(shown, Shown::Unknowable | Shown::Unanswered(_));
    let alias = alias.clone();
    let rotate = move |ids: &MinerIds<S>| {
        ids.rotate_by(&alias, is_forced, |record| {
            if is_answer && record.current_key().number != from {
                let reason = "its key was rotated";
                return Err(Error::Conflict { alias: alias.clone(), reason });
            }
            rotation_after(shown, record, &alias, is_forced)
        })
    };
    ids.on_disk(rotate).await
}

/// What the blocks have shown of an identity.
#[derive(Debug, PartialEq, Eq)]
enum Shown {
    /// The current key.
    Current,
    /// Not the current key. The last key that they have shown has this number.
    Earlier(u32),
    /// No key.
    Nothing,
    /// No key that the node knows, although they have shown the identity according to the record.
    Unfamiliar,
    /// Nobody can tell.
    Unknowable,
    /// The node cannot tell now, for this reason.
    Unanswered(String),
}

/// How the key is rotated.
fn rotation_after(
    shown: Shown,
    record: &IdentityRecord,
    alias: &Alias,
    is_forced: bool,
) -> Result<Rotation, Error> {
    let is_of_0_2 = record.vctx().is_some();
    match shown {
        Shown::Nothing => Ok(Rotation::Replace),
        Shown::Unfamiliar if is_forced => Ok(Rotation::BeginAnew),
        Shown::Unfamiliar => Err(Error::UnknownToNode(alias.clone())),
        Shown::Earlier(last) if is_forced => Ok(Rotation::PassOver(last)),
        Shown::Earlier(_) if is_of_0_2 => {
            Err(Error::Unseen { alias: alias.clone(), announcement: Announcement::Rotation })
        }
        Shown::Unanswered(reason) => match record.exposure() == Exposure::Known {
            true if !is_of_0_2 || record.has_shown_current_key() => Ok(Rotation::Succeed),
            _ if is_forced && is_of_0_2 => Ok(Rotation::PassOver(record.acknowledged_key().number)),
            _ if is_forced => Ok(Rotation::Succeed),
            _ if record.is_current_key_handed_out() => {
                Err(Error::NodeNeeded { alias: alias.clone(), reason })
            }
            // Nobody has a document with the current key.
            _ if is_of_0_2 => Ok(Rotation::PassOver(record.previous_key().number)),
            _ => Ok(Rotation::Succeed),
        },
        Shown::Unknowable if is_forced && is_of_0_2 && record.exposure() == Exposure::Known => {
            Ok(Rotation::PassOver(record.acknowledged_key().number))
        }
        Shown::Current | Shown::Earlier(_) | Shown::Unknowable => Ok(Rotation::Succeed),
    }
}

/// Asks the node what blocks have shown.
async fn ask<S: IdentityStore>(
    ids: &Arc<MinerIds<S>>,
    node: &NodeRpc,
    alias: &Alias,
) -> Result<Shown, Error> {
    observe_miner_id(ids, node, alias).await?;
    let record = ids.get(alias.as_str())?.record();
    let is_current_known = is_known(node, &record.current_key().public_key).await?;
    // A node keeps knowing a key that only a block off the main chain has shown; others do not know
    // it. In generation 1.0, the record tells what is announced.
    let is_rotation_lost = record.is_repeated()
        && record.vctx().is_some()
        && record.announcements().contains(&Announcement::Rotation);
    if is_current_known && !is_rotation_lost && !record.is_lost() {
        return Ok(Shown::Current);
    }
    if record.reach_beyond(node.tip().await?.height) {
        return Ok(Shown::Unanswered("it lacks blocks that were read already".to_owned()));
    }
    if record.is_lost() && !node.has_all_blocks().await? {
        return Ok(Shown::Unanswered("it has not read all blocks yet".to_owned()));
    }
    if record.is_lost() || nobody_knows(node, &record).await? {
        return Ok(Shown::Nothing);
    }
    if is_unfamiliar(node, &record).await? {
        return Ok(Shown::Unfamiliar);
    }
    last_shown(node, &record).await
}

/// Whether a node that has all blocks knows no key of the identity.
async fn is_unfamiliar(node: &NodeRpc, record: &IdentityRecord) -> Result<bool, Error> {
    if is_any_known(node, record).await? {
        return Ok(false);
    }
    // The node may be about to list the miner id of its last block.
    sleep(SETTLING).await;
    Ok(!is_any_known(node, record).await? && has_all_blocks(node, record).await?)
}

/// Whether a node has all blocks, among them those that were read for the identity.
async fn has_all_blocks(node: &NodeRpc, record: &IdentityRecord) -> Result<bool, Error> {
    let tip = node.tip().await?;
    Ok(!record.reach_beyond(tip.height) && node.has_all_blocks().await?)
}

/// The last key that blocks of the main chain have shown. A node that has seen lost blocks may take
/// no document after them, which others take. So the record decides if it says that a block shows
/// the current key.
async fn last_shown(node: &NodeRpc, record: &IdentityRecord) -> Result<Shown, Error> {
    if record.has_shown_current_key() {
        return Ok(Shown::Current);
    }
    let acknowledged = Shown::Earlier(record.acknowledged_key().number);
    if record.is_repeated() {
        return Ok(acknowledged);
    }
    let mut is_any_known = false;
    for key in record.keys().iter().rev() {
        match node.miner_id_info(&key.public_key).await? {
            Some(info) if info.state == MinerIdState::Current => {
                return Ok(Shown::Earlier(key.number));
            }
            info => is_any_known |= info.is_some(),
        }
    }
    Ok(match is_any_known {
        true => acknowledged,
        false => Shown::Unanswered("it knows no key of the alias".to_owned()),
    })
}

/// Whether no key of the identity was ever in a block, as far as a node that has all blocks can
/// tell.
pub(crate) async fn nobody_knows(node: &NodeRpc, record: &IdentityRecord) -> Result<bool, Error> {
    Ok(record.exposure() != Exposure::Known
        && !is_any_known(node, record).await?
        && has_all_blocks(node, record).await?)
}

async fn is_any_known(node: &NodeRpc, record: &IdentityRecord) -> Result<bool, Error> {
    for key in record.keys().iter().rev() {
        if is_known(node, &key.public_key).await? {
            return Ok(true);
        }
    }
    Ok(false)
}

async fn is_known(node: &NodeRpc, key: &PublicKey) -> Result<bool, Error> {
    Ok(node.miner_id_info(key).await?.is_some())
}
