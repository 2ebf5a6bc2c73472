use std::sync::Arc;
use std::time::Duration;

use bsv_minerid::{Error, MinerIds, observe_miner_ids, observe_vctxs};
use bsv_network::NodeRpc;
use bsv_tx::BlockHash;
use tokio::time::sleep;

/// How often the node is asked for its tip.
const PERIOD: Duration = Duration::from_secs(2);

/// Keeps identities up to date for as long as it is polled: notes on the disk which have handed out
/// documents, and asks the node once per tip about validity check outputs and about what was announced.
/// While the node is away, what was last known holds.
pub(crate) async fn watch(ids: Arc<MinerIds>, node: Option<NodeRpc>) {
    let mut observed = Observed::default();
    let mut is_node_away = false;
    loop {
        record_hand_outs(&ids).await;
        if let Some(node) = &node {
            match observe(&ids, node, &mut observed).await {
                Ok(()) => {
                    if is_node_away {
                        tracing::info!("the node answers again");
                    }
                    is_node_away = false;
                }
                Err(error) => {
                    if !is_node_away {
                        tracing::warn!("the node cannot be asked about miner ids: {error}");
                    }
                    is_node_away = true;
                }
            }
        }
        sleep(PERIOD).await;
    }
}

/// What the node was asked about.
#[derive(Default)]
struct Observed {
    tip: Option<BlockHash>,
    /// A node enters a block into its list of miner ids after it has made it its tip, so it is asked
    /// about announcements once more a moment later.
    is_settled: bool,
}

async fn observe(ids: &MinerIds, node: &NodeRpc, observed: &mut Observed) -> Result<(), Error> {
    let tip = node.tip().await?.hash;
    if observed.tip != Some(tip) {
        let tip = observe_vctxs(ids, node).await?.hash;
        *observed = Observed { tip: Some(tip), is_settled: false };
        observe_miner_ids(ids, node).await?;
    } else if !observed.is_settled {
        observe_miner_ids(ids, node).await?;
        observed.is_settled = true;
    }
    Ok(())
}

async fn record_hand_outs(ids: &Arc<MinerIds>) {
    let ids = Arc::clone(ids);
    let recorded = tokio::task::spawn_blocking(move || ids.record_hand_outs()).await;
    if let Ok(Err(error)) = recorded {
        tracing::warn!("cannot note that documents were handed out: {error}");
    }
}
