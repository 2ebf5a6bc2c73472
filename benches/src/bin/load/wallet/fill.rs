use std::sync::Arc;

use bsv_invoicing::{InvoiceDraft, RedbWalletStore, Wallet, WalletSettings};
use bsv_store::{DatabaseOptions, DirLock, Keystore, PlainKeys};
use bsv_tests::Site;
use bsv_tx::Network;
use tokio::task::JoinSet;

/// A site whose wallet has invoices.
pub(crate) struct Filled {
    pub(crate) site: Site,
    /// The paths of some invoices, evenly spread over all.
    pub(crate) paths: Vec<String>,
}

impl Filled {
    /// At most so many of the paths, evenly spread over all.
    pub(crate) fn spread_paths(&self, count: usize) -> impl Iterator<Item = String> {
        self.paths.iter().step_by(self.paths.len().div_ceil(count)).cloned()
    }
}

/// How many callers create invoices at once.
const CALLERS: u64 = 512;
const MAX_PATHS: u64 = 100_000;

/// Makes a site with so many invoices, through the library.
pub(crate) fn fill(count: u64) -> Filled {
    let mut site = Site::new();
    site.keep_on_disk();
    site.set_env("BSV_LOG", "error");
    let dir = site.network_dir();
    let keystore = Keystore::open(&dir.join("keystore"), None, PlainKeys::Allowed, "load");
    let lock = DirLock::acquire(&dir, "load").unwrap();
    let store = RedbWalletStore::open(lock, DatabaseOptions::default()).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let paths = runtime.block_on(async {
        let settings = WalletSettings::new(Network::Regtest);
        let wallet =
            Arc::new(Wallet::open(Arc::new(store), keystore.unwrap(), settings).await.unwrap());
        let mut callers = JoinSet::new();
        for caller in 0..CALLERS {
            callers.spawn(create(Arc::clone(&wallet), caller, count));
        }
        callers.join_all().await.concat()
    });
    Filled { site, paths }
}

/// Creates one caller's share of the invoices, and answers the paths of some of them.
async fn create(wallet: Arc<Wallet>, caller: u64, count: u64) -> Vec<String> {
    let share = count / CALLERS + u64::from(caller < count % CALLERS);
    let every = count.div_ceil(MAX_PATHS);
    let mut paths = Vec::new();
    for index in 0..share {
        let draft = InvoiceDraft {
            satoshis: 1000 + index,
            description: Some("two cups of coffee and a cake".to_owned()),
            reference: Some(format!("order {caller} {index}")),
            expires_at: None,
        };
        let invoice = wallet.create_invoice(draft, None).await.unwrap();
        if invoice.number % every == 0 {
            paths.push(format!("/api/v1/invoices/{}", invoice.id));
        }
    }
    paths
}
