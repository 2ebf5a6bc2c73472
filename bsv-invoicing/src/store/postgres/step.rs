//! Steps: each batch adds one, and the last one has the figures.

use bsv_store::AuditTail;
use tokio_postgres::Row;

use super::connection::Connection;
use super::error::{Failure, Unfit};
use super::known::Known;
use super::statements::{Parameter, StatementKey, now};
use crate::ledger::figures::Figures;
use crate::ledger::rows::{Row as _, Table};

/// What tells one store from another, and from a copy of it that went on by itself.
pub(super) type Incarnation = Vec<u8>;

/// The last step that this process has seen, and who made it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) number: i64,
    pub(super) writer: Vec<u8>,
}

/// The last step, as of a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Step {
    /// The store that has it.
    pub(super) incarnation: Incarnation,
    pub(super) number: i64,
    /// Who made it.
    pub(super) writer: Vec<u8>,
    /// What the next entry of the audit log goes on from.
    pub(super) audit_tail: AuditTail,
    /// The row of the figures.
    pub(super) figures: Vec<u8>,
    /// The time when this was read, in microseconds since 1970, by the database's clock.
    pub(super) read_at: i64,
}

pub(super) const READ_LAST: StatementKey = StatementKey::Other(concat!(
    "SELECT number, writer, last_audit, last_audit_at, audit_head, ",
    now!(),
    ", (SELECT version FROM @meta), (SELECT incarnation FROM @meta), figures \
     FROM @step ORDER BY number DESC LIMIT 1"
));

const READ_FIGURES: StatementKey =
    StatementKey::Other("SELECT figures FROM @step ORDER BY number DESC LIMIT 1");

/// The row of the figures, in a schema of any version.
pub(super) async fn read_figures(connection: &Connection) -> Result<Option<Vec<u8>>, Failure> {
    connection.prepare(&[READ_FIGURES]).await?;
    let rows = connection.run(READ_FIGURES, Vec::new()).await?;
    Ok(rows.first().map(|row| row.try_get(0)).transpose()?)
}

const ADD: StatementKey = StatementKey::Other(concat!(
    "INSERT INTO @step (number, writer, writer_step, last_audit, last_audit_at, audit_head, figures, made_at) \
     VALUES ($1, $2, $3, $4, $5, $6, $7, ",
    now!(),
    ")"
));

/// Steps after a number that a writer has made.
pub(super) const FIND: StatementKey =
    StatementKey::Other("SELECT number FROM @step WHERE number > $1 AND writer = $2");

impl Step {
    /// The step of a row of [`READ_LAST`]. Fails if the schema has a newer version than this program knows.
    pub(super) fn read(connection: &Connection, rows: &[Row]) -> Result<Self, Failure> {
        let row = rows.first().ok_or_else(|| missing("the last step"))?;
        // Another server may have raised the version since this one opened the store.
        expect_known(row.try_get(6)?, connection.newest)?;
        let hash: &[u8] = row.try_get(4)?;
        Ok(Self {
            incarnation: row.try_get(7)?,
            number: row.try_get(0)?,
            writer: row.try_get(1)?,
            audit_tail: AuditTail {
                number: u64::try_from(row.try_get::<_, i64>(2)?).unwrap_or_default(),
                at_micros: u64::try_from(row.try_get::<_, i64>(3)?).unwrap_or_default(),
                hash: hash.try_into().map_err(|_| missing("a hash"))?,
            },
            read_at: row.try_get(5)?,
            figures: row.try_get(8)?,
        })
    }

    /// Whether the database has lost a step that was seen before it answered with this last one, as far as that shows.
    pub(super) fn has_gone_back(&self, before: &Seen) -> bool {
        let is_another = self.number == before.number && self.writer != before.writer;
        self.number < before.number || is_another
    }

    /// Makes the figures known.
    pub(super) fn note(&self, known: &mut Known) {
        known.add_row(Table::AllFigures, Vec::new(), Some(self.figures.clone()));
    }

    /// The number of the last event.
    pub(super) fn last_event(&self) -> u64 {
        Figures::decode(&self.figures).map_or(0, |figures| figures.last_event)
    }

    /// What adds a step.
    pub(super) fn add<'s>(&'s self, writer_step: i64) -> (StatementKey, Vec<Parameter<'s>>) {
        let AuditTail { number, at_micros, hash } = self.audit_tail;
        let number = i64::try_from(number).unwrap_or(i64::MAX);
        let at = i64::try_from(at_micros).unwrap_or(i64::MAX);
        let parameters: Vec<Parameter<'s>> = vec![
            Box::new(self.number),
            Box::new(self.writer.as_slice()),
            Box::new(writer_step),
            Box::new(number),
            Box::new(at),
            Box::new(hash.to_vec()),
            Box::new(self.figures.as_slice()),
        ];
        (ADD, parameters)
    }
}

fn missing(what: &str) -> crate::ledger::rows::Damaged {
    crate::ledger::rows::Damaged(format!("{what} of the database is missing"))
}

/// Fails if a newer version of this software has written the schema.
pub(super) fn expect_known(found: i32, known: i32) -> Result<(), Failure> {
    if found > known {
        return Err(Unfit::NewerSchema { found, known }.into());
    }
    Ok(())
}

impl Seen {
    /// What is seen of a step.
    pub(super) fn of(step: &Step) -> Self {
        Self { number: step.number, writer: step.writer.clone() }
    }
}
