use std::borrow::Borrow;
use std::cell::OnceCell;
use std::fmt;
use std::ops::RangeBounds;
use std::sync::{Arc, OnceLock};

use redb::{
    AccessGuard, Key, Range, ReadOnlyTable, ReadTransaction, ReadableTable, Table, TableDefinition,
    Value, WriteTransaction,
};

use crate::error::StoreError;

/// A table that is opened for writing at its first use. A command needs few tables, and opening one
/// takes longer than changing a row.
pub struct LazyTable<'t, K: Key + 'static, V: Value + 'static> {
    transaction: &'t WriteTransaction,
    definition: TableDefinition<'static, K, V>,
    table: OnceCell<Table<'t, K, V>>,
    has_changed: bool,
}

impl<'t, K: Key, V: Value> LazyTable<'t, K, V> {
    /// The table, not yet opened.
    pub fn new(
        transaction: &'t WriteTransaction,
        definition: TableDefinition<'static, K, V>,
    ) -> Self {
        Self { transaction, definition, table: OnceCell::new(), has_changed: false }
    }

    /// Whether a row has become another one, was added or was removed.
    pub fn has_changed(&self) -> bool {
        self.has_changed
    }

    fn open(&self) -> Result<&Table<'t, K, V>, StoreError> {
        if let Some(table) = self.table.get() {
            return Ok(table);
        }
        let opened = self.transaction.open_table(self.definition)?;
        Ok(self.table.get_or_init(|| opened))
    }

    fn open_mut(&mut self) -> Result<&mut Table<'t, K, V>, StoreError> {
        self.open()?;
        Ok(self.table.get_mut().expect("the table has just been opened"))
    }

    /// The value of a key.
    pub fn get<'k>(
        &self,
        key: impl Borrow<K::SelfType<'k>>,
    ) -> Result<Option<AccessGuard<'_, V>>, StoreError> {
        Ok(self.open()?.get(key)?)
    }

    /// The rows of a range of keys.
    pub fn range<'k, R: Borrow<K::SelfType<'k>> + 'k>(
        &self,
        range: impl RangeBounds<R> + 'k,
    ) -> Result<Range<'_, K, V>, StoreError> {
        Ok(self.open()?.range(range)?)
    }

    /// Sets the value of a key.
    pub fn insert<'k, 'v>(
        &mut self,
        key: impl Borrow<K::SelfType<'k>>,
        value: impl Borrow<V::SelfType<'v>>,
    ) -> Result<(), StoreError> {
        let (value, has_changed) = (value.borrow(), self.has_changed);
        let is_other = |before: AccessGuard<'_, V>| {
            V::as_bytes(&before.value()).as_ref() != V::as_bytes(value).as_ref()
        };
        let changes = {
            let before = self.open_mut()?.insert(key, value)?;
            !has_changed && before.is_none_or(is_other)
        };
        self.has_changed |= changes;
        Ok(())
    }

    /// Removes a key. Answers whether it was there.
    pub fn remove<'k>(&mut self, key: impl Borrow<K::SelfType<'k>>) -> Result<bool, StoreError> {
        let was_there = self.open_mut()?.remove(key)?.is_some();
        self.has_changed |= was_there;
        Ok(was_there)
    }
}

impl<K: Key, V: Value> fmt::Debug for LazyTable<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LazyTable({})", self.definition)
    }
}

/// A table that is opened for reading at its first use.
pub struct LazyReadTable<K: Key + 'static, V: Value + 'static> {
    transaction: Arc<ReadTransaction>,
    definition: TableDefinition<'static, K, V>,
    table: OnceLock<ReadOnlyTable<K, V>>,
}

impl<K: Key, V: Value> LazyReadTable<K, V> {
    /// The table, not yet opened.
    pub fn new(
        transaction: &Arc<ReadTransaction>,
        definition: TableDefinition<'static, K, V>,
    ) -> Self {
        Self { transaction: Arc::clone(transaction), definition, table: OnceLock::new() }
    }

    fn open(&self) -> Result<&ReadOnlyTable<K, V>, StoreError> {
        if let Some(table) = self.table.get() {
            return Ok(table);
        }
        let opened = self.transaction.open_table(self.definition)?;
        Ok(self.table.get_or_init(|| opened))
    }

    /// The value of a key.
    pub fn get<'k>(
        &self,
        key: impl Borrow<K::SelfType<'k>>,
    ) -> Result<Option<AccessGuard<'static, V>>, StoreError> {
        Ok(self.open()?.get(key)?)
    }

    /// The rows of a range of keys.
    pub fn range<'k, R: Borrow<K::SelfType<'k>>>(
        &self,
        range: impl RangeBounds<R>,
    ) -> Result<Range<'static, K, V>, StoreError> {
        Ok(self.open()?.range(range)?)
    }
}

impl<K: Key, V: Value> fmt::Debug for LazyReadTable<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LazyReadTable({})", self.definition)
    }
}
