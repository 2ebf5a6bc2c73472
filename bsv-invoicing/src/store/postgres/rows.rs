//! Rows, as the rules read and change them: those of the database, with changes that are still to be written.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use bsv_store::{AuditEntry, AuditTail, StoreError};

use super::known::{ChangedRows, Known, Wants};
use super::memory::Memory;
use crate::ledger::rows::{Change, Engine, KeyRange, NewAuditEntry, Order, RawRow, Table};

/// Rows, and what has been changed.
pub(in crate::store) struct SqlRows<'r> {
    stored: &'r dyn Source,
    changes: Changes,
}

/// Where rows are read from, as they are at one moment.
pub(super) trait Source {
    /// The row of a key.
    fn row(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError>;

    /// Up to `limit` rows of a range.
    fn range(&self, range: &KeyRange, limit: usize) -> Result<Vec<RawRow>, StoreError>;

    /// Whether a key is known to have this row, without a look.
    fn has(&self, table: Table, key: &[u8], row: &[u8]) -> bool;
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
    pub(super) rows: ChangedRows,
    pub(super) audit: Vec<AuditEntry>,
    /// What the next entry of the audit log goes on from.
    pub(super) audit_tail: AuditTail,
    /// The time of new entries, in microseconds since 1970.
    pub(super) now_micros: u64,
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
    fn row(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        self.pay(1)?;
        if let Some(known) = self.known.row(table, key) {
            return Ok(known);
        }
        let is_new = self.wants.borrow_mut().want_row(table, key.to_vec());
        let remembered = self.memory.and_then(|memory| memory.row(table, key));
        if remembered.is_none() && !is_new {
            self.pay(COST_OF_REPEATING)?;
        }
        Ok(remembered.flatten())
    }

    fn range(&self, range: &KeyRange, limit: usize) -> Result<Vec<RawRow>, StoreError> {
        self.pay(1)?;
        if let Some(rows) = self.known.range(range, limit) {
            return Ok(rows);
        }
        if !self.wants.borrow_mut().want_range(range.clone(), limit) {
            self.pay(COST_OF_REPEATING)?;
        }
        Ok(self.memory.map_or_else(Vec::new, |memory| memory.range(range, limit)))
    }

    fn has(&self, _: Table, _: &[u8], _: &[u8]) -> bool {
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
    fn row(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        let known = self.known.borrow().row(table, key);
        if let Some(row) = known {
            return Ok(row);
        }
        self.read(|wants| {
            wants.want_row(table, key.to_vec());
        })?;
        Ok(self.known.borrow().row(table, key).flatten())
    }

    fn range(&self, range: &KeyRange, limit: usize) -> Result<Vec<RawRow>, StoreError> {
        let known = self.known.borrow().range(range, limit);
        if let Some(rows) = known {
            return Ok(rows);
        }
        self.read(|wants| {
            wants.want_range(range.clone(), limit);
        })?;
        Ok(self.known.borrow().range(range, limit).unwrap_or_default())
    }

    fn has(&self, table: Table, key: &[u8], row: &[u8]) -> bool {
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
}

impl Engine for SqlRows<'_> {
    fn read(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        match self.changes.rows.get(&table).and_then(|rows| rows.get(key)) {
            Some(change) => Ok(change.row().cloned()),
            None => self.stored.row(table, key),
        }
    }

    fn scan(&self, range: &KeyRange, limit: usize) -> Result<Vec<RawRow>, StoreError> {
        if range.is_empty() || limit == 0 {
            return Ok(Vec::new());
        }
        if range.table == Table::AllFigures {
            // The figures are in the last step, and have no table.
            let figures = self.read(range.table, &[])?.filter(|_| range.contains(&[]));
            return Ok(figures.into_iter().map(|figures| (Vec::new(), figures)).collect());
        }
        let changed = self.changes.rows.get(&range.table);
        let changed: Vec<_> =
            changed.into_iter().flat_map(|rows| rows.range::<[u8], _>(range.bounds())).collect();
        // The changes may have removed so many of the rows that are read.
        let removed = changed.iter().filter(|(_, change)| change.row().is_none()).count();
        let stored = self.stored.range(range, limit.saturating_add(removed))?;
        if changed.is_empty() {
            return Ok(stored);
        }
        let mut rows: BTreeMap<Vec<u8>, Vec<u8>> = stored.into_iter().collect();
        for (key, change) in changed {
            match change.row() {
                Some(row) => drop(rows.insert(key.clone(), row.clone())),
                None => drop(rows.remove(key)),
            }
        }
        Ok(match range.order {
            Order::Ascending => rows.into_iter().take(limit).collect(),
            Order::Descending => rows.into_iter().rev().take(limit).collect(),
        })
    }

    fn write(&mut self, table: Table, key: Vec<u8>, change: Change) -> Result<(), StoreError> {
        let is_changed = |rows: &BTreeMap<_, _>| rows.contains_key(&key);
        if let Change::Set(row) = &change
            && !self.changes.rows.get(&table).is_some_and(is_changed)
            && self.stored.has(table, &key, row)
        {
            return Ok(());
        }
        match self.changes.rows.entry(table).or_default().entry(key) {
            Entry::Vacant(changed) => drop(changed.insert(change)),
            Entry::Occupied(mut changed) => {
                let change = match (changed.get(), change) {
                    (Change::New(_), Change::Set(row)) => Change::New(row),
                    // The database may still have the row that this batch has removed.
                    (_, Change::New(row)) => Change::Set(row),
                    (_, change) => change,
                };
                changed.insert(change);
            }
        }
        Ok(())
    }

    fn append_audit(&mut self, entry: NewAuditEntry<'_>) -> Result<(), StoreError> {
        let changes = &mut self.changes;
        let entry = match entry {
            NewAuditEntry::Next(event, subject) => {
                AuditEntry::next(changes.audit_tail, event, subject, changes.now_micros)
            }
            NewAuditEntry::Copied(entry) => entry.clone(),
        };
        changes.audit_tail = entry.tail();
        changes.audit.push(entry);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::rows::{Kind, Transactions};

    fn key(number: usize) -> Vec<u8> {
        Transactions::key(&(number as u64))
    }

    /// So many rows that are known.
    fn known(count: usize) -> Known {
        let mut known = Known::default();
        (0..count).for_each(|number| known.add_row(Table::Transactions, key(number), None));
        known
    }

    /// How many rows a rule reads until its guess ends, up to a limit. The numbers are those of the rows, without an end.
    fn reads(known: &Known, numbers: impl IntoIterator<Item = usize>, limit: usize) -> usize {
        let guess = Guess::new(known, None);
        let rows = numbers.into_iter().take(limit).map(key);
        rows.take_while(|key| guess.row(Table::Transactions, key).is_ok()).count()
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
