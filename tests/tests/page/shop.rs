use bsv_tests::purse::{FEE, send};
use bsv_tests::services::Mood;
use bsv_tests::{Node, Purse, Service, Site, free_port};
use bsv_tx::{Address, Network, Transaction, TxOut};
use serde_json::{Value, json};

pub(crate) use crate::payments::merchant::{Merchant, json_of, wait_until};
use crate::services::stall;

/// The name of the shop.
pub(crate) const NAME: &str = "Café Sonnenschein";

/// Settings with the name of the shop, and with these settings of the payments listener.
fn settings(payments: Value) -> Value {
    json!({ "wallet": { "merchant": { "name": NAME } }, "payments": payments })
}

/// A shop without a node, with these settings of its payments listener.
pub(crate) fn shop_with(payments: Value) -> Merchant {
    let site = Site::with(settings(payments));
    Merchant { server: site.server(), site }
}

/// A shop without a node.
pub(crate) fn shop() -> Merchant {
    shop_with(json!({}))
}

/// A shop whose node publishes transactions, with these further settings of its wallet. Also
/// answers a purse with so many coins of 100,000 satoshis.
pub(crate) fn shop_on_node(coins: usize, wallet: Value) -> (Merchant, Node, Purse) {
    let node = Node::start_with(&[&format!("zmqpubrawtx2=tcp://127.0.0.1:{}", free_port())]);
    node.mine(110);
    let purse = Purse::filled(&node, coins, 100_000);
    let mut site = Site::on(&node);
    // Wallets of BRC-100 pay lower fees than shops require by default.
    let mut settings = settings(json!({ "port": free_port(), "feeRate": 1 }));
    let members = wallet.as_object().unwrap().clone();
    settings["wallet"].as_object_mut().unwrap().extend(members);
    settings["wallet"]["port"] = json!(0);
    for name in ["wallet", "payments"] {
        site.set(name, settings[name].take());
    }
    let shop = Merchant { server: site.server(), site };
    // From then on, the shop sees published transactions.
    wait_until("the node is followed", || shop.server.wallet().get("/readyz").status == 200);
    (shop, node, purse)
}

/// A shop that asks services in front of a node.
pub(crate) fn shop_on_services() -> (Merchant, Node, Service) {
    let node = Node::start_with(&["disablesafemode=1"]);
    node.mine(110);
    let service = Service::before(&node);
    // Wallets of BRC-100 pay lower fees than services and shops require by default.
    service.be(Mood { fee: (1, 1_000), ..Mood::default() });
    let wallet = json!({ "minedBlocks": 1, "merchant": { "name": NAME } });
    let mut site = stall::site(&node, &[&service], wallet);
    site.set("payments", json!({ "port": free_port(), "feeRate": 1 }));
    let shop = Merchant { server: site.server(), site };
    wait_until("the headers are there", || shop.server.wallet().get("/readyz").status == 200);
    (shop, node, service)
}

impl Merchant {
    /// Creates an invoice with this body. Answers its id.
    pub(crate) fn invoice_of(&self, body: Value) -> String {
        let reply = self.server.wallet().post("/api/v1/invoices", body.to_string());
        assert_eq!(reply.status, 201, "{}", reply.body);
        json_of(&reply)["id"].as_str().unwrap().to_owned()
    }

    /// The URL of an invoice's page.
    pub(crate) fn page_url(&self, id: &str) -> String {
        format!("http://{}/pay/{id}", self.server.payments().address())
    }

    /// The state of an invoice as its payer gets it.
    pub(crate) fn payers_state(&self, id: &str) -> Value {
        let reply = self.server.payments().get(&format!("/pay/{id}/state"));
        assert_eq!(reply.status, 200, "{}", reply.body);
        json_of(&reply)
    }

    /// The address that the page of an invoice shows.
    pub(crate) fn address(&self, id: &str) -> String {
        let html = self.server.payments().get(&format!("/pay/{id}")).body;
        attribute(&html, "data-copy").to_owned()
    }
}

/// The value of the first attribute of this name in a page.
pub(crate) fn attribute<'a>(html: &'a str, name: &str) -> &'a str {
    let (_, rest) = html.split_once(&format!(" {name}=\"")).unwrap();
    rest.split('"').next().unwrap()
}

/// Pays an amount to an address, without any message to the shop.
pub(crate) fn pay(node: &Node, purse: &Purse, address: &str, satoshis: u64) -> Transaction {
    let address = Address::parse(address, Network::Regtest).unwrap();
    let output = TxOut { satoshis, locking_script: address.locking_script() };
    let transaction = purse.spend(&[purse.coin()], vec![output], FEE);
    send(node, &transaction);
    transaction
}
