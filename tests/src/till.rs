//! A server of several that serve one wallet.

use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::http::{Client, Reply};
use crate::node::{Node, free_port};
use crate::site::{Server, Site};

/// A server that keeps its ports when it is killed and started again, with its own data directory
/// and a wallet in a database.
#[derive(Debug)]
pub struct Till {
    /// The installation.
    pub site: Site,
    server: Mutex<Option<Server>>,
    wallet: Client,
    payments: Client,
}

impl Till {
    /// A till whose server does not run yet, with a node and the wallet in the database at this URL.
    pub fn on(node: &Node, database: &str) -> Self {
        Self::with(node, database, json!({}))
    }

    /// The same with further settings.
    pub fn with(node: &Node, database: &str, more: Value) -> Self {
        let [wallet, payments] = [(); 2].map(|()| free_port());
        let public_url = format!("http://127.0.0.1:{payments}");
        let mut settings = json!({
            "rpcHost": node.host, "rpcPort": node.port,
            "rpcUser": node.user, "rpcPassword": node.password,
            "minerid": { "enabled": false },
            "wallet": { "port": wallet, "store": { "url": database } },
            "payments": { "port": payments, "publicUrl": public_url, "feeRate": 1 },
            "webhooks": { "allowNetworks": ["127.0.0.0/8"] },
        });
        settings.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let mut site = Site::with(settings);
        site.set_env("BSV_LOG", "error");
        let at = |port| Client::new(&format!("127.0.0.1:{port}"));
        Self { site, server: Mutex::default(), wallet: at(wallet), payments: at(payments) }
    }

    fn server(&self) -> MutexGuard<'_, Option<Server>> {
        self.server.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts the server, and waits until it listens.
    ///
    /// # Panics
    /// If it does not.
    pub fn start(&self) {
        let server = self.site.server();
        *self.server() = Some(server);
    }

    /// Kills the server as a crash would, if it runs.
    pub fn kill(&self) {
        let server = self.server().take();
        server.into_iter().for_each(Server::kill);
    }

    /// Asks the server to stop, and returns its exit code.
    ///
    /// # Panics
    /// If it does not run.
    pub fn stop(&self) -> i32 {
        let server = self.server().take();
        server.expect("it runs").stop()
    }

    /// Waits until the server has ended by itself, and returns its exit code.
    ///
    /// # Panics
    /// If it does not run.
    pub fn wait_for_end(&self) -> i32 {
        let server = self.server().take();
        server.expect("it runs").wait()
    }

    /// Has the server stand still.
    ///
    /// # Panics
    /// If it does not run.
    pub fn freeze(&self) {
        self.signal(Signal::STOP);
    }

    /// Has the server go on.
    ///
    /// # Panics
    /// If it does not run.
    pub fn thaw(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        let id = self.server().as_ref().expect("it runs").id();
        kill_process(Pid::from_raw(id.try_into().unwrap()).unwrap(), signal).unwrap();
    }

    /// The wallet listener.
    pub fn wallet(&self) -> &Client {
        &self.wallet
    }

    /// The payments listener.
    pub fn payments(&self) -> &Client {
        &self.payments
    }

    /// The answer to `GET path` of the wallet listener, which must be 200.
    ///
    /// # Panics
    /// If it is not.
    pub fn get(&self, path: &str) -> Value {
        get(&self.wallet, path)
    }

    /// The same without comparing the answer with the OpenAPI file, for long lists.
    ///
    /// # Panics
    /// If the answer is another one.
    pub fn list(&self, path: &str) -> Value {
        get(&self.wallet.unchecked(), path)
    }

    /// Posts JSON with an idempotency key to the wallet listener. There may be no answer.
    pub fn post_with_key(&self, path: &str, key: &str, body: &Value) -> io::Result<Reply> {
        let headers = [("Content-Type", "application/json"), ("Idempotency-Key", key)];
        self.wallet.try_send("POST", path, &headers, body.to_string().as_bytes())
    }

    /// Creates an invoice. Answers its id.
    ///
    /// # Panics
    /// If the server refuses.
    pub fn invoice(&self, satoshis: u64) -> String {
        self.invoice_of(&json!({ "satoshis": satoshis }))
    }

    /// Creates an invoice with this body. Answers its id.
    ///
    /// # Panics
    /// If the server refuses.
    pub fn invoice_of(&self, body: &Value) -> String {
        let reply = self.wallet.post("/api/v1/invoices", body.to_string());
        assert_eq!(reply.status, 201, "{}", reply.body);
        let invoice: Value = serde_json::from_str(&reply.body).unwrap();
        invoice["id"].as_str().unwrap().to_owned()
    }

    /// The payment URL of an invoice at this server.
    pub fn payment_url(&self, id: &str) -> String {
        format!("http://{}/dpp/api/v1/payment/{id}", self.payments.address())
    }

    /// The state of an invoice.
    ///
    /// # Panics
    /// If there is no such invoice.
    pub fn state(&self, id: &str) -> String {
        self.get(&format!("/api/v1/invoices/{id}"))["state"].as_str().unwrap().to_owned()
    }

    /// The payments of an invoice.
    ///
    /// # Panics
    /// If there is no such invoice.
    pub fn payments_of(&self, id: &str) -> Vec<Value> {
        self.wallet.list(&format!("/api/v1/invoices/{id}/payments"))
    }

    /// The balance in satoshis.
    ///
    /// # Panics
    /// If the server does not tell it.
    pub fn balance(&self) -> u64 {
        self.get("/api/v1/balance")["satoshis"].as_u64().unwrap()
    }

    /// Asks the wallet to pay at a payment URL.
    ///
    /// # Panics
    /// If there is no answer.
    pub fn pay(&self, url: &str) -> Reply {
        self.wallet.post("/api/v1/pay", json!({ "payToURL": url }).to_string())
    }

    /// Creates an invoice of this amount, and has the faucet of the node pay it.
    ///
    /// # Panics
    /// If that fails.
    pub fn fill(&self, satoshis: u64) {
        let id = self.invoice(satoshis);
        self.site.cli_ok(&["wallet", "faucet", &self.payment_url(&id)]);
    }

    /// All payments by the wallet, the newest first.
    ///
    /// # Panics
    /// If the server does not tell them.
    pub fn outgoing(&self) -> Vec<Value> {
        let mut all: Vec<Value> = Vec::new();
        loop {
            let before = all.last().map(|last| format!("&before={}", last["id"]));
            let page = format!("/api/v1/outgoing?limit=100{}", before.unwrap_or_default());
            let page = self.list(&page);
            match page.as_array().unwrap().as_slice() {
                [] => return all,
                more => all.extend_from_slice(more),
            }
        }
    }

    /// All events.
    ///
    /// # Panics
    /// If the server does not tell them.
    pub fn events(&self) -> Vec<Value> {
        let mut all: Vec<Value> = Vec::new();
        loop {
            let after = all.last().map_or(json!(0), |last| last["number"].clone());
            let page = self.list(&format!("/api/v1/events?limit=1000&after={after}"));
            match page["events"].as_array().unwrap().as_slice() {
                [] => return all,
                more => all.extend_from_slice(more),
            }
        }
    }

    /// What `books verify` finds when it reads all blocks, and what `audit verify` finds. Both are
    /// empty if all is well.
    pub fn differences(&self) -> String {
        let mut found = String::new();
        for command in [&["books", "verify", "--from-height", "0"][..], &["audit", "verify"]] {
            let done = self.site.cli(command);
            if done.code != 0 {
                found.push_str(&format!("{command:?}: {}{}\n", done.stdout, done.stderr));
            }
        }
        found
    }
}

fn get(client: &Client, path: &str) -> Value {
    let reply = client.get(path);
    assert_eq!(reply.status, 200, "{path}: {}", reply.body);
    serde_json::from_str(&reply.body).unwrap()
}

/// Waits until something holds.
///
/// # Panics
/// If it does not after two minutes.
pub fn wait_until(what: &str, holds: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(120);
    while !holds() {
        assert!(Instant::now() < deadline, "timed out, waiting for: {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}
