//! The services that stand in front of a real node in tests: real clients pay through them, and every mood shows.

mod broadcasters;
mod clients;
mod events;
mod headers;
mod lies;
mod limits;
mod moods;
mod operating;
mod paying;
mod pushed;
mod receiving;
mod second_source;
mod set;
pub(crate) mod stall;
mod told;

use std::sync::Arc;

use bsv_tests::ancestry::previous_outputs;
use bsv_tests::payee::output;
use bsv_tests::purse::{FEE, Purse};
use bsv_tests::{Client, Node, Reply, Service};
use bsv_tx::{ExtendedTransaction, Transaction};
use rustls::crypto::ring;
use rustls::{ClientConfig, RootCertStore};
use serde_json::{Value, json};

/// A node, services in front of it, and coins.
struct Scene {
    service: Service,
    purse: Purse,
    node: Node,
}

impl Scene {
    fn new(coins: usize) -> Self {
        let node = Node::start();
        node.mine(101);
        let purse = Purse::filled(&node, coins, 10_000);
        Self { service: Service::before(&node), purse, node }
    }

    fn client(&self) -> Client {
        Client::new(&self.service.address())
    }

    /// A payment that nobody has yet.
    fn payment(&self) -> Transaction {
        self.purse.spend(&[self.purse.coin()], vec![output(1_000)], FEE)
    }

    /// Submits a transaction in extended format.
    fn submit(&self, path: &str, transaction: &Transaction, headers: &[(&str, &str)]) -> Reply {
        let spent = previous_outputs(&self.node, transaction);
        let extended = ExtendedTransaction::new(transaction.clone(), spent).unwrap();
        let headers = [&[("Content-Type", "application/octet-stream")], headers].concat();
        self.client().send("POST", path, &headers, &extended.to_bytes())
    }

    /// What Arcade answers to a transaction.
    fn arcade(&self, transaction: &Transaction) -> Value {
        body(&self.submit("/tx", transaction, &[]), 202)
    }

    /// What ARC answers to a transaction.
    fn arc(&self, transaction: &Transaction) -> Value {
        body(&self.submit("/v1/tx", transaction, &[]), 200)
    }

    fn arcade_state(&self, transaction: &Transaction) -> Value {
        body(&self.client().get(&format!("/tx/{}", transaction.txid())), 200)
    }

    fn arc_state(&self, transaction: &Transaction) -> Value {
        body(&self.client().get(&format!("/v1/tx/{}", transaction.txid())), 200)
    }

    /// What Arcade and ARC say of a transaction.
    fn words(&self, transaction: &Transaction) -> [String; 2] {
        [self.arcade_state(transaction), self.arc_state(transaction)]
            .map(|state| state["txStatus"].as_str().unwrap().to_owned())
    }
}

/// A client of the libraries, without roots of TLS.
fn http_client() -> reqwest::Client {
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth();
    reqwest::Client::builder().no_proxy().tls_backend_preconfigured(config).build().unwrap()
}

fn body(reply: &Reply, status: u16) -> Value {
    assert_eq!(reply.status, status, "{}", reply.body);
    serde_json::from_str(&reply.body).unwrap()
}

/// The ids of transactions, as JSON has them.
fn txids(transactions: &[&Transaction]) -> Value {
    json!(transactions.iter().map(|it| it.txid().to_string()).collect::<Vec<_>>())
}
