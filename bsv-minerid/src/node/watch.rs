//! Following what the chain shows of identities.

use std::sync::Arc;
use std::time::Duration;

use bsv_network::{ChainTip, NodeRpc};
use tokio::time::{Instant, sleep, timeout};

use crate::error::Error;
use crate::identity::Identity;
use crate::miner_ids::MinerIds;
use crate::node::chain_watch::{ChainSign, Observed};
use crate::node::observe::{carries_identity, observe_miner_ids};
use crate::node::vctx::observe_vctxs;
use crate::store::IdentityStore;

/// How often the node is asked for its tip, unless it tells of new blocks.
const PERIOD: Duration = Duration::from_secs(2);
/// How long a node may take to list the miner id of a block that has become its tip.
pub(crate) const SETTLING: Duration = Duration::from_millis(200);
/// How often the node is asked during that time.
const SETTLING_INTERVAL: Duration = Duration::from_millis(2);

impl<S: IdentityStore> MinerIds<S> {
    /// Adds a node, whose chain [`run`](Self::run) follows. The identities use two turns of their
    /// own at the node, so that calls of others do not delay it.
    pub fn with_node(mut self, node: NodeRpc) -> Self {
        // One turn waits for blocks, the other asks.
        self.chain.node = Some(node.with_turns(2));
        self
    }

    /// The node whose chain is followed, if any.
    pub fn node(&self) -> Option<&NodeRpc> {
        self.chain.node.as_ref()
    }

    /// Keeps the identities up to date with the chain, and notes durably which of them have handed
    /// out documents, until `shutdown` completes. While the node is unreachable, the last known
    /// state holds.
    ///
    /// The loop asks the node once for each tip what the node and its chain show
    /// ([`observe_vctxs`], [`observe_miner_ids`]). While something is announced, the node tells of
    /// a new block at once; otherwise the node is asked every two seconds.
    pub async fn run(self: Arc<Self>, shutdown: impl Future<Output = ()> + Send) {
        tokio::select! {
            biased;
            () = shutdown => {}
            () = self.follow_chain() => {}
        }
        // Documents may have been handed out since the last note.
        self.note_hand_outs().await;
    }

    /// Asks the node for news, if the identity announces something and the request implies a new
    /// block. Concurrent requests share one question for each tip. Each request waits at most for
    /// `patience`. If the node has not answered by then, no further request waits until
    /// [`run`](Self::run) has heard from the node. Nothing is asked without a node, or if `patience`
    /// is zero.
    pub async fn catch_up(
        self: &Arc<Self>,
        identity: &Identity,
        sign: ChainSign,
        patience: Duration,
    ) {
        let Some(node) = &self.chain.node else { return };
        if patience.is_zero() || identity.announced() == 0 || !self.chain.is_news(sign) {
            return;
        }
        let asked = async {
            let mut observed = self.chain.observed.lock().await;
            if self.chain.is_news(sign) {
                if let Err(error) = self.look(node, &mut observed).await {
                    tracing::debug!("the node cannot be asked about miner ids: {error}");
                }
                self.chain.note_asked_for(sign);
            }
        };
        // Boxed: the future is large, and each request's future is moved as a whole.
        if timeout(patience, Box::pin(asked)).await.is_err() {
            self.chain.known().is_silent = true;
        }
    }

    async fn follow_chain(self: &Arc<Self>) {
        let mut is_node_away = false;
        loop {
            self.note_hand_outs().await;
            let Some(node) = &self.chain.node else {
                sleep(PERIOD).await;
                continue;
            };
            let looked = {
                let mut observed = self.chain.observed.lock().await;
                self.look(node, &mut observed).await
            };
            match (&looked, is_node_away) {
                (Ok(()), true) => tracing::info!("the node answers again"),
                (Err(error), false) => {
                    tracing::warn!("the node cannot be asked about miner ids: {error}");
                }
                _ => {}
            }
            is_node_away = looked.is_err();
            match looked {
                Ok(()) => self.wait_for_block(node).await,
                Err(_) => sleep(PERIOD).await,
            }
        }
    }

    /// Waits for the next block. While something is announced, the node tells of a new block at
    /// once. This call occupies one of the few calls that a node runs at once.
    async fn wait_for_block(&self, node: &NodeRpc) {
        let tip = self.chain.known().tip;
        if let Some(tip) = tip.filter(|_| self.announced() > 0) {
            let begun = Instant::now();
            if node.wait_for_height(tip.height.saturating_add(1), PERIOD).await.is_ok() {
                return;
            }
            sleep(PERIOD.saturating_sub(begun.elapsed())).await;
        } else {
            sleep(PERIOD).await;
        }
    }

    /// Asks the node for news, and notes whether it answers.
    async fn look(self: &Arc<Self>, node: &NodeRpc, observed: &mut Observed) -> Result<(), Error> {
        let looked = self.look_at_tip(node, observed).await;
        let is_away = matches!(&looked, Err(Error::Node(error)) if error.is_unavailable());
        self.chain.known().is_silent = is_away;
        looked
    }

    /// Asks the node about validity check outputs and announcements, once for each tip. If one of
    /// the two fails, the other is asked about all the same, and the tip is asked about again.
    async fn look_at_tip(
        self: &Arc<Self>,
        node: &NodeRpc,
        observed: &mut Observed,
    ) -> Result<(), Error> {
        let tip = node.tip().await?;
        if observed.tip == Some(tip.hash) && observed.is_settled && !self.has_untold() {
            return Ok(());
        }
        if observed.tip == Some(tip.hash) {
            observe_miner_ids(self, node).await?;
            observed.is_settled = true;
            return Ok(());
        }
        let seen = observe_vctxs(self, node).await;
        if let Err(Error::Node(error)) = &seen
            && error.is_unavailable()
        {
            return seen.map(drop);
        }
        let tip = seen.as_ref().ok().copied().flatten().unwrap_or(tip);
        self.settle_chain(node, tip).await?;
        if let Some(tip) = seen? {
            *observed = Observed { tip: Some(tip.hash), is_settled: false };
            self.chain.known().tip = Some(tip);
        }
        Ok(())
    }

    /// Asks the node which announcements it has seen. If the last block carries an identity, which
    /// may be one of these, asks again until the node tells something new or has had enough time.
    async fn settle_chain(self: &Arc<Self>, node: &NodeRpc, tip: ChainTip) -> Result<(), Error> {
        let announced = self.announced();
        observe_miner_ids(self, node).await?;
        if announced == 0 || !carries_identity(node, &tip.hash).await? {
            return Ok(());
        }
        let begun = Instant::now();
        while self.announced() == announced && begun.elapsed() < SETTLING {
            sleep(SETTLING_INTERVAL).await;
            observe_miner_ids(self, node).await?;
        }
        Ok(())
    }

    async fn note_hand_outs(self: &Arc<Self>) {
        if let Err(error) = self.on_disk(Self::record_hand_outs).await {
            tracing::warn!("cannot note that documents were handed out: {error}");
        }
    }
}
