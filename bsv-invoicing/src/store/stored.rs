//! What rows look like as plain values, whichever engine stores them. The types of these values are named with
//! redb's [`Value`], which knows the borrowed form of each.

mod events;
mod kinds;
mod webhooks;

use redb::{TableDefinition, Value};

use crate::ledger::rows::{Damaged, Kind};

pub(in crate::store) use self::kinds::WAS_SEEN;

/// A key or a row in the form of its table.
pub(in crate::store) type Stored<'v, V> = <V as Value>::SelfType<'v>;

/// A kind of row that has a table.
pub(in crate::store) trait StoredKind: Kind {
    /// The keys of the table.
    type StoredKey: redb::Key + 'static;
    /// The values of the table.
    type StoredRow: Value + 'static;

    /// The table.
    const TABLE: TableDefinition<'static, Self::StoredKey, Self::StoredRow>;

    /// A key as it is stored.
    fn store_key(key: &Self::Key) -> Stored<'_, Self::StoredKey>;

    /// Reads a key.
    fn read_key(key: Stored<'_, Self::StoredKey>) -> Result<Self::Key, Damaged>;

    /// Hands a row to `write` as it is stored.
    fn store_row<T>(row: &Self::Row, write: impl FnOnce(Stored<'_, Self::StoredRow>) -> T) -> T;

    /// Reads a row.
    fn read_row(key: &Self::Key, row: Stored<'_, Self::StoredRow>) -> Result<Self::Row, Damaged>;
}
