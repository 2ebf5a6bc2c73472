use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use bsv_tests::{Client, Node, Server, Site, free_port, http, repetitions};
use serde_json::{Value, json};

use crate::scene::{PASSPHRASE, create_invoice, fill, payment_url, sealed_site};

/// What stays where it is while servers are killed.
struct Soak {
    site: Site,
    wallet: Client,
    payments: String,
    minerid: String,
    is_over: AtomicBool,
    done: AtomicU64,
}

impl Soak {
    fn on(node: &Node) -> Self {
        let [wallet, payments, minerid] = [(); 3].map(|()| free_port());
        let mut site = Site::with(json!({
            "rpcHost": node.host, "rpcPort": node.port,
            "rpcUser": node.user, "rpcPassword": node.password,
            "port": minerid, "wallet": {"port": wallet}, "payments": {"port": payments},
        }));
        site.set_env("BSV_LOG", "off");
        site.set_env("BSV_KEYSTORE_PASSPHRASE", PASSPHRASE);
        Self {
            site,
            wallet: Client::new(&format!("127.0.0.1:{wallet}")),
            payments: format!("http://127.0.0.1:{payments}/dpp/api/v1/payment"),
            minerid: format!("127.0.0.1:{minerid}"),
            is_over: AtomicBool::new(false),
            done: AtomicU64::new(0),
        }
    }

    /// Posts to the wallet; nothing if it is being killed.
    fn post(&self, path: &str, body: &Value) -> Option<Value> {
        let headers = [("Content-Type", "application/json")];
        let reply = self.wallet.try_send("POST", path, &headers, body.to_string().as_bytes());
        let reply = reply.ok().filter(|reply| reply.status < 300)?;
        self.done.fetch_add(1, Ordering::Relaxed);
        serde_json::from_str(&reply.body).ok()
    }

    /// Does something again and again until it is over.
    fn repeat(&self, mut work: impl FnMut()) {
        while !self.is_over.load(Ordering::Relaxed) {
            work();
            thread::sleep(Duration::from_millis(5));
        }
    }

    fn is_paid(&self, other: &Server) {
        let Some(invoice) = self.post("/api/v1/invoices", &json!({ "satoshis": 2_000 })) else {
            return;
        };
        let url = format!("{}/{}", self.payments, invoice["id"].as_str().unwrap());
        let body = json!({ "payToURL": url }).to_string();
        let headers = [("Content-Type", "application/json")];
        // It may be refused, or stay open: the payer looks after it.
        let _ = other.wallet().try_send("POST", "/api/v1/pay", &headers, body.as_bytes());
    }

    fn pays(&self, other: &Server) {
        let url = payment_url(other, &create_invoice(other.wallet(), 1_500));
        self.post("/api/v1/pay", &json!({ "payToURL": url }));
    }

    fn uses_identities(&self) {
        for path in ["/opreturn/pool/rotate", "/opreturn/pool/700000"] {
            let reply = http::request(&self.minerid, "GET", path, b"");
            self.done.fetch_add(u64::from(reply.is_ok()), Ordering::Relaxed);
        }
        thread::sleep(Duration::from_millis(100));
    }
}

/// Kill -9 and start again, again and again, while all is in use.
#[test]
fn books_and_logs_hold_after_kills_under_load() {
    let kills = repetitions("kills in a soak of mixed load", 200, 5);
    let node = Node::start();
    node.mine(101);
    let (soak, other) = (Soak::on(&node), sealed_site(Some(&node)));
    let payer = other.server();
    let server = soak.site.server();
    soak.site.cli_ok(&["generateminerid", "--name", "pool"]);
    soak.site.cli_ok(&["generatevctx", "--name", "pool"]);
    for _ in 0..4 {
        fill(&soak.site, &server, 100_000);
        fill(&other, &payer, 100_000);
    }
    node.mine(1);
    thread::scope(|scope| {
        scope.spawn(|| soak.repeat(|| soak.is_paid(&payer)));
        scope.spawn(|| soak.repeat(|| soak.pays(&payer)));
        scope.spawn(|| soak.repeat(|| soak.uses_identities()));
        scope.spawn(|| soak.repeat(|| drop(soak.post("/api/v1/users", &json!({ "name": "Ada" })))));
        let mut running = Some(server);
        for kill in 0..kills {
            thread::sleep(Duration::from_millis(if kills > 5 { 2_700 } else { 700 }));
            running.take().into_iter().for_each(Server::kill);
            running = Some(soak.site.server());
            if kill % 5 == 0 {
                node.mine(1);
            }
        }
        soak.is_over.store(true, Ordering::Relaxed);
        running.take().into_iter().for_each(Server::kill);
    });
    eprintln!("{} things were done between the kills", soak.done.load(Ordering::Relaxed));
    for command in [["audit", "verify"], ["books", "verify"], ["keystore", "verify"]] {
        soak.site.cli_ok(&command);
    }
    other.cli_ok(&["books", "verify"]);
    let logs = soak.site.cli_json(&["audit", "list"]);
    assert_eq!(logs["wallet"][0]["event"], "made");
    // What was left open is seen to, and then the books hold as well.
    let server = soak.site.server();
    node.mine(1);
    thread::sleep(Duration::from_secs(2));
    soak.site.cli_ok(&["books", "verify"]);
    assert_eq!(server.stop(), 0);
}
