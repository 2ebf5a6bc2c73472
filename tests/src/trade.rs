//! Customers of a shop with several tills. They write down what they are told, and it is compared
//! with the books in the end.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::http::Reply;
use crate::node::Node;
use crate::payee::{Payee, go_dpp_terms, output};
use crate::purse::{Bill, FEE, Purse, send};
use crate::receiver::Receiver;
use crate::till::Till;

/// The satoshis of each coin of the customers.
const COIN: u64 = 20_000;
/// How often the faucet fills the wallet before the trade, and with how much.
const FILLINGS: (u64, u64) = (10, 100_000);
const PURCHASE: u64 = 1_000;
const WITHDRAWAL: u64 = 600;
/// An address whose key nobody has.
const ADDRESS: &str = "mrCDrCybB6J1vRfbwM5hemdJz73FwDBC8r";
/// How long a customer goes on asking.
const PATIENCE: Duration = Duration::from_secs(180);

/// A shop whose tills are killed while its customers trade.
#[derive(Debug)]
pub struct Trade<'a> {
    node: &'a Node,
    tills: &'a [Till],
    purse: Purse,
    payee: Payee,
    receiver: Receiver,
    next: AtomicU64,
    is_over: AtomicBool,
    told: Mutex<Told>,
}

/// What customers were told.
#[derive(Debug, Default)]
pub struct Told {
    /// Invoices that were created, with their amounts.
    pub invoices: BTreeMap<String, u64>,
    /// Invoices whose payment was accepted, with the transaction.
    pub sales: BTreeMap<String, String>,
    /// Invoices that customers paid without a message, with the transaction.
    pub silent_sales: BTreeMap<String, String>,
    /// Payment URLs that the shop has paid, with the transaction.
    pub purchases: BTreeMap<String, String>,
    /// Withdrawals that the shop has made.
    pub withdrawals: BTreeSet<u64>,
    /// Answers that nobody should get.
    pub complaints: Vec<String>,
}

/// What a customer does with an answer.
enum Heard<T> {
    Done(T),
    /// It is to be asked again, whatever came of it.
    Again,
    Complaint,
}

impl<'a> Trade<'a> {
    /// Customers with coins for so many payments, of a shop whose tills run.
    pub fn begin(node: &'a Node, tills: &'a [Till], payments: u64) -> Self {
        let purse = Purse::filled(node, payments.try_into().unwrap(), COIN);
        let payee = Payee::asking(&go_dpp_terms(&[output(PURCHASE)]));
        let receiver = Receiver::start();
        let webhook = json!({ "url": receiver.url(), "inOrder": true, "after": 0 });
        let made = tills[0].wallet().post("/api/v1/webhooks", webhook.to_string());
        assert_eq!(made.status, 201, "{}", made.body);
        (0..FILLINGS.0).for_each(|_| tills[0].fill(FILLINGS.1));
        node.mine(1);
        let (next, is_over, told) = Default::default();
        Self { node, tills, purse, payee, receiver, next, is_over, told }
    }

    /// Has the customers trade while something is done, and waits until each has its last answer.
    pub fn run<T>(&self, meanwhile: impl FnOnce() -> T) -> T {
        let acts = [Self::sell, Self::sell, Self::sell_silently, Self::buy, Self::withdraw];
        let go_on = |act: fn(&Self)| {
            while !self.is_over.load(Ordering::Relaxed) {
                act(self);
                pause(100);
            }
        };
        thread::scope(|scope| {
            for act in acts {
                scope.spawn(move || go_on(act));
            }
            // The customers stop though this fails.
            let _stop = Stop(&self.is_over);
            meanwhile()
        })
    }

    /// What customers were told, after the trade.
    ///
    /// # Panics
    /// If a customer has failed.
    pub fn told(&self) -> std::sync::MutexGuard<'_, Told> {
        self.told.lock().unwrap()
    }

    fn any_till(&self) -> &Till {
        &self.tills[random() as usize % self.tills.len()]
    }

    /// Asks one till or another until there is an answer.
    fn ask<T>(
        &self,
        what: &str,
        ask: impl Fn(&Till) -> std::io::Result<Reply>,
        hear: impl Fn(&Reply) -> Heard<T>,
    ) -> Option<T> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let reply = ask(self.any_till());
            let heard = reply.as_ref().map_or(Heard::Again, &hear);
            match heard {
                Heard::Done(told) => return Some(told),
                Heard::Again if Instant::now() < deadline => pause(200),
                Heard::Again | Heard::Complaint => {
                    self.told().complaints.push(format!("{what}: {reply:?}"));
                    return None;
                }
            }
        }
    }

    /// Creates an invoice. Answers its id.
    fn order(&self) -> Option<String> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let satoshis = 2_000 + random() % 5_000;
        let (key, body) = (format!("order {number}"), json!({ "satoshis": satoshis }));
        let id = self.ask(
            "an invoice",
            |till| till.post_with_key("/api/v1/invoices", &key, &body),
            |reply| match reply.status {
                201 => Heard::Done(json_of(reply)["id"].as_str().unwrap().to_owned()),
                503 => Heard::Again,
                _ => Heard::Complaint,
            },
        )?;
        self.told().invoices.insert(id.clone(), satoshis);
        Some(id)
    }

    /// What the shop wants for an invoice.
    fn bill(&self, id: &str) -> Bill {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match Bill::try_at(&self.any_till().payment_url(id)) {
                Ok(bill) => return bill,
                Err(error) => assert!(Instant::now() < deadline, "{error}"),
            }
            pause(200);
        }
    }

    fn sell(&self) {
        let Some(coin) = self.purse.try_coin() else { return };
        let Some(id) = self.order() else { return };
        let bill = self.bill(&id);
        let transaction = self.purse.spend(&[coin], bill.outputs(), FEE);
        let accepted = self.ask(
            "a payment",
            |till| bill.post_to(till.payments(), &transaction),
            |reply| match reply.status {
                201 => Heard::Done(()),
                503 => Heard::Again,
                _ => Heard::Complaint,
            },
        );
        if accepted.is_some() {
            self.told().sales.insert(id, transaction.txid().to_string());
        }
    }

    fn sell_silently(&self) {
        let Some(coin) = self.purse.try_coin() else { return };
        let Some(id) = self.order() else { return };
        let outputs = self.bill(&id).outputs();
        let transaction = self.purse.spend(&[coin], outputs, FEE);
        send(self.node, &transaction);
        self.told().silent_sales.insert(id, transaction.txid().to_string());
    }

    fn buy(&self) {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let url = format!("http://{}/api/v1/payment/order-{number}", self.payee.address());
        let body = json!({ "payToURL": url }).to_string();
        let paid = self.ask(
            "a payment by the shop",
            |till| till.wallet().try_request("POST", "/api/v1/pay", body.as_bytes()),
            |reply| match (reply.status, code(reply).as_str()) {
                (200, _) => Heard::Done(json_of(reply)["tx_id"].as_str().unwrap().to_owned()),
                (503, _) | (409, "payment-running") | (422, "insufficient-funds") => Heard::Again,
                _ => Heard::Complaint,
            },
        );
        if let Some(txid) = paid {
            self.told().purchases.insert(url, txid);
        }
    }

    fn withdraw(&self) {
        let key = format!("withdrawal {}", self.next.fetch_add(1, Ordering::Relaxed));
        let body = json!({ "address": ADDRESS, "satoshis": WITHDRAWAL });
        let made = self.ask(
            "a withdrawal",
            |till| till.post_with_key("/api/v1/withdrawals", &key, &body),
            |reply| match (reply.status, code(reply).as_str()) {
                (201, _) => Heard::Done(json_of(reply)["id"].as_u64().unwrap()),
                (503, _) | (409, "payment-running") | (422, "insufficient-funds") => Heard::Again,
                _ => Heard::Complaint,
            },
        );
        if let Some(id) = made {
            self.told().withdrawals.insert(id);
        }
    }

    /// Has blocks mined until all that was paid is mined, and delivered to the endpoint. Answers
    /// what is missing if that does not happen.
    pub fn settle(&self) -> Vec<String> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            self.node.mine(1);
            thread::sleep(Duration::from_secs(1));
            let missing = self.unsettled();
            if missing.is_empty() || Instant::now() > deadline {
                return missing;
            }
        }
    }

    fn unsettled(&self) -> Vec<String> {
        let till = &self.tills[0];
        let is_mined = |payment: &Value| payment["blockHeight"].is_u64();
        let open = till.outgoing().into_iter().filter(|it| !is_mined(it));
        let mut missing: Vec<_> = open.map(|payment| format!("not mined: {payment}")).collect();
        let events = till.events();
        let (told, history) = (self.told(), History::of(&events));
        for id in told.sales.keys().chain(told.silent_sales.keys()) {
            if !history.has("invoice.payment_mined", id) {
                missing.push(format!("the payment of invoice {id} is not mined"));
            }
        }
        let delivered = self.receiver.numbers().into_iter().max().unwrap_or(0);
        if delivered < events.len() as u64 {
            missing.push(format!("{} events, of which {delivered} are delivered", events.len()));
        }
        missing
    }

    /// The differences between what customers were told and what each till tells, once all is
    /// settled.
    pub fn differences(&self) -> Vec<String> {
        let told = self.told();
        let mut found = told.complaints.clone();
        for till in self.tills {
            check_sales(&told, till, &mut found);
            self.check_outgoing(&told, till, &mut found);
            let verified = till.differences();
            if !verified.is_empty() {
                found.push(verified);
            }
        }
        let mut delivered = self.receiver.numbers();
        delivered.dedup();
        let last = self.tills[0].events().len() as u64;
        if !delivered.iter().copied().eq(1..=last) {
            found.push(format!("the endpoint did not get 1 to {last} in order: {delivered:?}"));
        }
        found
    }

    fn check_outgoing(&self, told: &Told, till: &Till, found: &mut Vec<String>) {
        let outgoing = till.outgoing();
        let settled = || outgoing.iter().filter(|payment| payment["state"] == "settled");
        let posts = self.payee.requests("POST");
        for (url, txid) in &told.purchases {
            let of_url = settled().filter(|payment| payment["url"] == *url);
            let txids: Vec<_> = of_url.map(|payment| payment["txid"].clone()).collect();
            let posted = posts.iter().filter(|post| url.ends_with(&post.path));
            let posted: BTreeSet<_> =
                posted.map(|post| post.transaction().txid().to_string()).collect();
            if txids != [json!(txid)] || posted != BTreeSet::from([txid.clone()]) {
                found.push(format!("{url} was paid with {txid}, not {txids:?}, {posted:?}"));
            }
        }
        let withdrawals: Vec<_> = settled().filter_map(|it| it["withdrawal"].as_u64()).collect();
        let once: BTreeSet<_> = withdrawals.iter().copied().collect();
        if once != told.withdrawals || once.len() != withdrawals.len() {
            found.push(format!("withdrawals {:?}, not {withdrawals:?}", told.withdrawals));
        }
        let paid = told.sales.keys().chain(told.silent_sales.keys());
        let received: u64 = paid.map(|id| told.invoices[id]).sum();
        let sent = outgoing.iter().filter(|payment| payment["state"] == "settled");
        let sent: u64 =
            sent.map(|it| it["satoshis"].as_u64().unwrap() + it["fee"].as_u64().unwrap()).sum();
        let (expected, balance) = (FILLINGS.0 * FILLINGS.1 + received - sent, till.balance());
        if expected != balance {
            found.push(format!("the balance is {balance} satoshis, and should be {expected}"));
        }
    }
}

fn check_sales(told: &Told, till: &Till, found: &mut Vec<String>) {
    let invoices = till.list("/api/v1/invoices");
    let invoices = invoices.as_array().unwrap().iter();
    let stored: BTreeMap<_, _> =
        invoices.map(|invoice| (invoice["id"].as_str().unwrap(), invoice)).collect();
    let expected = told.invoices.len() + FILLINGS.0 as usize;
    if stored.len() != expected {
        found.push(format!("there are {} invoices, not {expected}", stored.len()));
    }
    for (id, satoshis) in &told.invoices {
        if stored.get(id.as_str()).is_none_or(|invoice| invoice["satoshis"] != *satoshis) {
            found.push(format!("invoice {id} of {satoshis} satoshis is lost"));
        }
    }
    let history = History::of(&till.events());
    if history.has_gap {
        found.push("the events have a gap".to_owned());
    }
    for (id, txid) in told.sales.iter().chain(&told.silent_sales) {
        let satoshis = told.invoices[id];
        let is_paid = stored.get(id.as_str()).is_some_and(|invoice| invoice["state"] == "paid");
        let once = ["paid", "payment_mined", "payment_received"];
        let once = once.map(|kind| (format!("invoice.{kind}"), txid.clone(), satoshis));
        let mut of_it = history.of_invoices.get(id).cloned().unwrap_or_default();
        of_it.sort();
        if !is_paid || of_it != once {
            found.push(format!("invoice {id} was not paid once with {txid}: {of_it:?}"));
        }
    }
}

/// What the log of events tells.
struct History {
    has_gap: bool,
    /// The kind, the transaction and the satoshis of each event about a payment of an invoice.
    of_invoices: BTreeMap<String, Vec<(String, String, u64)>>,
}

impl History {
    fn of(events: &[Value]) -> Self {
        let mut history = Self { has_gap: false, of_invoices: BTreeMap::new() };
        for (number, event) in (1_u64..).zip(events) {
            history.has_gap |= event["number"] != number;
            let (kind, data) = (event["type"].as_str().unwrap(), &event["data"]);
            if let (Some(id), Some(txid)) = (data["invoiceId"].as_str(), data["txid"].as_str()) {
                let told = (kind.to_owned(), txid.to_owned(), data["satoshis"].as_u64().unwrap());
                history.of_invoices.entry(id.to_owned()).or_default().push(told);
            }
        }
        history
    }

    fn has(&self, kind: &str, id: &str) -> bool {
        let of_it = self.of_invoices.get(id).into_iter().flatten();
        of_it.into_iter().any(|(found, ..)| found == kind)
    }
}

/// Ends the trade.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn json_of(reply: &Reply) -> Value {
    serde_json::from_str(&reply.body).unwrap()
}

fn code(reply: &Reply) -> String {
    json_of(reply)["code"].as_str().unwrap_or_default().to_owned()
}

/// Waits for a random time of at most so many milliseconds.
fn pause(most: u64) {
    thread::sleep(Duration::from_millis(random() % most));
}

fn random() -> u64 {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).unwrap();
    u64::from_le_bytes(bytes)
}
