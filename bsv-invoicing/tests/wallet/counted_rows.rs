//! A store that counts the rows that queries read.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bsv_invoicing::ledger::{Command, Query};
use bsv_invoicing::{RedbWalletStore, WalletStore, WalletStoreError};
use bsv_store::{AuditCheck, AuditEntry, AuditPage};
use tokio::sync::watch;

use crate::counted::Counted;

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

    fn counted<Q>(&self, query: Q) -> Counted<Q> {
        Counted { query, count: Arc::clone(&self.rows) }
    }
}

impl WalletStore for CountingStore {
    async fn execute<C: Command>(&self, command: C) -> Result<C::Answer, WalletStoreError> {
        self.store.execute(command).await
    }

    async fn get<Q: Query + Clone>(&self, query: Q) -> Result<Q::Answer, WalletStoreError> {
        self.store.get(self.counted(query)).await
    }

    async fn list<Q: Query + Clone>(&self, query: Q) -> Result<Q::Answer, WalletStoreError> {
        self.store.list(self.counted(query)).await
    }

    async fn verify<Q: Query>(&self, query: Q) -> Result<Q::Answer, WalletStoreError> {
        self.store.verify(query).await
    }

    fn last_event(&self) -> watch::Receiver<u64> {
        self.store.last_event()
    }

    async fn audit_log(
        &self,
        page: AuditPage,
        limit: usize,
    ) -> Result<Vec<AuditEntry>, WalletStoreError> {
        self.store.audit_log(page, limit).await
    }

    async fn verify_audit_log(&self) -> Result<AuditCheck, WalletStoreError> {
        self.store.verify_audit_log().await
    }
}
