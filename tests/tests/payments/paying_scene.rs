use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use bsv_tests::purse::send;
use bsv_tests::{Node, Reply, Site, source};
use bsv_tx::{Transaction, TxOut};
use serde_json::{Value, json};

use super::merchant::{Merchant, json_of};

/// A node that many tests share. None of them mines, stops the node, or needs it for itself. With services, wallets
/// spend what blocks hold: then no other test uses the node at the same time.
pub(crate) fn node() -> &'static Node {
    static NODE: LazyLock<Node> = LazyLock::new(rich_node);
    if source::is_services() { leased() } else { &NODE }
}

/// The node of this thread, which the test of another thread has left to it, if there is one.
fn leased() -> &'static Node {
    static FREE: Mutex<Vec<&'static Node>> = Mutex::new(Vec::new());
    fn free() -> MutexGuard<'static, Vec<&'static Node>> {
        FREE.lock().unwrap_or_else(PoisonError::into_inner)
    }

    struct Lease(&'static Node);

    impl Drop for Lease {
        fn drop(&mut self) {
            free().push(self.0);
        }
    }

    fn take() -> Lease {
        let left = free().pop();
        Lease(left.unwrap_or_else(|| Box::leak(Box::new(rich_node()))))
    }

    thread_local!(static LEASE: Lease = take());
    LEASE.with(|lease| lease.0)
}

/// A node whose wallet has 50 coins.
pub(crate) fn rich_node() -> Node {
    let node = Node::start();
    node.mine(150);
    node
}

/// A wallet on the shared node, with a coin of each of these amounts.
pub(crate) fn buyer(coins: &[u64]) -> Merchant {
    buyer_with(node(), json!({}), coins)
}

/// A wallet with these settings, and a coin of each of these amounts.
pub(crate) fn buyer_with(node: &Node, settings: Value, coins: &[u64]) -> Merchant {
    let site = site_with(node, settings);
    let buyer = Merchant { server: site.server(), site };
    for coin in coins {
        buyer.be_paid(*coin);
    }
    if !coins.is_empty() {
        buyer.site.prove(buyer.server.wallet());
    }
    buyer
}

/// A data directory whose service uses this node and these further settings.
pub(crate) fn site_with(node: &Node, mut settings: Value) -> Site {
    let members = settings.as_object_mut().unwrap();
    members.insert("rpcHost".to_owned(), json!(node.host));
    members.insert("rpcPort".to_owned(), json!(node.port));
    members.insert("rpcUser".to_owned(), json!(node.user));
    members.insert("rpcPassword".to_owned(), json!(node.password));
    let mut site = Site::with(settings);
    site.set_env("BSV_LOG", "off");
    site
}

impl Merchant {
    /// The payments by this wallet, the newest first.
    pub(crate) fn outgoing(&self) -> Vec<Value> {
        self.site.cli_json(&["outgoing", "list"]).as_array().unwrap().clone()
    }

    /// The states of the payments by this wallet, the newest first.
    pub(crate) fn outgoing_states(&self) -> Vec<String> {
        let payments = self.outgoing();
        payments.iter().map(|payment| payment["state"].as_str().unwrap().to_owned()).collect()
    }

    /// Makes a payment, which must succeed. Answers the result.
    pub(crate) fn pay_ok(&self, url: &str) -> Value {
        let reply = self.pay(url);
        assert_eq!(reply.status, 200, "{url}: {}", reply.body);
        json_of(&reply)
    }
}

/// Checks that the reply is this problem. Answers its detail.
pub(crate) fn check_problem(reply: &Reply, status: u16, code: &str) -> String {
    let problem = json_of(reply);
    let (kind, found) = (reply.header("content-type"), problem["code"].as_str());
    let expected = (status, Some("application/problem+json"), Some(code));
    assert_eq!((reply.status, kind, found), expected, "{}", reply.body);
    problem["detail"].as_str().unwrap().to_owned()
}

/// Gives the shared node a transaction, as payees do.
pub(crate) fn broadcast(transaction: &Transaction) {
    send(node(), transaction);
}

/// The amounts of outputs.
pub(crate) fn amounts(outputs: &[TxOut]) -> Vec<u64> {
    outputs.iter().map(|output| output.satoshis).collect()
}
