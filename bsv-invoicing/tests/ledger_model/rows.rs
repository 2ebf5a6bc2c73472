//! A back end of maps in memory, which can be cloned and compared.

use std::collections::BTreeMap;

use bsv_invoicing::ledger::rows::{
    Change, Engine, KeyRange, Kind, NewAuditEntry, Order, RawRow, Row, RowKey, Table,
};
use bsv_invoicing::ledger::{BooksOn, Command, Refusal};
use bsv_invoicing::store::WalletStoreError;
use bsv_store::{KeyEvent, StoreError};

/// All rows, by their tables.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct MemoryRows {
    rows: BTreeMap<Table, BTreeMap<Vec<u8>, Vec<u8>>>,
    audit_log: Vec<(KeyEvent, String)>,
}

impl Engine for MemoryRows {
    fn read(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.rows.get(&table).and_then(|rows| rows.get(key)).cloned())
    }

    fn scan(&self, range: &KeyRange, limit: usize) -> Result<Vec<RawRow>, StoreError> {
        let Some(rows) = self.rows.get(&range.table).filter(|_| !range.is_empty()) else {
            return Ok(Vec::new());
        };
        let rows = rows.range::<[u8], _>(range.bounds());
        let copy = |(key, row): (&Vec<u8>, &Vec<u8>)| (key.clone(), row.clone());
        Ok(match range.order {
            Order::Ascending => rows.take(limit).map(copy).collect(),
            Order::Descending => rows.rev().take(limit).map(copy).collect(),
        })
    }

    fn write(&mut self, table: Table, key: Vec<u8>, change: Change) -> Result<(), StoreError> {
        let rows = self.rows.entry(table).or_default();
        match change {
            Change::New(row) => {
                let before = rows.insert(key, row);
                assert_eq!(before, None, "a new row of {table:?} is there already");
            }
            Change::Set(row) => drop(rows.insert(key, row)),
            Change::Gone => drop(rows.remove(&key)),
        }
        if rows.is_empty() {
            self.rows.remove(&table);
        }
        Ok(())
    }

    fn append_audit(&mut self, entry: NewAuditEntry<'_>) -> Result<(), StoreError> {
        let NewAuditEntry::Next(event, subject) = entry else {
            unreachable!("no rule copies entries: {entry:?}")
        };
        self.audit_log.push((event, subject.to_owned()));
        Ok(())
    }
}

impl MemoryRows {
    /// All rows of a kind.
    pub(crate) fn all<K: Kind>(&self) -> BTreeMap<K::Key, K::Row> {
        let read = |(key, row): (&Vec<u8>, &Vec<u8>)| {
            (K::Key::decode(&mut &**key).unwrap(), K::Row::decode(row).unwrap())
        };
        self.rows.get(&K::TABLE).into_iter().flatten().map(read).collect()
    }

    /// The row of a key.
    pub(crate) fn get<K: Kind>(&self, key: &K::Key) -> Option<K::Row> {
        let rows: &dyn Engine = self;
        rows.get::<K>(key).unwrap()
    }
}

impl MemoryRows {
    /// Runs a command in its own step. Checks that a refused command has written nothing, and that
    /// a command that runs again on the same rows does the same, as it does when another command of
    /// its batch fails.
    pub(crate) fn execute<C: Command<Answer: PartialEq + std::fmt::Debug>>(
        &mut self,
        command: &C,
    ) -> Result<C::Answer, Refusal> {
        let (rows, answer) = self.clone().try_execute(command);
        let (again, answer_again) = self.clone().try_execute(command);
        assert_eq!(rows, again, "run again: the rows");
        match (answer, answer_again) {
            (Ok(answer), Ok(again)) => {
                assert_eq!(answer, again, "run again: the answer");
                *self = rows;
                Ok(answer)
            }
            (Err(WalletStoreError::Refused(refusal)), Err(WalletStoreError::Refused(again))) => {
                assert_eq!(format!("{refusal:?}"), format!("{again:?}"), "run again: the refusal");
                assert_eq!(*self, rows, "a refused command has written: {refusal}");
                Err(refusal)
            }
            (Err(WalletStoreError::Store(error)), _) => panic!("{error}"),
            (answer, again) => panic!("run again: {answer:?}, and then {again:?}"),
        }
    }

    /// Runs a command that must not be refused.
    pub(crate) fn apply<C: Command<Answer: std::fmt::Debug>>(&mut self, command: &C) {
        let (rows, answer) = std::mem::take(self).try_execute(command);
        *self = rows;
        answer.unwrap();
    }

    fn try_execute<C: Command>(self, command: &C) -> (Self, Result<C::Answer, WalletStoreError>) {
        let mut books = BooksOn::open(self).expect("maps can be read");
        let answer = command.run(&mut books);
        (books.close().expect("maps can be written"), answer)
    }
}
