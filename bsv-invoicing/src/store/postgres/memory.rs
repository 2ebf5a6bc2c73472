//! Rows as this process has read or written them lately.

use std::collections::BTreeMap;

use super::known::{ChangedRows, Known, size_of_row};
use crate::ledger::rows::{KeyRange, Order, RawRow, Table};

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
    tables: BTreeMap<Table, BTreeMap<Vec<u8>, Option<Vec<u8>>>>,
    /// About how much memory that takes, in bytes.
    size: usize,
}

/// At this size, in bytes, `recent` replaces `older`.
const MOST: usize = 8 << 20;
/// Larger rows hold transactions and messages, which name no other rows to read.
const LARGEST: usize = 4 << 10;
/// How many rows that are gone are looked at in a range.
const MOST_GONE: usize = 1_000;

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
    pub(super) fn remember_written(&mut self, changes: &ChangedRows) {
        for (table, rows) in changes {
            for (key, change) in rows {
                let size = size_of_row(key, change.row());
                if size <= LARGEST {
                    self.remember(*table, key.clone(), change.row().cloned(), size);
                }
            }
        }
    }

    fn remember(&mut self, table: Table, key: Vec<u8>, row: Option<Vec<u8>>, size: usize) {
        if self.recent.size > MOST {
            self.older = std::mem::take(&mut self.recent);
        }
        self.recent.size += size;
        self.recent.tables.entry(table).or_default().insert(key, row);
    }

    /// The row of a key, if it is remembered whether there is one.
    pub(super) fn row(&self, table: Table, key: &[u8]) -> Option<Option<Vec<u8>>> {
        let mut halves = [&self.recent, &self.older].into_iter();
        halves.find_map(|half| half.tables.get(&table)?.get(key).cloned())
    }

    /// The remembered rows of a range, up to a limit. Where many rows of the range are known to be gone, some may lack.
    pub(super) fn range(&self, range: &KeyRange, limit: usize) -> Vec<RawRow> {
        let looked_at = limit.saturating_add(MOST_GONE);
        let mut rows = BTreeMap::new();
        for half in [&self.older, &self.recent] {
            let Some(of_table) = half.tables.get(&range.table) else { continue };
            let in_range = of_table.range::<[u8], _>(range.bounds());
            match range.order {
                Order::Descending => rows.extend(in_range.rev().take(looked_at)),
                Order::Ascending => rows.extend(in_range.take(looked_at)),
            }
        }
        let there = rows.into_iter().filter_map(|(key, row)| Some((key, row.as_ref()?)));
        let cloned = |(key, row): (&Vec<u8>, &Vec<u8>)| (key.clone(), row.clone());
        match range.order {
            Order::Descending => there.rev().take(limit).map(cloned).collect(),
            Order::Ascending => there.take(limit).map(cloned).collect(),
        }
    }
}
