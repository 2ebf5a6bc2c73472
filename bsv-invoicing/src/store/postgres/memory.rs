//! Rows as this process has read or written them lately.

use std::collections::BTreeMap;
use std::ops::Bound;

use super::cells::Cells;
use super::known::{CellRow, Known, RangeKey, size_of_row};
use super::rows::Changes;
use super::tables::TableId;

/// Rows as they were lately. Another process may have changed them since, and a commit of them may have failed. They
/// serve to guess which rows a batch will read. No batch is run on them.
#[derive(Default)]
pub(super) struct Memory {
    recent: Remembered,
    /// The former `recent`.
    older: Remembered,
}

#[derive(Default)]
struct Remembered {
    tables: BTreeMap<TableId, BTreeMap<Cells, Option<Cells>>>,
    /// About how much memory that takes, in bytes.
    size: usize,
}

/// At this size, in bytes, `recent` replaces `older`.
const MOST: usize = 8 << 20;
/// Larger rows hold transactions and messages, which name no other rows to read.
const LARGEST: usize = 4 << 10;

impl Memory {
    /// Remembers what a batch has read.
    pub(super) fn remember_read(&mut self, known: Known) {
        for (table, key, row) in known.into_rows() {
            let size = size_of_row(&key, row.as_ref());
            if size <= LARGEST {
                self.remember(table, key, row, size);
            }
        }
    }

    /// Remembers what a batch writes, if the database commits it.
    pub(super) fn remember_written(&mut self, changes: &Changes) {
        for (table, rows) in &changes.rows {
            for (key, change) in rows {
                let size = size_of_row(key, change.row());
                if size <= LARGEST {
                    self.remember(*table, key.clone(), change.row().cloned(), size);
                }
            }
        }
    }

    fn remember(&mut self, table: TableId, key: Cells, row: Option<Cells>, size: usize) {
        if self.recent.size > MOST {
            self.older = std::mem::take(&mut self.recent);
        }
        self.recent.size += size;
        self.recent.tables.entry(table).or_default().insert(key, row);
    }

    /// The row of a key, if it is remembered whether there is one.
    pub(super) fn row(&self, table: TableId, key: &Cells) -> Option<Option<Cells>> {
        let mut halves = [&self.recent, &self.older].into_iter();
        halves.find_map(|half| half.tables.get(&table)?.get(key).cloned())
    }

    /// The remembered rows of a range, up to a limit.
    pub(super) fn range(&self, range: &RangeKey, limit: usize) -> Vec<CellRow> {
        let bounds = (range.from.as_ref(), range.to.as_ref());
        let mut rows = BTreeMap::new();
        for half in [&self.older, &self.recent] {
            let of_table = half.tables.get(&range.table).into_iter();
            rows.extend(
                of_table.flat_map(|rows| rows.range::<Cells, (Bound<_>, Bound<_>)>(bounds)),
            );
        }
        let mut rows: Vec<_> =
            rows.into_iter().filter_map(|(key, row)| Some((key.clone(), row.clone()?))).collect();
        if range.is_descending {
            rows.reverse();
        }
        rows.truncate(limit);
        rows
    }
}
