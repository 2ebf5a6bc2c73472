use std::cell::OnceCell;
use std::fmt;
use std::ops::RangeBounds;
use std::sync::{Arc, OnceLock};

use redb::{
    AccessGuard, Range, ReadOnlyTable, ReadTransaction, ReadableTable, Table, TableDefinition,
    WriteTransaction,
};

use crate::error::StoreError;

type Bytes = &'static [u8];
type Definition = TableDefinition<'static, Bytes, Bytes>;

/// A table of bytes that is opened for writing at its first use. A command needs few tables, and opening one
/// takes longer than changing a row.
pub struct LazyTable<'t> {
    transaction: &'t WriteTransaction,
    definition: Definition,
    table: OnceCell<Table<'t, Bytes, Bytes>>,
    has_changed: bool,
}

impl<'t> LazyTable<'t> {
    /// The table, not yet opened.
    pub fn new(transaction: &'t WriteTransaction, definition: Definition) -> Self {
        Self { transaction, definition, table: OnceCell::new(), has_changed: false }
    }

    /// Whether a row has become another one, was added or was removed.
    pub fn has_changed(&self) -> bool {
        self.has_changed
    }

    fn open(&self) -> Result<&Table<'t, Bytes, Bytes>, StoreError> {
        if let Some(table) = self.table.get() {
            return Ok(table);
        }
        let opened = self.transaction.open_table(self.definition)?;
        Ok(self.table.get_or_init(|| opened))
    }

    /// The row of a key.
    pub fn get(&self, key: &[u8]) -> Result<Option<AccessGuard<'_, Bytes>>, StoreError> {
        Ok(self.open()?.get(key)?)
    }

    /// The rows of a range of keys.
    pub fn range<'k>(
        &self,
        keys: impl RangeBounds<&'k [u8]> + 'k,
    ) -> Result<Range<'_, Bytes, Bytes>, StoreError> {
        Ok(self.open()?.range(keys)?)
    }

    /// Sets the row of a key, or removes it.
    pub fn put(&mut self, key: &[u8], row: Option<&[u8]>) -> Result<(), StoreError> {
        self.open()?;
        let table = self.table.get_mut().expect("the table has just been opened");
        self.has_changed |= match row {
            Some(row) => table.insert(key, row)?.is_none_or(|before| before.value() != row),
            None => table.remove(key)?.is_some(),
        };
        Ok(())
    }
}

impl fmt::Debug for LazyTable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LazyTable({})", self.definition)
    }
}

/// A table of bytes that is opened for reading at its first use.
pub struct LazyReadTable {
    transaction: Arc<ReadTransaction>,
    definition: Definition,
    table: OnceLock<ReadOnlyTable<Bytes, Bytes>>,
}

impl LazyReadTable {
    /// The table, not yet opened.
    pub fn new(transaction: &Arc<ReadTransaction>, definition: Definition) -> Self {
        Self { transaction: Arc::clone(transaction), definition, table: OnceLock::new() }
    }

    fn open(&self) -> Result<&ReadOnlyTable<Bytes, Bytes>, StoreError> {
        if let Some(table) = self.table.get() {
            return Ok(table);
        }
        let opened = self.transaction.open_table(self.definition)?;
        Ok(self.table.get_or_init(|| opened))
    }

    /// The row of a key.
    pub fn get(&self, key: &[u8]) -> Result<Option<AccessGuard<'static, Bytes>>, StoreError> {
        Ok(self.open()?.get(key)?)
    }

    /// The rows of a range of keys.
    pub fn range<'k>(
        &self,
        keys: impl RangeBounds<&'k [u8]>,
    ) -> Result<Range<'static, Bytes, Bytes>, StoreError> {
        Ok(self.open()?.range(keys)?)
    }
}

impl fmt::Debug for LazyReadTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LazyReadTable({})", self.definition)
    }
}
