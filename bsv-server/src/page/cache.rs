use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use bsv_invoicing::{Checkout, InvoiceId};
use bytes::Bytes;

/// The pages that were made last. Making a page derives a key and lays out two QR codes, which
/// takes a hundred times as long as reading the invoice again.
#[derive(Debug, Default)]
pub(super) struct Cache(Mutex<Pages>);

#[derive(Debug, Default)]
struct Pages {
    recent: HashMap<Key, Made>,
    /// The pages from before `recent` became full.
    older: HashMap<Key, Made>,
}

/// An invoice, and the tag of a language.
type Key = (InvoiceId, &'static str);

/// A page, and the state that it shows.
#[derive(Clone, Debug)]
struct Made {
    shows: Checkout,
    html: Bytes,
}

/// At most twice as many pages are kept. A page takes about 10 kB, or more with a long description.
const MAX_PAGES: usize = 256;

impl Cache {
    /// The page that shows exactly this state.
    pub(super) fn get(&self, checkout: &Checkout, language: &'static str) -> Option<Bytes> {
        let key = (checkout.id, language);
        let mut pages = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(made) = pages.recent.get(&key) {
            return (made.shows == *checkout).then(|| made.html.clone());
        }
        let made = pages.older.remove(&key).filter(|made| made.shows == *checkout)?;
        let html = made.html.clone();
        pages.put(key, made);
        Some(html)
    }

    /// Keeps the page that shows this state.
    pub(super) fn put(&self, checkout: Checkout, language: &'static str, html: Bytes) {
        let key = (checkout.id, language);
        let mut pages = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        pages.put(key, Made { shows: checkout, html });
    }
}

impl Pages {
    fn put(&mut self, key: Key, made: Made) {
        if self.recent.len() >= MAX_PAGES && !self.recent.contains_key(&key) {
            self.older = std::mem::take(&mut self.recent);
        }
        self.recent.insert(key, made);
    }
}
