//! A payer with its own key and coins. It can also pay in ways that no wallet would.

use std::io;
use std::sync::Mutex;

use bsv_invoicing::dpp::{Dialect, ReceivedTerms};
use bsv_network::NodeRpc;
use bsv_tx::{Network, OutPoint, PrivateKey, Script, SighashCache, Transaction, TxIn, TxOut};
use serde_json::json;
use tokio::runtime::Runtime;

use crate::http::{Client, Reply};
use crate::node::Node;
use crate::source;

/// Mined coins of one key.
#[derive(Debug)]
pub struct Purse {
    key: PrivateKey,
    coins: Mutex<Vec<Coin>>,
}

/// An output that the key of a purse unlocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Coin {
    /// Its outpoint.
    pub outpoint: OutPoint,
    /// The amount.
    pub satoshis: u64,
}

/// A fee that payees accept, for a transaction with a few inputs and outputs.
pub const FEE: u64 = 200;

impl Purse {
    /// A new purse with `count` mined coins of `satoshis` each from the node's wallet.
    pub fn filled(node: &Node, count: usize, satoshis: u64) -> Self {
        let purse = Self { key: PrivateKey::generate().unwrap(), coins: Mutex::default() };
        if count == 0 {
            return purse;
        }
        let outputs = vec![TxOut { satoshis, locking_script: purse.script() }; count];
        let rpc = NodeRpc::new(node.settings());
        let funded = Runtime::new().unwrap().block_on(rpc.wallet_transaction(&outputs)).unwrap();
        send(node, &funded);
        node.mine(1);
        let coins = purse.coins_of(&funded).into_iter().filter(|coin| coin.satoshis == satoshis);
        *purse.coins.lock().unwrap() = coins.collect();
        purse
    }

    /// Takes a coin out.
    ///
    /// # Panics
    /// If there is none.
    pub fn coin(&self) -> Coin {
        self.try_coin().expect("the purse has a coin")
    }

    /// Takes a coin out if there is one.
    pub fn try_coin(&self) -> Option<Coin> {
        self.coins.lock().unwrap().pop()
    }

    /// The coins of this purse among the outputs of a transaction.
    pub fn coins_of(&self, transaction: &Transaction) -> Vec<Coin> {
        let (txid, script) = (transaction.txid(), self.script());
        let outputs = (0..).zip(&transaction.outputs);
        let own = outputs.filter(|(_, output)| output.locking_script == script);
        let coin = |(vout, output): (u32, &TxOut)| Coin {
            outpoint: OutPoint { txid, vout },
            satoshis: output.satoshis,
        };
        own.map(coin).collect()
    }

    /// The key, in the form that wallets exchange.
    pub fn wif(&self) -> String {
        self.key.to_wif(Network::Regtest).to_string()
    }

    /// The locking script of the purse's coins.
    pub fn script(&self) -> Script {
        Script::p2pkh(&self.key.public_key().hash())
    }

    /// A transaction that spends coins to `outputs`, pays `fee`, and returns the rest as change.
    pub fn spend(&self, coins: &[Coin], mut outputs: Vec<TxOut>, fee: u64) -> Transaction {
        let spent = outputs.iter().map(|output| output.satoshis).sum::<u64>() + fee;
        let total: u64 = coins.iter().map(|coin| coin.satoshis).sum();
        outputs.push(TxOut { satoshis: total - spent, locking_script: self.script() });
        self.spend_all(coins, outputs)
    }

    /// A transaction that spends coins to `outputs`, and leaves the rest to the miner.
    pub fn spend_all(&self, coins: &[Coin], outputs: Vec<TxOut>) -> Transaction {
        let input = |coin: &Coin| TxIn {
            previous_output: coin.outpoint,
            unlocking_script: Script::default(),
            sequence: u32::MAX,
        };
        let inputs = coins.iter().map(input).collect();
        let mut transaction = Transaction { version: 1, inputs, outputs, lock_time: 0 };
        self.sign(&mut transaction, coins);
        transaction
    }

    /// Signs a transaction without other changes. Its inputs spend these coins in this order.
    pub fn sign(&self, transaction: &mut Transaction, coins: &[Coin]) {
        let cache = SighashCache::new(transaction);
        let sign = |(index, coin): (usize, &Coin)| {
            let spent = TxOut { satoshis: coin.satoshis, locking_script: self.script() };
            cache.sign_p2pkh(index, &spent, &self.key).unwrap()
        };
        let scripts: Vec<_> = coins.iter().enumerate().map(sign).collect();
        for (input, script) in transaction.inputs.iter_mut().zip(scripts) {
            input.unlocking_script = script;
        }
    }

    /// A transaction that pays a bill from one coin, with change.
    pub fn transaction_for(&self, bill: &Bill) -> Transaction {
        self.spend(&[self.coin()], bill.outputs(), FEE)
    }
}

/// The terms at a payment URL.
#[derive(Clone, Debug)]
pub struct Bill {
    payee: Client,
    path: String,
    received: ReceivedTerms,
}

impl Bill {
    /// Reads the terms at a payment URL, in the dialect of its path.
    ///
    /// # Panics
    /// If there are none.
    pub fn at(url: &str) -> Self {
        Self::try_at(url).unwrap()
    }

    /// Reads the terms of a payee that may not answer, or only that it cannot do so now (503).
    ///
    /// # Panics
    /// If the answer is something else.
    pub fn try_at(url: &str) -> io::Result<Self> {
        Self::accepting(url, "application/json")
    }

    /// Reads the terms at a payment URL in a dialect. The path decides which JSON dialect is
    /// available.
    ///
    /// # Panics
    /// If there are none, or they are in another dialect.
    pub fn in_dialect(url: &str, dialect: Dialect) -> Self {
        let bill = Self::accepting(url, dialect.request_type()).unwrap();
        assert_eq!(bill.received.dialect(), dialect, "{url}");
        bill
    }

    fn accepting(url: &str, content_type: &str) -> io::Result<Self> {
        let rest = url.strip_prefix("http://").unwrap();
        let (address, path) = rest.split_at(rest.find('/').unwrap());
        let payee = Client::new(address);
        let reply = payee.try_send("GET", path, &[("Accept", content_type)], b"")?;
        if reply.status == 503 {
            return Err(io::Error::other(reply.body));
        }
        assert_eq!(reply.status, 200, "{url}: {}", reply.body);
        let received = ReceivedTerms::from_json(reply.body.as_bytes(), Network::Regtest).unwrap();
        Ok(Self { payee, path: path.to_owned(), received })
    }

    /// The outputs to pay.
    pub fn outputs(&self) -> Vec<TxOut> {
        let destinations = self.received.terms.destinations.iter();
        let output = destinations.map(|destination| TxOut {
            satoshis: destination.satoshis,
            locking_script: destination.script.clone(),
        });
        output.collect()
    }

    /// The body that pays with a transaction, in the dialect of the terms.
    pub fn payment(&self, transaction: &Transaction) -> Vec<u8> {
        let wants_ancestry = self.received.terms.wants_ancestry;
        let ancestry = wants_ancestry.then(|| source::beef(transaction)).flatten();
        let payment = self.received.payment(transaction, ancestry.as_ref(), "");
        match self.received.dialect() {
            // It has no other place for ancestors.
            Dialect::Bip270 => {
                let text = String::from_utf8(payment).unwrap();
                text.replace(&transaction.to_hex(), &source::hex(transaction)).into_bytes()
            }
            Dialect::GoDpp | Dialect::Brc => payment,
        }
    }

    /// Pays with a transaction, in the dialect of the terms.
    ///
    /// # Panics
    /// If there is no answer.
    pub fn post(&self, transaction: &Transaction) -> Reply {
        self.try_post(transaction).unwrap()
    }

    /// Pays with a transaction, possibly without an answer.
    pub fn try_post(&self, transaction: &Transaction) -> io::Result<Reply> {
        self.post_to(&self.payee, transaction)
    }

    /// Pays at another server of the payee, possibly without an answer.
    pub fn post_to(&self, payee: &Client, transaction: &Transaction) -> io::Result<Reply> {
        let content_type = self.received.dialect().payment_type();
        let headers = [("Content-Type", content_type)];
        payee.try_send("POST", &self.path, &headers, &self.payment(transaction))
    }
}

/// Sends a transaction to a node, and to the services in front of it if there are any.
///
/// # Panics
/// If the node refuses, with its words.
pub fn send(node: &Node, transaction: &Transaction) {
    node.call("sendrawtransaction", json!([transaction.to_hex()]));
    source::tell(node, transaction);
}

/// Whether a node has a transaction, in its mempool or in a block.
pub fn knows(node: &Node, transaction: &Transaction) -> bool {
    node.try_call("getrawtransaction", json!([transaction.txid().to_string()])).is_ok()
}
