use std::sync::Arc;
use std::time::Duration;

use bsv_minerid::{Error, MinerIds, observe_vctxs};
use bsv_network::NodeRpc;
use bsv_tx::BlockHash;
use tokio::time::sleep;

/// How often the node is asked for its tip.
const PERIOD: Duration = Duration::from_secs(2);

/// Keeps identities up to date for as long as it is polled: notes on the disk which have handed out
/// documents, and asks the node about validity check outputs once per tip. While the node is away,
/// what was last known holds.
pub(crate) async fn watch(ids: Arc<MinerIds>, node: Option<NodeRpc>) {
    let mut observed = None;
    let mut is_node_away = false;
    loop {
        record_hand_outs(&ids).await;
        if let Some(node) = &node {
            match observe_new_tip(&ids, node, observed).await {
                Ok(tip) => {
                    observed = Some(tip);
                    if is_node_away {
                        tracing::info!("the node answers again");
                    }
                    is_node_away = false;
                }
                Err(error) => {
                    if !is_node_away {
                        tracing::warn!("VCTxs cannot be checked: {error}");
                    }
                    is_node_away = true;
                }
            }
        }
        sleep(PERIOD).await;
    }
}

async fn observe_new_tip(
    ids: &MinerIds,
    node: &NodeRpc,
    observed: Option<BlockHash>,
) -> Result<BlockHash, Error> {
    let tip = node.tip().await?.hash;
    if observed == Some(tip) {
        return Ok(tip);
    }
    Ok(observe_vctxs(ids, node).await?.hash)
}

async fn record_hand_outs(ids: &Arc<MinerIds>) {
    let ids = Arc::clone(ids);
    let recorded = tokio::task::spawn_blocking(move || ids.record_hand_outs()).await;
    if let Ok(Err(error)) = recorded {
        tracing::warn!("cannot note that documents were handed out: {error}");
    }
}
