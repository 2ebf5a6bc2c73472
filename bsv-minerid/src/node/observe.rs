//! Updating identities from what a node and its chain show.

use std::sync::Arc;
use std::time::Duration;

use bsv_network::{ChainTip, MinerIdInfo, MinerIdState, NodeError, NodeRpc};
use bsv_tx::BlockHash;

use crate::alias::Alias;
use crate::error::Error;
use crate::identity::Identity;
use crate::miner_ids::{MinerIds, check_newest};
use crate::node::telling::tell_of_revocation;
use crate::output_script::is_identity;
use crate::state::{self, Announcement, BlockRef, ChainView, Change, IdentityRecord, Unseen};
use crate::store::IdentityStore;

/// How many blocks may stay unread for an identity that awaits nothing: a day.
const MOST_UNREAD: u32 = 144;
/// How long a change waits for each answer of the node.
pub(crate) const PATIENCE: Duration = Duration::from_secs(3);

/// Asks the node once what it and its chain show of all identities, and updates the documents:
/// announcements that a block has shown end, and those that no block of the main chain shows any
/// more return. An identity that cannot be updated does not affect the others; the first error is
/// answered in the end. Detects copies of identities that are older than the node's knowledge. Tells the
/// node of revocations that it has not received. Answers the tip of the chain. [`MinerIds::run`]
/// calls this for each new tip.
pub async fn observe_miner_ids<S: IdentityStore>(
    ids: &Arc<MinerIds<S>>,
    node: &NodeRpc,
) -> Result<ChainTip, Error> {
    let tip = node.tip().await?;
    let mut failure = None;
    for identity in ids.all() {
        match observe_identity(ids, node, &identity, &tip).await {
            Ok(()) => {}
            Err(Error::Node(error)) if error.is_unavailable() => return Err(error.into()),
            Err(error) => failure = failure.or(Some(error)),
        }
    }
    failure.map_or(Ok(tip), Err)
}

/// Asks the node what it and its chain show of one identity.
pub(crate) async fn observe_miner_id<S: IdentityStore>(
    ids: &Arc<MinerIds<S>>,
    node: &NodeRpc,
    alias: &Alias,
) -> Result<(), Error> {
    let tip = node.tip().await?;
    observe_identity(ids, node, &*ids.get(alias.as_str())?, &tip).await
}

async fn observe_identity<S: IdentityStore>(
    ids: &Arc<MinerIds<S>>,
    node: &NodeRpc,
    identity: &Identity,
    tip: &ChainTip,
) -> Result<(), Error> {
    if !identity.is_kept() {
        compare_with_node(node, identity).await?;
        tell_of_revocation(ids, node, identity).await?;
    }
    follow_blocks(ids, node, identity, tip).await
}

/// Asks the node what it and its chain show. Fails with [`Error::StaleCopy`] if this is an older
/// copy of the identity. If the node does not answer, the last known state decides.
pub async fn check_newest_copy<S: IdentityStore>(
    ids: &Arc<MinerIds<S>>,
    node: &NodeRpc,
    alias: &Alias,
) -> Result<(), Error> {
    observe_if_node_answers(ids, &node.clone().with_timeout(PATIENCE), alias).await?;
    check_newest(&*ids.get(alias.as_str())?)
}

/// Asks the node about one identity. If the node does not answer, this logs a warning, and nothing
/// changes.
pub(crate) async fn observe_if_node_answers<S: IdentityStore>(
    ids: &Arc<MinerIds<S>>,
    node: &NodeRpc,
    alias: &Alias,
) -> Result<(), Error> {
    match observe_miner_id(ids, node, alias).await {
        Err(Error::Node(error)) => {
            tracing::warn!("cannot ask the node what blocks have shown of alias {alias}: {error}");
            Ok(())
        }
        observed => observed,
    }
}

/// Whether the coinbase transaction of a block carries an identity, valid or not.
pub async fn carries_identity(node: &NodeRpc, block: &BlockHash) -> Result<bool, Error> {
    let Some(found) = node.block_coinbase(block).await? else { return Ok(false) };
    let mut scripts = found.coinbase.outputs.iter().map(|output| output.locking_script.as_bytes());
    Ok(scripts.any(is_identity))
}

/// Notes whether the node knows a newer state of an identity than this copy.
async fn compare_with_node(node: &NodeRpc, identity: &Identity) -> Result<(), Error> {
    let record = identity.record();
    let info = match node.miner_id_info(&record.current_key().public_key).await {
        Ok(info) => info,
        // A node that keeps no miner ids (`minerid=0`) tells nothing, also not that this copy is
        // the newest.
        Err(NodeError::Rejected { .. }) => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    let is_stale = match &info {
        Some(info) if !is_explained(&record, info) => !has_current_key(node, &record).await?,
        _ => false,
    };
    identity.note_stale(is_stale);
    Ok(())
}

/// Whether documents of this copy explain what a node says of the current key.
fn is_explained(record: &IdentityRecord, info: &MinerIdInfo) -> bool {
    match info.state {
        MinerIdState::Current => {
            let names = |key| record.miner_info().is_none() || record.has_revocation_key(&key);
            info.revocation_key.is_none_or(names)
        }
        MinerIdState::Rotated => false,
        MinerIdState::Revoked => {
            record.miner_info().is_some() && (record.revocation().is_some() || record.is_closed())
        }
    }
}

/// Whether a node considers another key of the identity current. The current key of this copy may
/// have been announced in blocks that have left the main chain, or may have been skipped.
async fn has_current_key(node: &NodeRpc, record: &IdentityRecord) -> Result<bool, Error> {
    for key in record.keys().iter().rev().skip(1) {
        let info = node.miner_id_info(&key.public_key).await?;
        if info.is_some_and(|info| info.state == MinerIdState::Current) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Follows what blocks show of an identity's announcements, and which of these blocks have left the
/// main chain. For an identity that awaits nothing, it notes from time to time how far the chain
/// has come, so that no earlier block is read for the next announcement. A node that lacks blocks
/// that were read already tells nothing: its data may be an old copy.
async fn follow_blocks<S: IdentityStore>(
    ids: &Arc<MinerIds<S>>,
    node: &NodeRpc,
    identity: &Identity,
    tip: &ChainTip,
) -> Result<(), Error> {
    let before = identity.record();
    if before.reach_beyond(tip.height) {
        return Ok(());
    }
    let is_awaited = before.awaits_blocks();
    let is_recent = |read_to: BlockRef| tip.height.abs_diff(read_to.height) < MOST_UNREAD;
    if !is_awaited && before.read_to.is_some_and(is_recent) {
        return Ok(());
    }
    let mut left = Vec::new();
    for seen_in in before.steps.iter().filter_map(|step| step.seen.block()) {
        match node.block_header(&seen_in.hash).await? {
            Some(block) if block.in_main_chain => {}
            None if seen_in.height > tip.height => return Ok(()),
            _ => left.push(seen_in.hash),
        }
    }
    let mut view = ChainView { left, ..ChainView::default() };
    let mut after = before.clone();
    // What only those blocks have shown is looked for again.
    let _ = after.apply(&Change::Observe(view.clone()));
    for key in after.unacknowledged_keys() {
        match node.miner_id_info(&key.public_key).await {
            Ok(info) => view.known.extend(info.map(state::MinerIdInfo::from)),
            // A node that keeps no miner ids (`minerid=0`) knows none.
            Err(NodeError::Rejected { .. }) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
    // The node's knowledge comes from blocks up to this tip, or from blocks that have left the main
    // chain.
    let tip = node.tip().await?;
    let read_to = before.read_to.filter(|_| is_awaited);
    ids.chain.read_blocks.view(node, &tip, read_to, &mut view).await?;
    let mut after = before.clone();
    if after.apply(&Change::Observe(view.clone())).is_err() || after == before {
        return Ok(());
    }
    let alias = identity.alias().clone();
    let observe = move |ids: &MinerIds<S>| {
        ids.observe(&alias, view)?;
        log(&alias, &before, &ids.get(alias.as_str())?.record());
        Ok(())
    };
    ids.on_disk(observe).await
}

/// Tells the operator which announcements were seen, which are no longer seen, and which are
/// overdue.
fn log(alias: &Alias, before: &IdentityRecord, after: &IdentityRecord) {
    let (announced_before, announced) = (before.announcements(), after.announcements());
    let is_passed_over = after.is_revocation_passed_over();
    if is_passed_over && !before.is_revocation_passed_over() {
        tracing::error!(
            "the revocation of alias {alias} counts no more, because blocks show another key than the one that \
             has signed it: documents announce the new key as a rotation. Revoke again"
        );
    }
    for seen in announced_before.iter().filter(|it| !announced.contains(it) && !is_passed_over) {
        tracing::info!("{} of alias {alias} was seen in a block", seen.in_words());
    }
    for unseen in announced.iter().filter(|it| !announced_before.contains(it) && !is_passed_over) {
        tracing::warn!(
            "the block that showed {} of alias {alias} has left the main chain: documents announce it again",
            unseen.in_words()
        );
    }
    let overdue = |record: &IdentityRecord| record.unseen.clone().filter(Unseen::is_overdue);
    if let (None, Some(Unseen { since, blocks, own_blocks })) = (overdue(before), overdue(after)) {
        let announced: Vec<_> = announced.into_iter().map(Announcement::in_words).collect();
        tracing::error!(
            "{} of alias {alias} has been announced since height {since}, but none of {blocks} blocks shows it, \
             {} of them its own: nodes may refuse it",
            announced.join(" and "),
            own_blocks.len(),
        );
    }
}
