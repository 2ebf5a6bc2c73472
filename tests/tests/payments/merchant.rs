use std::time::{Duration, Instant};

use bsv_tests::{Node, Reply, Server, Site};
use serde_json::{Value, json};

/// A wallet whose server runs.
pub(crate) struct Merchant {
    pub(crate) site: Site,
    pub(crate) server: Server,
}

impl Merchant {
    /// A new wallet that uses `node`.
    pub(crate) fn on(node: &Node) -> Self {
        let site = Site::on(node);
        let server = site.server();
        Self { site, server }
    }

    /// Creates an invoice. Answers its id.
    pub(crate) fn invoice(&self, satoshis: u64) -> String {
        let body = json!({ "satoshis": satoshis }).to_string();
        let reply = self.server.wallet().post("/api/v1/invoices", body);
        assert_eq!(reply.status, 201, "{}", reply.body);
        json_of(&reply)["id"].as_str().unwrap().to_owned()
    }

    /// The payment URL of an invoice.
    pub(crate) fn payment_url(&self, id: &str) -> String {
        format!("http://{}/dpp/api/v1/payment/{id}", self.server.payments().address())
    }

    pub(crate) fn balance(&self) -> u64 {
        self.get("/api/v1/balance")["satoshis"].as_u64().unwrap()
    }

    pub(crate) fn state(&self, id: &str) -> String {
        self.get(&format!("/api/v1/invoices/{id}"))["state"].as_str().unwrap().to_owned()
    }

    /// The payments of an invoice.
    pub(crate) fn payments(&self, id: &str) -> Vec<Value> {
        self.server.wallet().list(&format!("/api/v1/invoices/{id}/payments"))
    }

    pub(crate) fn get(&self, path: &str) -> Value {
        let reply = self.server.wallet().get(path);
        assert_eq!(reply.status, 200, "{}", reply.body);
        json_of(&reply)
    }

    pub(crate) fn pay(&self, url: &str) -> Reply {
        self.server.wallet().post("/api/v1/pay", json!({ "payToURL": url }).to_string())
    }

    /// Creates an invoice of this amount, and has the faucet pay it. The wallet can spend the coin. Answers the id of
    /// the invoice.
    pub(crate) fn fill(&self, satoshis: u64) -> String {
        let id = self.be_paid(satoshis);
        self.site.prove(self.server.wallet());
        id
    }

    /// Creates an invoice of this amount, and has the faucet pay it. Answers its id.
    pub(crate) fn be_paid(&self, satoshis: u64) -> String {
        let id = self.invoice(satoshis);
        self.site.cli_ok(&["wallet", "faucet", &self.payment_url(&id)]);
        id
    }
}

pub(crate) fn json_of(reply: &Reply) -> Value {
    serde_json::from_str(&reply.body).unwrap()
}

/// Waits until something holds.
pub(crate) fn wait_until(what: &str, holds: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !holds() {
        assert!(Instant::now() < deadline, "timed out, waiting for: {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}
