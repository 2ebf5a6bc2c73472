//! Reads wanted rows. One statement reads all wanted rows of a table by their keys. One reads all ranges of a shape.
//! All are sent together.

use std::collections::{BTreeMap, BTreeSet};

use tokio_postgres::Row;

use super::connection::{Connection, Statement, in_order};
use super::error::Failure;
use super::known::{Known, Wants};
use super::statements::{Parameter, Shape, StatementKey};
use crate::ledger::rows::{KeyRange, Order, RawRow, Table};

/// Statements that read what is wanted.
pub(super) struct Fetch<'w> {
    rows: Vec<(Table, Vec<&'w [u8]>)>,
    ranges: Vec<(Table, Shape, usize, Vec<&'w KeyRange>)>,
}

impl<'w> Fetch<'w> {
    pub(super) fn new(wants: &'w Wants) -> Self {
        let rows = |(table, keys): (&Table, &'w BTreeSet<Vec<u8>>)| {
            (*table, keys.iter().map(Vec::as_slice).collect())
        };
        let mut shapes = BTreeMap::<_, Vec<_>>::new();
        for (range, limit) in &wants.ranges {
            shapes.entry((range.table, Shape::of(range), *limit)).or_default().push(range);
        }
        // The figures are columns of the last step, which is always read.
        let of_tables = wants.keys.iter().filter(|(table, _)| **table != Table::AllFigures);
        Self {
            rows: of_tables.map(rows).collect(),
            ranges: shapes
                .into_iter()
                .map(|((table, shape, limit), ranges)| (table, shape, limit, ranges))
                .collect(),
        }
    }

    /// The statements that it needs.
    pub(super) fn statements(&self) -> Vec<StatementKey> {
        let rows = self.rows.iter().map(|(table, _)| StatementKey::Get(*table));
        let ranges =
            self.ranges.iter().map(|(table, shape, ..)| StatementKey::Scan(*table, *shape));
        rows.chain(ranges).collect()
    }

    /// The statements with what they are given.
    fn parameters(&self) -> Vec<(StatementKey, Vec<Parameter<'w>>)> {
        let rows = self.rows.iter().map(|(table, keys)| {
            let keys: Parameter<'w> = Box::new(keys.clone());
            (StatementKey::Get(*table), vec![keys])
        });
        let ranges = self.ranges.iter().map(|(table, shape, limit, ranges)| {
            let numbers: Vec<_> = (0_i64..).take(ranges.len()).collect();
            let lows: Vec<&'w [u8]> = ranges.iter().map(|range| &range.from[..]).collect();
            let mut given: Vec<Parameter<'w>> = vec![Box::new(numbers), Box::new(lows)];
            if shape.has_end {
                let highs: Vec<_> = ranges.iter().map(|range| range.to.as_deref()).collect();
                given.push(Box::new(highs));
            }
            given.push(Box::new(i64::try_from(*limit).ok()));
            (StatementKey::Scan(*table, *shape), given)
        });
        rows.chain(ranges).collect()
    }

    /// The statements, in an order that [`take`](Self::take) expects.
    pub(super) fn sent<'s>(&self, connection: &'s Connection) -> Vec<Statement<'s>>
    where
        'w: 's,
    {
        let statements = self.parameters().into_iter();
        statements
            .map(|(key, given)| -> Statement<'s> { Box::pin(connection.run(key, given)) })
            .collect()
    }

    /// Takes in what the statements have answered.
    pub(super) fn take(
        &self,
        answers: impl IntoIterator<Item = Vec<Row>>,
        known: &mut Known,
    ) -> Result<(), Failure> {
        let mut answers = answers.into_iter();
        for (table, keys) in &self.rows {
            for row in answers.next().unwrap_or_default() {
                let (key, row) = raw_row(&row, 0)?;
                known.add_row(*table, key, Some(row));
            }
            for key in keys {
                known.add_absent(*table, key);
            }
        }
        for (_, _, limit, ranges) in &self.ranges {
            let mut found: Vec<Vec<RawRow>> = ranges.iter().map(|_| Vec::new()).collect();
            for row in answers.next().unwrap_or_default() {
                let number = usize::try_from(row.try_get::<_, i64>(0)?).unwrap_or(usize::MAX);
                if let Some(rows) = found.get_mut(number) {
                    rows.push(raw_row(&row, 1)?);
                }
            }
            for (range, mut rows) in ranges.iter().zip(found) {
                rows.sort();
                if range.order == Order::Descending {
                    rows.reverse();
                }
                known.add_range(range, rows, *limit);
            }
        }
        Ok(())
    }
}

/// A key and its row, from a column on.
fn raw_row(row: &Row, first: usize) -> Result<RawRow, Failure> {
    Ok((row.try_get(first)?, row.try_get(first + 1)?))
}

/// Reads the wanted rows in the open transaction of the connection.
pub(super) async fn fetch(
    connection: &Connection,
    wants: &Wants,
    known: &mut Known,
) -> Result<(), Failure> {
    let fetch = Fetch::new(wants);
    connection.prepare(&fetch.statements()).await?;
    let answers = in_order(fetch.sent(connection)).await;
    let answers = answers.into_iter().collect::<Result<Vec<_>, _>>()?;
    fetch.take(answers, known)
}
