//! Rows, as the rules read and change them: those of the database, with changes that are still to be written.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::RangeBounds;
use std::sync::Arc;

use bsv_store::{AuditEntry, AuditTail, KeyEvent, StoreError};

use super::cells::Cells;
use super::known::{CellRow, Known, RangeKey, Wants};
use super::memory::Memory;
use super::tables::{SqlKind, TableId, one};
use crate::ledger::rows::{AuditLog, Engine, KeyRange, Order, ReadTable, RowsOf, Table};
use crate::store::WalletStoreError;

/// Rows, and what has been changed.
pub(in crate::store) struct SqlRows<'r> {
    stored: &'r dyn Source,
    changes: Changes,
}

/// Where rows are read from, as they are at one moment.
pub(super) trait Source {
    /// The row of a key.
    fn row(&self, table: TableId, key: &Cells) -> Result<Option<Cells>, StoreError>;

    /// Up to `limit` rows of a range.
    fn range(&self, range: &RangeKey, limit: usize) -> Result<Vec<CellRow>, StoreError>;

    /// Whether a key is known to have this row, without a look.
    fn has(&self, table: TableId, key: &Cells, row: &Cells) -> bool;
}

/// Rows to rehearse a batch on. A row that is not known is taken from the memory, or else is taken for absent, and is
/// noted. The outcome of a rehearsal is a guess, and is dropped. The noted rows are what the batch probably reads.
pub(super) struct Guess<'k> {
    known: &'k Known,
    memory: Option<&'k Memory>,
    wants: RefCell<Wants>,
    /// How much may still be read. On guessed rows, which may contradict each other, a rule may never end.
    budget: Cell<usize>,
}

/// How much a guess reads, besides each known row once.
const BUDGET: usize = 50_000;
/// How often a guess reads each known row again, on average. A rule that reads a few rows for each of many others ends
/// however many there are.
const REPEATS: usize = 8;
/// What it costs to ask again for a row that is taken for absent.
const COST_OF_REPEATING: usize = 50;

/// Rows that are known. Others are read when a rule asks for them.
pub(super) struct Reading<'k> {
    pub(super) known: RefCell<Known>,
    pub(super) read: &'k dyn Fn(&Wants, &mut Known) -> Result<(), StoreError>,
}

/// What is to be written.
#[derive(Debug, Default)]
pub(super) struct Changes {
    pub(super) rows: BTreeMap<TableId, BTreeMap<Cells, Change>>,
    pub(super) audit: Vec<AuditEntry>,
    /// What the next entry of the audit log goes on from.
    pub(super) audit_tail: AuditTail,
    /// The time of new entries, in microseconds since 1970.
    pub(super) now_micros: u64,
}

/// What a batch does to the row of a key.
#[derive(Debug)]
pub(super) enum Change {
    /// The database has no row of this key.
    Added(Cells),
    Set(Cells),
    Removed,
}

impl Change {
    /// The row, unless it is removed.
    pub(super) fn row(&self) -> Option<&Cells> {
        match self {
            Self::Added(row) | Self::Set(row) => Some(row),
            Self::Removed => None,
        }
    }
}

impl Changes {
    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.audit.is_empty()
    }
}

impl<'k> Guess<'k> {
    pub(super) fn new(known: &'k Known, memory: Option<&'k Memory>) -> Self {
        let guess = Self { known, memory, wants: RefCell::default(), budget: Cell::default() };
        guess.begin_anew();
        guess
    }

    /// Begins to guess what another command reads.
    pub(super) fn begin_anew(&self) {
        self.budget.set(self.known.len().saturating_mul(1 + REPEATS).saturating_add(BUDGET));
    }

    /// What is not known.
    pub(super) fn into_wants(self) -> Wants {
        self.wants.into_inner()
    }

    fn pay(&self, cost: usize) -> Result<(), StoreError> {
        let left = self.budget.get().checked_sub(cost);
        let is_guessing = !self.wants.borrow().is_empty();
        match left {
            None if is_guessing => Err(StoreError::Engine(Arc::new(TooLong))),
            left => {
                self.budget.set(left.unwrap_or(0));
                Ok(())
            }
        }
    }
}

/// Why a guess ends.
#[derive(Debug, thiserror::Error)]
#[error("a rule does not end on guessed rows")]
struct TooLong;

impl Source for Guess<'_> {
    fn row(&self, table: TableId, key: &Cells) -> Result<Option<Cells>, StoreError> {
        self.pay(1)?;
        if let Some(known) = self.known.row(table, key) {
            return Ok(known);
        }
        let is_new = self.wants.borrow_mut().want_row(table, key.clone());
        let remembered = self.memory.and_then(|memory| memory.row(table, key));
        if remembered.is_none() && !is_new {
            self.pay(COST_OF_REPEATING)?;
        }
        Ok(remembered.flatten())
    }

    fn range(&self, range: &RangeKey, limit: usize) -> Result<Vec<CellRow>, StoreError> {
        self.pay(1)?;
        if let Some(rows) = self.known.range(range, limit) {
            return Ok(rows);
        }
        if !self.wants.borrow_mut().want_range(range.clone(), limit) {
            self.pay(COST_OF_REPEATING)?;
        }
        Ok(self.memory.map_or_else(Vec::new, |memory| memory.range(range, limit)))
    }

    fn has(&self, _: TableId, _: &Cells, _: &Cells) -> bool {
        false
    }
}

impl Reading<'_> {
    fn read(&self, want: impl FnOnce(&mut Wants)) -> Result<(), StoreError> {
        let mut wants = Wants::default();
        want(&mut wants);
        (self.read)(&wants, &mut self.known.borrow_mut())
    }
}

impl Source for Reading<'_> {
    fn row(&self, table: TableId, key: &Cells) -> Result<Option<Cells>, StoreError> {
        let known = self.known.borrow().row(table, key);
        if let Some(row) = known {
            return Ok(row);
        }
        self.read(|wants| {
            wants.want_row(table, key.clone());
        })?;
        Ok(self.known.borrow().row(table, key).flatten())
    }

    fn range(&self, range: &RangeKey, limit: usize) -> Result<Vec<CellRow>, StoreError> {
        let known = self.known.borrow().range(range, limit);
        if let Some(rows) = known {
            return Ok(rows);
        }
        self.read(|wants| {
            wants.want_range(range.clone(), limit);
        })?;
        Ok(self.known.borrow().range(range, limit).unwrap_or_default())
    }

    fn has(&self, table: TableId, key: &Cells, row: &Cells) -> bool {
        self.known.borrow().has(table, key, row)
    }
}

impl<'r> SqlRows<'r> {
    pub(super) fn new(stored: &'r dyn Source, changes: Changes) -> Self {
        Self { stored, changes }
    }

    /// Rows that nothing changes.
    pub(super) fn to_read(stored: &'r dyn Source) -> Self {
        Self::new(stored, Changes::default())
    }

    pub(super) fn into_changes(self) -> Changes {
        self.changes
    }

    fn row(&self, table: TableId, key: &Cells) -> Result<Option<Cells>, StoreError> {
        match self.changes.rows.get(&table).and_then(|rows| rows.get(key)) {
            Some(change) => Ok(change.row().cloned()),
            None => self.stored.row(table, key),
        }
    }

    fn range(&self, range: &RangeKey, limit: usize) -> Result<Vec<CellRow>, StoreError> {
        if range.is_empty() || limit == 0 {
            return Ok(Vec::new());
        }
        let bounds = (range.from.as_ref(), range.to.as_ref());
        if range.table == TableId::AllFigures {
            // The figures are columns of the last step, and have no table.
            let one = one();
            let figures = self.row(range.table, &one)?.filter(|_| bounds.contains(&one));
            return Ok(figures.into_iter().map(|figures| (one.clone(), figures)).collect());
        }
        let changed = self.changes.rows.get(&range.table);
        let changed: Vec<_> =
            changed.into_iter().flat_map(|rows| rows.range::<Cells, _>(bounds)).collect();
        // The changes may have removed so many of the rows that are read.
        let removed = changed.iter().filter(|(_, change)| change.row().is_none()).count();
        let stored = self.stored.range(range, limit.saturating_add(removed))?;
        if changed.is_empty() {
            return Ok(stored);
        }
        let mut rows: BTreeMap<Cells, Cells> = stored.into_iter().collect();
        for (key, change) in changed {
            match change.row() {
                Some(row) => drop(rows.insert(key.clone(), row.clone())),
                None => drop(rows.remove(key)),
            }
        }
        Ok(match range.is_descending {
            false => rows.into_iter().take(limit).collect(),
            true => rows.into_iter().rev().take(limit).collect(),
        })
    }
}

impl Engine for SqlRows<'_> {
    type Error = WalletStoreError;
}

impl<K: SqlKind> ReadTable<K> for SqlRows<'_> {
    fn read(&self, key: &K::Key) -> Result<Option<K::Row>, WalletStoreError> {
        let row = self.row(K::TABLE_ID, &K::key_cells(key))?;
        Ok(row.map(|row| K::row_of(key, &row)).transpose()?)
    }

    fn scan(
        &self,
        (from, to): KeyRange<'_, K>,
        order: Order,
        limit: usize,
    ) -> Result<RowsOf<K>, WalletStoreError> {
        let is_descending = order == Order::Descending;
        let (from, to) = (from.map(K::key_cells), to.map(K::key_cells));
        let range = RangeKey { table: K::TABLE_ID, from, to, is_descending };
        let rows = self.range(&range, limit)?.into_iter().map(|(key, row)| {
            let key = K::key_of(&key)?;
            let row = K::row_of(&key, &row)?;
            Ok((key, row))
        });
        rows.collect()
    }
}

impl<K: SqlKind> Table<K> for SqlRows<'_> {
    fn write(&mut self, key: &K::Key, row: &K::Row) -> Result<(), WalletStoreError> {
        let (key, row) = (K::key_cells(key), K::row_cells(row));
        let is_changed = |rows: &BTreeMap<_, _>| rows.contains_key(&key);
        if !self.changes.rows.get(&K::TABLE_ID).is_some_and(is_changed)
            && self.stored.has(K::TABLE_ID, &key, &row)
        {
            return Ok(());
        }
        match self.changes.rows.entry(K::TABLE_ID).or_default().entry(key) {
            Entry::Vacant(change) => drop(change.insert(Change::Set(row))),
            Entry::Occupied(mut change) => {
                let is_added = matches!(change.get(), Change::Added(_));
                change.insert(if is_added { Change::Added(row) } else { Change::Set(row) });
            }
        }
        Ok(())
    }

    fn write_new(&mut self, key: &K::Key, row: &K::Row) -> Result<(), WalletStoreError> {
        let row = K::row_cells(row);
        match self.changes.rows.entry(K::TABLE_ID).or_default().entry(K::key_cells(key)) {
            Entry::Vacant(change) => drop(change.insert(Change::Added(row))),
            // The database may still have the row that this batch has removed.
            Entry::Occupied(mut change) => drop(change.insert(Change::Set(row))),
        }
        Ok(())
    }

    fn erase(&mut self, key: &K::Key) -> Result<bool, WalletStoreError> {
        let key = K::key_cells(key);
        let was_there = self.row(K::TABLE_ID, &key)?.is_some();
        if was_there {
            self.changes.rows.entry(K::TABLE_ID).or_default().insert(key, Change::Removed);
        }
        Ok(was_there)
    }
}

impl AuditLog for SqlRows<'_> {
    fn append_audit(&mut self, event: KeyEvent, subject: &str) -> Result<(), WalletStoreError> {
        let changes = &mut self.changes;
        let entry = AuditEntry::next(changes.audit_tail, event, subject, changes.now_micros);
        changes.audit_tail = entry.tail();
        changes.audit.push(entry);
        Ok(())
    }

    fn put_audit(&mut self, entry: &AuditEntry) -> Result<(), WalletStoreError> {
        self.changes.audit_tail = entry.tail();
        self.changes.audit.push(entry.clone());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::postgres::cells::Cell as SqlCell;

    fn key(number: usize) -> Cells {
        vec![SqlCell::Number(i64::try_from(number).unwrap())]
    }

    /// So many rows that are known.
    fn known(count: usize) -> Known {
        let mut known = Known::default();
        (0..count).for_each(|number| known.add_row(TableId::Receipts, key(number), None));
        known
    }

    /// How many rows a rule reads until its guess ends, up to a limit. The numbers are those of the rows, without an end.
    fn reads(known: &Known, numbers: impl IntoIterator<Item = usize>, limit: usize) -> usize {
        let guess = Guess::new(known, None);
        let rows = numbers.into_iter().take(limit).map(key);
        rows.take_while(|key| guess.row(TableId::Receipts, key).is_ok()).count()
    }

    #[test]
    fn a_guess_reads_all_known_rows_and_finds_what_is_missing() {
        const MANY: usize = 100_000;
        let missing = MANY..MANY + BUDGET;
        assert_eq!(reads(&known(MANY), (0..MANY).chain(missing), usize::MAX), MANY + BUDGET);
    }

    #[test]
    fn a_rule_that_goes_in_circles_on_guessed_rows_ends() {
        let limit = |count: usize| BUDGET + count * (1 + REPEATS);
        for count in [1, 10_000] {
            let circle = std::iter::once(count).chain((0..count).cycle());
            assert_eq!(reads(&known(count), circle, usize::MAX), limit(count));
        }
        let in_vain = std::iter::repeat(0);
        let ended = reads(&known(0), in_vain, usize::MAX);
        assert_eq!(ended, 1 + (BUDGET - 1) / (1 + COST_OF_REPEATING));
    }

    #[test]
    fn a_rule_goes_on_without_a_limit_where_nothing_is_missing() {
        const MANY: usize = 3 * BUDGET;
        assert_eq!(reads(&known(1), std::iter::repeat(0), MANY), MANY);
    }
}
