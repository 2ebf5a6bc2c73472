//! What is known of the rows of the database, and what is asked of it.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::ledger::rows::{Change, KeyRange, Order, RawRow, Table};

/// How many rows of a range are read ahead at most.
const MOST_AHEAD: usize = 10_000;

/// How many rows are read or written by one statement at most. A transaction with many outputs has so many that one
/// statement would take longer than a database may take to answer.
pub(super) const MOST_AT_ONCE: usize = 10_000;

/// Rows, and the first rows of ranges, as they are at one moment.
#[derive(Clone, Debug, Default)]
pub(super) struct Known {
    rows: BTreeMap<Table, BTreeMap<Vec<u8>, Option<Vec<u8>>>>,
    /// Ranges by their table, their order and their end: one that begins earlier may hold another of the same end.
    ranges: HashMap<(Table, Order), HashMap<Edge, Vec<FirstRows>>>,
    /// How many rows these are.
    count: usize,
    /// About how much memory that takes, in bytes.
    size: usize,
}

/// The changes of a batch, by table and key.
pub(super) type ChangedRows = BTreeMap<Table, BTreeMap<Vec<u8>, Change>>;

/// Where a range begins or ends, in its order. `None` is beyond all keys.
type Edge = Option<Vec<u8>>;

/// The first rows of a range.
#[derive(Clone, Debug)]
struct FirstRows {
    begin: Edge,
    rows: Vec<RawRow>,
    /// How many were asked for. If there are fewer, the range has no more.
    limit: usize,
}

/// What is to be read.
#[derive(Clone, Debug, Default)]
pub(super) struct Wants {
    pub(super) keys: BTreeMap<Table, BTreeSet<Vec<u8>>>,
    /// Ranges, and how many rows of each at most.
    pub(super) ranges: HashMap<KeyRange, usize>,
}

/// Where a range begins and ends, in its order.
fn edges(range: &KeyRange) -> (Edge, Edge) {
    let (low, high) = (Some(range.from.clone()), range.to.clone());
    match range.order {
        Order::Ascending => (low, high),
        Order::Descending => (high, low),
    }
}

/// Whether a range of the same order that begins at `begin` is this one, or goes on to it.
fn is_within(range: &KeyRange, begin: &Edge) -> bool {
    match (range.order, begin, &range.to) {
        (Order::Ascending, begin, _) => begin.as_ref().is_some_and(|begin| *begin <= range.from),
        (Order::Descending, None, _) => true,
        (Order::Descending, Some(_), None) => false,
        (Order::Descending, Some(begin), Some(own)) => begin >= own,
    }
}

/// Whether a range has begun when a row of this key is read.
fn begins_by(range: &KeyRange, key: &[u8]) -> bool {
    match range.order {
        Order::Ascending => *key >= *range.from,
        Order::Descending => range.to.as_ref().is_none_or(|to| *key < **to),
    }
}

impl FirstRows {
    /// So many of the rows, from one on, if they are known, or there are no more.
    fn first(&self, limit: usize, has_begun: impl Fn(&[u8]) -> bool) -> Option<Vec<RawRow>> {
        let rest = self.rows.iter().skip_while(|(key, _)| !has_begun(key));
        let rows: Vec<_> = rest.take(limit).cloned().collect();
        (rows.len() == limit || self.rows.len() < self.limit).then_some(rows)
    }
}

impl Known {
    /// The row of a key, if it is known whether there is one.
    pub(super) fn row(&self, table: Table, key: &[u8]) -> Option<Option<Vec<u8>>> {
        self.rows.get(&table)?.get(key).cloned()
    }

    /// Whether a key is known to have this row.
    pub(super) fn has(&self, table: Table, key: &[u8], row: &[u8]) -> bool {
        let known = self.rows.get(&table).and_then(|rows| rows.get(key));
        known.is_some_and(|known| known.as_deref() == Some(row))
    }

    /// The first rows of a range, if so many are known, or it has no more.
    pub(super) fn range(&self, range: &KeyRange, limit: usize) -> Option<Vec<RawRow>> {
        let (_, end) = edges(range);
        let same_end = self.ranges.get(&(range.table, range.order))?.get(&end)?;
        let mut wider = same_end.iter().filter(|known| is_within(range, &known.begin));
        wider.find_map(|known| known.first(limit, |key| begins_by(range, key)))
    }

    pub(super) fn add_row(&mut self, table: Table, key: Vec<u8>, row: Option<Vec<u8>>) {
        self.count += 1;
        self.size += size_of_row(&key, row.as_ref());
        self.rows.entry(table).or_default().insert(key, row);
    }

    /// Adds that a key has no row, unless its row is known.
    pub(super) fn add_absent(&mut self, table: Table, key: &[u8]) {
        if !self.rows.get(&table).is_some_and(|rows| rows.contains_key(key)) {
            self.add_row(table, key.to_vec(), None);
        }
    }

    pub(super) fn add_range(&mut self, range: &KeyRange, rows: Vec<RawRow>, limit: usize) {
        let sizes = rows.iter().map(|(key, row)| size_of_row(key, Some(row)));
        self.size += sizes.sum::<usize>();
        self.count += rows.len();
        let (begin, end) = edges(range);
        let of_table = self.ranges.entry((range.table, range.order)).or_default();
        let same_end = of_table.entry(end).or_default();
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
    pub(super) fn into_rows(self) -> impl Iterator<Item = (Table, Vec<u8>, Option<Vec<u8>>)> {
        let of_table = |(table, rows): (Table, BTreeMap<_, _>)| {
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
pub(super) fn size_of_row(key: &[u8], row: Option<&Vec<u8>>) -> usize {
    size_of::<RawRow>() + key.len() + row.map_or(0, Vec::len)
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
    pub(super) fn want_row(&mut self, table: Table, key: Vec<u8>) -> bool {
        self.keys.entry(table).or_default().insert(key)
    }

    /// Wants the first rows of a range. Answers whether so many were not wanted before.
    pub(super) fn want_range(&mut self, range: KeyRange, limit: usize) -> bool {
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
    use std::ops::Bound;

    use super::*;
    use crate::ledger::rows::{Invoices, Kind};

    fn key(number: u64) -> Vec<u8> {
        Invoices::key(&number)
    }

    fn range(from: Bound<u64>, to: Bound<u64>, order: Order) -> KeyRange {
        KeyRange::of::<Invoices>(&(from, to), order)
    }

    fn numbers(rows: Option<Vec<RawRow>>) -> Option<Vec<Vec<u8>>> {
        rows.map(|rows| rows.into_iter().map(|(key, _)| key).collect())
    }

    #[test]
    fn what_is_read_ahead_of_many_ranges_is_no_more_than_of_one() {
        let all = |wants: &Wants| wants.ranges.values().sum::<usize>();
        for count in [1, 100] {
            let mut wants = Wants::default();
            for from in 0..count {
                wants.want_range(
                    range(Bound::Included(from), Bound::Included(from), Order::Ascending),
                    10,
                );
            }
            wants.widen(1 << 20);
            assert_eq!(all(&wants), MOST_AHEAD, "{count} ranges");
        }
    }

    /// The rest of a range is known with the range, as far as that is known.
    #[test]
    fn what_goes_on_from_a_known_range_is_known_as_far_as_that_is() {
        use Bound::{Excluded, Included, Unbounded};
        use Order::{Ascending, Descending};
        let mut known = Known::default();
        let rows = |numbers: &[u64]| numbers.iter().map(|it| (key(*it), Vec::new())).collect();
        known.add_range(&range(Included(1), Unbounded, Ascending), rows(&[1, 2, 4, 5]), 4);
        known.add_range(&range(Unbounded, Excluded(9), Descending), rows(&[8, 6]), 3);
        let ask = |range, limit| numbers(known.range(&range, limit));
        let some = |numbers: &[u64]| Some(numbers.iter().map(|it| key(*it)).collect());
        assert_eq!(ask(range(Included(1), Unbounded, Ascending), 2), some(&[1, 2]));
        assert_eq!(ask(range(Included(1), Unbounded, Ascending), 5), None);
        assert_eq!(ask(range(Included(3), Unbounded, Ascending), 2), some(&[4, 5]));
        assert_eq!(ask(range(Excluded(4), Unbounded, Ascending), 1), some(&[5]));
        assert_eq!(ask(range(Excluded(4), Unbounded, Ascending), 2), None);
        assert_eq!(ask(range(Included(0), Unbounded, Ascending), 1), None);
        assert_eq!(ask(range(Included(3), Included(9), Ascending), 1), None);
        assert_eq!(ask(range(Unbounded, Excluded(8), Descending), 9), some(&[6]));
        assert_eq!(ask(range(Unbounded, Included(8), Descending), 1), some(&[8]));
        assert_eq!(ask(range(Unbounded, Unbounded, Descending), 1), None);
    }
}
