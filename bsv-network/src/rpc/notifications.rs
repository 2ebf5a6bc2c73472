use std::net::IpAddr;

use serde::Deserialize;

use super::{NONE, NodeRpc};
use crate::error::NodeError;

/// One item of `activezmqnotifications`.
#[derive(Deserialize)]
struct Notification {
    notification: String,
    address: String,
}

/// The address at which a node publishes the transactions of its mempool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FeedAddress {
    /// An address that can be reached from here.
    At(String),
    /// A loopback address of the node's machine, which is not this machine.
    Elsewhere(String),
    /// The node publishes no transactions.
    Nowhere,
}

impl NodeRpc {
    /// The address at which the node publishes the transactions of its mempool
    /// (`activezmqnotifications`, `pubrawtx2`). The node tells the address on which it listens. If
    /// it listens on all addresses, the host of the RPC address is used. A loopback address can be
    /// reached only from the node's machine.
    pub async fn transaction_feed_address(&self) -> Result<FeedAddress, NodeError> {
        let notifications: Vec<Notification> = self.ask("activezmqnotifications", &NONE).await?;
        let published = notifications.into_iter().find(|it| it.notification == "pubrawtx2");
        let host = self.transport.host();
        Ok(published.map_or(FeedAddress::Nowhere, |it| reachable(it.address, host)))
    }
}

/// The address to connect to for a node that listens on `bound` and runs on the machine `host`.
fn reachable(bound: String, host: &str) -> FeedAddress {
    let port = bound.strip_prefix("tcp://").and_then(|rest| rest.rsplit_once(':'));
    let Some((own, port)) = port else { return FeedAddress::At(bound) };
    let ip = own.trim_matches(['[', ']']).parse::<IpAddr>().ok();
    if own == "*" || ip.is_some_and(|ip| ip.is_unspecified()) {
        let host = host.trim_matches(['[', ']']);
        return match host.contains(':') {
            true => FeedAddress::At(format!("tcp://[{host}]:{port}")),
            false => FeedAddress::At(format!("tcp://{host}:{port}")),
        };
    }
    let is_loopback = |name: &str| {
        let name = name.trim_matches(['[', ']']);
        name == "localhost" || name.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
    };
    match is_loopback(own) && !is_loopback(host) {
        true => FeedAddress::Elsewhere(bound),
        false => FeedAddress::At(bound),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_that_of_the_nodes_machine() {
        let at = |bound: &str, host| reachable(bound.to_owned(), host);
        let there = |address: &str| FeedAddress::At(address.to_owned());
        assert_eq!(at("tcp://127.0.0.1:1", "localhost"), there("tcp://127.0.0.1:1"));
        assert_eq!(at("tcp://0.0.0.0:1", "node.example"), there("tcp://node.example:1"));
        assert_eq!(at("tcp://*:1", "10.0.0.1"), there("tcp://10.0.0.1:1"));
        assert_eq!(at("tcp://[::]:1", "::1"), there("tcp://[::1]:1"));
        assert_eq!(at("tcp://10.0.0.9:1", "10.0.0.1"), there("tcp://10.0.0.9:1"));
        let own = "tcp://127.0.0.1:1";
        assert_eq!(at(own, "10.0.0.1"), FeedAddress::Elsewhere(own.to_owned()));
    }
}
