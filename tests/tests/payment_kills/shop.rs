use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use bsv_tests::{Client, Node, Reply, Server, Site, free_port};
use serde_json::{Value, json};

/// A wallet that is killed and started again. Its ports stay the same.
pub(crate) struct Shop {
    site: Site,
    server: Mutex<Option<Server>>,
    wallet: Client,
    payments: String,
}

impl Shop {
    pub(crate) fn on(node: &Node) -> Self {
        Self::prepared(node, |_| {})
    }

    /// A wallet whose site is prepared before its server starts.
    pub(crate) fn prepared(node: &Node, prepare: impl FnOnce(&mut Site)) -> Self {
        Self::with(node, json!({}), prepare)
    }

    /// A wallet with these settings.
    pub(crate) fn with(node: &Node, mut settings: Value, prepare: impl FnOnce(&mut Site)) -> Self {
        let [wallet, payments] = [(); 2].map(|()| free_port());
        settings["port"] = json!(wallet);
        let mut site = Site::with(json!({
            "rpcHost": node.host, "rpcPort": node.port,
            "rpcUser": node.user, "rpcPassword": node.password,
            "minerid": {"enabled": false},
            "wallet": settings, "payments": {"port": payments},
        }));
        site.set_env("BSV_LOG", "error");
        site.keep_on_disk();
        prepare(&mut site);
        let server = Mutex::new(Some(site.server()));
        let wallet = Client::new(&format!("127.0.0.1:{wallet}"));
        Self { site, server, wallet, payments: format!("127.0.0.1:{payments}") }
    }

    pub(crate) fn kill(&self) {
        if let Some(server) = self.server.lock().unwrap_or_else(PoisonError::into_inner).take() {
            server.kill();
        }
    }

    pub(crate) fn kill_and_start(&self) {
        self.kill();
        self.start_if_killed();
    }

    /// Starts the server again if it was killed. Answers whether it was.
    pub(crate) fn start_if_killed(&self) -> bool {
        let mut server = self.server.lock().unwrap_or_else(PoisonError::into_inner);
        // A server that was killed while it waits for a slow disk ends only later. Meanwhile, it
        // answers nothing.
        let is_alive = server.as_mut().is_some_and(Server::is_alive)
            && self.wallet.try_send("GET", "/healthz", &[], b"").is_ok();
        if !is_alive {
            *server = Some(self.site.server());
        }
        !is_alive
    }

    /// Posts JSON. `None` if the server was killed before it answered.
    pub(crate) fn post(&self, path: &str, body: &str) -> Option<Reply> {
        let json = [("Content-Type", "application/json")];
        self.wallet.try_send("POST", path, &json, body.as_bytes()).ok()
    }

    /// Posts JSON with an idempotency key. `None` if the server was killed before it answered.
    pub(crate) fn post_with_key(&self, path: &str, key: &str, body: &str) -> Option<Reply> {
        let headers = [("Content-Type", "application/json"), ("Idempotency-Key", key)];
        self.wallet.try_send("POST", path, &headers, body.as_bytes()).ok()
    }

    /// Creates an invoice. Repeats the request until it succeeds, with an idempotency key, so that
    /// there is one invoice.
    pub(crate) fn create_invoice(&self, satoshis: u64, number: u64) -> String {
        let body = json!({ "satoshis": satoshis }).to_string();
        let mut key = format!("{number} {satoshis}");
        if number == u64::MAX {
            key.push_str(&self.balance().to_string());
        }
        let headers = [("Content-Type", "application/json"), ("Idempotency-Key", key.as_str())];
        loop {
            let sent = self.wallet.try_send("POST", "/api/v1/invoices", &headers, body.as_bytes());
            match sent {
                Ok(reply) => {
                    assert_eq!(reply.status, 201, "{}", reply.body);
                    let invoice: Value = serde_json::from_str(&reply.body).unwrap();
                    return invoice["id"].as_str().unwrap().to_owned();
                }
                Err(_) => thread::sleep(Duration::from_millis(20)),
            }
        }
    }

    pub(crate) fn payment_url(&self, invoice: &str) -> String {
        format!("http://{}/dpp/api/v1/payment/{invoice}", self.payments)
    }

    /// Posts a transaction that pays an invoice, in any form.
    pub(crate) fn post_transaction(&self, invoice: &str, body: &[u8]) -> std::io::Result<Reply> {
        let path = format!("/pay/{invoice}/transaction");
        Client::new(&self.payments).try_request("POST", &path, body)
    }

    /// Creates an invoice of this amount, and has the faucet pay it.
    pub(crate) fn fill(&self, satoshis: u64) {
        let body = json!({ "satoshis": satoshis }).to_string();
        let invoice = self.post("/api/v1/invoices", &body).unwrap();
        let invoice: Value = serde_json::from_str(&invoice.body).unwrap();
        self.site.cli_ok(&["wallet", "faucet", &self.payment_url(invoice["id"].as_str().unwrap())]);
    }

    pub(crate) fn get(&self, path: &str) -> Value {
        let reply = self.wallet.get(path);
        assert_eq!(reply.status, 200, "{}", reply.body);
        serde_json::from_str(&reply.body).unwrap()
    }

    pub(crate) fn balance(&self) -> u64 {
        self.get("/api/v1/balance")["satoshis"].as_u64().unwrap()
    }

    /// The differences that `books verify` finds when it reads all blocks.
    pub(crate) fn verify(&self) -> Vec<Value> {
        let done = self.site.cli(&["books", "verify", "--from-height", "0", "--json"]);
        let books: Value = serde_json::from_str(&done.stdout).expect(&done.stderr);
        books["differences"].as_array().unwrap().clone()
    }

    /// The words from which all the wallet's keys are derived.
    pub(crate) fn words(&self) -> String {
        self.site.cli_ok(&["wallet", "words", "--yes"])
    }

    /// The payments of an invoice.
    pub(crate) fn payments(&self, invoice: &str) -> Vec<Value> {
        let payments = self.get(&format!("/api/v1/invoices/{invoice}/payments"));
        payments.as_array().unwrap().clone()
    }

    /// All payments by the wallet.
    pub(crate) fn outgoing(&self) -> Vec<Value> {
        let mut all: Vec<Value> = Vec::new();
        loop {
            let before = all.last().map(|payment| payment["id"].to_string());
            let mut arguments = vec!["outgoing", "list"];
            if let Some(before) = &before {
                arguments.extend(["--before", before]);
            }
            let page = self.site.cli_json(&arguments);
            let page = page.as_array().unwrap();
            if page.is_empty() {
                return all;
            }
            all.extend(page.iter().cloned());
        }
    }

    /// How much one transaction can spend, according to the refusal of a larger payment.
    pub(crate) fn spendable(&self, payee: &Self) -> u64 {
        let invoice = payee.create_invoice(1_000_000_000, 0);
        let body = json!({ "payToURL": payee.payment_url(&invoice) }).to_string();
        let reply = self.post("/api/v1/pay", &body).unwrap();
        let refusal: Value = serde_json::from_str(&reply.body).unwrap();
        assert_eq!(refusal["code"], "insufficient-funds", "{refusal}");
        let detail = refusal["detail"].as_str().unwrap();
        let words: Vec<_> = detail.split(' ').collect();
        let place = words.iter().position(|word| *word == "and").unwrap();
        words[place + 1].parse().unwrap()
    }
}
