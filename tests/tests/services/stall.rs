//! A shop without a node of its own.

use bsv_tests::ancestry::beef;
use bsv_tests::purse::FEE;
use bsv_tests::rival::height;
use bsv_tests::{Metrics, Node, Reply, Service, Site};
use bsv_tx::{BeefVersion, Transaction, Txid};
use serde_json::{Value, json};

use crate::payments::counter::Counter;
use crate::payments::forms::post_transaction;
use crate::payments::merchant::{Merchant, wait_until};

/// A shop that asks an Arcade in front of the node.
pub(super) struct Stall {
    pub(super) counter: Counter,
    pub(super) service: Service,
}

impl Stall {
    pub(super) fn new(coins: usize) -> Self {
        Self::with(coins, json!({}))
    }

    /// A shop with these members of `wallet` in its settings.
    pub(super) fn with(coins: usize, wallet: Value) -> Self {
        let node = Node::start_with(&["disablesafemode=1"]);
        let service = Service::before(&node);
        let counter = Counter::on(node, coins, |node| site(node, &[&service], wallet));
        Self { counter, service }
    }

    /// A shop that asks this Arcade after the first one.
    pub(super) fn with_second(coins: usize) -> (Self, Service) {
        let node = Node::start_with(&["disablesafemode=1"]);
        let (service, second) = (Service::before(&node), Service::before(&node));
        let wallet = json!({ "minedBlocks": 1 });
        let counter = Counter::on(node, coins, |node| site(node, &[&service, &second], wallet));
        (Self { counter, service }, second)
    }

    /// A shop with one coin that a block holds.
    pub(super) fn with_one_coin() -> Self {
        let stall = Self::with(1, json!({ "minedBlocks": 1 }));
        let (id, transaction) = stall.payment();
        assert_eq!(stall.post(&id, &transaction).status, 201);
        stall.counter.node.mine(1);
        wait_until("a block holds the coin", || stall.confirmations(&id) == 1);
        stall
    }

    /// Another shop that asks the same services. It has the newest header.
    pub(super) fn beside(&self) -> Merchant {
        let mut site = site(&self.counter.node, &[&self.service], json!({ "minedBlocks": 1 }));
        site.set_env("BSV_LOG", "off");
        let shop = Merchant { server: site.server(), site };
        wait_for_tip(&shop, &self.counter.node);
        shop
    }

    /// A payment of a new invoice, which nobody has yet, and the id of the invoice.
    pub(super) fn payment(&self) -> (String, Transaction) {
        let (id, bill) = self.counter.bill();
        let coin = self.counter.purse.coin();
        let transaction = self.counter.purse.spend(&[coin], bill.outputs(), FEE);
        (id, transaction)
    }

    /// Pays with a transaction and its proven ancestors.
    pub(super) fn post(&self, id: &str, transaction: &Transaction) -> Reply {
        let beef = beef(&self.counter.node, BeefVersion::V1, transaction, &[]);
        post_transaction(&self.counter, id, beef.to_bytes())
    }

    /// How often the service was asked what became of a transaction.
    pub(super) fn questions(&self, txid: &Txid) -> usize {
        let path = format!("/tx/{txid}");
        self.service.requests("GET").iter().filter(|it| it.path.ends_with(&path)).count()
    }

    pub(super) fn state(&self, id: &str) -> String {
        self.counter.shop.state(id)
    }

    /// The state of the only payment of an invoice.
    pub(super) fn payment_state(&self, id: &str) -> Value {
        self.counter.shop.payments(id)[0]["state"].clone()
    }

    pub(super) fn confirmations(&self, id: &str) -> u64 {
        let settlement = self.counter.shop.get(&format!("/api/v1/invoices/{id}/settlement"));
        settlement["confirmations"].as_u64().unwrap_or(0)
    }

    /// The sum that counts by the word of services alone.
    pub(super) fn exposed(&self) -> u64 {
        let metrics = Metrics::of(self.counter.shop.server.wallet());
        metrics.value("bsv_exposed_satoshis") as u64
    }

    /// Waits until the server has the newest header.
    pub(super) fn wait_for_tip(&self) {
        wait_for_tip(&self.counter.shop, &self.counter.node);
    }
}

fn wait_for_tip(shop: &Merchant, node: &Node) {
    let height = height(node) as f64;
    wait_until("the newest header", || {
        Metrics::of(shop.server.wallet()).get("bsv_headers_height") == Some(height)
    });
}

/// A shop that asks these services, and gets headers from the node by the network's own protocol.
pub(crate) fn site(node: &Node, services: &[&Service], mut wallet: Value) -> Site {
    let members = wallet.as_object_mut().unwrap();
    members.entry("zeroConfLimitSatoshis").or_insert(json!("none"));
    let mut site = Site::with(json!({ "wallet": wallet }));
    site.set("services", settings(node, services));
    site
}

/// The settings `[services]` of such a shop.
pub(crate) fn settings(node: &Node, services: &[&Service]) -> Value {
    let broadcasters = services.iter().map(|it| json!({ "kind": "arcade", "url": it.url() }));
    let broadcasters: Vec<_> = broadcasters.collect();
    let peer = format!("{}:{}", node.host, node.peer_port);
    json!({
        "acceptTimeoutSeconds": 2, "broadcasters": broadcasters, "headers": { "peers": [peer] },
    })
}
