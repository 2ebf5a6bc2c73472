//! What is known of the rows of the database, and what is asked of it.

use std::collections::{HashMap, HashSet};
use std::ops::Bound;

use super::cells::Cells;
use super::statements::{Edge, Shape};
use super::tables::TableId;
use crate::ledger::rows::Order;

/// A key and the rest of its row.
pub(super) type CellRow = (Cells, Cells);

/// A range of rows of a table.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct RangeKey {
    pub(super) table: TableId,
    pub(super) from: Bound<Cells>,
    pub(super) to: Bound<Cells>,
    pub(super) is_descending: bool,
}

/// Rows, and the first rows of ranges, as they are at one moment.
#[derive(Clone, Debug, Default)]
pub(super) struct Known {
    rows: HashMap<TableId, HashMap<Cells, Option<Cells>>>,
    ranges: HashMap<RangeKey, FirstRows>,
}

/// The first rows of a range.
#[derive(Clone, Debug)]
struct FirstRows {
    rows: Vec<CellRow>,
    /// How many were asked for. Fewer than that are all.
    limit: usize,
}

/// What is to be read.
#[derive(Clone, Debug, Default)]
pub(super) struct Wants {
    pub(super) keys: HashMap<TableId, HashSet<Cells>>,
    /// Ranges, and how many rows of each at most.
    pub(super) ranges: HashMap<RangeKey, usize>,
}

impl RangeKey {
    pub(super) fn order(&self) -> Order {
        if self.is_descending { Order::Descending } else { Order::Ascending }
    }

    pub(super) fn shape(&self) -> Shape {
        Shape::new(edge(&self.from), edge(&self.to), self.order())
    }

    /// Whether no key can be in it.
    pub(super) fn is_empty(&self) -> bool {
        match (&self.from, &self.to) {
            (Bound::Included(from), Bound::Included(to)) => from > to,
            (Bound::Included(from) | Bound::Excluded(from), Bound::Excluded(to))
            | (Bound::Excluded(from), Bound::Included(to)) => from >= to,
            _ => false,
        }
    }
}

fn edge(bound: &Bound<Cells>) -> Edge {
    match bound {
        Bound::Included(_) => Edge::Included,
        Bound::Excluded(_) => Edge::Excluded,
        Bound::Unbounded => Edge::None,
    }
}

impl Known {
    /// The row of a key, if it is known whether there is one.
    pub(super) fn row(&self, table: TableId, key: &Cells) -> Option<Option<Cells>> {
        self.rows.get(&table)?.get(key).cloned()
    }

    /// The first rows of a range, if so many are known, or it has no more.
    pub(super) fn range(&self, range: &RangeKey, limit: usize) -> Option<&[CellRow]> {
        let FirstRows { rows, limit: known } = self.ranges.get(range)?;
        (limit <= *known || rows.len() < *known).then(|| &rows[..limit.min(rows.len())])
    }

    pub(super) fn add_row(&mut self, table: TableId, key: Cells, row: Option<Cells>) {
        self.rows.entry(table).or_default().insert(key, row);
    }

    pub(super) fn add_range(&mut self, range: RangeKey, rows: Vec<CellRow>, limit: usize) {
        self.ranges.insert(range, FirstRows { rows, limit });
    }

    /// Takes in what else is known of the same moment.
    pub(super) fn extend(&mut self, other: Self) {
        for (table, rows) in other.rows {
            self.rows.entry(table).or_default().extend(rows);
        }
        self.ranges.extend(other.ranges);
    }

    /// How many rows and ranges are known.
    pub(super) fn len(&self) -> usize {
        self.rows.values().map(HashMap::len).sum::<usize>() + self.ranges.len()
    }
}

impl Wants {
    pub(super) fn is_empty(&self) -> bool {
        self.keys.is_empty() && self.ranges.is_empty()
    }

    pub(super) fn want_row(&mut self, table: TableId, key: Cells) {
        self.keys.entry(table).or_default().insert(key);
    }

    pub(super) fn want_range(&mut self, range: RangeKey, limit: usize) {
        let wanted = self.ranges.entry(range).or_default();
        *wanted = limit.max(*wanted);
    }

    /// Wants also what somebody else wants.
    pub(super) fn extend(&mut self, other: &Self) {
        for (table, keys) in &other.keys {
            self.keys.entry(*table).or_default().extend(keys.iter().cloned());
        }
        for (range, limit) in &other.ranges {
            self.want_range(range.clone(), *limit);
        }
    }
}
