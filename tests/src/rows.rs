//! The rows of a wallet's file, which a test reads and changes without the wallet.

use bsv_invoicing::ledger::rows::{Kind, Row, RowKey};
use redb::{ReadableTable, Table, TableDefinition, WriteTransaction};

type RawTable<'t> = Table<'t, &'static [u8], &'static [u8]>;

fn table<K: Kind>(transaction: &WriteTransaction) -> RawTable<'_> {
    transaction.open_table(TableDefinition::new(K::TABLE.name())).unwrap()
}

/// All rows of a kind.
pub fn rows<K: Kind>(transaction: &WriteTransaction) -> Vec<(K::Key, K::Row)> {
    let read = |row: Result<_, redb::StorageError>| {
        let (key, row): (redb::AccessGuard<'_, &[u8]>, redb::AccessGuard<'_, &[u8]>) = row.unwrap();
        (K::Key::decode(&mut key.value()).unwrap(), K::Row::decode(row.value()).unwrap())
    };
    table::<K>(transaction).iter().unwrap().map(read).collect()
}

/// Sets a row.
pub fn set<K: Kind>(transaction: &WriteTransaction, key: &K::Key, row: &K::Row) {
    table::<K>(transaction).insert(&*K::key(key), &*row.encode()).unwrap();
}

/// Removes the first row of a kind.
pub fn remove_first<K: Kind>(transaction: &WriteTransaction) {
    table::<K>(transaction).pop_first().unwrap();
}

/// Changes the first row of a kind.
pub fn change_first<K: Kind>(transaction: &WriteTransaction, change: impl FnOnce(&mut K::Row)) {
    let (key, mut row) = rows::<K>(transaction).remove(0);
    change(&mut row);
    set::<K>(transaction, &key, &row);
}
