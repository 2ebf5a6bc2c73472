use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bsv_network::headers::HeaderFollower;
use bsv_store::DirLock;
use tokio::time::sleep;

use crate::access::Access;
use crate::common_routes::CommonRoutes;
use crate::config::Config;
use crate::control::{ControlApi, Services};
use crate::health::Health;
use crate::http::{LargeBodies, Peers};
use crate::metrics::Metrics;
use crate::minerid::MinerIdApi;
use crate::opening::{Create, Failures, Needs, OpenError, SERVER, Stores};
use crate::payments::PaymentsApi;
use crate::wallet::WalletApi;

/// How often to check whether another server has released the data directory.
const HANDOVER_PERIOD: Duration = Duration::from_millis(2);

/// An opened data directory. This process holds it until the instance is dropped.
#[derive(Debug)]
pub struct Instance {
    pub(crate) config: Config,
    pub(crate) minerid: Option<MinerIdApi>,
    pub(crate) wallet: Option<WalletApi>,
    pub(crate) payments: Option<PaymentsApi>,
    pub(crate) control: ControlApi,
    pub(crate) access: Access,
    pub(crate) health: Arc<Health>,
    /// The block headers, if the settings say where they come from.
    pub(crate) headers: Option<Arc<HeaderFollower>>,
    pub(crate) common_routes: CommonRoutes,
    pub(crate) metrics: Metrics,
    pub(crate) failures: Failures,
    pub(crate) large_bodies: LargeBodies,
    /// The limits on strangers.
    pub(crate) payers: Arc<Peers>,
    /// Places for large payments. Strangers who fill them do not affect other requests.
    pub(crate) large_payments: LargeBodies,
    logs_requests: AtomicBool,
    _lock: Arc<DirLock>,
}

impl Instance {
    /// Opens the data directory that `config` names. `program` is the name that other processes are
    /// told while it is in use. `create` tells what is created if it is missing. A service without
    /// its store is not opened.
    pub async fn open(config: Config, program: &str, create: Create) -> Result<Self, OpenError> {
        Ok(Self::of(
            Stores::open(config, program, create, Needs::All, Duration::ZERO).await?,
            program,
        ))
    }

    /// Opens a data directory for a server. If one of the two services cannot be opened, the other
    /// one is opened alone. Waits up to `patience` for another server that is about to stop.
    pub(crate) async fn open_to_serve(
        config: Config,
        patience: Duration,
    ) -> Result<Self, OpenError> {
        let deadline = Instant::now() + patience;
        loop {
            let (config, needs) = (config.clone(), Needs::Any);
            match Stores::open(config, SERVER, Create::All, needs, patience).await {
                // The other server releases its directories one after the other.
                Err(error) if error.is_held_by_server() && Instant::now() < deadline => {}
                opened => return Ok(Self::of(opened?, SERVER)),
            }
            sleep(HANDOVER_PERIOD).await;
        }
    }

    fn of(stores: Stores, program: &str) -> Self {
        let health = Arc::new(Health::new(&stores));
        let control = ControlApi::new(Services::new(&stores, program, Arc::clone(&health)));
        let Stores { config, tokens, ids, wallet, headers, failures, lock, .. } = stores;
        let access = Access::new(config.access.clone(), tokens);
        let peers = config.wallet.as_ref().map(|wallet| wallet.payments.peers.clone());
        let payers = Peers::new(peers.unwrap_or_default());
        let streams = config.wallet.as_ref().map_or(0, |wallet| wallet.streams);
        let [large_bodies, large_payments] = [(); 2].map(|()| LargeBodies::new());
        let minerid = ids.zip(config.minerid.as_ref()).map(|(ids, settings)| {
            let listener = settings.node_listener.as_ref();
            let nodes_alias = listener.map(|listener| listener.alias.clone());
            MinerIdApi::new(ids, settings.patience, nodes_alias)
        });
        let payments = wallet.clone().zip(config.wallet.as_ref());
        let payments = payments.map(|(it, settings)| PaymentsApi::new(it, settings, &payers));
        Self {
            logs_requests: AtomicBool::new(config.log_requests),
            metrics: Metrics::new(&config),
            common_routes: CommonRoutes::new(),
            config,
            minerid,
            payments,
            wallet: wallet.map(|it| WalletApi::new(it, streams)),
            control,
            access,
            health,
            headers,
            failures,
            large_bodies,
            payers,
            large_payments,
            _lock: lock,
        }
    }

    /// Whether every request is logged.
    pub(crate) fn logs_requests(&self) -> bool {
        self.logs_requests.load(Ordering::Relaxed)
    }

    /// Sets whether every request is logged. Answers whether that is a change.
    pub(crate) fn log_requests(&self, all: bool) -> bool {
        self.logs_requests.swap(all, Ordering::Relaxed) != all
    }

    /// Ends all requests that wait for events, so that stopping does not wait for them.
    pub(crate) fn stop_waiting(&self) {
        if let Some(wallet) = &self.wallet {
            wallet.stop();
        }
        if let Some(payments) = &self.payments {
            payments.stop();
        }
    }

    /// Notes durably which identities have handed out documents. Call it before an instance is
    /// dropped.
    pub fn record_hand_outs(&self) {
        if let Some(minerid) = &self.minerid
            && let Err(error) = minerid.ids().record_hand_outs()
        {
            tracing::warn!("cannot note that documents were handed out: {error}");
        }
    }
}
