//! Reads wanted rows. One statement reads all wanted rows of a table by their keys. One reads all ranges of a shape.
//! All are sent together.

use std::collections::{BTreeMap, BTreeSet};

use tokio_postgres::Row;

use super::cells::{Cell, Cells};
use super::connection::{Connection, Statement, in_order};
use super::error::Failure;
use super::known::{CellRow, Known, RangeKey, Wants, key_of};
use super::statements::{Parameter, Shape, StatementKey, arrays_of, cells_of_row};
use super::tables::TableId;

/// Statements that read what is wanted.
pub(super) struct Fetch<'w> {
    rows: Vec<(TableId, Vec<&'w Cells>)>,
    ranges: Vec<(TableId, Shape, usize, Vec<&'w RangeKey>)>,
}

impl<'w> Fetch<'w> {
    pub(super) fn new(wants: &'w Wants) -> Self {
        let rows = |(table, keys): (&TableId, &'w BTreeSet<Cells>)| (*table, keys.iter().collect());
        let mut shapes = BTreeMap::<_, Vec<_>>::new();
        for (range, limit) in &wants.ranges {
            shapes.entry((range.table, range.shape(), *limit)).or_default().push(range);
        }
        // The figures are columns of the last step, which is always read.
        let of_tables = wants.keys.iter().filter(|(table, _)| **table != TableId::AllFigures);
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
            let keys: Vec<_> = keys.iter().map(|key| move |index: usize| &key[index]).collect();
            let columns = table.table().key.iter().copied();
            (StatementKey::Get(*table), arrays_of(columns, &keys))
        });
        let ranges = self.ranges.iter().map(|(table, shape, limit, ranges)| {
            let numbers: Vec<_> = (0_i64..).take(ranges.len()).collect();
            let mut parameters: Vec<Parameter<'w>> = vec![Box::new(numbers)];
            for bounds in [
                ranges.iter().filter_map(|it| key_of(&it.from)).collect::<Vec<_>>(),
                ranges.iter().filter_map(|it| key_of(&it.to)).collect(),
            ] {
                if bounds.is_empty() {
                    continue;
                }
                let keys: Vec<_> =
                    bounds.iter().map(|key| move |index: usize| &key[index]).collect();
                parameters.extend(arrays_of(table.table().key.iter().copied(), &keys));
            }
            parameters.push(Box::new(i64::try_from(*limit).ok()));
            (StatementKey::Scan(*table, *shape), parameters)
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
                let (key, row) = cell_row(*table, &row, 0)?;
                known.add_row(*table, key, Some(row));
            }
            for key in keys {
                known.add_absent(*table, key);
            }
        }
        for (table, _, limit, ranges) in &self.ranges {
            let mut found: Vec<Vec<CellRow>> = ranges.iter().map(|_| Vec::new()).collect();
            for row in answers.next().unwrap_or_default() {
                let number = usize::try_from(row.try_get::<_, i64>(0)?).unwrap_or(usize::MAX);
                if let Some(rows) = found.get_mut(number) {
                    rows.push(cell_row(*table, &row, 1)?);
                }
            }
            for (range, mut rows) in ranges.iter().zip(found) {
                rows.sort();
                if range.is_descending {
                    rows.reverse();
                }
                known.add_range((*range).clone(), rows, *limit);
            }
        }
        Ok(())
    }
}

fn cell_row(id: TableId, row: &Row, first: usize) -> Result<(Vec<Cell>, Vec<Cell>), Failure> {
    let table = id.table();
    let key = cells_of_row(row, first, &table.key)?;
    let rest = cells_of_row(row, first + table.key.len(), &table.row)?;
    Ok((key, rest))
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
