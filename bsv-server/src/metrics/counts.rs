use super::listener::ListenerCounts;
use super::node::SeenNode;
use crate::config::Config;
use crate::surface::Surface;

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
        let surfaces = [
            minerid.map(|_| Surface::MinerId),
            node_listener.map(|_| Surface::Node),
            wallet.map(|_| Surface::Wallet),
            wallet.map(|_| Surface::Payments),
        ];
        Self {
            listeners: surfaces.into_iter().flatten().map(ListenerCounts::new).collect(),
            node: SeenNode::default(),
            tells_balance: config.tells_balance,
        }
    }

    /// The counts of a listener. The owner of the control socket is not counted.
    pub(crate) fn listener(&self, surface: Surface) -> Option<&ListenerCounts> {
        self.listeners.iter().find(|listener| listener.surface() == surface)
    }

    /// The listeners of the surface's service.
    pub(super) fn listeners_of(&self, surface: Surface) -> impl Iterator<Item = &ListenerCounts> {
        self.listeners.iter().filter(move |it| service(it.surface()) == service(surface))
    }
}

/// The main surface of the surface's service.
fn service(surface: Surface) -> Surface {
    match surface {
        Surface::MinerId | Surface::Node => Surface::MinerId,
        Surface::Wallet | Surface::Payments => Surface::Wallet,
        Surface::Control => Surface::Control,
    }
}
