use bsv_tests::{Bill, Gate, Node, Purse, Reply, Site, source};
use bsv_tx::{BlockHash, Transaction};
use serde_json::{Value, json};

use super::merchant::{Merchant, json_of, wait_until};

/// The satoshis of each coin of the payer.
pub(crate) const COIN: u64 = 100_000;
/// The satoshis of each invoice.
pub(crate) const PRICE: u64 = 30_000;

/// A shop, a payer with coins, and the node that both use.
pub(crate) struct Counter {
    pub(crate) node: Node,
    pub(crate) shop: Merchant,
    pub(crate) purse: Purse,
}

impl Counter {
    /// A counter whose payer has so many coins.
    pub(crate) fn new(coins: usize) -> Self {
        Self::on(Node::start(), coins, Site::on)
    }

    /// A counter whose shop reaches the node through a gate.
    pub(crate) fn with_gate(coins: usize) -> (Self, Gate) {
        let mut gate = None;
        let counter = Self::on(Node::start(), coins, |node| gate.insert(Gate::before(node)).site());
        (counter, gate.unwrap())
    }

    /// A counter on this node. `site` makes the shop's site.
    pub(crate) fn on(node: Node, coins: usize, site: impl FnOnce(&Node) -> Site) -> Self {
        node.mine(101);
        let purse = Purse::filled(&node, coins, COIN);
        let mut site = site(&node);
        site.set_env("BSV_LOG", "off");
        let server = site.server();
        Self { node, shop: Merchant { site, server }, purse }
    }

    /// A new invoice: its id, and its bill.
    pub(crate) fn bill(&self) -> (String, Bill) {
        let id = self.shop.invoice(PRICE);
        let bill = Bill::at(&self.shop.payment_url(&id));
        (id, bill)
    }

    /// Posts a body to the payment URL of an invoice.
    pub(crate) fn post(&self, id: &str, body: impl AsRef<[u8]>) -> Reply {
        self.shop.server.payments().post(&format!("/dpp/api/v1/payment/{id}"), body)
    }

    /// Posts these bytes as the transaction of a payment, with its ancestors where the shop asks for them.
    pub(crate) fn post_bytes(&self, id: &str, transaction: &[u8]) -> Reply {
        let bytes = source::with_ancestors(transaction);
        self.post(id, json!({ "rawTx": hex::encode(bytes) }).to_string())
    }

    /// Mines blocks, and waits until the shop knows of them where it asks services.
    pub(crate) fn mine(&self, blocks: u32) -> Vec<BlockHash> {
        let blocks = self.node.mine(blocks);
        self.shop.site.wait_for_header(self.shop.server.wallet());
        blocks
    }

    /// Mines a block, and waits until it holds all payments of these invoices.
    pub(crate) fn mine_all(&self, ids: &[&str]) {
        self.node.mine(1);
        wait_until("all is mined", || {
            ids.iter().all(|id| self.shop.payments(id).iter().all(|it| it["state"] == "mined"))
        });
    }

    /// The ids of the transactions in the node's mempool.
    pub(crate) fn mempool(&self) -> Value {
        self.node.call("getrawmempool", json!([]))
    }

    /// Starts the server again after it was killed.
    pub(crate) fn restart_after_kill(self) -> Self {
        let Self { node, shop: Merchant { site, server }, purse } = self;
        server.kill();
        let server = site.server();
        Self { node, shop: Merchant { site, server }, purse }
    }

    /// Checks that exactly this transaction has paid an invoice.
    pub(crate) fn check_paid(&self, id: &str, transaction: &Transaction) {
        assert_eq!(self.shop.state(id), "paid");
        let payments = self.shop.payments(id);
        assert_eq!(payments.len(), 1, "{payments:?}");
        assert_eq!(payments[0]["txid"], transaction.txid().to_string());
        assert_eq!(payments[0]["satoshis"], PRICE);
        assert_eq!(payments[0]["state"], "accepted");
    }

    /// Checks that an invoice is pending and has no payment.
    pub(crate) fn check_unpaid(&self, id: &str, what: &str) {
        assert_eq!(self.shop.state(id), "pending", "{what}");
        assert_eq!(self.shop.payments(id), Vec::<Value>::new(), "{what}");
    }
}

/// Checks that the answer is a problem of this status and code. Gives its detail.
pub(crate) fn check_problem(reply: &Reply, status: u16, code: &str, what: &str) -> String {
    assert_eq!(reply.status, status, "{what}: {}", reply.body);
    assert_eq!(reply.header("content-type"), Some("application/problem+json"), "{what}");
    assert_eq!(reply.header("retry-after").is_some(), matches!(status, 429 | 503), "{what}");
    let problem = json_of(reply);
    assert_eq!((&problem["status"], &problem["code"]), (&json!(status), &json!(code)), "{what}");
    problem["detail"].as_str().unwrap().to_owned()
}
