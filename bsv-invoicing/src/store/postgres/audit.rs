//! The audit log in the database.

use bsv_store::{AuditCheck, AuditEntry, StoreError};
use tokio_postgres::Row;

use super::connection::Connection;
use super::error::Failure;
use super::shared::Shared;
use super::statements::{Parameter, StatementKey};
use super::transaction::in_time;

const READ: StatementKey = StatementKey::Other(
    "SELECT number, at, event, subject, previous FROM audit WHERE number > $1 ORDER BY number LIMIT $2::bigint",
);
/// How many entries are read at once.
const PAGE: usize = 1000;

/// Up to `limit` entries after the one with this number, in order.
pub(super) fn read(
    shared: &Shared,
    after: u64,
    limit: usize,
) -> Result<Vec<AuditEntry>, StoreError> {
    shared.with_connection(async |connection| page(connection, after, limit).await)
}

/// Reads the log from its beginning to the first entry that does not fit.
pub(super) fn verify(shared: &Shared) -> Result<AuditCheck, StoreError> {
    shared.with_connection(async |connection| {
        let mut check = AuditCheck::default();
        let mut after = 0;
        loop {
            let entries = page(connection, after, PAGE).await?;
            for entry in &entries {
                after = entry.number;
                if !check.take(entry) {
                    return Ok(check);
                }
            }
            if entries.len() < PAGE {
                return Ok(check);
            }
        }
    })
}

async fn page(
    connection: &Connection,
    after: u64,
    limit: usize,
) -> Result<Vec<AuditEntry>, Failure> {
    let given: Vec<Parameter<'_>> = vec![
        Box::new(i64::try_from(after).unwrap_or(i64::MAX)),
        Box::new(i64::try_from(limit).ok()),
    ];
    let read = async {
        connection.prepare(&[READ]).await?;
        Ok(connection.run(READ, given).await?)
    };
    in_time(read).await?.iter().map(entry).collect()
}

fn entry(row: &Row) -> Result<AuditEntry, Failure> {
    let damaged =
        |what: &str| crate::ledger::rows::Damaged(format!("an entry of the audit log: {what}"));
    let number = |column: usize| -> Result<u64, Failure> {
        Ok(u64::try_from(row.try_get::<_, i64>(column)?)
            .map_err(|_| damaged("a number below zero"))?)
    };
    let text = |column: usize| -> Result<String, Failure> {
        let bytes = row.try_get::<_, Vec<u8>>(column)?;
        Ok(String::from_utf8(bytes).map_err(|_| damaged("a text that is none"))?)
    };
    Ok(AuditEntry {
        number: number(0)?,
        at_micros: number(1)?,
        event: text(2)?,
        subject: text(3)?,
        previous: row
            .try_get::<_, Vec<u8>>(4)?
            .try_into()
            .map_err(|_| damaged("a hash of another length"))?,
    })
}
