//! The running listeners, and how they stop.

use std::sync::Arc;
use std::time::Duration;

use bsv_invoicing::webhooks::MAX_WEBHOOKS;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::api::Api;
use crate::config::Config;
use crate::http::{Connections, Limits, Listener, Tls, serve};
use crate::instance::Instance;
use crate::request_log::answer_and_log;

/// The running listeners, which stop in two steps, so that a pool waits least.
pub(crate) struct Serving<'i> {
    instance: &'i Arc<Instance>,
    first: Group,
    last: Group,
}

/// Listeners that stop at the same time.
struct Group {
    listeners: JoinSet<()>,
    stop: watch::Sender<()>,
}

impl Group {
    fn new() -> Self {
        Self { listeners: JoinSet::new(), stop: watch::Sender::new(()) }
    }

    /// Waits until all of them have finished the requests in flight.
    async fn stop(self) {
        let Self { mut listeners, stop } = self;
        drop(stop);
        while listeners.join_next().await.is_some() {}
    }
}

impl<'i> Serving<'i> {
    pub(crate) fn new(instance: &'i Arc<Instance>) -> Self {
        Self { instance, first: Group::new(), last: Group::new() }
    }

    /// Starts a listener.
    pub(crate) fn spawn<L: Listener>(&mut self, api: Api, listener: L, tls: Option<Arc<Tls>>) {
        let group = match api {
            Api::MinerId | Api::Node => &mut self.last,
            Api::Wallet | Api::Payments | Api::Control => &mut self.first,
        };
        let (instance, stopped) = (Arc::clone(self.instance), group.stop.subscribe());
        group.listeners.spawn(serve_api(instance, api, listener, tls, stopped));
    }

    /// Stops all listeners after the requests in flight. The listeners for a pool stop after the
    /// others have ended.
    pub(crate) async fn stop(self) {
        self.first.stop().await;
        self.last.stop().await;
    }
}

/// The most connections to webhooks. Each webhook has up to 8 concurrent attempts.
const WEBHOOK_CONNECTIONS: u64 = MAX_WEBHOOKS as u64 * 8;

/// The most concurrent connections of a listener.
fn connection_limit(config: &Config, api: Api) -> u32 {
    let usual = Limits::default().connections;
    match (api, &config.wallet) {
        // Callers that wait for events take no places of other callers.
        (Api::Wallet, Some(wallet)) => usual + 2 * wallet.streams,
        (Api::Payments, Some(wallet)) => wallet.payments.connections + wallet.payments.streams,
        _ => usual,
    }
}

/// The most concurrent connections of all configured listeners and of webhooks.
pub(crate) fn most_connections(config: &Config) -> u64 {
    let minerid = config.minerid.as_ref();
    let apis = [
        Some(Api::Control),
        minerid.map(|_| Api::MinerId),
        minerid.and_then(|minerid| minerid.node_listener.as_ref()).map(|_| Api::Node),
        config.wallet.as_ref().map(|_| Api::Wallet),
        config.wallet.as_ref().map(|_| Api::Payments),
    ];
    let apis = apis.into_iter().flatten();
    let accepted: u64 = apis.map(|it| u64::from(connection_limit(config, it))).sum();
    accepted + config.wallet.as_ref().map_or(0, |_| WEBHOOK_CONNECTIONS)
}

/// How long requests of a pool may continue once the miner identity service stops. New requests
/// wait meanwhile.
const POOL_DRAIN_TIMEOUT: Duration = Duration::from_secs(10);

async fn serve_api<L: Listener>(
    instance: Arc<Instance>,
    api: Api,
    listener: L,
    tls: Option<Arc<Tls>>,
    mut stopped: watch::Receiver<()>,
) {
    let connections = connection_limit(&instance.config, api);
    let Config { drain_time, stalled_time, .. } = instance.config;
    let mut limits = Limits {
        connections,
        write_timeout: stalled_time,
        drain_timeout: drain_time,
        ..Limits::default()
    };
    match api {
        // The command line may wait for its user between two requests.
        Api::Control => limits.head_timeout = Duration::from_secs(24 * 60 * 60),
        Api::Payments => limits.peers = Some(Arc::clone(&instance.payers)),
        Api::MinerId | Api::Node => {
            limits.drain_timeout = drain_time.min(POOL_DRAIN_TIMEOUT);
            // No browser calls here, which would shut both sides when its user leaves.
            limits.half_close = api == Api::MinerId;
        }
        Api::Wallet => {}
    }
    let counts = instance.metrics.listener(api);
    let connections =
        counts.map_or_else(Connections::new, |counts| Arc::clone(counts.connections()));
    let answer =
        move |address, request| answer_and_log(Arc::clone(&instance), api, address, request);
    let shutdown = async move {
        // An error means that the sender is dropped, which stops the listener too.
        let _ = stopped.changed().await;
    };
    serve(listener, tls, limits, connections, answer, shutdown).await;
}
