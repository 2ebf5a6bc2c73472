//! What is known of the rows of the database, and what is asked of it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;

use super::cells::{Cell, Cells};
use super::statements::{Edge, Shape};
use super::tables::TableId;
use crate::ledger::rows::Order;

/// How many rows of a range are read ahead at most.
const MOST_AHEAD: usize = 10_000;

/// How many rows are read or written by one statement at most. A transaction with many outputs has so many that one
/// statement would take longer than a database may take to answer.
pub(super) const MOST_AT_ONCE: usize = 10_000;

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
    rows: BTreeMap<TableId, BTreeMap<Cells, Option<Cells>>>,
    /// Ranges by their table, their order and their end: one that begins earlier may hold another of the same end.
    ranges: HashMap<(TableId, bool), HashMap<Bound<Cells>, Vec<FirstRows>>>,
    /// How many rows these are.
    count: usize,
    /// About how much memory that takes, in bytes.
    size: usize,
}

/// The first rows of a range.
#[derive(Clone, Debug)]
struct FirstRows {
    begin: Bound<Cells>,
    rows: Vec<CellRow>,
    /// How many were asked for. If there are fewer, the range has no more.
    limit: usize,
}

/// What is to be read.
#[derive(Clone, Debug, Default)]
pub(super) struct Wants {
    pub(super) keys: BTreeMap<TableId, BTreeSet<Cells>>,
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

    /// Where it begins, in its order.
    fn begin(&self) -> &Bound<Cells> {
        if self.is_descending { &self.to } else { &self.from }
    }

    /// Where it ends, in its order.
    fn end(&self) -> &Bound<Cells> {
        if self.is_descending { &self.from } else { &self.to }
    }

    /// Whether a range of the same order that begins there is this one, or goes on to it.
    fn is_within(&self, begin: &Bound<Cells>) -> bool {
        if begin == self.begin() {
            return true;
        }
        match (key_of(begin), key_of(self.begin())) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(begin), Some(own)) if self.is_descending => begin > own,
            (Some(begin), Some(own)) => begin < own,
        }
    }

    /// Whether the range has begun when a row of this key is read.
    fn begins_by(&self, key: &Cells) -> bool {
        match (self.is_descending, &self.from, &self.to) {
            (false, Bound::Included(from), _) => key >= from,
            (false, Bound::Excluded(from), _) => key > from,
            (true, _, Bound::Included(to)) => key <= to,
            (true, _, Bound::Excluded(to)) => key < to,
            _ => true,
        }
    }
}

impl FirstRows {
    /// So many of the rows, from one on, if they are known, or there are no more.
    fn first(&self, limit: usize, has_begun: impl Fn(&Cells) -> bool) -> Option<Vec<CellRow>> {
        let rest = self.rows.iter().skip_while(|(key, _)| !has_begun(key));
        let rows: Vec<_> = rest.take(limit).cloned().collect();
        (rows.len() == limit || self.rows.len() < self.limit).then_some(rows)
    }
}

/// The key at an end of a range.
pub(super) fn key_of(bound: &Bound<Cells>) -> Option<&Cells> {
    match bound {
        Bound::Included(key) | Bound::Excluded(key) => Some(key),
        Bound::Unbounded => None,
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

    /// Whether a key is known to have this row.
    pub(super) fn has(&self, table: TableId, key: &Cells, row: &Cells) -> bool {
        let known = self.rows.get(&table).and_then(|rows| rows.get(key));
        known.is_some_and(|known| known.as_ref() == Some(row))
    }

    /// The first rows of a range, if so many are known, or it has no more.
    pub(super) fn range(&self, range: &RangeKey, limit: usize) -> Option<Vec<CellRow>> {
        let same_end = self.ranges.get(&(range.table, range.is_descending))?.get(range.end())?;
        let mut wider = same_end.iter().filter(|known| range.is_within(&known.begin));
        wider.find_map(|known| known.first(limit, |key| range.begins_by(key)))
    }

    pub(super) fn add_row(&mut self, table: TableId, key: Cells, row: Option<Cells>) {
        self.count += 1;
        self.size += size_of_row(&key, row.as_ref());
        self.rows.entry(table).or_default().insert(key, row);
    }

    /// Adds that a key has no row, unless its row is known.
    pub(super) fn add_absent(&mut self, table: TableId, key: &Cells) {
        if !self.rows.get(&table).is_some_and(|rows| rows.contains_key(key)) {
            self.add_row(table, key.clone(), None);
        }
    }

    pub(super) fn add_range(&mut self, range: RangeKey, rows: Vec<CellRow>, limit: usize) {
        let sizes = rows.iter().map(|(key, row)| size_of_row(key, Some(row)));
        self.size += sizes.sum::<usize>();
        self.count += rows.len();
        let begin = range.begin().clone();
        let of_table = self.ranges.entry((range.table, range.is_descending)).or_default();
        let same_end = of_table.entry(range.end().clone()).or_default();
        same_end.retain(|known| known.begin != begin);
        same_end.push(FirstRows { begin, rows, limit });
    }

    /// Takes in what else is known of the same moment.
    pub(super) fn extend(&mut self, other: Self) {
        for (table, rows) in other.rows {
            self.rows.entry(table).or_default().extend(rows);
        }
        for (table, by_end) in other.ranges {
            let own = self.ranges.entry(table).or_default();
            for (end, known) in by_end {
                own.entry(end).or_default().extend(known);
            }
        }
        self.count += other.count;
        self.size += other.size;
    }

    /// All rows that are known one by one.
    pub(super) fn into_rows(self) -> impl Iterator<Item = (TableId, Cells, Option<Cells>)> {
        let of_table = |(table, rows): (TableId, BTreeMap<_, _>)| {
            rows.into_iter().map(move |(key, row)| (table, key, row))
        };
        self.rows.into_iter().flat_map(of_table)
    }

    /// How many rows are known. One that was read twice may count twice.
    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// About how much memory it takes, in bytes.
    pub(super) fn size(&self) -> usize {
        self.size
    }
}

/// About how much memory a row takes, in bytes.
pub(super) fn size_of_row(key: &Cells, row: Option<&Cells>) -> usize {
    size_of_cells(key) + row.map_or(0, size_of_cells)
}

fn size_of_cells(cells: &Cells) -> usize {
    let bytes = cells.iter().map(|cell| match cell {
        Cell::Bytes(bytes) => bytes.len(),
        _ => 0,
    });
    size_of_val(cells.as_slice()) + bytes.sum::<usize>()
}

impl Wants {
    pub(super) fn is_empty(&self) -> bool {
        self.keys.is_empty() && self.ranges.is_empty()
    }

    /// How many rows are wanted by their keys, and how many ranges.
    pub(super) fn len(&self) -> usize {
        self.keys.values().map(BTreeSet::len).sum::<usize>() + self.ranges.len()
    }

    /// The same in parts, each of which a statement reads soon enough.
    pub(super) fn into_parts(self) -> Vec<Self> {
        let mut parts = vec![Self { keys: BTreeMap::new(), ranges: self.ranges }];
        for (table, keys) in self.keys {
            let keys: Vec<_> = keys.into_iter().collect();
            for some in keys.chunks(MOST_AT_ONCE) {
                if parts.last().is_none_or(|part| part.len() + some.len() > MOST_AT_ONCE) {
                    parts.push(Self::default());
                }
                let part = parts.last_mut().expect("there is one");
                part.keys.insert(table, some.iter().cloned().collect());
            }
        }
        parts
    }

    /// Wants a row. Answers whether it was not wanted before.
    pub(super) fn want_row(&mut self, table: TableId, key: Cells) -> bool {
        self.keys.entry(table).or_default().insert(key)
    }

    /// Wants the first rows of a range. Answers whether so many were not wanted before.
    pub(super) fn want_range(&mut self, range: RangeKey, limit: usize) -> bool {
        let wanted = self.ranges.entry(range).or_default();
        let is_new = limit > *wanted;
        *wanted = limit.max(*wanted);
        is_new
    }

    /// Wants so many times as many rows of ranges as what goes on reading will want them, up to a limit for all of them
    /// together.
    pub(super) fn widen(&mut self, factor: usize) {
        let most = MOST_AHEAD / self.ranges.len().max(1);
        for limit in self.ranges.values_mut() {
            *limit = limit.saturating_mul(factor).min(most).max(*limit);
        }
    }

    /// Wants also what somebody else wants.
    pub(super) fn extend(&mut self, other: Self) {
        for (table, keys) in other.keys {
            self.keys.entry(table).or_default().extend(keys);
        }
        for (range, limit) in other.ranges {
            self.want_range(range, limit);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: i64) -> Cells {
        vec![Cell::Number(number)]
    }

    fn range(from: Bound<i64>, to: Bound<i64>, is_descending: bool) -> RangeKey {
        RangeKey { table: TableId::Invoices, from: from.map(key), to: to.map(key), is_descending }
    }

    fn numbers(rows: Option<Vec<CellRow>>) -> Option<Vec<Cells>> {
        rows.map(|rows| rows.into_iter().map(|(key, _)| key).collect())
    }

    #[test]
    fn what_is_read_ahead_of_many_ranges_is_no_more_than_of_one() {
        let all = |wants: &Wants| wants.ranges.values().sum::<usize>();
        for count in [1, 100] {
            let mut wants = Wants::default();
            for from in 0..count {
                wants.want_range(range(Bound::Included(from), Bound::Included(from), false), 10);
            }
            wants.widen(1 << 20);
            assert_eq!(all(&wants), MOST_AHEAD, "{count} ranges");
        }
    }

    /// The rest of a range is known with the range, as far as that is known.
    #[test]
    fn what_goes_on_from_a_known_range_is_known_as_far_as_that_is() {
        use Bound::{Excluded, Included, Unbounded};
        let mut known = Known::default();
        let rows = |numbers: &[i64]| numbers.iter().map(|it| (key(*it), Vec::new())).collect();
        known.add_range(range(Included(1), Unbounded, false), rows(&[1, 2, 4, 5]), 4);
        known.add_range(range(Unbounded, Excluded(9), true), rows(&[8, 6]), 3);
        let ask = |range, limit| numbers(known.range(&range, limit));
        let some = |numbers: &[i64]| Some(numbers.iter().map(|it| key(*it)).collect());
        assert_eq!(ask(range(Included(1), Unbounded, false), 2), some(&[1, 2]));
        assert_eq!(ask(range(Included(1), Unbounded, false), 5), None);
        assert_eq!(ask(range(Included(3), Unbounded, false), 2), some(&[4, 5]));
        assert_eq!(ask(range(Excluded(4), Unbounded, false), 1), some(&[5]));
        assert_eq!(ask(range(Excluded(4), Unbounded, false), 2), None);
        assert_eq!(ask(range(Included(0), Unbounded, false), 1), None);
        assert_eq!(ask(range(Included(3), Included(9), false), 1), None);
        assert_eq!(ask(range(Unbounded, Excluded(8), true), 9), some(&[6]));
        assert_eq!(ask(range(Unbounded, Included(8), true), 1), some(&[8]));
        assert_eq!(ask(range(Unbounded, Unbounded, true), 1), None);
    }
}
