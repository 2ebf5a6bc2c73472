use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bsv_network::{NodeError, NodeRpc};
use bsv_tx::BlockHash;
use tokio::time::sleep;

use super::exposition::{Exposition, Number};

/// The last known state of the node.
#[derive(Debug, Default)]
pub(crate) struct SeenNode(Mutex<Option<Seen>>);

#[derive(Clone, Copy, Debug)]
struct Seen {
    is_reachable: bool,
    /// The tip that the node told last.
    tip: Option<Tip>,
}

#[derive(Clone, Copy, Debug)]
struct Tip {
    height: u32,
    hash: BlockHash,
    /// The time that the block states, in seconds since 1970.
    time: u32,
}

/// How often the node is asked.
const PERIOD: Duration = Duration::from_secs(5);

async fn look(node: &NodeRpc, last: Option<Tip>) -> Result<Tip, NodeError> {
    loop {
        let tip = node.tip().await?;
        if let Some(last) = last.filter(|last| last.hash == tip.hash) {
            return Ok(last);
        }
        // A block that has disappeared meanwhile is not the tip.
        if let Some(block) = node.block_header(&tip.hash).await? {
            return Ok(Tip { height: tip.height, hash: tip.hash, time: block.header.time });
        }
    }
}

/// Writes the state of the node, if there is one.
pub(super) fn write(exposition: &mut Exposition, seen: &SeenNode) {
    let Some(Seen { is_reachable, tip }) = seen.get() else { return };
    let help = "Whether the node answered the last time.";
    exposition.gauge("bsv_node_reachable", help).add(&[], is_reachable);
    let Some(Tip { height, time, .. }) = tip else { return };
    let help = "Height of the node's newest block, by its last answer.";
    exposition.gauge("bsv_node_tip_height", help).add(&[], u64::from(height));
    let made_at = Duration::from_secs(u64::from(time));
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let help = "Age of the node's newest block, by the time in the block, in seconds.";
    let age = Number::Whole(now.saturating_sub(made_at).as_secs());
    exposition.gauge("bsv_node_tip_age_seconds", help).add(&[], age);
}

impl SeenNode {
    /// Asks the node for its tip, for as long as it is polled. Requests for metrics never wait for the
    /// node.
    pub(crate) async fn watch(&self, node: Option<&NodeRpc>) {
        let Some(node) = node else { return };
        loop {
            let last = self.get().and_then(|seen| seen.tip);
            let found = look(node, last).await;
            if let Err(error) = &found {
                tracing::debug!("cannot ask the node for its tip: {error}");
            }
            self.set(Seen { is_reachable: found.is_ok(), tip: found.ok().or(last) });
            sleep(PERIOD).await;
        }
    }

    fn get(&self) -> Option<Seen> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, seen: Seen) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(seen);
    }
}
