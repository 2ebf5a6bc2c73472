//! Rows in the tables of a redb file.

use std::sync::Arc;

use bsv_store::{
    LazyReadTable, LazyTable, StoreError, View, append_to_audit_log, copy_to_audit_log,
};
use redb::{Range, ReadTransaction, TableDefinition, WriteTransaction};
use thiserror::Error;

use crate::ledger::rows::{Change, Engine, KeyRange, NewAuditEntry, Order, RawRow, Table};

type Bytes = &'static [u8];

fn definition(table: Table) -> TableDefinition<'static, Bytes, Bytes> {
    TableDefinition::new(table.name())
}

/// Creates the tables.
pub(super) fn create_tables(transaction: &WriteTransaction) -> Result<(), StoreError> {
    for table in Table::ALL {
        transaction.open_table(definition(*table))?;
    }
    Ok(())
}

/// The tables, as a batch of commands uses them.
pub(super) struct RowsToWrite<'t> {
    transaction: &'t WriteTransaction,
    /// In the order of [`Table::ALL`].
    tables: Vec<LazyTable<'t>>,
    /// Whether the audit log has new entries.
    has_audit: bool,
}

/// The tables, as queries use them.
pub(super) struct RowsToRead {
    /// In the order of [`Table::ALL`].
    tables: Vec<LazyReadTable>,
}

/// Where a table is in [`Table::ALL`].
fn index(table: Table) -> usize {
    usize::from(table as u8) - 1
}

impl<'t> RowsToWrite<'t> {
    pub(super) fn new(transaction: &'t WriteTransaction) -> Self {
        let tables = Table::ALL.iter().map(|table| LazyTable::new(transaction, definition(*table)));
        Self { transaction, tables: tables.collect(), has_audit: false }
    }

    /// Whether any row has changed.
    pub(super) fn have_changed(&self) -> bool {
        self.has_audit || self.tables.iter().any(LazyTable::has_changed)
    }
}

impl RowsToRead {
    pub(super) fn new(transaction: &Arc<ReadTransaction>) -> Self {
        let tables = Table::ALL.iter().map(|it| LazyReadTable::new(transaction, definition(*it)));
        Self { tables: tables.collect() }
    }
}

impl View for RowsToRead {
    fn open(transaction: &Arc<ReadTransaction>) -> Result<Self, StoreError> {
        Ok(Self::new(transaction))
    }
}

impl Engine for RowsToWrite<'_> {
    fn read(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.tables[index(table)].get(key)?.map(|row| row.value().to_vec()))
    }

    fn scan(&self, range: &KeyRange, limit: usize) -> Result<Vec<RawRow>, StoreError> {
        collect(self.tables[index(range.table)].range(range.bounds())?, range.order, limit)
    }

    fn write(&mut self, table: Table, key: Vec<u8>, change: Change) -> Result<(), StoreError> {
        self.tables[index(table)].put(&key, change.row().map(Vec::as_slice))
    }

    fn append_audit(&mut self, entry: NewAuditEntry<'_>) -> Result<(), StoreError> {
        self.has_audit = true;
        match entry {
            NewAuditEntry::Next(event, subject) => {
                append_to_audit_log(self.transaction, [(event, subject)])
            }
            NewAuditEntry::Copied(entry) => copy_to_audit_log(self.transaction, entry),
        }
    }
}

impl Engine for RowsToRead {
    fn read(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.tables[index(table)].get(key)?.map(|row| row.value().to_vec()))
    }

    fn scan(&self, range: &KeyRange, limit: usize) -> Result<Vec<RawRow>, StoreError> {
        collect(self.tables[index(range.table)].range(range.bounds())?, range.order, limit)
    }

    fn write(&mut self, _: Table, _: Vec<u8>, _: Change) -> Result<(), StoreError> {
        Err(StoreError::Engine(Arc::new(ReadOnly)))
    }

    fn append_audit(&mut self, _: NewAuditEntry<'_>) -> Result<(), StoreError> {
        Err(StoreError::Engine(Arc::new(ReadOnly)))
    }
}

/// Why rows of one moment do not change.
#[derive(Debug, Error)]
#[error("these rows are only read")]
struct ReadOnly;

fn collect(
    rows: Range<'_, Bytes, Bytes>,
    order: Order,
    limit: usize,
) -> Result<Vec<RawRow>, StoreError> {
    let copy = |row: Result<_, redb::StorageError>| {
        let (key, row): (redb::AccessGuard<'_, Bytes>, redb::AccessGuard<'_, Bytes>) = row?;
        Ok((key.value().to_vec(), row.value().to_vec()))
    };
    match order {
        Order::Ascending => rows.take(limit).map(copy).collect(),
        Order::Descending => rows.rev().take(limit).map(copy).collect(),
    }
}
