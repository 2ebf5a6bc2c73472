//! Following what the chain shows of identities.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bsv_minerid::{
    Alias, Error, Identity, MinerIds, carries_identity, observe_miner_ids, observe_vctxs,
    rotate_miner_id,
};
use bsv_network::{ChainTip, NodeRpc};
use bsv_tx::BlockHash;
use tokio::time::{Instant, sleep, timeout};

/// How often the node is asked for its tip, where it does not tell of new blocks.
const PERIOD: Duration = Duration::from_secs(2);
/// A node enters a block into its list of miner ids a moment after it has made it its tip.
const SETTLING: Duration = Duration::from_millis(200);
/// How often it is asked meanwhile.
const SETTLING_INTERVAL: Duration = Duration::from_millis(2);

/// Keeps identities up to date with the chain. While the node is away, what was last known holds.
#[derive(Debug)]
pub(crate) struct ChainWatch {
    ids: Arc<MinerIds>,
    node: Option<NodeRpc>,
    /// For how long a request waits for the node.
    patience: Duration,
    /// Held while the node is asked, so that others wait for the answer.
    observed: tokio::sync::Mutex<Observed>,
    known: Mutex<Known>,
}

/// What the node was asked about.
#[derive(Debug, Default)]
struct Observed {
    tip: Option<BlockHash>,
    /// Whether the node has had the time to enter that block into its list of miner ids.
    is_settled: bool,
}

/// What requests can be compared with.
#[derive(Debug, Default)]
struct Known {
    tip: Option<ChainTip>,
    /// The sign of a further block for which the node was last asked, and the tip that it had then.
    asked_for: Option<(Sign, Option<ChainTip>)>,
}

/// What a request shows of the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sign {
    /// The height of the block that is being made.
    Height(u32),
    /// The block that comes before it.
    PreviousBlock(BlockHash),
}

impl Sign {
    /// Whether it shows another tip than this one.
    fn is_beyond(self, tip: &ChainTip) -> bool {
        match self {
            Self::Height(height) => height > tip.height.saturating_add(1),
            Self::PreviousBlock(hash) => hash != tip.hash,
        }
    }
}

impl ChainWatch {
    pub(crate) fn new(ids: Arc<MinerIds>, node: Option<NodeRpc>, patience: Duration) -> Self {
        // Nobody else's calls are to keep it waiting: one turn waits for blocks, and one asks.
        let node = node.map(|node| node.with_turns(2));
        Self { ids, node, patience, observed: Default::default(), known: Default::default() }
    }

    pub(crate) fn ids(&self) -> &Arc<MinerIds> {
        &self.ids
    }

    /// Asks the node what it has seen, if a request for an identity that announces something shows that there is a
    /// further block. All requests together ask once for a tip, and none waits for longer than the patience.
    pub(crate) async fn catch_up(&self, identity: &Identity, sign: Sign) {
        let Some(node) = &self.node else { return };
        if self.patience.is_zero() || identity.announced() == 0 || !self.is_news(sign) {
            return;
        }
        let asked = async {
            let mut observed = self.observed.lock().await;
            if self.is_news(sign) {
                if let Err(error) = self.observe(node, &mut observed).await {
                    tracing::debug!("the node cannot be asked about miner ids: {error}");
                }
                self.note_asked_for(sign);
            }
        };
        // On the heap: it is long, and the future of each request is moved about as a whole.
        if timeout(self.patience, Box::pin(asked)).await.is_err() {
            self.note_asked_for(sign);
        }
    }

    fn note_asked_for(&self, sign: Sign) {
        let mut known = self.known();
        known.asked_for = Some((sign, known.tip));
    }

    /// Gives an identity a new key.
    pub(crate) async fn rotate(&self, alias: &Alias) -> Result<(), Error> {
        Box::pin(rotate_miner_id(&self.ids, self.node.as_ref(), alias, false)).await.map(drop)
    }

    /// Whether a request shows another tip than the one that is known, and the node was not asked because of it.
    fn is_news(&self, sign: Sign) -> bool {
        let known = self.known();
        known.tip.is_none_or(|tip| sign.is_beyond(&tip))
            && known.asked_for != Some((sign, known.tip))
    }

    /// Follows the chain, and notes on the disk which identities have handed out documents, for as long as it is
    /// polled.
    pub(crate) async fn run(&self) {
        let mut is_node_away = false;
        loop {
            self.record_hand_outs().await;
            let Some(node) = &self.node else {
                sleep(PERIOD).await;
                continue;
            };
            let observed = {
                let mut observed = self.observed.lock().await;
                self.observe(node, &mut observed).await
            };
            match (&observed, is_node_away) {
                (Ok(()), true) => tracing::info!("the node answers again"),
                (Err(error), false) => {
                    tracing::warn!("the node cannot be asked about miner ids: {error}");
                }
                _ => {}
            }
            is_node_away = observed.is_err();
            self.wait_for_block(node).await;
        }
    }

    /// Waits for the next block, which nodes tell of at once. That takes one of the few calls that a node runs at a
    /// time, and is only asked for while something is announced.
    async fn wait_for_block(&self, node: &NodeRpc) {
        let tip = self.known_tip();
        if let Some(tip) = tip.filter(|_| self.ids.announced() > 0) {
            let begun = Instant::now();
            if node.wait_for_height(tip.height.saturating_add(1), PERIOD).await.is_ok() {
                return;
            }
            sleep(PERIOD.saturating_sub(begun.elapsed())).await;
        } else {
            sleep(PERIOD).await;
        }
    }

    /// Asks the node about validity check outputs and about what was announced, once per tip.
    async fn observe(&self, node: &NodeRpc, observed: &mut Observed) -> Result<(), Error> {
        let tip = node.tip().await?;
        if observed.tip == Some(tip.hash) && observed.is_settled && !self.ids.has_untold() {
            return Ok(());
        }
        if observed.tip != Some(tip.hash) {
            let tip = observe_vctxs(&self.ids, node).await?;
            self.settle(node, tip).await?;
            *observed = Observed { tip: Some(tip.hash), is_settled: false };
            self.known().tip = Some(tip);
        } else {
            observe_miner_ids(&self.ids, node).await?;
            observed.is_settled = true;
        }
        Ok(())
    }

    /// Asks what the node has seen of what was announced. If its last block carries an identity, which may be one of
    /// these, it is asked again until it tells something new, or has had the time to.
    async fn settle(&self, node: &NodeRpc, tip: ChainTip) -> Result<(), Error> {
        let announced = self.ids.announced();
        observe_miner_ids(&self.ids, node).await?;
        if announced == 0 || !carries_identity(node, &tip.hash).await? {
            return Ok(());
        }
        let begun = Instant::now();
        while self.ids.announced() == announced && begun.elapsed() < SETTLING {
            sleep(SETTLING_INTERVAL).await;
            observe_miner_ids(&self.ids, node).await?;
        }
        Ok(())
    }

    async fn record_hand_outs(&self) {
        let ids = Arc::clone(&self.ids);
        let recorded = tokio::task::spawn_blocking(move || ids.record_hand_outs()).await;
        if let Ok(Err(error)) = recorded {
            tracing::warn!("cannot note that documents were handed out: {error}");
        }
    }

    fn known_tip(&self) -> Option<ChainTip> {
        self.known().tip
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
