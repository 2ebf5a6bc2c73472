//! The statements that read and write rows. Each reads or writes many rows of a table. Its parameters are one array for
//! each column.

use std::fmt::Write;

use tokio_postgres::types::ToSql;

use super::cells::{Cell, ColumnType};
use super::tables::{Column, TableId};
use crate::ledger::rows::Order;

/// The time of the database, in microseconds since 1970.
macro_rules! now {
    () => {
        "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
    };
}
pub(super) use now;

/// A statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum StatementKey {
    /// Rows by their keys.
    Get(TableId),
    /// Several ranges of rows, of one shape, each up to a limit.
    Scan(TableId, Shape),
    /// Adds rows that are not there.
    Add(TableId),
    /// Sets rows, whether they are there or not.
    Put(TableId),
    /// Removes rows by their keys.
    Erase(TableId),
    /// Another one. `@` before a table stands for the schema.
    Other(&'static str),
}

/// What ranges of a shape have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Shape {
    pub(super) from: Edge,
    pub(super) to: Edge,
    pub(super) is_descending: bool,
}

/// How a range ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Edge {
    Included,
    Excluded,
    None,
}

impl Shape {
    pub(super) fn new(from: Edge, to: Edge, order: Order) -> Self {
        Self { from, to, is_descending: order == Order::Descending }
    }
}

impl StatementKey {
    /// The text of the statement, with `@` for the schema.
    pub(super) fn text(self) -> String {
        match self {
            Self::Get(table) => get(table),
            Self::Scan(table, shape) => scan(table, shape),
            Self::Add(table) => add(table),
            Self::Put(table) => put(table),
            Self::Erase(table) => erase(table),
            Self::Other(text) => text.to_owned(),
        }
    }
}

fn get(id: TableId) -> String {
    let table = id.table();
    let columns = list(table.columns(), "t.");
    let key = list(table.key.iter().copied(), "");
    let arrays = arrays(&table.key, 1);
    let same = same_key(&table.key);
    format!("SELECT {columns} FROM @{} t JOIN unnest({arrays}) w ({key}) ON {same}", table.name)
}

/// Each range has a number, which comes first in what is answered.
fn scan(id: TableId, shape: Shape) -> String {
    let table = id.table();
    let columns = list(table.columns(), "t.");
    let key = list(table.key.iter().copied(), "");
    let (mut given, mut names) = ("$1::bigint[]".to_owned(), "n".to_owned());
    let (mut conditions, mut next) = (Vec::new(), 2);
    for (edge, prefix, included, excluded) in
        [(shape.from, "from_", ">=", ">"), (shape.to, "to_", "<=", "<")]
    {
        let operator = match edge {
            Edge::Included => included,
            Edge::Excluded => excluded,
            Edge::None => continue,
        };
        let arrays = arrays(&table.key, next);
        next += table.key.len();
        let _ = write!(given, ", {arrays}");
        let _ = write!(names, ", {}", list(table.key.iter().copied(), prefix));
        let bound = list(table.key.iter().copied(), &format!("w.{prefix}"));
        conditions.push(format!("({key}) {operator} ({bound})"));
    }
    let condition = match conditions.is_empty() {
        true => "true".to_owned(),
        false => conditions.join(" AND "),
    };
    let direction = if shape.is_descending { " DESC" } else { "" };
    let order: Vec<_> =
        table.key.iter().map(|column| format!("{}{direction}", column.name)).collect();
    format!(
        "SELECT w.n, {columns} FROM unnest({given}) w ({names}) CROSS JOIN LATERAL \
         (SELECT * FROM @{} WHERE {condition} ORDER BY {} LIMIT ${next}::bigint) t",
        table.name,
        order.join(", "),
    )
}

fn add(id: TableId) -> String {
    let table = id.table();
    let all: Vec<_> = table.columns().collect();
    let columns = list(all.iter().copied(), "");
    format!("INSERT INTO @{} ({columns}) SELECT * FROM unnest({})", table.name, arrays(&all, 1))
}

fn put(id: TableId) -> String {
    let table = id.table();
    let key = list(table.key.iter().copied(), "");
    let conflict = match &table.row[..] {
        [] => "NOTHING".to_owned(),
        row => {
            let set = row.iter().map(|Column { name, .. }| format!("{name} = EXCLUDED.{name}"));
            format!("UPDATE SET {}", set.collect::<Vec<_>>().join(", "))
        }
    };
    format!("{} ON CONFLICT ({key}) DO {conflict}", add(id))
}

fn erase(id: TableId) -> String {
    let table = id.table();
    let key = list(table.key.iter().copied(), "");
    format!(
        "DELETE FROM @{} t USING unnest({}) w ({key}) WHERE {}",
        table.name,
        arrays(&table.key, 1),
        same_key(&table.key),
    )
}

fn list(columns: impl Iterator<Item = Column>, prefix: &str) -> String {
    columns.map(|column| format!("{prefix}{}", column.name)).collect::<Vec<_>>().join(", ")
}

fn arrays(columns: &[Column], first: usize) -> String {
    let arrays = columns.iter().zip(first..);
    let arrays = arrays.map(|(column, n)| format!("${n}::{}[]", column.column_type.name()));
    arrays.collect::<Vec<_>>().join(", ")
}

fn same_key(key: &[Column]) -> String {
    let same = key.iter().map(|Column { name, .. }| format!("t.{name} = w.{name}"));
    same.collect::<Vec<_>>().join(" AND ")
}

/// A parameter of a statement.
pub(super) type Parameter<'c> = Box<dyn ToSql + Sync + Send + 'c>;

/// An array for each column of rows that are told by their cells.
pub(super) fn arrays_of<'c>(
    columns: impl Iterator<Item = Column>,
    rows: &[impl Fn(usize) -> &'c Cell],
) -> Vec<Parameter<'c>> {
    let array = |(index, Column { column_type, .. }): (usize, Column)| -> Parameter<'c> {
        let cells = rows.iter().map(|row| row(index));
        match column_type {
            ColumnType::Flag => Box::new(cells.map(flag).collect::<Vec<_>>()),
            ColumnType::Number => Box::new(cells.map(number).collect::<Vec<_>>()),
            ColumnType::Bytes => Box::new(cells.map(bytes).collect::<Vec<_>>()),
        }
    };
    columns.enumerate().map(array).collect()
}

fn flag(cell: &Cell) -> Option<bool> {
    match cell {
        Cell::Flag(flag) => Some(*flag),
        _ => None,
    }
}

fn number(cell: &Cell) -> Option<i64> {
    match cell {
        Cell::Number(number) => Some(*number),
        _ => None,
    }
}

fn bytes(cell: &Cell) -> Option<&[u8]> {
    match cell {
        Cell::Bytes(bytes) => Some(bytes),
        _ => None,
    }
}

/// The cells of a row that was answered, from a column on.
pub(super) fn cells_of_row(
    row: &tokio_postgres::Row,
    first: usize,
    columns: &[Column],
) -> Result<Vec<Cell>, tokio_postgres::Error> {
    let cell = |(index, column): (usize, &Column)| {
        let cell = match column.column_type {
            ColumnType::Flag => row.try_get::<_, Option<bool>>(index)?.map(Cell::Flag),
            ColumnType::Number => row.try_get::<_, Option<i64>>(index)?.map(Cell::Number),
            ColumnType::Bytes => {
                row.try_get::<_, Option<&[u8]>>(index)?.map(|bytes| Cell::Bytes(bytes.to_vec()))
            }
        };
        Ok(cell.unwrap_or(Cell::Null))
    };
    (first..).zip(columns).map(cell).collect()
}
