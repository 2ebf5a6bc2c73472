//! Whether the service is alive, and ready to work.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bsv_invoicing::Wallet;
use bsv_minerid::MinerIds;
use bsv_network::NodeRpc;
use bsv_store::check_writable;
use hyper::{Method, StatusCode};
use serde::Serialize;
use tokio::sync::Mutex;

use crate::config::Config;
use crate::http::{Answer, answer};
use crate::instance::Surface;

/// Answers `/healthz` and `/readyz`, which need no token and tell nothing secret.
#[derive(Debug)]
pub(crate) struct Health {
    ids: Option<Arc<MinerIds>>,
    wallet: Option<Arc<Wallet>>,
    /// Where their stores lie.
    store_dirs: Vec<PathBuf>,
    node: Option<NodeRpc>,
    /// What was found last, and when. Held while somebody looks, so that others wait for that.
    found: Mutex<Option<(Instant, Found)>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Found {
    store: StoreState,
    /// The names of the stores that are found to be damaged.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    damaged: Vec<&'static str>,
    node: NodeState,
    /// Whether the node keeps an index of all transactions, if that is known.
    txindex: Option<bool>,
    /// Why the system's clock is doubted, if it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    clock: Option<&'static str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum StoreState {
    Writable,
    NotWritable,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum NodeState {
    /// None is configured.
    None,
    Reachable,
    Away,
}

/// All that strangers are told.
#[derive(Serialize)]
struct ReadyJson {
    ready: bool,
    #[serde(flatten)]
    found: Option<Found>,
}

/// For how long it counts what was found: whoever asks more often causes no more work.
const LOOK_INTERVAL: Duration = Duration::from_secs(2);
/// For how long the node is waited for.
const NODE_TIMEOUT: Duration = Duration::from_secs(3);

impl Health {
    pub(crate) fn new(
        config: &Config,
        ids: Option<Arc<MinerIds>>,
        wallet: Option<Arc<Wallet>>,
        node: Option<NodeRpc>,
    ) -> Self {
        let minerid_dir = config.minerid.iter().map(|minerid| minerid.data_dir.clone());
        let wallet_dir = config.wallet.iter().map(|_| config.network_dir.clone());
        Self {
            ids,
            wallet,
            store_dirs: minerid_dir.chain(wallet_dir).collect(),
            node: node.map(|node| node.with_turns(1).with_timeout(NODE_TIMEOUT)),
            found: Mutex::default(),
        }
    }

    /// The patterns of its paths, which are the paths.
    pub(crate) const PATTERNS: [&str; 2] = ["/healthz", "/readyz"];

    /// The pattern that a path fits.
    pub(crate) fn pattern(path: &str) -> Option<&'static str> {
        Self::PATTERNS.into_iter().find(|pattern| *pattern == path)
    }

    /// Answers a request if its path is one of these.
    pub(crate) async fn answer(
        &self,
        surface: Surface,
        method: &Method,
        path: &str,
    ) -> Option<Answer> {
        let pattern = Self::pattern(path)?;
        if !matches!(*method, Method::GET | Method::HEAD) {
            return Some(answer::method_not_allowed("GET, HEAD"));
        }
        if pattern == "/healthz" {
            return Some(answer::text(StatusCode::OK, "ok"));
        }
        let found = self.look().await;
        let is_ready = found.is_ready_for(surface);
        let status = if is_ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
        // Payers need not know about the node.
        let found = (surface != Surface::Payments).then_some(found);
        Some(answer::json(status, &ReadyJson { ready: is_ready, found }))
    }

    async fn look(&self) -> Found {
        let mut found = self.found.lock().await;
        if let Some((at, found)) = &*found
            && at.elapsed() < LOOK_INTERVAL
        {
            return found.clone();
        }
        let now = self.look_anew().await;
        *found = Some((Instant::now(), now.clone()));
        now
    }

    async fn look_anew(&self) -> Found {
        let dirs = self.store_dirs.clone();
        let written = tokio::task::spawn_blocking(move || {
            dirs.iter().try_for_each(|dir| check_writable(dir))
        });
        let store = match written.await.expect("it does not panic, and is not cancelled") {
            Ok(()) => StoreState::Writable,
            Err(error) => {
                tracing::warn!("not ready: {error}");
                StoreState::NotWritable
            }
        };
        let (node, txindex) = self.look_at_node().await;
        let clock = self.wallet.as_ref().and_then(|wallet| wallet.clock_doubt());
        let clock = clock.map(|doubt| doubt.name());
        Found { store, damaged: self.damaged_stores(), node, txindex, clock }
    }

    fn damaged_stores(&self) -> Vec<&'static str> {
        let ids = self.ids.as_ref().and_then(|ids| ids.store().damage());
        let wallet = self.wallet.as_ref().and_then(|wallet| wallet.store().damage());
        let stores = [(ids, Surface::MinerId), (wallet, Surface::Wallet)];
        stores.into_iter().filter_map(|(damage, of)| damage.map(|_| of.name())).collect()
    }

    async fn look_at_node(&self) -> (NodeState, Option<bool>) {
        let Some(node) = &self.node else { return (NodeState::None, None) };
        match node.has_transaction_index().await {
            Ok(txindex) => (NodeState::Reachable, Some(txindex)),
            Err(error) => {
                tracing::debug!("not ready: {error}");
                (NodeState::Away, None)
            }
        }
    }
}

impl Found {
    /// Documents are made without the node. Payments need it, and its index, where one is configured.
    /// While the clock is doubted, invoices do not expire.
    fn is_ready_for(&self, surface: Surface) -> bool {
        let is_node_ready = self.node == NodeState::None || self.txindex == Some(true);
        let is_intact = |name| !self.damaged.contains(&name);
        self.store == StoreState::Writable
            && match surface {
                Surface::MinerId => is_intact(Surface::MinerId.name()),
                Surface::Wallet | Surface::Payments => {
                    is_node_ready && is_intact(Surface::Wallet.name()) && self.clock.is_none()
                }
                Surface::Control => {
                    is_node_ready && self.damaged.is_empty() && self.clock.is_none()
                }
            }
    }
}
