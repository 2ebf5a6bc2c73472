use bsv_invoicing::coins::{Chain, KeyPath};
use bsv_invoicing::dpp::Destination;
use bsv_invoicing::ledger::Watch;
use bsv_invoicing::store::WalletStore;
use bsv_invoicing::{InvoiceDraft, RedbWalletStore};
use bsv_store::{DatabaseOptions, DirLock};
use bsv_tests::Site;
use serde_json::Value;

use super::traffic::random_hash;
use crate::payments::{create_all, open};

/// A site whose wallet watches scripts.
pub(super) struct Filled {
    pub(super) site: Site,
    /// Invoices whose terms were read, so that the wallet watches their scripts.
    pub(super) shown: Vec<Shown>,
}

/// An invoice whose terms were read.
pub(super) struct Shown {
    /// The path of the list of its payments.
    pub(super) path: String,
    pub(super) destination: Destination,
}

/// How many scripts are stored at once.
const BATCH: u64 = 10_000;

/// Makes a site that watches so many scripts, and those of so many invoices.
pub(super) fn fill(settings: Value, scripts: u64, invoices: usize) -> Filled {
    let mut site = Site::with(settings);
    site.keep_on_disk();
    site.set_env("BSV_LOG", "error");
    let dir = site.network_dir();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let shown = runtime.block_on(async {
        let wallet = open(&dir).await;
        let draft = InvoiceDraft { satoshis: 1000, ..InvoiceDraft::default() };
        let mut shown = Vec::with_capacity(invoices);
        for id in create_all(&wallet, &draft, invoices as u64).await {
            let destination = wallet.terms(&id).await.unwrap().destinations.remove(0);
            shown.push(Shown { path: format!("/api/v1/invoices/{id}/payments"), destination });
        }
        shown
    });
    runtime.block_on(async {
        let lock = DirLock::acquire(&dir, "load").unwrap();
        let store = RedbWalletStore::open(lock, DatabaseOptions::default()).unwrap();
        for first in (0..scripts).step_by(BATCH as usize) {
            let numbers = first..scripts.min(first + BATCH);
            let keys = numbers.map(|number| (random_hash(number), key(number))).collect();
            store.execute(Watch { keys }).await.unwrap();
        }
    });
    Filled { site, shown }
}

/// A key that belongs to no invoice here.
fn key(number: u64) -> KeyPath {
    KeyPath { account: 1, chain: Chain::Receive, index: u32::try_from(number).unwrap() }
}
