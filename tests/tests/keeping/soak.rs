use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use bsv_tests::{Client, Node, Server, Site, free_port, is_full_run, repetitions};
use serde_json::json;

use crate::keeping::scene::{PASSPHRASE, create_invoice, fill, member, payment_url, sealed_site};

/// Everything that stays the same while servers are killed.
struct Soak {
    site: Site,
    wallet: Client,
    payments: String,
    minerid: Client,
    is_over: AtomicBool,
    /// How often each kind of work succeeded.
    done: Mutex<BTreeMap<String, u64>>,
}

/// The ids of the tokens that were acknowledged as made, and of those that were acknowledged as
/// revoked.
#[derive(Default)]
struct Tokens {
    made: BTreeSet<String>,
    revoked: BTreeSet<String>,
}

impl Soak {
    fn on(node: &Node) -> Self {
        let [wallet, payments, minerid] = [(); 3].map(|()| free_port());
        let mut site = Site::with(json!({
            "rpcHost": node.host, "rpcPort": node.port,
            "rpcUser": node.user, "rpcPassword": node.password,
            "port": minerid, "wallet": {"port": wallet}, "payments": {"port": payments},
        }));
        site.keep_on_disk();
        site.set_env("BSV_LOG", "off");
        site.set_env("BSV_KEYSTORE_PASSPHRASE", PASSPHRASE);
        Self {
            site,
            wallet: Client::new(&format!("127.0.0.1:{wallet}")),
            payments: format!("http://127.0.0.1:{payments}/dpp/api/v1/payment"),
            minerid: Client::new(&format!("127.0.0.1:{minerid}")),
            is_over: AtomicBool::new(false),
            done: Mutex::default(),
        }
    }

    /// Starts the server. It tries again while a command holds the data directory.
    fn start(&self) -> Server {
        loop {
            match self.site.try_server() {
                Ok(server) => return server,
                Err(done) => assert!(done.stderr.contains("is in use by"), "{}", done.stderr),
            }
        }
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    fn note(&self, what: &str) {
        *self.done.lock().unwrap().entry(what.to_owned()).or_default() += 1;
    }

    /// Does something again and again until the test is over.
    fn repeat(&self, mut work: impl FnMut()) {
        while !self.is_over() {
            work();
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Sends a request. Gives the body of a successful answer, and counts it; otherwise the status,
    /// 0 if the server was killed before it answered.
    fn ask(&self, client: &Client, what: &str, path: &str, body: &str) -> Result<String, u16> {
        let method = if body.is_empty() { "GET" } else { "POST" };
        let headers = [("Content-Type", "application/json")];
        let reply = client.try_send(method, path, &headers, body.as_bytes()).map_err(|_| 0_u16)?;
        assert_ne!(reply.status, 500, "{path}: {}", reply.body);
        if reply.status >= 300 {
            self.note(&format!("{what}: answered {}", reply.status));
            return Err(reply.status);
        }
        self.note(what);
        Ok(reply.body)
    }

    /// Has a wallet pay. Repeats the request until the payment is made, since an open payment keeps
    /// its coins reserved.
    fn pay(&self, payer: &Client, what: &str, url: &str) -> bool {
        let body = json!({ "payToURL": url }).to_string();
        while !self.is_over() {
            match self.ask(payer, what, "/api/v1/pay", &body) {
                Ok(_) => return true,
                Err(422) => return false,
                Err(_) => thread::sleep(Duration::from_millis(50)),
            }
        }
        false
    }

    fn is_paid(&self, other: &Server, received: &mut Vec<String>) {
        let body = json!({ "satoshis": 200 }).to_string();
        let Ok(invoice) = self.ask(&self.wallet, "create an invoice", "/api/v1/invoices", &body)
        else {
            return;
        };
        let id = member(&invoice, "id");
        if self.pay(other.wallet(), "receive a payment", &format!("{}/{id}", self.payments)) {
            received.push(id);
        }
    }

    fn pays(&self, other: &Server, paid: &mut Vec<String>) {
        let id = create_invoice(other.wallet(), 190);
        if self.pay(&self.wallet, "pay", &payment_url(other, &id)) {
            paid.push(id);
        }
    }

    fn uses_identities(&self) {
        let hash = "5d".repeat(32);
        let (sign, pksign) =
            (format!("/minerid/pool/sign/{hash}"), format!("/minerid/pool/pksign/{hash}"));
        let uses =
            [("make a document", "/opreturn/pool/700000"), ("sign", &sign), ("sign", &pksign)];
        let _ = self.ask(&self.minerid, "rotate", "/opreturn/pool/rotate", "{}");
        for (what, path) in uses.iter().cycle().take(30) {
            let _ = self.ask(&self.minerid, what, path, "");
            thread::sleep(Duration::from_millis(10));
        }
    }

    fn lists(&self) {
        for path in ["/api/v1/invoices?limit=200&order=desc", "/api/v1/invoices", "/api/v1/balance"]
        {
            let _ = self.ask(&self.wallet, "read a list or the balance", path, "");
        }
        let user = json!({ "name": "Ada" }).to_string();
        let _ = self.ask(&self.wallet, "create a user", "/api/v1/users", &user);
        thread::sleep(Duration::from_millis(100));
    }

    /// Makes a token and revokes another, with commands. The server may be down meanwhile.
    fn changes_tokens(&self, tokens: &mut Tokens) {
        let made = self.site.cli(&["token", "create", "--scope", "wallet:read", "--json"]);
        if made.code == 0 {
            self.note("make a token");
            tokens.made.insert(member(&made.stdout, "id"));
        }
        if tokens.made.len() > 5
            && let Some(id) = tokens.made.pop_first()
            && self.site.cli(&["token", "revoke", "--yes", &id]).code == 0
        {
            self.note("revoke a token");
            tokens.revoked.insert(id);
        }
        thread::sleep(Duration::from_millis(200));
    }

    /// Kills the server and starts it again, so often, and once per period.
    fn kill_again_and_again(&self, server: Server, node: &Node, kills: usize, period: Duration) {
        let _over = Over(&self.is_over);
        let started = Instant::now();
        let mut server = server;
        for kill in 1..=kills {
            let at = started + period * u32::try_from(kill).unwrap();
            thread::sleep(at.saturating_duration_since(Instant::now()));
            server.kill();
            server = self.start();
            if kill % 5 == 0 {
                node.mine(1);
            }
        }
        server.kill();
        eprintln!("{kills} kills in {:.0} s of load", started.elapsed().as_secs_f64());
    }

    fn check_all(&self, other: &Site) {
        for command in [["audit", "verify"], ["books", "verify"], ["keystore", "verify"]] {
            self.site.cli_ok(&command);
        }
        other.cli_ok(&["books", "verify"]);
        let logs = self.site.cli_json(&["audit", "list"]);
        assert_eq!(logs["wallet"][0]["event"], "made");
    }

    fn check_tokens(&self, tokens: &Tokens) {
        let listed = self.site.cli_json(&["token", "list"]);
        let listed = listed.as_array().unwrap().iter().map(|token| token["id"].as_str().unwrap());
        let listed: BTreeSet<_> = listed.map(str::to_owned).collect();
        assert!(!tokens.made.is_empty() && tokens.made.is_subset(&listed), "{listed:?}");
        assert!(tokens.revoked.is_disjoint(&listed), "{listed:?}");
    }
}

/// Ends the test's other threads when it is dropped, so that they end after a failure too.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Waits until all these invoices are paid. After a kill, the next start completes open payments
/// within seconds.
fn are_paid(wallet: &Client, ids: &[String]) {
    assert!(!ids.is_empty());
    let deadline = Instant::now() + Duration::from_secs(30);
    for id in ids {
        let state = || member(&wallet.get(&format!("/api/v1/invoices/{id}")).body, "state");
        while state() != "paid" {
            assert!(Instant::now() < deadline, "{id} is {}", state());
            thread::sleep(Duration::from_millis(50));
        }
    }
}

/// Kills and starts the server again and again while everything is in use.
#[test]
fn books_and_logs_hold_after_kills_under_load() {
    let kills = repetitions("kills in a soak of mixed load", 200, 5);
    let period = Duration::from_millis(if is_full_run() { 3_000 } else { 700 });
    let node = Node::start();
    node.mine(101);
    let (soak, other) = (Soak::on(&node), sealed_site(Some(&node)));
    let payer = other.server();
    let server = soak.site.server();
    soak.site.cli_ok(&["generateminerid", "--name", "pool"]);
    soak.site.cli_ok(&["generatevctx", "--name", "pool"]);
    for _ in 0..6 {
        fill(&soak.site, &server, 100_000);
        fill(&other, &payer, 100_000);
    }
    node.mine(1);
    let (mut received, mut paid, mut tokens) = (Vec::new(), Vec::new(), Tokens::default());
    thread::scope(|scope| {
        scope.spawn(|| soak.repeat(|| soak.is_paid(&payer, &mut received)));
        scope.spawn(|| soak.repeat(|| soak.pays(&payer, &mut paid)));
        scope.spawn(|| soak.repeat(|| soak.uses_identities()));
        scope.spawn(|| soak.repeat(|| soak.lists()));
        scope.spawn(|| soak.repeat(|| soak.changes_tokens(&mut tokens)));
        soak.kill_again_and_again(server, &node, kills, period);
    });
    eprintln!("{:#?}", soak.done.lock().unwrap());
    assert!(soak.done.lock().unwrap().contains_key("sign"));
    soak.check_all(&other);
    // The server completes what the kills left open. After that, the books still add up.
    let server = soak.site.server();
    are_paid(server.wallet(), &received);
    are_paid(payer.wallet(), &paid);
    soak.check_tokens(&tokens);
    node.mine(1);
    thread::sleep(Duration::from_secs(2));
    soak.site.cli_ok(&["books", "verify"]);
    assert_eq!(server.stop(), 0);
}
