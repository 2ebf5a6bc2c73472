//! Queries that count the rows that they read.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bsv_invoicing::ledger::Query;
use bsv_invoicing::ledger::rows::{Engine, KeyRange, Kind, Order, ReadRows, ReadTable, RowsOf};

/// A query whose rows are counted.
#[derive(Clone)]
pub(crate) struct Counted<Q> {
    pub(crate) query: Q,
    /// How many rows were read so far. A row that was not there counts, too.
    pub(crate) count: Arc<AtomicUsize>,
}

impl<Q: Query> Query for Counted<Q> {
    type Answer = Q::Answer;

    fn run<R: ReadRows>(self, rows: &R) -> Result<Q::Answer, R::Error> {
        self.query.run(&CountedRows { rows, count: &self.count })
    }
}

struct CountedRows<'r, R> {
    rows: &'r R,
    count: &'r AtomicUsize,
}

impl<R: ReadRows> Engine for CountedRows<'_, R> {
    type Error = R::Error;
}

impl<K: Kind, R: ReadRows + ReadTable<K>> ReadTable<K> for CountedRows<'_, R> {
    fn read(&self, key: &K::Key) -> Result<Option<K::Row>, R::Error> {
        self.count.fetch_add(1, Ordering::Relaxed);
        ReadTable::<K>::read(self.rows, key)
    }

    fn scan(
        &self,
        range: KeyRange<'_, K>,
        order: Order,
        limit: usize,
    ) -> Result<RowsOf<K>, R::Error> {
        let rows = ReadTable::<K>::scan(self.rows, range, order, limit)?;
        self.count.fetch_add(rows.len(), Ordering::Relaxed);
        Ok(rows)
    }
}
