use std::thread;
use std::time::{Duration, Instant};

use bsv_tests::metrics::Metrics;
use bsv_tests::purse::{FEE, send};
use bsv_tests::{Bill, Client, Node, Postgres, Purse, Server, Site, free_port, openapi};
use bsv_tx::{Script, ScriptBuilder, TxOut, opcode};
use serde_json::{Value, json};

use super::note;
use super::payer::{PAYMENTS_PER_SECOND, pay};
use crate::payments::payment_request;
use crate::report::{Bar, Report};

/// The work that strangers make for the wallet. Each is one flood on a new wallet with a real node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flood {
    /// One transaction with very many outputs to one invoice, which is mined then.
    Outputs,
    /// Many transactions with fees that are too low.
    Waiting,
    /// A block of large transactions, each of which pays an invoice.
    LargeBlock,
    /// A block of very many transactions, each of which pays an invoice.
    ManyMined,
    /// A mempool of transactions that do not concern the wallet.
    Mempool,
    /// Requests for the terms and the page of an invoice with very many payments.
    Asking,
}

const OUTPUTS: usize = 40_000;
const WAITING: usize = 2_000;
const LARGE: usize = 400;
const LARGE_LEN: usize = 100_000;
const MANY: usize = 10_000;
const FOREIGN: usize = 5_000;
/// How often per second the terms and the page of the invoice with many payments are asked for.
const ASKING_PER_SECOND: u32 = 200;
/// How long waiting payments are watched after all of them have come.
const WATCHED: Duration = Duration::from_secs(60);
/// The satoshis of each payment of a flood.
const PART: u64 = 1;
const PRICE: u64 = 1_000_000;
const COIN: u64 = 20_000;
/// The satoshis of each invoice of an honest payer.
const BILL: u64 = 1_000;
/// How long the wallet may take for a flood.
const PATIENCE: Duration = Duration::from_secs(1_200);

impl Flood {
    pub(super) const ALL: [Self; 6] = [
        Self::Outputs,
        Self::Waiting,
        Self::LargeBlock,
        Self::ManyMined,
        Self::Mempool,
        Self::Asking,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Outputs => "40,000 outputs",
            Self::Waiting => "2,000 waiting payments",
            Self::LargeBlock => "a block of 40 MB",
            Self::ManyMined => "10,000 payments in a block",
            Self::Mempool => "5,000 foreign transactions",
            Self::Asking => "asking about 10,000 payments",
        }
    }

    /// How many coins strangers need.
    fn coins(self) -> usize {
        match self {
            Self::Outputs => 0,
            Self::Waiting => WAITING,
            Self::LargeBlock => LARGE,
            Self::ManyMined | Self::Asking => MANY,
            Self::Mempool => FOREIGN,
        }
    }

    /// Whether the wallet's server is stopped while strangers send, so that it meets everything at
    /// once.
    fn comes_at_once(self) -> bool {
        matches!(self, Self::LargeBlock | Self::ManyMined | Self::Mempool)
    }

    /// The sum that counts for the invoice after the flood.
    fn paid(self) -> u64 {
        match self {
            Self::Outputs => OUTPUTS as u64 * PART,
            Self::Waiting | Self::Mempool => 0,
            Self::LargeBlock => LARGE as u64 * PART,
            Self::ManyMined | Self::Asking => MANY as u64 * PART,
        }
    }
}

/// A new wallet, a node, and strangers with coins.
struct Scene {
    node: Node,
    purse: Purse,
    site: Site,
    server: Server,
    invoice: String,
    script: Script,
}

/// Lets each of these floods come over a new wallet, and notes what it costs.
pub(super) fn measure(floods: &[Flood], seconds: u32, report: &mut Report) {
    let database = Postgres::start();
    let in_file = || json!({ "cacheMegabytes": 16 });
    let in_postgres = || json!({ "store": { "url": database.fresh_url() } });
    let stores: [(&str, &dyn Fn() -> Value); 2] =
        [("in a file", &in_file), ("in PostgreSQL", &in_postgres)];
    for (store, settings) in stores {
        for flood in floods {
            let name = format!("{}, {store}", flood.name());
            eprintln!("{name}");
            Scene::new(*flood, &settings()).measure(*flood, seconds, &name, report);
        }
    }
}

impl Scene {
    fn new(flood: Flood, wallet: &Value) -> Self {
        let feed = format!("zmqpubrawtx2=tcp://127.0.0.1:{}", free_port());
        let node = Node::start_with(&["blockmaxsize=1000000000", &feed]);
        node.mine(110);
        let purse = Purse::filled(&node, flood.coins(), COIN);
        let mut site = Site::with(json!({
            "rpcHost": node.host,
            "rpcPort": node.port,
            "rpcUser": node.user,
            "rpcPassword": node.password,
            "minerid": { "enabled": false },
            "wallet": wallet,
        }));
        site.keep_on_disk();
        site.set_env("BSV_LOG", "error");
        let server = start(&site);
        let invoice = create(server.wallet(), PRICE);
        let script = bill(&server, &invoice).outputs()[0].locking_script.clone();
        Self { node, purse, site, server, invoice, script }
    }

    /// Measures honest payers without the flood and with it.
    fn measure(mut self, flood: Flood, seconds: u32, name: &str, report: &mut Report) {
        if flood == Flood::Asking {
            self.send(flood);
            self.wait_for(flood);
        }
        let count = seconds * PAYMENTS_PER_SECOND;
        let payers = Purse::filled(&self.node, 2 * count as usize, COIN);
        let prepared = self.prepare(&payers, 2 * count);
        let (first, second) = prepared.split_at(count as usize);
        let before = self.counts();
        let quiet = pay(self.server.payments().address(), first.to_vec());
        let quiet_counts = self.counts_since(before);
        let memory = self.server.resident_memory();
        let before = if flood.comes_at_once() {
            self = self.send_to_stopped(flood);
            [before[0] + quiet_counts[0], 0.0]
        } else {
            self.server.reset_peak_memory();
            self.counts()
        };
        let begun = Instant::now();
        let (disturbed, took) = thread::scope(|scope| {
            let strangers = scope.spawn(|| {
                self.disturb(flood, seconds);
                begun.elapsed()
            });
            let disturbed = pay(self.server.payments().address(), second.to_vec());
            (disturbed, strangers.join().unwrap())
        });
        let counts = self.counts_since(before);
        note(report, &format!("{name}: before"), &quiet);
        note(report, name, &disturbed);
        let ratio = disturbed.quantile(0.99) / quiet.quantile(0.99);
        report.figure(format!("{name}: p99, times undisturbed"), ratio);
        let added = self.server.peak_memory().saturating_sub(memory) as f64 / f64::from(1 << 20);
        match flood {
            Flood::LargeBlock => {
                report.compare(format!("{name}: added memory in MiB"), added, Bar::AtMost(64.0));
            }
            _ => report.figure(format!("{name}: added memory in MiB"), added),
        }
        for (name, [events, commits]) in
            [(format!("{name}: before"), quiet_counts), (name.to_owned(), counts)]
        {
            report.figure(format!("{name}: events"), events);
            report.figure(format!("{name}: commits"), commits);
        }
        report.figure(format!("{name}: seconds until all is done"), took.as_secs_f64());
    }

    /// Whole HTTP requests, each of which pays an invoice of its own.
    fn prepare(&self, payers: &Purse, count: u32) -> Vec<Vec<u8>> {
        let prepare = |_| {
            let id = create(self.server.wallet(), BILL);
            let bill = bill(&self.server, &id);
            payment_request(&id, bill.payment(&payers.transaction_for(&bill)))
        };
        (0..count).map(prepare).collect()
    }

    /// The numbers of events and of commits. The commits count since the server has started.
    fn counts(&self) -> [f64; 2] {
        let metrics = Metrics::of(self.server.wallet());
        ["bsv_events_last_number", "bsv_store_commit_duration_seconds_count"]
            .map(|sample| metrics.get(sample).unwrap_or(0.0))
    }

    /// How much the numbers have grown.
    fn counts_since(&self, before: [f64; 2]) -> [f64; 2] {
        let now = self.counts();
        [0, 1].map(|which| now[which] - before[which])
    }

    /// Sends the flood while the server does not run.
    fn send_to_stopped(self, flood: Flood) -> Self {
        let Self { node, purse, site, server, invoice, script } = self;
        server.stop();
        send_flood(&node, &purse, &script, flood);
        let server = start(&site);
        Self { node, purse, site, server, invoice, script }
    }

    fn send(&self, flood: Flood) {
        send_flood(&self.node, &self.purse, &self.script, flood);
    }

    /// Does what strangers do while honest payers pay, and waits until the wallet has done with it.
    fn disturb(&self, flood: Flood, seconds: u32) {
        match flood {
            Flood::Asking => self.ask(seconds),
            Flood::LargeBlock | Flood::ManyMined | Flood::Mempool => self.wait_for(flood),
            Flood::Outputs => {
                self.send(flood);
                self.wait_for(flood);
                self.node.mine(1);
                self.wait_until("it is mined", || self.settlement()["confirmations"] == 1);
            }
            Flood::Waiting => {
                self.send(flood);
                self.wait_until("all wait", || {
                    let details = self.get("/api/v1/balance/details");
                    details["waiting"].as_u64() >= Some(WAITING as u64 * PART)
                });
                thread::sleep(WATCHED);
            }
        }
    }

    /// Asks for the terms and for the page of the invoice in turn.
    fn ask(&self, seconds: u32) {
        let id = &self.invoice;
        let paths = [format!("/dpp/api/v1/payment/{id}"), format!("/pay/{id}")];
        let begun = Instant::now();
        for (number, path) in (0..seconds * ASKING_PER_SECOND).zip(paths.iter().cycle()) {
            let due = Duration::from_secs(1) / ASKING_PER_SECOND * number;
            thread::sleep(due.saturating_sub(begun.elapsed()));
            let _ = self.server.payments().get(path);
        }
    }

    /// Waits until the wallet knows of everything.
    fn wait_for(&self, flood: Flood) {
        self.wait_until("all is paid", || self.settlement()["paidSatoshis"] == flood.paid());
    }

    fn wait_until(&self, what: &str, holds: impl Fn() -> bool) {
        let begun = Instant::now();
        while !holds() {
            assert!(begun.elapsed() < PATIENCE, "timed out, waiting for: {what}");
            thread::sleep(Duration::from_millis(200));
        }
    }

    fn settlement(&self) -> Value {
        self.get(&format!("/api/v1/invoices/{}/settlement", self.invoice))
    }

    fn get(&self, path: &str) -> Value {
        serde_json::from_str(&self.server.wallet().get(path).body).unwrap()
    }
}

/// Starts a server. Its answers are not compared with the OpenAPI file, since that would take time.
fn start(site: &Site) -> Server {
    let server = site.server();
    for listener in [server.wallet(), server.payments()] {
        openapi::forget(listener.address());
    }
    server
}

/// Creates an invoice, and answers its id.
fn create(wallet: &Client, satoshis: u64) -> String {
    let reply = wallet.post("/api/v1/invoices", json!({ "satoshis": satoshis }).to_string());
    let invoice: Value = serde_json::from_str(&reply.body).unwrap();
    invoice["id"].as_str().unwrap().to_owned()
}

fn bill(server: &Server, id: &str) -> Bill {
    Bill::at(&format!("http://{}/dpp/api/v1/payment/{id}", server.payments().address()))
}

/// Sends the transactions of a flood to the node. `script` is that of the invoice.
fn send_flood(node: &Node, purse: &Purse, script: &Script, flood: Flood) {
    let part = || TxOut { satoshis: PART, locking_script: script.clone() };
    let spend = |outputs, fee| send(node, &purse.spend(&[purse.coin()], outputs, fee));
    match flood {
        Flood::Outputs => {
            let rich = Purse::filled(node, 1, 10_000_000);
            let outputs = vec![part(); OUTPUTS];
            send(node, &rich.spend(&[rich.coin()], outputs, 200 + 4 * OUTPUTS as u64));
        }
        Flood::Waiting => (0..WAITING).for_each(|_| spend(vec![part()], 2)),
        Flood::LargeBlock => {
            (0..LARGE).for_each(|_| spend(vec![part(), data(LARGE_LEN)], 10_000));
            node.mine(1);
        }
        Flood::ManyMined | Flood::Asking => {
            (0..MANY).for_each(|_| spend(vec![part()], FEE));
            node.mine(1);
        }
        Flood::Mempool => (0..FOREIGN).for_each(|_| spend(Vec::new(), FEE)),
    }
}

/// An output that holds data.
fn data(len: usize) -> TxOut {
    let script = ScriptBuilder::new().op(opcode::OP_0).op(opcode::OP_RETURN).push(&vec![7; len]);
    TxOut { satoshis: 0, locking_script: script.into_script() }
}
