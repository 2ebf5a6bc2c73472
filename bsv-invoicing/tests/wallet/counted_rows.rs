//! A store that counts the rows that queries read.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bsv_invoicing::{
    Answering, BoxedAnswer, BoxedCommand, BoxedOnce, BoxedQuery, EventCounts, RedbWalletStore,
    Store,
};
use bsv_store::{AuditCheck, AuditEntry, AuditPage, StoreCounts};
use tokio::sync::watch;

use crate::counted::CountedRows;

pub(crate) struct CountingStore {
    store: RedbWalletStore,
    rows: Arc<AtomicUsize>,
}

impl CountingStore {
    pub(crate) fn new(store: RedbWalletStore) -> Self {
        Self { store, rows: Arc::default() }
    }

    /// How many rows were read so far. A row that was not there counts, too.
    pub(crate) fn rows(&self) -> usize {
        self.rows.load(Ordering::Relaxed)
    }

    fn counted(&self, query: BoxedQuery) -> BoxedQuery {
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

    fn run_on_disk(&self, query: BoxedOnce) -> Answering<'_, BoxedAnswer> {
        self.store.run_on_disk(query)
    }

    fn last_event(&self) -> watch::Receiver<u64> {
        self.store.last_event()
    }

    fn audit_log(&self, page: AuditPage, limit: usize) -> Answering<'_, Vec<AuditEntry>> {
        self.store.audit_log(page, limit)
    }

    fn verify_audit_log(&self) -> Answering<'_, AuditCheck> {
        self.store.verify_audit_log()
    }

    fn counts(&self) -> &StoreCounts {
        self.store.counts()
    }

    fn event_counts(&self) -> &EventCounts {
        self.store.event_counts()
    }
}
