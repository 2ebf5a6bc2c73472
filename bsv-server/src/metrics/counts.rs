use super::listener::ListenerCounts;
use super::node::SeenNode;
use crate::api::Api;
use crate::config::Config;

/// The counts of an instance that do not belong to its services.
#[derive(Debug)]
pub(crate) struct Metrics {
    listeners: Vec<ListenerCounts>,
    pub(crate) node: SeenNode,
    pub(super) tells_balance: bool,
}

impl Metrics {
    pub(crate) fn new(config: &Config) -> Self {
        let minerid = config.minerid.as_ref();
        let node_listener = minerid.and_then(|minerid| minerid.node_listener.as_ref());
        let wallet = config.wallet.as_ref();
        let apis = [
            minerid.map(|_| Api::MinerId),
            node_listener.map(|_| Api::Node),
            wallet.map(|_| Api::Wallet),
            wallet.map(|_| Api::Payments),
        ];
        Self {
            listeners: apis.into_iter().flatten().map(ListenerCounts::new).collect(),
            node: SeenNode::default(),
            tells_balance: config.tells_balance,
        }
    }

    /// The counts of a listener. The owner of the control socket is not counted.
    pub(crate) fn listener(&self, api: Api) -> Option<&ListenerCounts> {
        self.listeners.iter().find(|listener| listener.api() == api)
    }

    /// The listeners of the API's service.
    pub(super) fn listeners_of(&self, api: Api) -> impl Iterator<Item = &ListenerCounts> {
        self.listeners.iter().filter(move |it| service(it.api()) == service(api))
    }
}

/// The main API of an API's service.
fn service(api: Api) -> Api {
    match api {
        Api::MinerId | Api::Node => Api::MinerId,
        Api::Wallet | Api::Payments => Api::Wallet,
        Api::Control => Api::Control,
    }
}
