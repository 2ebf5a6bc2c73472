//! What lies in a wallet's store, read by the library from a copy of the data directory.

use bsv_invoicing::{
    Event, EventKind, Invoice, InvoiceQuery, RedbWalletStore, Wallet, WalletSettings,
};
use bsv_store::{DatabaseOptions, DirLock, Keystore, PlainKeys};
use bsv_tx::Network;

use crate::site::Site;

/// All invoices and events on the disk, as a start after a crash would find them.
#[derive(Debug)]
pub struct StoredWallet {
    /// In the order of their numbers.
    pub invoices: Vec<Invoice>,
    /// In the order of their numbers.
    pub events: Vec<Event>,
}

impl StoredWallet {
    /// Reads a copy of the site's wallet, and checks that its invoices and events are numbered
    /// without a gap and tell the same: each invoice was created once, in order, and no event was
    /// before the one before it.
    ///
    /// # Panics
    /// If something is not as it should be.
    pub fn of(site: &Site) -> Self {
        let copy = site.copy();
        let dir = copy.network_dir();
        let keystore = Keystore::open(&dir.join("keystore"), None, PlainKeys::Allowed, "test");
        let lock = DirLock::acquire(&dir, "test").unwrap();
        let store = RedbWalletStore::open(lock, DatabaseOptions::default()).unwrap();
        let runtime = tokio::runtime::Builder::new_multi_thread().build().unwrap();
        let stored = runtime.block_on(async {
            let settings = WalletSettings::new(Network::Regtest);
            let wallet = Wallet::open(store, keystore.unwrap(), settings).await.unwrap();
            let query =
                InvoiceQuery { after: None, state: None, newest_first: false, limit: usize::MAX };
            let mut invoices = Vec::new();
            let mut next = Some(query);
            while let Some(query) = next {
                let page = wallet.invoices(query).await.unwrap();
                invoices.extend(page.invoices);
                next = page.next.map(|(number, _)| InvoiceQuery { after: Some(number), ..query });
            }
            Self { invoices, events: wallet.events(0, usize::MAX).await.unwrap() }
        });
        stored.check();
        stored
    }

    fn check(&self) {
        let numbers = self.events.iter().map(|event| event.number);
        assert!(numbers.eq(1..=self.events.len() as u64), "the event log has a gap");
        assert!(self.events.is_sorted_by_key(|event| event.at), "events went back in time");
        let created = self.events.iter().filter_map(|event| match event.kind {
            EventKind::InvoiceCreated(id) => Some(id),
            _ => None,
        });
        assert!(created.eq(self.invoices.iter().map(|invoice| invoice.id)));
        let numbers = self.invoices.iter().map(|invoice| invoice.number);
        assert!(numbers.eq(1..=self.invoices.len() as u64), "an invoice is missing");
    }

    /// The invoice that has this reference, if there is one.
    ///
    /// # Panics
    /// If there are several.
    pub fn with_reference(&self, reference: &str) -> Option<&Invoice> {
        let mut found =
            self.invoices.iter().filter(|invoice| invoice.reference.as_deref() == Some(reference));
        let first = found.next();
        assert!(found.next().is_none(), "{reference} was created twice");
        first
    }
}
