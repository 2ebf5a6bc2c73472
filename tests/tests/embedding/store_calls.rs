//! How often a wallet calls its store.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bsv_invoicing::store::{Answering, BoxedAnswer, BoxedCommand, BoxedQuery, Store};
use bsv_invoicing::{Error, InvoiceDraft, NodeRpc, RedbWalletStore, Wallet, WalletSettings};
use bsv_store::{DatabaseOptions, DirLock, Keystore, PlainKeys};
use bsv_tests::Node;
use bsv_tests::ancestry::beef;
use bsv_tests::purse::{FEE, Purse, send};
use bsv_tx::{BeefVersion, Network, Script, Transaction, TxOut};
use tokio::runtime::Runtime;

use crate::postgres::store_conformance::forward::forward_others;

/// A number of queries, and one of commands.
type Calls = (usize, usize);

/// A store that counts the queries and the commands.
struct CallCounter {
    store: RedbWalletStore,
    queries: AtomicUsize,
    commands: AtomicUsize,
}

impl CallCounter {
    /// The queries and the commands since the last time.
    fn take(&self) -> Calls {
        let [queries, commands] =
            [&self.queries, &self.commands].map(|count| count.swap(0, Ordering::SeqCst));
        (queries, commands)
    }
}

impl Store for CallCounter {
    fn run_command(&self, weight: usize, command: BoxedCommand) -> Answering<'_, BoxedAnswer> {
        self.commands.fetch_add(1, Ordering::SeqCst);
        self.store.run_command(weight, command)
    }

    fn run_short(&self, query: BoxedQuery) -> Answering<'_, BoxedAnswer> {
        self.queries.fetch_add(1, Ordering::SeqCst);
        self.store.run_short(query)
    }

    fn run_long(&self, query: BoxedQuery) -> Answering<'_, BoxedAnswer> {
        self.queries.fetch_add(1, Ordering::SeqCst);
        self.store.run_long(query)
    }

    forward_others!(self => self.store);
}

const SATOSHIS: u64 = 100_000;

/// A shop whose store counts, a payer, and their node.
struct Scene {
    node: Node,
    purse: Purse,
    store: Arc<CallCounter>,
    wallet: Arc<Wallet>,
    runtime: Runtime,
    /// The store and the keys are in it.
    _dir: tempfile::TempDir,
}

impl Scene {
    fn new(coins: usize) -> Self {
        let node = Node::start();
        node.mine(101);
        let purse = Purse::filled(&node, coins, 10 * SATOSHIS);
        let dir = tempfile::tempdir().unwrap();
        let lock = DirLock::acquire(&dir.path().join("wallet"), "test").unwrap();
        let store = RedbWalletStore::open(lock, DatabaseOptions::default()).unwrap();
        let (queries, commands) = Default::default();
        let store = Arc::new(CallCounter { store, queries, commands });
        let keys = dir.path().join("keys");
        let keystore = Keystore::open(&keys, None, PlainKeys::Allowed, "test").unwrap();
        let runtime = Runtime::new().unwrap();
        let settings = WalletSettings::new(Network::Regtest);
        let wallet =
            runtime.block_on(Wallet::open(Arc::<CallCounter>::clone(&store), keystore, settings));
        let wallet = Arc::new(wallet.unwrap().with_node(NodeRpc::new(node.settings())));
        Self { node, purse, store, wallet, runtime, _dir: dir }
    }

    /// A new invoice, and the outputs that pay it.
    fn bill(&self) -> (String, Vec<TxOut>) {
        self.runtime.block_on(async {
            let draft = InvoiceDraft { satoshis: SATOSHIS, ..InvoiceDraft::default() };
            let id = self.wallet.create_invoice(draft, None).await.unwrap().id.to_string();
            let asked = self.wallet.terms(&id).await.unwrap().destinations.into_iter();
            let output = asked.map(|it| TxOut { satoshis: it.satoshis, locking_script: it.script });
            (id, output.collect())
        })
    }

    /// Posts a payment. Returns what it leads to, with the queries and the commands meanwhile.
    fn post(&self, id: &str, payment: &[u8]) -> (Result<(), Arc<Error>>, Calls) {
        self.store.take();
        let received = self.runtime.block_on(self.wallet.receive(id, payment, None));
        (received.map(drop), self.store.take())
    }

    fn payment(&self, outputs: Vec<TxOut>) -> Transaction {
        self.purse.spend(&[self.purse.coin()], outputs, FEE)
    }
}

#[test]
fn a_payment_is_one_question_to_the_store_and_two_commands() {
    let scene = Scene::new(6);
    let (id, outputs) = scene.bill();
    // It is asked once in a process whether the books have caught up.
    scene.post(&id, &scene.payment(outputs).to_bytes()).0.unwrap();
    let mut counted = Vec::new();
    let mut count = |what, id: &str, payment: &[u8]| {
        let (received, calls) = scene.post(id, payment);
        received.unwrap();
        counted.push((what, calls));
    };

    let (id, outputs) = scene.bill();
    let payment = scene.payment(outputs).to_bytes();
    count("a payment", &id, &payment);
    count("the same once more", &id, &payment);

    let (id, outputs) = scene.bill();
    let parent = scene.payment(Vec::new());
    let child = scene.purse.spend(&scene.purse.coins_of(&parent), outputs, FEE);
    let with_parent = beef(&scene.node, BeefVersion::V1, &child, &[parent]).to_bytes();
    count("a payment with its parent", &id, &with_parent);

    let (id, outputs) = scene.bill();
    let payment = scene.payment(outputs);
    send(&scene.node, &payment);
    count("a payment that the network has", &id, &payment.to_bytes());

    let (id, outputs) = scene.bill();
    let good = scene.payment(outputs);
    let mut unsigned = good.clone();
    unsigned.inputs[0].unlocking_script = Script::default();
    let (received, calls) = scene.post(&id, &unsigned.to_bytes());
    let error = received.unwrap_err();
    assert!(matches!(*error, Error::RefusedByNetwork(_)), "{error}");
    // Letting go of the refused payment in the background is a command too, at any time.
    counted.push(("a payment that the network refuses", (calls.0, calls.1.min(2))));
    let (received, calls) = scene.post(&id, &good.to_bytes());
    received.unwrap();
    counted.push(("a payment after that", (calls.0, calls.1.min(2))));

    let expected = [
        ("a payment", (1, 2)),
        ("the same once more", (1, 0)),
        ("a payment with its parent", (1, 2)),
        ("a payment that the network has", (1, 2)),
        ("a payment that the network refuses", (1, 2)),
        ("a payment after that", (1, 2)),
    ];
    assert_eq!(counted, expected, "queries and commands");
}
