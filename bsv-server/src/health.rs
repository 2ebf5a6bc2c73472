//! Whether the service is alive and ready to work.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bsv_invoicing::Wallet;
use bsv_network::NodeRpc;
use bsv_network::broadcasters::{BroadcasterReport, Outcome};
use bsv_network::headers::HeaderFollower;
use bsv_store::check_writable;
use hyper::StatusCode;
use serde::Serialize;
use tokio::sync::Mutex;
use tokio::time::timeout;

use crate::api::Api;
use crate::http::{Answer, Declared, answer};
use crate::minerid::MinerIds;
use crate::opening::{Failures, Stores};

/// Answers `/healthz` and `/readyz`, which need no token and tell no secrets.
#[derive(Debug)]
pub(crate) struct Health {
    ids: Option<Arc<MinerIds>>,
    wallet: Option<Arc<Wallet>>,
    /// The directory of the identities.
    minerid_dir: Option<PathBuf>,
    /// The directory of the wallet.
    wallet_dir: Option<PathBuf>,
    failures: Failures,
    node: Option<NodeRpc>,
    headers: Option<Arc<HeaderFollower>>,
    /// The readiness apart from the wallet's store.
    readiness: Recent<Readiness>,
    /// Whether the wallet's store takes changes.
    wallet_store: Recent<StoreState>,
}

/// The last result of a check, and its time. Held during a check, so that other callers wait for
/// the result.
#[derive(Debug)]
struct Recent<T>(Mutex<Option<(Instant, T)>>);

#[derive(Clone, Copy, Debug)]
pub(crate) enum Route {
    /// Whether the process is alive.
    Alive,
    /// Whether the service is ready to work.
    Ready,
}

const ROUTES: [Declared<Route>; 2] =
    [("/healthz", "GET, HEAD", Route::Alive), ("/readyz", "GET, HEAD", Route::Ready)];

/// The state of what the service needs to work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Readiness {
    pub(crate) store: StoreState,
    /// The names of the services that could not be opened or whose store is damaged.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) damaged: Vec<&'static str>,
    pub(crate) node: NodeState,
    /// Whether the node keeps an index of all transactions, if known.
    pub(crate) txindex: Option<bool>,
    /// Whether the block headers are up to date, if the server keeps them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) headers: Option<HeadersState>,
    /// Whether a broadcaster takes payments, if the wallet asks services.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) broadcasters: Option<BroadcastersState>,
    /// The hosts of the broadcasters that refuse the API key.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) refused_keys: Vec<String>,
    /// The identities that cannot be used.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) broken_aliases: Vec<String>,
    /// The identities of which the node knows a newer state than this copy.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) stale_aliases: Vec<String>,
    /// Why the system's clock is doubted, if it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) clock: Option<&'static str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum StoreState {
    Writable,
    NotWritable,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum NodeState {
    /// No node is configured.
    None,
    Reachable,
    Away,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum HeadersState {
    Current,
    Behind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum BroadcastersState {
    Usable,
    /// Each one refuses the API key, or asks for too high a fee.
    Unusable,
}

/// The part of the result that strangers are told.
#[derive(Serialize)]
struct ReadyJson {
    ready: bool,
    #[serde(flatten)]
    readiness: Option<Readiness>,
}

/// How long a result counts. So frequent requests cause no more work.
const LOOK_INTERVAL: Duration = Duration::from_secs(2);
/// How long to wait for the node.
const NODE_TIMEOUT: Duration = Duration::from_secs(3);
/// How long to wait for the database of the wallet.
const DATABASE_TIMEOUT: Duration = Duration::from_secs(3);

impl Health {
    pub(crate) fn new(stores: &Stores) -> Self {
        let Stores { config, ids, wallet, headers, failures, node, .. } = stores;
        Self {
            ids: ids.clone(),
            wallet: wallet.clone(),
            headers: headers.clone(),
            failures: failures.clone(),
            minerid_dir: config.minerid.as_ref().map(|minerid| minerid.data_dir.clone()),
            wallet_dir: config.wallet.as_ref().map(|_| config.network_dir.clone()),
            node: node.clone().map(|node| node.with_turns(1).with_timeout(NODE_TIMEOUT)),
            readiness: Recent(Mutex::default()),
            wallet_store: Recent(Mutex::default()),
        }
    }

    /// The routes of the health checks.
    pub(crate) fn declared() -> impl Iterator<Item = Declared<Route>> {
        ROUTES.into_iter()
    }

    /// The node, with a short time-out.
    pub(crate) fn node(&self) -> Option<&NodeRpc> {
        self.node.as_ref()
    }

    /// The block headers, if the server keeps them.
    pub(crate) fn headers(&self) -> Option<&HeaderFollower> {
        self.headers.as_deref()
    }

    /// Answers a request of an API.
    pub(crate) async fn answer(&self, api: Api, route: Route) -> Answer {
        if let Route::Alive = route {
            return answer::text(StatusCode::OK, "ok");
        }
        let readiness = self.look(api).await;
        let is_ready = readiness.is_ready_for(api);
        let status = if is_ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
        // Payers get no details.
        let readiness = (api != Api::Payments).then_some(readiness);
        answer::json(status, &ReadyJson { ready: is_ready, readiness })
    }

    /// The state of what an API needs. Identities do not need the wallet's store.
    pub(crate) async fn look(&self, api: Api) -> Readiness {
        let mut readiness = self.readiness.or_new(self.look_anew()).await;
        let needs_wallet = !matches!(api, Api::MinerId | Api::Node);
        if needs_wallet && readiness.store == StoreState::Writable {
            readiness.store = self.wallet_store.or_new(self.look_at_wallet()).await;
        }
        readiness
    }

    async fn look_anew(&self) -> Readiness {
        let store = look_at_dir(self.minerid_dir.clone()).await;
        let (node, txindex) = self.look_at_node().await;
        let clock = self.wallet.as_ref().and_then(|wallet| wallet.clock_doubt());
        let clock = clock.map(|doubt| doubt.name());
        let damaged = self.damaged_stores();
        let (broken_aliases, stale_aliases) = self.ailing_aliases();
        let headers = self.headers().map(|headers| match headers.behind() {
            Some(_) => HeadersState::Behind,
            None => HeadersState::Current,
        });
        let (broadcasters, refused_keys) = self.look_at_broadcasters();
        Readiness {
            store,
            damaged,
            node,
            txindex,
            headers,
            broadcasters,
            refused_keys,
            broken_aliases,
            stale_aliases,
            clock,
        }
    }

    /// Broadcasters that are away may come back at any time, so they do not count as unusable.
    fn look_at_broadcasters(&self) -> (Option<BroadcastersState>, Vec<String>) {
        let reports = self.wallet.as_ref().map(|wallet| wallet.broadcasters()).unwrap_or_default();
        let is_refused = |it: &BroadcasterReport| it.last_outcome == Some(Outcome::Unauthorized);
        let state = match reports.iter().any(|it| it.is_in_use && !is_refused(it)) {
            true => BroadcastersState::Usable,
            false => BroadcastersState::Unusable,
        };
        let state = (!reports.is_empty()).then_some(state);
        (state, reports.into_iter().filter(is_refused).map(|it| it.host).collect())
    }

    async fn look_at_wallet(&self) -> StoreState {
        let dir = look_at_dir(self.wallet_dir.clone()).await;
        let Some(wallet) = self.wallet.as_ref().filter(|_| dir == StoreState::Writable) else {
            return dir;
        };
        match timeout(DATABASE_TIMEOUT, wallet.store().probe()).await {
            Ok(Ok(())) => StoreState::Writable,
            Ok(Err(error)) => {
                tracing::warn!("not ready: {error}");
                StoreState::NotWritable
            }
            Err(_) => {
                tracing::warn!("not ready: the database does not answer");
                StoreState::NotWritable
            }
        }
    }

    fn ailing_aliases(&self) -> (Vec<String>, Vec<String>) {
        let Some(ids) = &self.ids else { return Default::default() };
        let broken = ids.broken().map(|(alias, _)| alias.to_string());
        let stale = ids.all().into_iter().filter(|identity| identity.is_stale());
        (broken.collect(), stale.map(|identity| identity.alias().to_string()).collect())
    }

    fn damaged_stores(&self) -> Vec<&'static str> {
        let ids = self.ids.as_ref().and_then(|ids| ids.store().damage());
        let wallet = self.wallet.as_ref().and_then(|wallet| wallet.store().damage());
        let stores = [(ids, Api::MinerId), (wallet, Api::Wallet)];
        let damaged = stores.into_iter().filter(|(damage, _)| damage.is_some()).map(|(_, of)| of);
        damaged.chain(self.failures.all().map(|(failed, _)| failed)).map(Api::name).collect()
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

/// Whether a directory, if there is one, takes files.
async fn look_at_dir(dir: Option<PathBuf>) -> StoreState {
    let written =
        tokio::task::spawn_blocking(move || dir.map_or(Ok(()), |dir| check_writable(&dir)));
    match written.await.expect("the task neither panics nor is cancelled") {
        Ok(()) => StoreState::Writable,
        Err(error) => {
            tracing::warn!("not ready: {error}");
            StoreState::NotWritable
        }
    }
}

impl<T: Clone> Recent<T> {
    /// The last result if it is recent, otherwise a new one.
    async fn or_new(&self, look: impl Future<Output = T>) -> T {
        let mut last = self.0.lock().await;
        if let Some((at, result)) = &*last
            && at.elapsed() < LOOK_INTERVAL
        {
            return result.clone();
        }
        let result = look.await;
        *last = Some((Instant::now(), result.clone()));
        result
    }
}

impl Readiness {
    /// Whether the service is ready for an API. The identities need no node, but older copies
    /// make worthless documents. Payments need a broadcaster and headers that are up to date, if the wallet
    /// asks services; else the node with its index, if a node is configured; else headers that are up to
    /// date, if the server keeps them. While the clock is doubted, the
    /// wallet is not ready, because invoices do not expire.
    pub(crate) fn is_ready_for(&self, api: Api) -> bool {
        let are_headers_current = self.headers != Some(HeadersState::Behind);
        let is_source_ready = match (self.broadcasters, self.node) {
            (Some(state), _) => state == BroadcastersState::Usable && are_headers_current,
            (None, NodeState::None) => are_headers_current,
            (None, NodeState::Reachable | NodeState::Away) => self.txindex == Some(true),
        };
        let is_intact = |name| !self.damaged.contains(&name);
        self.store == StoreState::Writable
            && match api {
                Api::MinerId | Api::Node => {
                    is_intact(Api::MinerId.name()) && self.stale_aliases.is_empty()
                }
                Api::Wallet | Api::Payments => {
                    is_source_ready && is_intact(Api::Wallet.name()) && self.clock.is_none()
                }
                Api::Control => is_source_ready && self.damaged.is_empty() && self.clock.is_none(),
            }
    }
}
