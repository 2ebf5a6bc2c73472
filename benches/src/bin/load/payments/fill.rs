use std::sync::Arc;

use bsv_invoicing::coins::{Chain, KeyPath};
use bsv_invoicing::dpp::ReceivedTerms;
use bsv_invoicing::dpp::{Destination, Dialect};
use bsv_invoicing::ledger::queries::GetLastEventAt;
use bsv_invoicing::ledger::{CheckedProof, Mine, Offer, Offered};
use bsv_invoicing::receiving::NewReceipt;
use bsv_invoicing::store::WalletStore;
use bsv_invoicing::transactions::{BlockPlace, Proof};
use bsv_invoicing::{InvoiceDraft, RedbWalletStore, Wallet, WalletSettings};
use bsv_store::{DatabaseOptions, DirLock, Keystore, PlainKeys};
use bsv_tests::Site;
use bsv_tx::{MerkleTree, Network, OutPoint, Script, Transaction, TxIn, TxOut, Txid};
use tokio::task::JoinSet;

use super::node::{FILLED_HEIGHT, HANGING, YesNode, header};

/// A site whose wallet has paid invoices, and other invoices for which payments are prepared.
pub(crate) struct Filled {
    pub(crate) site: Site,
    /// Whole HTTP requests, each of which pays an invoice of its own.
    pub(crate) payments: Vec<Vec<u8>>,
    /// A request that pays with a transaction to which the node does not answer.
    pub(super) hanging: Vec<u8>,
}

/// How many callers are at work at once.
const CALLERS: u64 = 512;
const SATOSHIS: u64 = 1000;

/// Makes a site with so many coins, through the library, and prepares so many payments.
pub(crate) fn fill(node: &YesNode, coins: u64, payments: usize) -> Filled {
    let mut site = Site::with(node.settings.clone());
    site.keep_on_disk();
    site.set_env("BSV_LOG", "error");
    let dir = site.network_dir();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        // The payments go directly into the store, since the wallet would ask a node about each of
        // them.
        let wallet = open(&dir).await;
        let draft = InvoiceDraft { satoshis: SATOSHIS, ..InvoiceDraft::default() };
        create_all(&wallet, &draft, coins).await;
        drop(wallet);
        let lock = DirLock::acquire(&dir, "load").unwrap();
        let store = Arc::new(RedbWalletStore::open(lock, DatabaseOptions::default()).unwrap());
        let mut callers = JoinSet::new();
        for caller in 0..CALLERS {
            callers.spawn(pay_share(Arc::clone(&store), caller, coins));
        }
        callers.join_all().await;
    });
    let (payments, hanging) = runtime.block_on(async {
        let wallet = open(&dir).await;
        let mut prepared = Vec::with_capacity(payments + 1);
        let draft = InvoiceDraft { satoshis: SATOSHIS, ..InvoiceDraft::default() };
        for id in create_all(&wallet, &draft, payments as u64 + 1).await {
            let lock_time = if prepared.len() == payments { HANGING } else { 0 };
            prepared.push(payment(&wallet, &id, prepared.len(), lock_time).await);
        }
        let hanging = prepared.pop().unwrap();
        (prepared, hanging)
    });
    Filled { site, payments, hanging }
}

pub(crate) async fn open(dir: &std::path::Path) -> Arc<Wallet> {
    let keystore = Keystore::open(&dir.join("keystore"), None, PlainKeys::Allowed, "load");
    let lock = DirLock::acquire(dir, "load").unwrap();
    let store = RedbWalletStore::open(lock, DatabaseOptions::default()).unwrap();
    let settings = WalletSettings::new(Network::Regtest);
    Arc::new(Wallet::open(Arc::new(store), keystore.unwrap(), settings).await.unwrap())
}

/// Creates invoices, and answers their ids.
pub(crate) async fn create_all(
    wallet: &Arc<Wallet>,
    draft: &InvoiceDraft,
    count: u64,
) -> Vec<String> {
    let mut callers = JoinSet::new();
    for caller in 0..CALLERS {
        let share = count / CALLERS + u64::from(caller < count % CALLERS);
        let (wallet, draft) = (Arc::clone(wallet), draft.clone());
        callers.spawn(async move {
            let mut ids = Vec::new();
            for _ in 0..share {
                let invoice = wallet.create_invoice(draft.clone(), None).await.unwrap();
                ids.push(invoice.id.to_string());
            }
            ids
        });
    }
    callers.join_all().await.concat()
}

/// Stores the payments of one caller's share of the invoices.
async fn pay_share(store: Arc<RedbWalletStore>, caller: u64, count: u64) {
    let mut invoice = caller + 1;
    while invoice <= count {
        let transaction = paying(&[], invoice as usize, 0);
        let now = store.get(GetLastEventAt).await.unwrap();
        let index = u32::try_from(invoice).unwrap();
        let key = KeyPath { account: 0, chain: Chain::Receive, index };
        let receipts = vec![NewReceipt { vout: 0, satoshis: SATOSHIS, key }];
        let offer = Offer {
            invoice,
            transaction: (&transaction).into(),
            ancestors: Vec::new(),
            receipts,
            refund_to: None,
            is_known: false,
            may_have_rivals: false,
            are_coins_known: true,
            claim: 0,
            now,
            doubted_since: None,
        };
        let Offered::Now(payment, _) = store.execute(offer).await.unwrap() else {
            panic!("it was not there before")
        };
        // Its block is far below the tip, so that the wallet does not watch it any more.
        let checked = CheckedProof { proof: proof(payment.txid), reorganisations: 0 };
        store.execute(Mine { transaction: payment.number, checked, now }).await.unwrap();
        invoice += CALLERS;
    }
}

/// The proof that a transaction is the only one of a block far below the tip.
fn proof(txid: Txid) -> Proof {
    let hash = header(FILLED_HEIGHT).block_hash();
    let block = BlockPlace { hash, height: FILLED_HEIGHT };
    Proof { block, branch: MerkleTree::of(&[txid]).branch(0).unwrap() }
}

/// The request that pays an invoice.
async fn payment(wallet: &Wallet, id: &str, salt: usize, lock_time: u32) -> Vec<u8> {
    let terms = wallet.terms(id).await.unwrap();
    let transaction = paying(&terms.destinations, salt + (1 << 30), lock_time);
    let terms = ReceivedTerms::from_json(&terms.to_json(Dialect::GoDpp), Network::Regtest);
    payment_request(id, terms.unwrap().payment(&transaction, None, ""))
}

/// The whole HTTP request that posts a payment of an invoice.
pub(crate) fn payment_request(id: &str, body: Vec<u8>) -> Vec<u8> {
    let head = format!(
        "POST /dpp/api/v1/payment/{id} HTTP/1.1\r\nHost: 127.0.0.1\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    [head.into_bytes(), body].concat()
}

/// A transaction of an ordinary size. Each salt makes another one.
pub(crate) fn paying(destinations: &[Destination], salt: usize, lock_time: u32) -> Transaction {
    let vout = u32::try_from(salt).unwrap();
    let input = TxIn {
        previous_output: OutPoint { txid: Txid::from_bytes([7; 32]), vout },
        unlocking_script: Script::from_bytes(vec![0x51; 107]),
        sequence: u32::MAX,
    };
    let outputs = destinations.iter().map(|destination| TxOut {
        satoshis: destination.satoshis,
        locking_script: destination.script.clone(),
    });
    let change = TxOut { satoshis: 50_000_000, locking_script: Script::from_bytes(vec![0x51; 25]) };
    let outputs = outputs.chain([change]).collect();
    Transaction { version: 1, inputs: vec![input], outputs, lock_time }
}
