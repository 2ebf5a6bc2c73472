//! A store that counts queries, and the rows that they read.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bsv_invoicing::RedbWalletStore;
use bsv_invoicing::store::{Answering, BoxedAnswer, BoxedCommand, BoxedQuery, Store};

use crate::counted::CountedRows;
use crate::forward::forward_others;

pub(crate) struct CountingStore {
    store: RedbWalletStore,
    rows: Arc<AtomicUsize>,
    queries: AtomicUsize,
}

impl CountingStore {
    pub(crate) fn new(store: RedbWalletStore) -> Self {
        Self { store, rows: Arc::default(), queries: AtomicUsize::new(0) }
    }

    /// How many queries there were so far.
    pub(crate) fn queries(&self) -> usize {
        self.queries.load(Ordering::Relaxed)
    }

    /// How many rows were read so far. A row that was not there counts, too.
    pub(crate) fn rows(&self) -> usize {
        self.rows.load(Ordering::Relaxed)
    }

    fn counted(&self, query: BoxedQuery) -> BoxedQuery {
        self.queries.fetch_add(1, Ordering::Relaxed);
        let count = Arc::clone(&self.rows);
        Box::new(move |rows| query(&CountedRows { rows, count: &count }))
    }
}

impl Store for CountingStore {
    fn run_command(&self, weight: usize, command: BoxedCommand) -> Answering<'_, BoxedAnswer> {
        self.store.run_command(weight, command)
    }

    fn run_short(&self, query: BoxedQuery) -> Answering<'_, BoxedAnswer> {
        self.store.run_short(self.counted(query))
    }

    fn run_long(&self, query: BoxedQuery) -> Answering<'_, BoxedAnswer> {
        self.store.run_long(self.counted(query))
    }

    forward_others!(self => self.store);
}
