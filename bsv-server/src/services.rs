//! The services that tell the wallet of the network in place of a node.

use std::sync::Arc;

use bsv_network::broadcasters::{Broadcaster, BroadcasterSet};
use bsv_network::headers::HeaderFollower;
use bsv_network::{NetworkSource, NodeRpc, Services};

use crate::config::{BroadcasterConfig, Config};
use crate::headers::client;

/// What tells the wallet of the network, by the settings.
pub(crate) fn source(
    config: &Config,
    node: Option<NodeRpc>,
    headers: Option<Arc<HeaderFollower>>,
) -> Option<NetworkSource> {
    let (Some(services), Some(headers), Some(wallet)) = (&config.services, headers, &config.wallet)
    else {
        return node.map(NetworkSource::node);
    };
    let client = client();
    let broadcasters = services.broadcasters.iter().map(|settings| {
        let BroadcasterConfig { dialect, url, api_key, requests_per_second } = settings.clone();
        let mut broadcaster = Broadcaster::new(dialect, client.clone(), url);
        if let Some(key) = api_key {
            broadcaster = broadcaster.with_api_key(key);
        }
        match requests_per_second {
            Some(rate) => broadcaster.with_requests_per_second(rate),
            None => broadcaster,
        }
    });
    let set = BroadcasterSet::new(broadcasters.collect(), services.seen_by);
    let set = set.expect("the settings name as many").with_max_fee_rate(wallet.max_fee_rate);
    let (timeout, fee_rate) = (services.accept_timeout, wallet.payments.fee_rate);
    Some(NetworkSource::services(Arc::new(Services::new(set, headers, timeout, fee_rate))))
}
