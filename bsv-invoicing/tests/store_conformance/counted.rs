//! Queries that count the rows that they read.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bsv_invoicing::ledger::Query;
use bsv_invoicing::ledger::rows::{Change, Engine, KeyRange, NewAuditEntry, RawRow, Table};
use bsv_invoicing::store::WalletStoreError;
use bsv_store::StoreError;

/// A query whose rows are counted.
#[allow(dead_code, reason = "only the conformance suite uses it")]
#[derive(Clone)]
pub(crate) struct Counted<Q> {
    pub(crate) query: Q,
    /// How many rows were read so far. A row that was not there counts, too.
    pub(crate) count: Arc<AtomicUsize>,
}

impl<Q: Query> Query for Counted<Q> {
    type Answer = Q::Answer;

    fn run(self, rows: &dyn Engine) -> Result<Q::Answer, WalletStoreError> {
        self.query.run(&CountedRows { rows, count: &self.count })
    }
}

/// Rows that are counted when they are read.
pub(crate) struct CountedRows<'r> {
    pub(crate) rows: &'r dyn Engine,
    pub(crate) count: &'r AtomicUsize,
}

impl Engine for CountedRows<'_> {
    fn read(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        self.count.fetch_add(1, Ordering::Relaxed);
        self.rows.read(table, key)
    }

    fn scan(&self, range: &KeyRange, limit: usize) -> Result<Vec<RawRow>, StoreError> {
        let rows = self.rows.scan(range, limit)?;
        self.count.fetch_add(rows.len(), Ordering::Relaxed);
        Ok(rows)
    }

    fn write(&mut self, _: Table, _: Vec<u8>, _: Change) -> Result<(), StoreError> {
        unreachable!("a query only reads")
    }

    fn append_audit(&mut self, _: NewAuditEntry<'_>) -> Result<(), StoreError> {
        unreachable!("a query only reads")
    }
}
