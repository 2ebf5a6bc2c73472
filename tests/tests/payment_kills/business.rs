//! A shop that receives and sends money in every way there is.

use std::collections::HashSet;
use std::mem;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use bip39::Mnemonic;
use bsv_tests::ancestry::beef;
use bsv_tests::payee::output;
use bsv_tests::purse::{Bill, Coin, FEE, Purse, send};
use bsv_tests::rival::Rival;
use bsv_tests::services::{Mood, Path, Word};
use bsv_tests::{Node, Reply, Service};
use bsv_tx::{BeefVersion, ExtendedPrivateKey, Network, Script, TxOut};
use serde_json::{Value, json};

use super::random;
use super::shop::Shop;
use crate::services::stall::settings;

/// A shop with payers who have coins.
pub(crate) struct Business<'n> {
    pub(crate) node: &'n Node,
    pub(crate) shop: Shop,
    /// What the shop asks in place of the node, if it does.
    pub(crate) service: Option<Service>,
    purse: Purse,
    next: AtomicU64,
    /// The scripts for change, far more than are used.
    change: HashSet<Script>,
    pub(crate) shown: Mutex<Vec<Shown>>,
    /// The scripts to which money was sent, each of which is used once.
    pub(crate) sent_to: Mutex<Vec<Script>>,
    /// The coins that payers have spent lately.
    spent: Mutex<Vec<Coin>>,
}

/// An invoice, and the script that its payer was shown.
#[derive(Clone)]
pub(crate) struct Shown {
    pub(crate) invoice: String,
    pub(crate) script: Script,
}

impl<'n> Business<'n> {
    /// A shop whose payers have coins for so many payments.
    pub(crate) fn begin(node: &'n Node, payments: usize) -> Self {
        let shop = Shop::with(node, json!({ "consolidate": true }), |_| {});
        Self::with(node, shop, None, payments)
    }

    /// The same for a shop that asks services.
    pub(crate) fn without_node(node: &'n Node, payments: usize) -> Self {
        let service = Service::before(node);
        let wallet = json!({
            "source": "services", "zeroConfLimitSatoshis": "none", "minedBlocks": 1,
            "consolidate": true,
        });
        let services = settings(node, &[&service]);
        let shop = Shop::with(node, wallet, |site| site.set("services", services));
        Self::with(node, shop, Some(service), payments)
    }

    fn with(node: &'n Node, shop: Shop, service: Option<Service>, payments: usize) -> Self {
        let purse = Purse::filled(node, payments, 100_000);
        let change = change_scripts(&shop.words(), 1_000 + 5 * payments);
        let (shown, sent_to, spent) = Default::default();
        let next = AtomicU64::default();
        Self { node, shop, service, purse, next, change, shown, sent_to, spent }
    }

    /// All scripts whose outputs are the wallet's.
    pub(crate) fn scripts(&self) -> HashSet<Script> {
        let shown = self.shown.lock().unwrap();
        shown.iter().map(|shown| shown.script.clone()).chain(self.change.iter().cloned()).collect()
    }

    /// Creates an invoice, and has it paid in one or more parts: exactly, incompletely or with a
    /// surplus. Some payers post the payment to the shop, and others only send it to the network.
    pub(crate) fn sell(&self) {
        let price = 2_000 + random() % 20_000;
        let invoice = self.shop.create_invoice(price, self.next.fetch_add(1, Ordering::Relaxed));
        let url = self.shop.payment_url(&invoice);
        let bill = loop {
            match Bill::try_at(&url) {
                Ok(bill) => break bill,
                Err(_) => thread::sleep(Duration::from_millis(20)),
            }
        };
        let script = bill.outputs()[0].locking_script.clone();
        self.shown.lock().unwrap().push(Shown { invoice: invoice.clone(), script: script.clone() });
        // Nobody tells a shop without a node.
        let is_silent = self.service.is_none() && random().is_multiple_of(2);
        let amount = match random() % 4 {
            0 => price + random() % 5_000,
            1 if is_silent => price - random() % 1_000,
            _ => price,
        };
        let coin = self.purse.coin();
        let transaction = self.purse.spend(&[coin], in_parts(amount, &script), FEE);
        self.spent.lock().unwrap().push(coin);
        if is_silent {
            send(self.node, &transaction);
        } else if self.service.is_some() {
            let body = beef(self.node, BeefVersion::V1, &transaction, &[]).to_bytes();
            if let Ok(reply) = self.shop.post_transaction(&invoice, &body) {
                assert!([201, 422, 503].contains(&reply.status), "{}", reply.body);
            }
        } else if let Ok(reply) = bill.try_post(&transaction) {
            assert!([201, 503].contains(&reply.status), "{}", reply.body);
        }
    }

    pub(crate) fn withdraw(&self) {
        let to = self.fresh_script();
        let body = json!({ "script": to, "satoshis": 1_000 + random() % 40_000 });
        self.ask("/api/v1/withdrawals", &body);
    }

    pub(crate) fn refund(&self) {
        let shown = self.shown.lock().unwrap().clone();
        if shown.is_empty() {
            return;
        }
        let Shown { invoice, .. } = &shown[random() as usize % shown.len()];
        let mut body = json!({ "to": self.fresh_script() });
        match random() % 3 {
            0 => body["full"] = json!(true),
            1 => body["satoshis"] = json!(500),
            _ => {}
        }
        self.ask(&format!("/api/v1/invoices/{invoice}/refund"), &body);
    }

    /// Withdraws everything that can be sent.
    pub(crate) fn withdraw_all(&self) {
        // This script is not in `sent_to`: many coins need several transactions, which pay it more
        // than once.
        let body = json!({ "script": output(1).locking_script.to_hex(), "all": true });
        self.ask("/api/v1/withdrawals", &body);
    }

    fn fresh_script(&self) -> String {
        let script = output(1).locking_script;
        self.sent_to.lock().unwrap().push(script.clone());
        script.to_hex()
    }

    /// Repeats a request with the same idempotency key until there is an answer.
    fn ask(&self, path: &str, body: &Value) {
        let key = format!("request {}", self.next.fetch_add(1, Ordering::Relaxed));
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let reply = self.shop.post_with_key(path, &key, &body.to_string());
            match &reply {
                Some(Reply { status: 201 | 422, .. }) => return,
                Some(Reply { status: 409 | 503, .. }) | None => {}
                Some(reply) => panic!("{path}: {}", reply.body),
            }
            assert!(Instant::now() < deadline, "{path}: {reply:?}");
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// The service lies, is silent, or breaks, in one way after the other.
    pub(crate) fn trouble(&self) {
        let Some(service) = &self.service else { return };
        let word = |status| Mood { says: Some(Word::of(status)), relays: false, ..Mood::default() };
        service.be(match random() % 9 {
            0 => word("SEEN_ON_NETWORK"),
            1 => word("RECEIVED"),
            2 => word("DOUBLE_SPEND_ATTEMPTED"),
            3 => Mood { refuses: Some(465), ..Mood::default() },
            4 => Mood { refuses: Some(466), ..Mood::default() },
            5 => Mood { condition: Some((503, None)), ..Mood::default() },
            6 => Mood { path: Path::Foreign, ..Mood::default() },
            7 => Mood { delay: Duration::from_secs(1), ..Mood::default() },
            _ => {
                service.restart_empty();
                Mood::default()
            }
        });
    }

    /// On the rival's chain, has every second of the recent payers spend the same coins otherwise,
    /// and makes this chain longer than the node's.
    pub(crate) fn spend_twice(&self, rival: &Rival) {
        let coins = mem::take(&mut *self.spent.lock().unwrap());
        // Broadcasters do not tell what has displaced a payment.
        let coins = if self.service.is_none() { coins } else { Vec::new() };
        for coin in coins.into_iter().step_by(2) {
            let transaction = self.purse.spend(&[coin], Vec::new(), 2 * FEE);
            // This fails if a block of both chains already holds the payment.
            let _ = rival.node.try_call("sendrawtransaction", json!([transaction.to_hex()]));
        }
        rival.outgrow(self.node);
    }
}

/// The scripts of the first keys for change, derived from the words (BIP39, BIP44).
fn change_scripts(words: &str, count: usize) -> HashSet<Script> {
    let seed = Mnemonic::parse_normalized(words).unwrap().to_seed_normalized("");
    let master = ExtendedPrivateKey::from_seed(&seed, Network::Regtest).unwrap();
    let chain = master.derive("m/44'/236'/0'/1").unwrap().public().unwrap();
    let script = |index| Script::p2pkh(&chain.child(index).unwrap().hash());
    (0..u32::try_from(count).unwrap()).map(script).collect()
}

fn in_parts(satoshis: u64, script: &Script) -> Vec<TxOut> {
    let parts = 1 + random() % 12;
    let part =
        |index| if index == 0 { satoshis / parts + satoshis % parts } else { satoshis / parts };
    let output = |index| TxOut { satoshis: part(index), locking_script: script.clone() };
    (0..parts).map(output).collect()
}
