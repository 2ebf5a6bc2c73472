//! Two servers that serve one wallet at the same time.

mod at_once;
mod beginning;
mod clocks;
mod disagreeing;
mod front_end;
mod frozen;
mod kills;
mod sharing;
mod takeover;
mod webhooks;

use std::sync::Barrier;
use std::thread;

use bsv_tests::till::wait_until;
use bsv_tests::{Bill, Gate, Node, Purse, Till, free_port};
use bsv_tx::Transaction;
use serde_json::{Value, json};

use crate::postgres::SERVER;

/// The satoshis of each coin of the payer.
const COIN: u64 = 100_000;
/// The satoshis of an invoice.
const PRICE: u64 = 30_000;

/// Two servers of one wallet, their node, and a payer.
struct Pair {
    node: Node,
    purse: Purse,
    /// The first one leads: it follows the chain, expires invoices and sends to webhooks.
    tills: [Till; 2],
    schema: &'static str,
}

impl Pair {
    /// Two servers with a wallet in this schema, and a payer who has so many coins.
    fn start(schema: &'static str, coins: usize) -> Self {
        Self::prepared(schema, coins, |_, _, _| {})
    }

    /// The same with a gate before the node of each server.
    fn gated(schema: &'static str, coins: usize) -> (Self, [Gate; 2]) {
        let mut gates = Vec::new();
        let pair = Self::prepared(schema, coins, |_, node, till| {
            let gate = Gate::before(node);
            till.site.set("rpcPort", json!(gate.port()));
            gates.push(gate);
        });
        (pair, gates.try_into().expect("each server has one"))
    }

    /// The same whose sites are prepared before they start.
    fn prepared(
        schema: &'static str,
        coins: usize,
        mut prepare: impl FnMut(usize, &Node, &mut Till),
    ) -> Self {
        let node = Node::start_with(&[&format!("zmqpubrawtx2=tcp://127.0.0.1:{}", free_port())]);
        node.mine(110);
        let purse = Purse::filled(&node, coins, COIN);
        let url = SERVER.url(schema);
        let mut tills = [(); 2].map(|()| Till::on(&node, &url));
        for (which, till) in tills.iter_mut().enumerate() {
            prepare(which, &node, till);
        }
        let pair = Self { node, purse, tills, schema };
        pair.tills[0].start();
        pair.wait_for_leader();
        pair.tills[1].site.take_keystore_of(&pair.tills[0].site);
        pair.tills[1].start();
        pair
    }

    /// What a query about the wallet's schema answers. `$` stands for the schema.
    fn query(&self, sql: &str) -> String {
        SERVER.query(&sql.replace('$', self.schema))
    }

    /// Who leads, if anybody does.
    fn leader(&self) -> String {
        self.query("SELECT encode(substring(row FROM 1 FOR 16), 'hex') FROM $.claims WHERE get_byte(key, 0) = 0")
    }

    fn wait_for_leader(&self) {
        wait_until("a server leads", || !self.leader().is_empty());
    }

    /// Waits until no other process than so many has the wallet open, and one of them leads.
    fn wait_for_processes(&self, count: usize) {
        wait_until("the others have left", || {
            self.query("SELECT count(*) FROM $.processes") == count.to_string()
        });
        self.wait_for_leader();
    }

    /// A new invoice of the server `at`: its id, and what each of the servers wants for it.
    fn bills(&self, at: usize) -> (String, [Bill; 2]) {
        let id = self.tills[at].invoice(PRICE);
        let bills = self.tills.each_ref().map(|till| Bill::at(&till.payment_url(&id)));
        (id, bills)
    }

    /// Checks that both servers tell that exactly this transaction has paid an invoice.
    fn check_paid(&self, id: &str, transaction: &Transaction) {
        for till in &self.tills {
            check_paid(till, id, transaction);
        }
    }

    /// Waits until the wallet has followed what the node has, and its books are in order.
    fn check_books(&self) {
        self.tills.iter().for_each(check_books);
    }
}

/// Checks that exactly this transaction has paid an invoice.
fn check_paid(till: &Till, id: &str, transaction: &Transaction) {
    let [payment] = till.payments_of(id).try_into().expect("one payment");
    assert_eq!(payment["txid"], transaction.txid().to_string());
    assert_eq!((till.state(id).as_str(), &payment["satoshis"]), ("paid", &json!(PRICE)));
    let paid = till.events().into_iter().filter(|event| is_of(event, "invoice.paid", id));
    assert_eq!(paid.count(), 1, "{id} was paid once");
}

/// Whether an event tells this of an invoice.
fn is_of(event: &Value, kind: &str, invoice: &str) -> bool {
    event["type"] == kind && event["data"]["invoiceId"] == invoice
}

/// Waits until the wallet has followed what the node has. Its books must then be in order, and its
/// events without a gap.
fn check_books(till: &Till) {
    let mut found = till.differences();
    for _ in 0..30 {
        if found.is_empty() {
            break;
        }
        thread::sleep(std::time::Duration::from_secs(1));
        found = till.differences();
    }
    assert_eq!(found, "");
    let events = till.events();
    let numbers = events.iter().map(|event| event["number"].as_u64().unwrap());
    assert!(numbers.eq(1..=events.len() as u64), "a gap in {events:?}");
    let times: Vec<_> = events.iter().map(|event| event["timestamp"].to_string()).collect();
    assert!(times.is_sorted(), "{times:?}");
}

/// Does something with both servers at the same moment.
fn at_once<T: Send>(act: impl Fn(usize) -> T + Sync) -> [T; 2] {
    let barrier = Barrier::new(2);
    let act = |which| {
        barrier.wait();
        act(which)
    };
    thread::scope(|scope| {
        let act = &act;
        let acts = [0, 1].map(|which| scope.spawn(move || act(which)));
        acts.map(|it| it.join().unwrap())
    })
}

/// The problem that an answer tells.
fn problem(reply: &bsv_tests::Reply) -> (u16, String) {
    let told: Value = serde_json::from_str(&reply.body).unwrap();
    (reply.status, told["code"].as_str().unwrap_or_default().to_owned())
}
