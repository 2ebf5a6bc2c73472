//! The audit log in the database.

use bsv_store::{AuditCheck, AuditEntry, AuditPage, StoreError};
use tokio_postgres::Row;

use super::connection::Connection;
use super::error::Failure;
use super::shared::Shared;
use super::statements::{Parameter, StatementKey};
use super::transaction::in_time;

const READ_AFTER: StatementKey = StatementKey::Other(
    "SELECT number, at, event, subject, previous FROM @audit WHERE number > $1 ORDER BY number LIMIT $2::bigint",
);
const READ_BEFORE: StatementKey = StatementKey::Other(
    "SELECT number, at, event, subject, previous FROM @audit WHERE number < $1 ORDER BY number DESC LIMIT $2::bigint",
);
/// How many entries are read at once.
const PAGE: usize = 1000;

/// Up to `limit` entries of a page, in order.
pub(super) fn read(
    shared: &Shared,
    page: AuditPage,
    limit: usize,
) -> Result<Vec<AuditEntry>, StoreError> {
    shared.with_connection(async |connection| read_page(connection, page, limit).await)
}

/// Reads the log from its beginning to the first entry that does not fit.
pub(super) fn verify(shared: &Shared) -> Result<AuditCheck, StoreError> {
    shared.with_connection(async |connection| {
        let mut check = AuditCheck::default();
        let mut after = 0;
        loop {
            let entries = read_page(connection, AuditPage::After(after), PAGE).await?;
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

async fn read_page(
    connection: &Connection,
    page: AuditPage,
    limit: usize,
) -> Result<Vec<AuditEntry>, Failure> {
    let (statement, number) = match page {
        AuditPage::After(number) => (READ_AFTER, number),
        AuditPage::Before(number) => (READ_BEFORE, number),
    };
    let given: Vec<Parameter<'_>> = vec![
        Box::new(i64::try_from(number).unwrap_or(i64::MAX)),
        Box::new(i64::try_from(limit).ok()),
    ];
    let read = async {
        connection.prepare(&[statement]).await?;
        Ok(connection.run(statement, given).await?)
    };
    let mut rows = in_time(read).await?;
    if statement == READ_BEFORE {
        rows.reverse();
    }
    rows.iter().map(entry).collect()
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
