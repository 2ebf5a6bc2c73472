//! The statements that read and write rows. Each reads or writes many rows of a table. Its parameters are one array for
//! each column.

use tokio_postgres::types::ToSql;

use crate::ledger::rows::{KeyRange, Order, Table};

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
    Get(Table),
    /// Several ranges of rows, of one shape, each up to a limit.
    Scan(Table, Shape),
    /// Adds rows that are not there.
    Add(Table),
    /// Sets rows, whether they are there or not.
    Put(Table),
    /// Removes rows by their keys.
    Erase(Table),
    /// Another one. `@` before a table stands for the schema.
    Other(&'static str),
}

/// What ranges of a shape have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Shape {
    /// Whether it ends before the last key.
    pub(super) has_end: bool,
    pub(super) order: Order,
}

impl Shape {
    pub(super) fn of(range: &KeyRange) -> Self {
        Self { has_end: range.to.is_some(), order: range.order }
    }
}

impl StatementKey {
    /// The text of the statement, with `@` for the schema.
    pub(super) fn text(self) -> String {
        match self {
            Self::Get(table) => format!(
                "SELECT t.key, t.row FROM @{} t JOIN unnest($1::bytea[]) w (key) ON t.key = w.key",
                table.name()
            ),
            Self::Scan(table, shape) => scan(table, shape),
            Self::Add(table) => add(table),
            Self::Put(table) => {
                format!("{} ON CONFLICT (key) DO UPDATE SET row = EXCLUDED.row", add(table))
            }
            Self::Erase(table) => format!(
                "DELETE FROM @{} t USING unnest($1::bytea[]) w (key) WHERE t.key = w.key",
                table.name()
            ),
            Self::Other(text) => text.to_owned(),
        }
    }
}

/// Each range has a number, which comes first in what is answered.
fn scan(table: Table, shape: Shape) -> String {
    let (ends, end, below_end, limit) = match shape.has_end {
        true => (", $3::bytea[]", ", high", " AND key < w.high", 4),
        false => ("", "", "", 3),
    };
    let direction = match shape.order {
        Order::Ascending => "",
        Order::Descending => " DESC",
    };
    format!(
        "SELECT w.n, t.key, t.row FROM unnest($1::bigint[], $2::bytea[]{ends}) w (n, low{end}) \
         CROSS JOIN LATERAL (SELECT * FROM @{} WHERE key >= w.low{below_end} \
         ORDER BY key{direction} LIMIT ${limit}::bigint) t",
        table.name(),
    )
}

fn add(table: Table) -> String {
    format!(
        "INSERT INTO @{} (key, row) SELECT * FROM unnest($1::bytea[], $2::bytea[])",
        table.name()
    )
}

/// A parameter of a statement.
pub(super) type Parameter<'c> = Box<dyn ToSql + Sync + Send + 'c>;
